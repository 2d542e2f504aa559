"""A Sync's status, which is the record of what is ours: written whole or refused, never cut; and its finalizer."""

from collections.abc import Callable
from typing import Final

import msgspec

from starling.aio import Clock
from starling.api import Sync, conditions
from starling.api.v1alpha1 import SyncProblem, SyncStatus
from starling.controllers.sync_units import FINALIZER
from starling.controllers.writing import says_the_same, set_finalizer, write_status
from starling.engine import EngineError
from starling.errors import StarlingError
from starling.kube import Client, NotFound
from starling.runtime import Informer, key_of

__all__ = ["Records"]

LARGEST: Final = 900_000
"""Bytes of a status; etcd takes an object of up to 1.5 MB."""


class Records:
    """Writes them. `wrote` is told of each status written, with the Sync as it was before."""

    def __init__(
        self, client: Client, syncs: Informer[Sync], wrote: Callable[[Sync, SyncStatus], object], clock: Clock
    ) -> None:
        self._client = client
        self._syncs = syncs
        self._wrote = wrote
        self._clock = clock

    async def put(self, sync: Sync, status: SyncStatus) -> None:
        """Have a Sync say so, if it doesn't."""
        if says_the_same(status, sync.status):
            return
        if (size := len(msgspec.json.encode(status))) > LARGEST:
            error = EngineError(
                f"the status of Sync {key_of(sync)} would be {size:,} bytes for {len(status.inventory):,} objects, "
                f"more than the {LARGEST:,} that fit",
                hint="make it several Syncs",
            )
            await self.refuse(sync, error)
            raise error
        self._syncs.learn(await write_status(self._client, sync, status))
        self._wrote(sync, status)

    async def refuse(self, sync: Sync, error: StarlingError) -> None:
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

    async def hold(self, sync: Sync) -> Sync:
        """Have our finalizer on a Sync, so that it doesn't go before what it has."""
        if FINALIZER not in sync.metadata.finalizers:
            sync = await set_finalizer(self._client, sync, FINALIZER, present=True)
            self._syncs.learn(sync)
        return sync

    async def let_go(self, sync: Sync) -> None:
        """Take it off again."""
        if FINALIZER not in sync.metadata.finalizers:
            return
        try:
            self._syncs.learn(await set_finalizer(self._client, sync, FINALIZER, present=False))
        except NotFound:
            return
