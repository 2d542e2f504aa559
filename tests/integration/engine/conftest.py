"""A world of each test's own, and a counted way to the cluster."""

from collections.abc import AsyncIterator

import pytest

from starling.kube import Client, kubeconfig
from starling.local import LocalCluster
from tests.integration.engine.scene import Scene
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.traffic import traffic as counted_traffic


@pytest.fixture
def scene(cluster: LocalCluster, client: Client, namespace: str) -> Scene:
    """An empty world, and the test's namespace."""
    return Scene(kubeconfig(cluster.kubeconfig), namespace=namespace, client=client)


@pytest.fixture
async def traffic(cluster: LocalCluster, scene: Scene) -> AsyncIterator[Traffic]:
    """What the scene's engines ask of the cluster."""
    async with counted_traffic(cluster) as traffic:
        scene.access = traffic.access
        yield traffic
