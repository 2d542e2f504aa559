"""A unit of the command line: the engine on one cluster, with manifests read from files and a record in a ConfigMap."""

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from starling.engine import (
    Action,
    Change,
    ClusterAccess,
    ConfigMapStore,
    Engine,
    Problem,
    ReconciliationSettings,
    ResourceEvent,
    SyncEvent,
    Unit,
    UnitSeen,
    UnitStatus,
)
from starling.errors import InputError
from starling.kube import AccessSource, Client, ServerError, TooManyRequests, Unreachable, default_access
from starling.objects import Manifest, ObjectKey, digest

__all__ = ["Reach", "Session", "connected", "opened", "unit_id"]

CLUSTER: Final = "this"
PASSES: Final = (Unreachable, ServerError, TooManyRequests)
"""Trouble that the engine outlasts."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a command works: a cluster, and a namespace there."""

    kubeconfig: Path | None
    context: str | None
    namespace: str | None


@dataclass(frozen=True, slots=True)
class OneCluster:
    """A CredentialsStore of one cluster, and a ManifestGenerator of manifests that were read before."""

    access: AccessSource
    manifests: Sequence[Manifest] = ()

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """The cluster."""
        return ClusterAccess(self.access) if name == CLUSTER else None

    async def watch_clusters(self) -> AsyncIterator[str]:
        """Nothing: it stays the same."""
        await asyncio.Event().wait()
        yield CLUSTER

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """The manifests; their digest is the revision."""
        del unit, revision, no_cache
        return self.manifests, digest(sorted(manifest.digest for manifest in self.manifests))


@dataclass
class Session:
    """One unit in hand, and what was heard of it. Mutable."""

    engine: Engine
    store: ConfigMapStore
    client: Client
    unit: Unit
    events: dict[ObjectKey, SyncEvent] = field(default_factory=dict)
    objects: dict[ObjectKey, Change] = field(default_factory=dict)
    seen: UnitSeen | None = None
    _listener: Callable[[UnitSeen | SyncEvent], None] | None = None

    def __post_init__(self) -> None:
        self.engine.on_before_sync(self.store.check)
        self.engine.on_sync_event(self._event)
        self.engine.on_status(self._status)
        self.engine.on_resource_updated(self._object)
        self.engine.on_resource_removed(self._object)

    async def run(self, done: Callable[[UnitSeen], bool], listener: Callable[[UnitSeen | SyncEvent], None]) -> None:
        """Have the engine work until a status shows that it is done; trouble that doesn't pass is raised."""
        ended = asyncio.get_running_loop().create_future()

        def listen(news: UnitSeen | SyncEvent) -> None:
            listener(news)
            if isinstance(news, UnitSeen) and not ended.done():
                if news.trouble is not None and not isinstance(news.trouble, PASSES):
                    ended.set_exception(news.trouble)
                elif news.trouble is None and done(news):
                    ended.set_result(None)

        self._listener = listen
        running = asyncio.create_task(self.engine.run())
        try:
            await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
            await (ended if ended.done() else running)
        finally:
            self._listener = None
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def status(self) -> UnitStatus:
        """How the unit stands as far as is known: seen, or else as written down."""
        if self.seen is not None:
            return self.seen.status
        stored = await self.store.get(self.unit.id)
        return stored.status if stored is not None else UnitStatus()

    def problems(self, more: Sequence[Problem] = ()) -> list[Problem]:
        """All that went wrong, each once."""
        found = [*more, *(event.problem for event in self.events.values() if event.problem is not None)]
        return list({problem.message: problem for problem in found}.values())

    def standing(self) -> dict[ObjectKey, Change]:
        """What is known of the unit's objects, those left out that it has no longer."""
        if self.seen is None:
            return self.objects
        return {key: its for key, its in self.objects.items() if key in self.seen.status.inventory}

    def _event(self, event: SyncEvent) -> None:
        task = event.task
        if task.action is Action.RELEASE and (task.record is None or not task.record.live):
            return  # it was never there, or is gone: nothing was left
        if task.key is not None:
            self.events[task.key] = event
        if self._listener is not None:
            self._listener(event)

    def _status(self, seen: UnitSeen) -> None:
        if seen.unit_id == self.unit.id:
            self.seen = seen
            if self._listener is not None:
                self._listener(seen)

    def _object(self, event: ResourceEvent) -> None:
        if event.change.owner == self.unit.id:
            self.objects[event.change.key] = event.change


def unit_id(namespace: str, name: str) -> str:
    """The id of a unit of the command line."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be a unit's name", hint="lower-case letters, digits, - and . in between, 200 at most"
        )
    return f"cli/{namespace}/Unit.{name}@{CLUSTER}"


@asynccontextmanager
async def connected(reach: Reach) -> AsyncIterator[tuple[Client, str]]:
    """A client of the cluster, and the namespace that is meant."""
    access = default_access(reach.kubeconfig, reach.context)
    async with Client(access) as client:
        yield client, reach.namespace or (await access()).namespace


@asynccontextmanager
async def opened(reach: Reach, name: str, manifests: Sequence[Manifest] = (), **unit: Any) -> AsyncIterator[Session]:
    """An engine that has the unit, and isn't running yet."""
    # What the engine warns of is in what the commands say; what nobody expected is still logged.
    logging.getLogger("starling.engine").setLevel(logging.ERROR)
    access = default_access(reach.kubeconfig, reach.context)
    async with connected(reach) as (client, namespace):
        # How long it may take is the command's to watch.
        given = Unit(
            id=unit_id(namespace, name), cluster=CLUSTER, default_namespace=namespace, timeout=math.inf, **unit
        )
        store = ConfigMapStore(client, namespace, [given])
        here = OneCluster(access, manifests)
        engine = Engine(ReconciliationSettings(), here, here, store)
        try:
            yield Session(engine, store, client, given)
        finally:
            await engine.close()
