"""The engine's SyncStore: Syncs are its units, and their status is where it writes down how these stand.

    informers ─► claims: which Sync has which unit ─► watch, list, get
    set_status, seen ─► one status ─► written if it differs from what the informer shows

Status is read once, when a unit is first asked for; from then on the engine knows better.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock, Workqueue
from starling.api import Assemblage, Source, Sync, conditions
from starling.api.v1alpha1 import SyncProblem, SyncStatus
from starling.controllers.afresh import afresh
from starling.controllers.sync_claims import Claims
from starling.controllers.sync_status import About, sync_status, unit_status
from starling.controllers.sync_units import (
    FINALIZER,
    Surroundings,
    SyncSettings,
    controller_of,
    owner_of,
    unit_id,
    unit_of,
)
from starling.controllers.terminating import is_terminating
from starling.controllers.writing import CONFIRM, says_the_same, set_finalizer, write_status
from starling.engine import EngineError, Operation, Problem, Readiness, StoredUnit, Unit, UnitSeen, UnitStatus
from starling.errors import InputError, StarlingError
from starling.kube import Client, NotFound
from starling.runtime import Informer, Key, key_of

__all__ = ["Given", "Note", "SyncStore", "was_tried"]

LOG = logging.getLogger(__name__)

LARGEST: Final = 900_000
"""Bytes of a status; etcd takes an object of up to 1.5 MB."""

REMOVAL_LOOK: Final = 30.0
"""Seconds between looks at a Sync that is being deleted: its namespace may go too, and its account with it."""

RETRY: Final = 5.0


@dataclass(frozen=True, slots=True)
class Given:
    """What the engine was last told of a unit, and what that was made from."""

    sync: Sync
    around: Surroundings
    unit: Unit


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator says of a unit: the marked revision of what is wanted, or whether that can't be made at all.

    `problem` is why it is another that stays in force.
    """

    wanted: str = ""
    hopeless: bool = False
    problem: Problem | None = None


class SyncStore:
    """Syncs as units. Mutable: who has which unit, what the engine was told, and what it said last.

    `wrote` is told of each status written, with the Sync as it was before.
    """

    def __init__(
        self,
        client: Client,
        syncs: Informer[Sync],
        sources: Informer[Source],
        assemblages: Informer[Assemblage],
        settings: SyncSettings,
        *,
        wrote: Callable[[Sync, SyncStatus], object],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._syncs = syncs
        self._sources = sources
        self._assemblages = assemblages
        self._settings = settings
        self._wrote = wrote
        self._clock = clock
        self._claims = Claims()
        self._given: dict[str, Given] = {}
        self._notes: dict[str, Note] = {}
        self._last: dict[str, UnitStatus] = {}  # without inventories: those are in the Syncs
        self._said: dict[str, About] = {}
        self._unsaid: dict[str, UnitStatus] = {}
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._changed = Workqueue[str](clock)
        self._to_write = Workqueue[Key](clock)
        syncs.listen(self._sync_changed)
        sources.listen(self._source_changed)
        assemblages.listen(self._assemblage_changed)

    # What the engine asks

    async def list(self) -> Sequence[str]:
        """The ids of all units."""
        return self._claims.units()

    async def get(self, unit_id: str) -> StoredUnit | None:
        """One unit with what its Sync's status says; by then the Sync has our finalizer, if anything may be done."""
        sync = self._sync(unit_id)
        if sync is None:
            return None
        if sync.metadata.deletion_timestamp is not None and FINALIZER not in sync.metadata.finalizers:
            return None  # whatever else it waits for, it isn't us
        try:
            around = await self._around(sync)
            stored = StoredUnit(unit_of(sync, unit_id, around), unit_status(sync.status))
        except InputError as error:
            await self._refuse(sync, error)
            raise
        if not stored.unit.deleting and not stored.unit.held and FINALIZER not in sync.metadata.finalizers:
            sync = await set_finalizer(self._client, sync, FINALIZER, present=True)
            self._syncs.learn(sync)
        self._given[unit_id] = Given(sync, around, stored.unit)
        return stored

    async def watch(self) -> AsyncIterator[str]:
        """The ids of units of which others changed something that matters, never of those only we wrote to."""
        try:
            while True:
                identity = await self._changed.get()
                self._changed.done(identity)
                yield identity
        finally:
            self._changed.close()

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        """Write down how a unit stands; the Sync of one that is removed is let go."""
        self._unsaid.pop(unit_id, None)
        await self._write(unit_id, status)

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        """Write down how far its operation is."""
        sync = self._sync(unit_id)
        if sync is None:
            return
        written = unit_status(sync.status)
        last = self._last.get(unit_id, written)
        await self.set_status(unit_id, msgspec.structs.replace(last, inventory=written.inventory, operation=operation))

    # What the generator and the controller ask

    def given(self, unit_id: str) -> Given:
        """What the engine was told of a unit last."""
        if unit_id not in self._given:
            raise EngineError(f"there is no unit {unit_id} any more")
        return self._given[unit_id]

    def note(self, unit_id: str, note: Note, *, again_after: float | None = None) -> None:
        """Take down what the generator says, and have the unit looked at again in so many seconds."""
        self._notes[unit_id] = note
        if again_after is not None:
            self._changed.add_after(unit_id, again_after)

    def sync_of(self, unit_id: str) -> Sync | None:
        """The Sync that has a unit, as it is now."""
        return self._sync(unit_id)

    def seen(self, seen: UnitSeen) -> None:
        """Hear how a unit stands, though the engine has nothing new to say: it may be about another spec by now."""
        identity, status = seen.unit_id, seen.status
        sync, given = self._sync(identity), self._given.get(identity)
        if seen.trouble is not None or sync is None or given is None:
            return
        if self._about(identity, sync, given, status) != self._said.get(identity):
            self._unsaid[identity] = status
            self._to_write.add(key_of(sync))

    async def run(self) -> None:
        """Write what is to be said besides what the engine has us write, until cancelled."""
        try:
            while True:
                key = await self._to_write.get()
                try:
                    await self._say(key)
                except StarlingError as error:
                    LOG.warning("Sync %s: its status can't be written: %s", key, error)
                    self._to_write.add_after(key, RETRY)
                finally:
                    self._to_write.done(key)
        finally:
            self._to_write.close()

    # Writing

    async def _say(self, key: Key) -> None:
        sync = self._syncs.get(key)
        if sync is None:
            return
        claimed = self._claims.claimed(key)
        if isinstance(claimed, str):
            if (holder := self._claims.holder(claimed, self._created)) == key:
                await self._write(claimed, None)
                return
            claimed = InputError(
                f"Sync {key} says that it is the unit {claimed}, which Sync {holder} is already", hint="delete one"
            )
        if sync.metadata.deletion_timestamp is not None:
            await self._let_go(sync)  # it has nothing, or nobody knows what
        else:
            await self._refuse(sync, claimed)

    async def _write(self, unit_id: str, status: UnitStatus | None) -> None:
        """Have the Sync say how its unit stands; None: what is still unsaid, unless newer was said meanwhile."""
        async with self._locks[unit_id]:
            sync, given = self._sync(unit_id), self._given.get(unit_id)
            status = status or self._unsaid.get(unit_id)
            if sync is None or given is None or status is None or sync.metadata.uid != given.sync.metadata.uid:
                return  # another has its name by now, and the engine will hear of it
            if status.removed:
                await self._let_go(sync)
                return
            if given.unit.deleting:
                self._changed.add_after(unit_id, REMOVAL_LOOK)
            about = self._about(unit_id, sync, given, status)
            await self._put(sync, sync_status(status, sync.status, about, self._clock.now()))
            self._said[unit_id] = about
            self._last[unit_id] = msgspec.structs.replace(status, inventory={})
            if self._unsaid.get(unit_id) is status:  # else there is more to say by now
                del self._unsaid[unit_id]

    async def _put(self, sync: Sync, status: SyncStatus) -> None:
        if says_the_same(status, sync.status):
            return
        if (size := len(msgspec.json.encode(status))) > LARGEST:
            error = EngineError(
                f"the status of Sync {key_of(sync)} would be {size:,} bytes for {len(status.inventory):,} objects, "
                f"more than the {LARGEST:,} that fit",
                hint="make it several Syncs",
            )
            await self._refuse(sync, error)
            raise error
        self._syncs.learn(await write_status(self._client, sync, status))
        self._wrote(sync, status)

    def _about(self, unit_id: str, sync: Sync, given: Given, status: UnitStatus) -> About:
        """Which spec a status is about: the one last given, or still the one that it was about before."""
        note = self._notes.get(unit_id, Note())
        if was_tried(note, given.unit, status):
            generation, target = given.sync.metadata.generation, given.sync.spec.target
        else:
            known = sync.status.observed_generation
            generation, target = -1 if known is None else known, sync.status.target
        return About(generation=generation, target=target, problem=note.problem)

    async def _refuse(self, sync: Sync, error: StarlingError) -> None:
        """Say what is wrong with a Sync itself; its record stays as it is."""
        before, generation = sync.status, sync.metadata.generation
        problem = SyncProblem(reason=error.reason, message=error.message[:2048], hint=(error.hint or "")[:2048])
        status = msgspec.structs.replace(
            before,
            observed_generation=generation,
            target=sync.spec.target,
            readiness="Failed",
            problems=(problem,),
            conditions=conditions.failed(before.conditions, generation, self._clock.now(), error),
        )
        if not says_the_same(status, before):
            self._syncs.learn(await write_status(self._client, sync, status))
            self._wrote(sync, status)

    async def _let_go(self, sync: Sync) -> None:
        if FINALIZER not in sync.metadata.finalizers:
            return
        try:
            self._syncs.learn(await set_finalizer(self._client, sync, FINALIZER, present=False))
        except NotFound:
            return

    # Knowing

    def _sync(self, unit_id: str) -> Sync | None:
        key = self._claims.holder(unit_id, self._created)
        return self._syncs.get(key) if key is not None else None

    def _created(self, key: Key) -> Any:
        """What orders Syncs by age; all that claim something are known."""
        sync = self._syncs.get(key)
        return (sync.metadata.creation_timestamp, key) if sync is not None else (self._clock.now(), key)

    async def _around(self, sync: Sync) -> Surroundings:
        namespace, name = sync.metadata.namespace, sync.spec.source.name
        deleting, owner, now = sync.metadata.deletion_timestamp is not None, owner_of(sync), None
        if deleting and owner is not None:
            now = await afresh(self._client, Assemblage, Key(namespace, owner.name))
        return Surroundings(
            controller=controller_of(sync, (lambda _: now) if deleting else self._assemblages.get),
            source=self._sources.get(Key(namespace, name)) if name is not None else None,
            terminating=deleting and await is_terminating(self._client, Sync, namespace),
        )

    def _sync_changed(self, before: Sync | None, after: Sync | None) -> None:
        if after is None:
            if before is not None:
                self._tell(self._claims.drop(key_of(before)))
            return
        self._claim(after)
        if before is None or _wanted(before) != _wanted(after):
            claimed = self._claims.claimed(key_of(after))
            if isinstance(claimed, str):
                self._changed.add(claimed)
            self._to_write.add(key_of(after))

    def _source_changed(self, before: Source | None, after: Source | None) -> None:
        source = after or before
        if source is None or (before is not None and after is not None and _offered(before) == _offered(after)):
            return
        for sync in self._syncs.items():
            if (sync.metadata.namespace, sync.spec.source.name) == key_of(source):
                self._announce(sync)

    def _assemblage_changed(self, before: Assemblage | None, after: Assemblage | None) -> None:
        assemblage = after or before
        if assemblage is None or (before is not None and after is not None and _bearing(before) == _bearing(after)):
            return
        for sync in self._syncs.items():
            owners = {(sync.metadata.namespace, owner.name) for owner in sync.metadata.owner_references}
            if key_of(assemblage) in owners:
                self._claim(sync)
                self._announce(sync)

    def _announce(self, sync: Sync) -> None:
        claimed = self._claims.claimed(key_of(sync))
        if isinstance(claimed, str):
            self._changed.add(claimed)

    def _claim(self, sync: Sync) -> None:
        try:
            claimed: str | InputError = unit_id(sync, controller_of(sync, self._assemblages.get), self._settings)
        except InputError as error:
            claimed = error
        self._tell(self._claims.put(key_of(sync), claimed))

    def _tell(self, affected: Sequence[str]) -> None:
        """Have units looked at whose Sync isn't the same any more, and those told who have none."""
        for identity in affected:
            self._changed.add(identity)
            claimants = self._claims.claimants(identity)
            for key in claimants:
                self._to_write.add(key)
            if not claimants:
                for kept in (self._given, self._notes, self._last, self._said, self._unsaid, self._locks):
                    kept.pop(identity, None)


def was_tried(note: Note, unit: Unit, status: UnitStatus) -> bool:
    """Whether a status tells what came of trying what is wanted: no rollout may take an older success for a new one.

    Its revision tells, since it has the mark of what was rendered; or that nothing could be. What is held, or can't
    be seen, wasn't tried.
    """
    if unit.held or status.readiness is Readiness.UNKNOWN:
        return False
    return bool(status.problems) if note.hopeless else bool(note.wanted) and status.revision == note.wanted


def _wanted(sync: Sync) -> tuple[object, ...]:
    """What others say with a Sync; the rest is our own."""
    meta = sync.metadata
    return (
        meta.uid,
        meta.generation,
        meta.deletion_timestamp is not None,
        meta.annotations.get(CONFIRM),
        meta.owner_references,
    )


def _offered(source: Source) -> tuple[object, ...]:
    artifact = source.status.artifact
    return source.metadata.uid, source.spec, artifact.revision if artifact is not None else None


def _bearing(assemblage: Assemblage) -> tuple[object, ...]:
    """What of an Assemblage its Syncs have to heed."""
    meta, spec = assemblage.metadata, assemblage.spec
    return meta.uid, meta.deletion_timestamp is not None, spec.mode, spec.released
