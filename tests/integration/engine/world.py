"""An engine's surroundings for tests: units and manifests in memory, a real cluster."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from starling.engine import (
    ClusterAccess,
    Engine,
    Limits,
    Operation,
    Phase,
    Readiness,
    ReconciliationSettings,
    StoredUnit,
    SyncEvent,
    Unit,
    UnitStatus,
)
from starling.kube import AccessSource, kubeconfig
from starling.local import LocalCluster
from starling.objects import Manifest, load_manifests
from tests.waiting import until

__all__ = ["World", "unit_id", "world"]

QUICK = Limits(first_retry=0.2, longest_retry=1.0, contention_wait=2.0, patience=1.0)


def unit_id(name: str, *, instance: str = "test", namespace: str = "team") -> str:
    """The id of a unit on the one cluster."""
    return f"{instance}/{namespace}/Sync.{name}@here"


@dataclass
class World:
    """A CredentialsStore, a ManifestGenerator and a SyncStore in one. `writes` counts what was written down.

    `others` are clusters besides "here", `unread` texts in place of manifests, which are read when they are asked for.
    """

    access: AccessSource
    units: dict[str, StoredUnit] = field(default_factory=dict)
    texts: dict[str, tuple[str, Sequence[Manifest]]] = field(default_factory=dict)
    events: list[SyncEvent] = field(default_factory=list)
    writes: int = 0
    generated: int = 0
    generated_anew: int = 0
    others: dict[str, ClusterAccess] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    clusters_changed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _changed: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        return ClusterAccess(self.access) if name == "here" else self.others.get(name)

    async def watch_clusters(self) -> AsyncIterator[str]:
        while True:
            yield await self.clusters_changed.get()

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        self.generated += 1
        self.generated_anew += no_cache
        if unit.id in self.unread:
            return load_manifests(self.unread[unit.id], "test.yaml"), "unread"
        text, manifests = self.texts[unit.id]
        return manifests, revision or text

    async def list(self) -> Sequence[str]:
        return list(self.units)

    async def get(self, unit_id: str) -> StoredUnit | None:
        return self.units.get(unit_id)

    async def watch(self) -> AsyncIterator[str]:
        while True:
            yield await self._changed.get()

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        self.writes += 1
        self.units[unit_id] = StoredUnit(self.units[unit_id].unit, status)

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        status = msgspec.structs.replace(self.units[unit_id].status, operation=operation)
        await self.set_status(unit_id, status)

    def put(self, name: str, text: str, **unit: Any) -> str:
        """Add a unit or change it: its manifests, and how they are synced."""
        return self.give(name, load_manifests(text, "test.yaml"), f"r{hash(text) & 0xFFFFFF:x}", **unit)

    def give(self, name: str, manifests: Sequence[Manifest], revision: str, **unit: Any) -> str:
        """The same with manifests that someone has read already."""
        identity = name if "/" in name else unit_id(name)
        self.texts[identity] = (revision, manifests)
        status = self.units[identity].status if identity in self.units else UnitStatus()
        self.units[identity] = StoredUnit(Unit(id=identity, cluster=identity.partition("@")[2], **unit), status)
        self._changed.put_nowait(identity)
        return identity

    def status(self, identity: str) -> UnitStatus:
        """A unit's status as last written down."""
        return self.units[identity].status

    def done(self, identity: str) -> bool:
        """Whether the unit's newest manifests have been applied, and its status says that all is well."""
        status = self.status(identity)
        operation = status.operation
        return (
            operation is not None
            and operation.phase is Phase.SUCCEEDED
            and status.applied_revision == self.texts[identity][0]
            and status.readiness is Readiness.CURRENT
            and bool(status.baseline)
        )

    async def synced(self, *identities: str) -> None:
        """Wait until these units are done."""
        for identity in identities:
            try:
                await until(partial(self.done, identity))
            except TimeoutError:
                raise AssertionError(f"{identity} isn't done: {self.status(identity)}") from None

    async def until(self, identity: str, condition: Callable[[UnitStatus], object]) -> UnitStatus:
        """Wait until a unit's status is so."""
        try:
            await until(lambda: bool(condition(self.status(identity))))
        except TimeoutError:
            raise AssertionError(f"{identity} never was so: {self.status(identity)}") from None
        return self.status(identity)


@asynccontextmanager
async def running_engine(
    surroundings: World,
    settings: ReconciliationSettings | None = None,
    limits: Limits = QUICK,
    *,
    processors: int = 8,
) -> AsyncIterator[Engine]:
    """An engine at work in these surroundings."""
    engine = Engine(settings or ReconciliationSettings(), surroundings, surroundings, surroundings, limits=limits)
    engine.on_sync_event(surroundings.events.append)
    task = asyncio.create_task(engine.run(status_processors=processors, operation_processors=processors))
    try:
        yield engine
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def world(cluster: LocalCluster) -> World:
    """Empty surroundings on a cluster."""
    return World(kubeconfig(cluster.kubeconfig))
