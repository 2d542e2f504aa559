"""Clusters, and faults made on purpose: an API server killed and brought back, an etcd compacted."""

import asyncio
import json
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import yaml

from starling.kube import AccessSource, kubeconfig_data
from starling.local import LocalCluster, LocalClusters


@contextmanager
def running(folder: Path, name: str, *, workloads: bool = False, audit: bool = False) -> Iterator[LocalCluster]:
    """A cluster that runs while the block does; with `workloads` its pods run too, on a simulated node."""
    clusters = LocalClusters(folder)
    try:
        yield asyncio.run(clusters.up(name, workloads=workloads, audit=audit))[0]
    finally:
        asyncio.run(clusters.down())


def kill(cluster: LocalCluster, *components: str) -> None:
    """End components the hard way, and return when they are gone; none named: the API server."""
    pids = cluster.pids()
    ends = [os.pidfd_open(pids[component]) for component in components or ("kube-apiserver",)]
    for end in ends:
        signal.pidfd_send_signal(end, signal.SIGKILL)
    for end in ends:
        select.select([end], [], [], 30)  # readable once it has ended
        os.close(end)


async def revive(cluster: LocalCluster) -> None:
    """Start again what was killed: same ports, same data."""
    await LocalClusters(cluster.folder.parent).up(cluster.name)


async def compact(cluster: LocalCluster, revision: int) -> None:
    """Have etcd forget what was before a revision, by its own HTTP gateway."""
    connector = aiohttp.UnixConnector(str(cluster.folder / "etcd.sock"))
    async with aiohttp.ClientSession(connector=connector) as session:
        body = json.dumps({"revision": str(revision), "physical": True})
        answer = await session.post("http://etcd/v3/kv/compaction", data=body)
        assert answer.status == 200, await answer.text()


def through(cluster: LocalCluster, port: int) -> AccessSource:
    """The cluster's administrator by way of another port on this machine."""
    data = yaml.safe_load(cluster.kubeconfig.read_text())
    data["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    return kubeconfig_data(data)
