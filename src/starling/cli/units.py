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

import msgspec

from starling.cli.materials import Cluster, How, Materials
from starling.cli.options import (
    AllowEmpty,
    Confirm,
    Context,
    Files,
    Force,
    Kubeconfig,
    Namespace,
    Prune,
    UnitName,
)
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

__all__ = ["Reach", "Session", "Wanted", "connected", "opened", "refuse_unknown", "unit_id"]

CLUSTER: Final = "this"
PASSES: Final = (Unreachable, ServerError, TooManyRequests)
"""Trouble that the engine outlasts."""
PRUNED: Final = "pruned"
"""What the engine calls it when an object is deleted, whatever for."""
READINESS: Final = frozenset({"Failed", "Complains"})
"""What a status calls it if an object, applied as it should be, isn't ready."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a command works: a cluster, and a namespace there."""

    kubeconfig: Path | None
    context: str | None
    namespace: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A unit as apply and diff are asked for it: what it is to have, where, and how far one may go; options, spread."""

    files: Files
    name: UnitName
    kubeconfig: Kubeconfig = None
    context: Context = None
    namespace: Namespace = None
    prune: Prune = False
    allow_empty: AllowEmpty = False
    confirm: Confirm = ""
    force: Force = False
    how: How

    @property
    def reach(self) -> Reach:
        """The cluster and the namespace."""
        return Reach(self.kubeconfig, self.context, self.namespace)

    def materials(self) -> Materials:
        """What the files come to; stdin is read for it."""
        made = Materials(places=self.files, how=self.how, name=self.name, may_be_empty=self.allow_empty)
        return made.with_stdin()

    @asynccontextmanager
    async def opened(self, materials: Materials) -> AsyncIterator["Session"]:
        """An engine that has the unit, and isn't running yet; how long it may take is the command's to watch."""
        how = {"prune": self.prune, "allow_empty": self.allow_empty, "confirm": self.confirm, "force": self.force}
        manifests = await materials.manifests(self._target)
        revision = " ".join(materials.revisions)
        async with opened(self.reach, self.name, manifests, revision, **how) as session:
            yield session

    async def _target(self) -> Cluster:
        """What a chart is told of the cluster: the same as Helm would tell it."""
        async with connected(self.reach) as (client, namespace):
            version = (await client.raw("GET", "/version")).json()["gitVersion"]
            served = await client.discovery.resources()
        groups = {each.gvk.api_version for each in served}
        kinds = {f"{each.gvk.api_version}/{each.kind}" for each in served}
        return Cluster(version, sorted(groups | kinds), namespace)


@dataclass(frozen=True, slots=True)
class OneCluster:
    """A CredentialsStore of one cluster, and a ManifestGenerator of manifests that were read before."""

    access: AccessSource
    manifests: Sequence[Manifest] = ()
    revision: str = ""

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """The cluster."""
        return ClusterAccess(self.access) if name == CLUSTER else None

    async def watch_clusters(self) -> AsyncIterator[str]:
        """Nothing: it stays the same."""
        await asyncio.Event().wait()
        yield CLUSTER

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """The manifests, and the version they are of: a repository's, or else their digest."""
        del unit, revision, no_cache
        return self.manifests, self.revision or digest(sorted(manifest.digest for manifest in self.manifests))


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
        """Have the engine work until a status shows that it is done; trouble that doesn't pass is raised.

        The listener hears of every task, and of every status after which there is still something to wait for.
        """
        ended = asyncio.get_running_loop().create_future()

        def listen(news: UnitSeen | SyncEvent) -> None:
            if isinstance(news, UnitSeen) and not ended.done():
                if news.trouble is not None and not isinstance(news.trouble, PASSES):
                    ended.set_exception(news.trouble)
                elif news.trouble is None and done(news):
                    ended.set_result(None)
            if isinstance(news, SyncEvent) or not ended.done():
                listener(news)

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
        """All that went wrong, each once; that an object isn't ready is none of it.

        Whether the operation has failed doesn't say so: a sync that can't begin leaves the one before it as it was.
        """
        found = [
            *more,
            *(each for each in (self.seen.status.problems if self.seen is not None else ()) if not _of_readiness(each)),
            *(event.problem for event in self.events.values() if event.problem is not None),
        ]
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
        if self.unit.deleting and event.outcome == PRUNED:
            event = msgspec.structs.replace(event, outcome="deleted")  # who deletes a unit prunes nothing
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


def _of_readiness(problem: Problem) -> bool:
    return problem.key is not None and problem.reason in READINESS


def unit_id(namespace: str, name: str) -> str:
    """The id of a unit of the command line; `console.in_words` makes it one that people know."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be a unit's name", hint="lower-case letters, digits, - and . in between, 200 at most"
        )
    return f"cli/{namespace}/Unit.{name}@{CLUSTER}"


async def refuse_unknown(store: ConfigMapStore, unit_id: str) -> None:
    """Raise unless there is a record of the unit."""
    records = await store.records()
    if unit_id in records:
        return
    _, namespace, name = unit_id.partition("@")[0].split("/")
    others = ", ".join(each.partition("@")[0].rpartition("/Unit.")[2] for each in records if each.startswith("cli/"))
    raise InputError(
        f"there is no unit {name.removeprefix('Unit.')} in namespace {namespace}: never applied, or deleted already",
        hint=f"there is: {others}; -n looks in another namespace" if others else "-n looks in another namespace",
    )


@asynccontextmanager
async def connected(reach: Reach) -> AsyncIterator[tuple[Client, str]]:
    """A client of the cluster, and the namespace that is meant."""
    access = default_access(reach.kubeconfig, reach.context)
    async with Client(access) as client:
        yield client, reach.namespace or (await access()).namespace


@asynccontextmanager
async def opened(
    reach: Reach, name: str, manifests: Sequence[Manifest] = (), revision: str = "", **unit: Any
) -> AsyncIterator[Session]:
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
        here = OneCluster(access, manifests, revision)
        engine = Engine(ReconciliationSettings(), here, here, store)
        try:
            yield Session(engine, store, client, given)
        finally:
            await engine.close()
