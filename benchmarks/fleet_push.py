"""A hub with 100 push clusters: what each costs it in sockets and in memory.

Namespaces of one more API server stand in for clusters: a cluster's Assemblage is in the namespace that its Cluster is
in on the hub, so each Cluster has a namespace of its own there, and all have kubeconfigs to that one server.
Connections and tasks are one cluster's each, as ever. Nothing is applied downstream: Assemblages only say so. Try it
small: STARLING_BENCH_PUSH_CLUSTERS=10.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from benchmarks.fleet_hub import Process, Repository, apply_all, controller, installed, namespace, number, ours, until
from benchmarks.idle_watches import WATCHES, in_child
from benchmarks.rows import Row
from benchmarks.simulated_agents import begun, finished
from starling.api import Assemblage, Cluster, Module
from starling.kube import Changed, Client, kubeconfig, watch
from starling.local import GitServer, LocalCluster, LocalClusters

CLUSTERS: Final = number("PUSH_CLUSTERS", 100)
MODULE: Final = "module-0"
SETTLE: Final = 45.0
"""Seconds after which connections that nobody uses have been let go."""

_ASSEMBLAGES: Final = Assemblage.declaration.resource


@dataclass(frozen=True, slots=True)
class Weight:
    """The controller at one time: sockets to clusters, memory in bytes."""

    sockets: int
    memory: int

    @classmethod
    def of(cls, process: Process, downstream: LocalCluster) -> "Weight":
        """As it is now."""
        return cls(process.connections(downstream.port), process.resident())


async def measure(cluster: LocalCluster) -> list[Row]:
    """The hub alone, with clusters, and with one Module on each; and what a bare stream to the same server weighs."""
    clusters = LocalClusters(cluster.folder.parent / "more")
    repository = Repository(cluster.folder.parent / "served" / "fleet.git", 1)
    try:
        (downstream,) = await clusters.up("downstream")
        async with (
            GitServer(repository.folder.parent) as server,
            Client(kubeconfig(cluster.kubeconfig)) as hub,
            answering(downstream) as there,
        ):
            for client in (hub, there):
                await installed(client)
                await apply_all(client, (namespace(name(index)) for index in range(CLUSTERS)))
            async with controller(cluster) as process:
                git = {"url": f"{server.url}/fleet.git", "commit": repository.head()}
                rows = await fleet(hub, process, downstream, git)
        bare = await in_child("bare", downstream) / WATCHES
    finally:
        await clusters.down()
    return [*rows, Row("a bare aiohttp stream to the same server, KiB", f"{bare / 1024:.0f}")]


async def fleet(hub: Client, process: Process, downstream: LocalCluster, git: dict[str, str]) -> list[Row]:
    """All that needs the controller."""
    await asyncio.sleep(SETTLE / 4)
    alone, began = Weight.of(process, downstream), time.perf_counter()
    await apply_all(hub, (each for index in range(CLUSTERS) for each in added(name(index), downstream)))
    await until(lambda: ready(hub))
    took = time.perf_counter() - began
    await asyncio.sleep(SETTLE)
    connected, began = Weight.of(process, downstream), time.perf_counter()
    await apply_all(hub, (module(name(index), git) for index in range(CLUSTERS)))
    await until(lambda: rolled_out(hub))
    delivered, busy = time.perf_counter() - began, Weight.of(process, downstream)
    await asyncio.sleep(SETTLE)
    after = Weight.of(process, downstream)
    grown = (connected.memory - alone.memory, after.memory - alone.memory)
    return [
        Row(f"{CLUSTERS} push clusters added, until all are there", f"{took:.1f} s"),
        Row("  sockets per cluster, at rest", f"{connected.sockets / CLUSTERS:.2f}"),
        Row("  controller's RSS per cluster, at rest, KiB", f"{grown[0] / CLUSTERS / 1024:.0f}"),
        Row("one Module on each, delivered and told", f"{delivered:.1f} s"),
        Row("  sockets per cluster, meanwhile", f"{busy.sockets / CLUSTERS:.2f}"),
        Row("  sockets per cluster, at rest again", f"{after.sockets / CLUSTERS:.2f}"),
        Row("  controller's RSS per cluster with it, KiB", f"{grown[1] / CLUSTERS / 1024:.0f}"),
        Row("controller's RSS: no clusters, all", f"{alone.memory / 10**6:.0f} MB, {after.memory / 10**6:.0f} MB"),
    ]


async def ready(hub: Client) -> bool:
    """Whether the hub has reached all clusters."""
    listing = await hub.list(Cluster.declaration.resource, Cluster)
    return sum(each.status.phase == "Ready" for each in listing.items) == CLUSTERS


async def rolled_out(hub: Client) -> bool:
    """Whether each namespace's Module is on its one cluster."""
    listing = await hub.list(Module.declaration.resource, Module)
    return sum(each.status.phase == "Succeeded" and each.status.summary.succeeded for each in listing.items) == CLUSTERS


@asynccontextmanager
async def answering(downstream: LocalCluster) -> AsyncIterator[Client]:
    """The server behind all clusters, where an Assemblage says that it is applied as soon as it is written."""
    async with Client(kubeconfig(downstream.kubeconfig)) as client:
        await installed(client)
        agent = asyncio.create_task(answer(client))
        yield client
        agent.cancel()
        await asyncio.gather(agent, return_exceptions=True)


async def answer(client: Client) -> None:
    """Be the agent of all of them until cancelled: what each write leads to is told by the watch."""
    async with aclosing(watch(client, _ASSEMBLAGES, Assemblage)) as events:
        async for event in events:
            if not isinstance(event, Changed):
                continue
            meta, spec, status = event.object.metadata, event.object.spec, event.object.status
            if status.observed_generation != meta.generation:
                status = begun(spec.syncs, status, meta.generation)
            elif any(each.state == "updating" for each in status.syncs):
                status = finished(spec.syncs, status)
            else:
                continue
            body = ours("Assemblage", meta.name, meta.namespace) | {"status": msgspec.to_builtins(status)}
            del body["spec"]
            await client.apply(_ASSEMBLAGES.ref(meta.name, meta.namespace).status, body)


def name(index: int) -> str:
    """A cluster's, and its namespace's on both servers."""
    return f"push-{index}"


def added(called: str, downstream: LocalCluster) -> list[dict[str, Any]]:
    """What `starling cluster add` makes on the hub."""
    labels = {"starling.dev/kubeconfig": "cluster"}
    meta = {"name": f"{called}-kubeconfig", "namespace": called, "labels": labels}
    data = {"kubeconfig": base64.b64encode(downstream.kubeconfig.read_bytes()).decode()}
    push = {"kubeconfigSecret": {"name": meta["name"]}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
    return [secret, ours("Cluster", called, called, push=push)]


def module(where: str, git: dict[str, str]) -> dict[str, Any]:
    """One exact commit for the namespace's one cluster."""
    return ours("Module", MODULE, where, selector={}, sync={"source": {"git": git}, "path": MODULE})
