"""Where a unit's tasks are done: its cluster, as whom, and how many at a time."""

import asyncio
from dataclasses import dataclass

from starling.aio import Slot, Slots
from starling.engine.cache import ClusterCache
from starling.engine.settings import ReconciliationSettings
from starling.engine.unit import Unit
from starling.kube import Client, NotServed, Ref
from starling.objects import GroupVersionKind, ObjectKey

__all__ = ["Target"]

SERVED_WITHIN = 10.0
ASK_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Target:
    """One unit on its cluster. `reader` has the engine's own rights, `writer` those of the unit's account."""

    unit: Unit
    reader: Client
    writer: Client
    cache: ClusterCache
    settings: ReconciliationSettings
    per_cluster: asyncio.Semaphore
    in_all: Slots
    at_once: int

    async def ref(self, gvk: GroupVersionKind, key: ObjectKey) -> Ref:
        """The address of an object whose CRD has just been established: discovery tells of it a moment later."""
        clock = self.reader.transport.clock
        give_up = clock.monotonic() + SERVED_WITHIN
        while True:
            try:
                return (await self.reader.discovery.resource(gvk)).ref(key.name, key.namespace)
            except NotServed:
                if clock.monotonic() >= give_up:
                    raise
            await clock.sleep(ASK_EVERY)

    async def preferred_ref(self, key: ObjectKey) -> Ref:
        """The address of an object of which only the key is known."""
        return (await self.reader.discovery.preferred(key.group, key.kind)).ref(key.name, key.namespace)

    def writing(self, key: ObjectKey) -> "_Writing":
        """Hold a place among those who write, and tell the cache that a change may be ours."""
        return _Writing(self, key)


class _Writing:
    """A context manager; not one made of a generator, which would cost every write a tenth of its time."""

    def __init__(self, target: Target, key: ObjectKey) -> None:
        self._target = target
        self._key = key
        self._place: Slot | None = None

    async def __aenter__(self) -> None:
        target = self._target
        await target.per_cluster.acquire()
        try:
            self._place = await target.in_all.take()
        except BaseException:
            target.per_cluster.release()
            raise
        target.cache.writing(self._key)

    async def __aexit__(self, *_: object) -> None:
        self._target.cache.written(self._key)
        if self._place is not None:
            self._place.give_up()
        self._target.per_cluster.release()
