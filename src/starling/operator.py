"""The composition root: the only place that puts concrete things together, for the hub and for a cluster.

`run_controller` is the hub: Sources, Clusters, Modules, SyncGroups, the assembler, push. `run_agent` is a cluster:
Assemblages, Syncs with the engine behind them, and Upstreams. Each runs groups of controllers, each group in one
process of several at a time by a Lease of its own. Both follow Sources, which is a group of its own: where the hub is
managed by an agent too, one of the two does it.
"""

import asyncio
import logging
import os
import platform
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import msgspec
from prometheus_client import CollectorRegistry

from starling.api import (
    PLATFORM_NAMESPACE,
    Assemblage,
    Cluster,
    Resource,
    Source,
    Sync,
    Upstream,
)
from starling.controllers.assemblage import AssemblageController
from starling.controllers.assembler import Assembler
from starling.controllers.cluster import ClusterController
from starling.controllers.credentials import KUBECONFIG_LABEL, Secret
from starling.controllers.delivery import DeliverySettings
from starling.controllers.heartbeat import LEASES
from starling.controllers.module import ModuleController
from starling.controllers.presence import CLUSTER_LABEL, ClusterLease, LeaseWatch, Presence
from starling.controllers.push import PushController
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import SECRETS, Secrets
from starling.controllers.source import SourceController, tidy
from starling.controllers.sync import SyncController, SyncSettings, SyncWorld
from starling.controllers.syncgroup import SyncGroupController
from starling.controllers.upstream import UpstreamController, UpstreamSettings
from starling.controllers.world import World
from starling.files import private_folder
from starling.kube import EVERYTHING, AccessSource, Client, Named, Selection
from starling.rendering import Cache, Renderer
from starling.runtime import Group, Informer, LeaseSettings, Metrics, Recorder, lead, serve
from starling.sources import ArtifactStore, FetchSettings, GitSources

__all__ = ["AgentSettings", "Settings", "run_agent", "run_controller"]

LOG = logging.getLogger(__name__)
T = TypeVar("T", bound=Named)

SOURCES = "starling-sources"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a process runs. `data` holds what was fetched and rendered, and may be deleted at any time.

    `lost_after` is for how many seconds a cluster that the hub connects to must not answer to count as unreachable.
    """

    instance: str
    data: Path
    elect: bool = True
    lease: LeaseSettings = LeaseSettings()
    address: str = "127.0.0.1"
    port: int = 0
    lost_after: float = 180.0
    fetching: FetchSettings = FetchSettings()


class AgentSettings(Settings, frozen=True, kw_only=True):
    """How an agent runs. `heartbeat` is in seconds.

    `give_up_after` is for how many seconds the deletion of a Sync waits for another cluster that doesn't answer.
    """

    heartbeat: float = 60.0
    give_up_after: float = 600.0


class _Process:
    """What all groups of one process share. Mutable: the groups that run now."""

    def __init__(self, client: Client, settings: Settings, component: str) -> None:
        self.client = client
        self.settings = settings
        self.identity = f"{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.recorder = Recorder(client, f"starling.dev/{component}", self.identity)
        self.secrets = Secrets(client)
        self.store = ArtifactStore(private_folder(settings.data) / "artifacts")
        self.sources = GitSources(settings.data / "sources", self.store, settings.fetching)
        self.repositories = Repositories(self.sources, self.store, Renderer(cache=Cache(settings.data / "renders")))
        self.metrics = Metrics()
        self.metrics.observe_events(self.recorder)
        self.groups: dict[str, Group] = {}

    def informer(
        self, group: Group, kind: type[Resource], into: type[T], selection: Selection = EVERYTHING
    ) -> Informer[T]:
        """Follow one of our kinds, decoded to what `into` names."""
        return group.informer(Informer(self.client, kind.declaration.resource, into, selection))

    def kubeconfigs(self, group: Group, of: str) -> Informer[Secret]:
        """Follow the Secrets that hold kubeconfigs of `cluster`s, or of an `upstream`."""
        return group.informer(Informer(self.client, SECRETS, Secret, Selection(labels=f"{KUBECONFIG_LABEL}={of}")))

    async def run(self, *groups: tuple[str, Callable[[], Group]]) -> None:
        """Run groups, each while it has its lease, until cancelled."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            registry = CollectorRegistry()
            registry.register(self.metrics)
            settings = self.settings
            port = await stack.enter_async_context(
                serve(settings.address, settings.port, ready=self.ready, alive=lambda: True, registry=registry)
            )
            LOG.info("answers /healthz, /readyz and /metrics on %s:%d", settings.address, port)
            tasks.create_task(self.recorder.run())
            tasks.create_task(tidy(self.sources, self.store))
            for name, build in groups:
                tasks.create_task(self._lead(name, build))

    def ready(self) -> bool:
        """Whether the groups that run know the world; those that others lead don't count."""
        return all(group.ready for group in self.groups.values())

    async def _lead(self, name: str, build: Callable[[], Group]) -> None:
        async def work() -> None:
            group = self.groups[name] = build()
            LOG.info("%s: begins", name)
            self.metrics.observe(group)
            try:
                await group.run()
            finally:
                self.metrics.forget(group)
                del self.groups[name]
                LOG.info("%s: ended", name)

        if self.settings.elect:
            await lead(
                self.client, name, PLATFORM_NAMESPACE, self.identity, work, self.settings.lease,
                told=self.metrics.leads if name != SOURCES else lambda _: None,
            )  # fmt: skip
        else:
            await work()

    def following_sources(self) -> Group:
        """The group that finds out which versions there are."""
        group = Group(SOURCES)
        sources = self.informer(group, Source, Source)
        SourceController(self.client, self.sources, self.secrets, self.recorder).join(group, sources)
        return group


async def run_controller(access: AccessSource, settings: Settings) -> None:
    """Be the hub until cancelled."""
    async with Client(access) as client:
        process = _Process(client, settings, "controller")
        await process.run((SOURCES, process.following_sources), ("starling-controller", lambda: _hub(process)))


def _hub(process: _Process) -> Group:
    client, recorder = process.client, process.recorder
    group, presence = Group("starling-controller"), Presence()
    world = World.followed(client, group)
    leases = group.informer(Informer(client, LEASES, ClusterLease, Selection(labels=CLUSTER_LABEL)))
    ClusterController(client, presence, recorder).join(group, world)
    ModuleController(client, process.repositories, process.secrets, recorder).join(group, world)
    SyncGroupController(client, process.repositories, process.secrets, recorder).join(group, world)
    Assembler(client, process.secrets, recorder, process.settings.instance).join(group, world)
    LeaseWatch(presence).join(group, leases)
    PushController(client, presence, settings=DeliverySettings(lost_after=process.settings.lost_after)).join(
        group, world.clusters, world.proxies, process.kubeconfigs(group, "cluster")
    )
    return group


async def run_agent(access: AccessSource, settings: AgentSettings) -> None:
    """Keep a cluster as its Syncs and its hubs say, until cancelled."""
    async with Client(access) as client:
        process = _Process(client, settings, "agent")
        await process.run(
            (SOURCES, process.following_sources),
            ("starling-agent", lambda: _agent(process, access, settings)),
        )


def _agent(process: _Process, access: AccessSource, settings: AgentSettings) -> Group:
    client, group = process.client, Group("starling-agent")
    world = SyncWorld(
        syncs=process.informer(group, Sync, Sync),
        sources=process.informer(group, Source, Source),
        assemblages=process.informer(group, Assemblage, Assemblage),
        clusters=process.informer(group, Cluster, Cluster),  # there are none but on a hub
        kubeconfigs=process.kubeconfigs(group, "cluster"),
    )
    upstreams = process.informer(group, Upstream, Upstream)
    AssemblageController(client).join(group, world.assemblages, world.syncs)
    SyncController(
        client,
        access,
        process.repositories,
        process.secrets,
        process.recorder,
        settings=SyncSettings(instance=settings.instance, give_up_after=settings.give_up_after),
    ).join(group, world)
    UpstreamController(
        client, settings=UpstreamSettings(heartbeat_every=settings.heartbeat, identity=process.identity)
    ).join(group, upstreams, process.kubeconfigs(group, "upstream"))
    return group
