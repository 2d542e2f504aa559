"""A world of each test's own, and a counted way to the cluster."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from subprocess import CompletedProcess

import pytest

from starling.kube import Client, kubeconfig
from starling.local import LocalCluster
from tests.integration.engine.edits import WIDGET_CRD
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


@pytest.fixture(scope="module")
def widgets(kubectl: Callable[..., CompletedProcess[str]]) -> Iterator[None]:
    """A kind of the tests' own, without a status subresource."""
    crd = json.dumps(WIDGET_CRD)
    assert kubectl("apply", "--server-side", "-f", "-", input=crd).returncode == 0
    assert kubectl("wait", "--for=condition=Established", "-f", "-", input=crd).returncode == 0
    yield
    assert kubectl("delete", "-f", "-", input=crd).returncode == 0
