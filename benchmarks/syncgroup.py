"""One SyncGroup with 200 Syncs: how long a change of its Source takes to reach all, and what that costs.

Namespaces of one more API server stand in for clusters: 200 Clusters with kubeconfigs to that one server, and manifests
that name the cluster as their namespace. Whether such a cluster is there is told by this benchmark, since to a hub they
are all the same one; SyncGroup controller and agent are what people run. Try it small: STARLING_BENCH_SYNCS=20.
"""

import asyncio
import base64
import time
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.fleet_hub import (
    Process,
    Repository,
    Writes,
    apply_all,
    child,
    installed,
    namespace,
    number,
    ours,
    requests,
    until,
)
from benchmarks.rows import Row
from starling.api import PLATFORM_NAMESPACE, Cluster, SyncGroup
from starling.kube import Client, kubeconfig
from starling.local import GitServer, LocalCluster, LocalClusters

SYNCS: Final = number("SYNCS", 200)
PART: Final = "module-0"
REST: Final = 30.0
"""Seconds of watching whether anything is written at rest."""

_GROUPS: Final = SyncGroup.declaration.resource
_CLUSTERS: Final = Cluster.declaration.resource


async def measure(cluster: LocalCluster) -> list[Row]:
    """The first version, the second, and then nothing."""
    clusters = LocalClusters(cluster.folder.parent / "more")
    repository = Repository(cluster.folder.parent / "served" / "fleet.git", 1, "${CLUSTER_NAME}")
    data = cluster.folder.parent / "data"
    data.mkdir()
    try:
        (downstream,) = await clusters.up("downstream")
        async with (
            GitServer(repository.folder.parent) as server,
            Client(kubeconfig(cluster.kubeconfig)) as hub,
            Client(kubeconfig(downstream.kubeconfig)) as there,
        ):
            await installed(hub)
            await apply_all(there, (namespace(name(index)) for index in range(SYNCS)))
            await apply_all(hub, objects(downstream, f"{server.url}/fleet.git"))
            await say_that_all_are_there(hub)
            where = ("--kubeconfig", str(cluster.kubeconfig), "--data", str(data / "agent"))
            options = (*where, "--instance", "fleet", "--no-leader-election", "--log-format", "text")
            async with (
                child(data / "hub.log", "benchmarks.syncgroup_hub", str(cluster.kubeconfig), str(data)) as controller,
                child(data / "agent.log", "starling", "agent", *options) as agent,
            ):
                return await watched(hub, there, repository, controller, agent)
    finally:
        await clusters.down()


async def watched(hub: Client, there: Client, repository: Repository, controller: Process, agent: Process) -> list[Row]:
    """Both versions and the rest after them, by the clock, /proc and the API servers' metrics."""
    first = await reached(hub, repository)
    await asyncio.sleep(REST / 3)
    before = (await requests(hub), await requests(there), controller.cpu_seconds(), agent.cpu_seconds())
    repository.commit({PART: "version 1"})
    second = await reached(hub, repository)
    await asyncio.sleep(REST / 3)
    after = (await requests(hub), await requests(there), controller.cpu_seconds(), agent.cpu_seconds())
    spent = [then - now for then, now in zip(after, before, strict=True)]
    written = [await Writes.read(each) for each in (hub, there)]
    await asyncio.sleep(REST)
    still = [
        (await Writes.read(each)).since(was).but("leases") for each, was in zip((hub, there), written, strict=True)
    ]
    return [
        Row(f"{SYNCS} Syncs made, applied and told", f"{first[0]:.1f} s"),
        Row(f"a change of the Source on all {SYNCS} and told", f"{second[0]:.1f} s"),
        Row("  requests per Sync, hub", f"{(spent[0] - second[1]) / SYNCS:.2f}"),
        Row("  requests per Sync, clusters", f"{spent[1] / SYNCS:.2f}"),
        Row("  CPU of controller and agent", f"{spent[2]:.1f} s, {spent[3]:.1f} s"),
        Row("  RSS of controller and agent", f"{controller.peak() / 10**6:.0f} MB, {agent.peak() / 10**6:.0f} MB"),
        Row(
            f"writes in {REST:.0f} s at rest, hub, clusters",
            f"{still[0].total()}, {still[1].total()}",
            "0",
            not any(still),
        ),
    ]


async def reached(hub: Client, repository: Repository) -> tuple[float, int]:
    """Seconds until the newest commit is everywhere, and how often that was asked."""
    began, asked, head = time.perf_counter(), 0, repository.head()

    async def through() -> bool:
        nonlocal asked
        asked += 1
        status = (await hub.get(_GROUPS.ref("group", PLATFORM_NAMESPACE))).decode(SyncGroup).status
        return status.revision.endswith(head) and status.ended == status.target and status.phase == "Succeeded"

    await until(through)
    return time.perf_counter() - began, asked


async def say_that_all_are_there(hub: Client) -> None:
    """What a hub finds out about clusters that are many."""
    for index in range(SYNCS):
        await hub.merge_patch(_CLUSTERS.ref(name(index), PLATFORM_NAMESPACE).status, {"status": {"phase": "Ready"}})


def objects(downstream: LocalCluster, url: str) -> Iterator[dict[str, Any]]:
    """The Source, the group, and the clusters."""
    git = {"url": url, "ref": {"branch": "main"}}
    yield ours("Source", "fleet", PLATFORM_NAMESPACE, git=git, interval="1s")
    config = base64.b64encode(downstream.kubeconfig.read_bytes()).decode()
    for index in range(SYNCS):
        labels = {"starling.dev/kubeconfig": "cluster"}
        meta = {"name": f"{name(index)}-kubeconfig", "namespace": PLATFORM_NAMESPACE, "labels": labels}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"kubeconfig": config}}
        yield ours("Cluster", name(index), PLATFORM_NAMESPACE, push={"kubeconfigSecret": {"name": meta["name"]}})
    part = {"name": "part", "source": {"name": "fleet"}, "path": PART, "package": {"plain": {}}}
    rollout = {"maxConcurrent": "100%"}
    yield ours("SyncGroup", "group", PLATFORM_NAMESPACE, selector={}, syncs=[part], rollout=rollout)


def name(index: int) -> str:
    """A cluster's, and its namespace's."""
    return f"cluster-{index}"
