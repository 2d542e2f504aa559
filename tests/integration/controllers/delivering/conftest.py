"""A hub and a cluster: two real API servers with Starling's kinds, and a namespace on each for every test."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from starling.api import crds
from starling.kube import Client, Resource, kubeconfig
from starling.local import LocalCluster
from tests.integration.clusters import running
from tests.integration.controllers.delivering.world import World
from tests.waiting import until

CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_numbers = itertools.count()


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """The hub's API server and the cluster's, each with our kinds."""
    with ExitStack() as stack:
        hub, downstream = (
            stack.enter_context(running(tmp_path_factory.mktemp(name), name)) for name in ("hub", "downstream")
        )
        for each in (hub, downstream):
            asyncio.run(_install(each))
        yield hub, downstream


async def _install(cluster: LocalCluster) -> None:
    async with Client(kubeconfig(cluster.kubeconfig)) as client:
        for document in crds():
            await client.apply(CRDS.ref(document["metadata"]["name"]), document)

        async def established() -> bool:
            found = (await client.raw("GET", CRDS.path())).json()["items"]
            return all(
                any(c["type"] == "Established" and c["status"] == "True" for c in each["status"]["conditions"] or ())
                for each in found
            )

        await until(established)


@pytest.fixture
async def world(both: tuple[LocalCluster, LocalCluster]) -> AsyncIterator[World]:
    """Both, as their administrators, and a namespace of the test's own."""
    hub, downstream = both
    namespace = f"test-{os.getpid()}-{next(_numbers)}"
    async with Client(kubeconfig(hub.kubeconfig)) as at_hub, Client(kubeconfig(downstream.kubeconfig)) as there:
        for client in (at_hub, there):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        yield World(at_hub, there, namespace, hub, downstream)
