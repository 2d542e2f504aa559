"""A Sync's status is the record of what is ours: it is written whole, or refused; never cut, never lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from starling.aio import SYSTEM_CLOCK
from starling.controllers.sync_records import Records
from starling.controllers.sync_store import Note, SyncStore
from starling.controllers.sync_units import SyncSettings
from starling.engine import EngineError, Readiness, UnitStatus
from starling.objects import ObjectKey
from starling.runtime import Group
from tests.integration.controllers.syncing.stage import Stage, world

WELL = UnitStatus(revision="sha1:a key", readiness=Readiness.CURRENT)


def inventory(number: int) -> dict[ObjectKey, str]:
    """As many objects, about a hundred bytes each."""
    return {ObjectKey("apps", "Deployment", "n" * 40, f"{at:030}"): "0123456789abcdef" for at in range(number)}


@asynccontextmanager
async def store_of(stage: Stage) -> AsyncIterator[SyncStore]:
    """A store that knows the namespace."""
    group = Group("store")
    known = world(stage.client, group, stage.namespace)
    records = Records(stage.client, known.syncs, lambda _before, _after: None, SYSTEM_CLOCK)
    store = SyncStore(stage.client, known, records, SyncSettings(), let_go=lambda _sync, _why: None)
    task = asyncio.create_task(group.run())
    try:
        for informer in group.informers:
            await informer.synced()
        yield store
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_large_record_is_written_and_one_too_large_refused(stage: Stage) -> None:
    """Thousands of objects fit; where they don't, it is said, and the record before stands."""
    await stage.put_sync("web", "a" * 40)
    many, too_many = inventory(7_000), inventory(12_000)
    async with store_of(stage) as store:
        (unit_id,) = await store.list()
        assert unit_id == f"local/{stage.namespace}/Sync.web@this"
        assert await store.get(unit_id) is not None
        store.note(unit_id, Note(wanted=WELL.revision))
        await store.set_status(unit_id, UnitStatus(revision=WELL.revision, readiness=WELL.readiness, inventory=many))
        with pytest.raises(EngineError, match="12,000 objects") as refused:
            await store.set_status(unit_id, UnitStatus(revision=WELL.revision, inventory=too_many))
        assert refused.value.hint == "make it several Syncs"
        await stage.says("web", "more than the 900,000 that fit")
    async with store_of(stage) as another:
        stored = await another.get(unit_id)
        assert stored is not None
        assert stored.status.inventory == many
