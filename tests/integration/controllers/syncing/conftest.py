"""A stage of each test's own, on a cluster that serves our kinds."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from starling.api import KINDS, crds
from starling.kube import Client, kubeconfig
from starling.local import LocalCluster
from tests.integration.clusters import running
from tests.integration.controllers.syncing.elsewhere import NAMESPACES, Elsewhere
from tests.integration.controllers.syncing.stage import Stage
from tests.integration.engine.traffic import Traffic, traffic


@pytest.fixture(scope="module")
def kinds(kubectl: Callable[..., CompletedProcess[str]]) -> None:
    """Our kinds, served; they stay, for others may use them too."""
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds()})
    applied = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=documents)
    assert applied.returncode == 0, applied.stderr
    names = [f"crd/{each.declaration.crd_name}" for each in KINDS]
    assert kubectl("wait", "--for=condition=Established", "--timeout=30s", *names).returncode == 0


@pytest.fixture
async def stage(kinds: None, cluster: LocalCluster, client: Client, namespace: str, tmp_path: Path) -> Stage:
    """The test's namespace, with an account that may do anything in it, and a repository."""
    assert kinds is None
    stage = Stage(client, kubeconfig(cluster.kubeconfig), namespace, tmp_path)
    await stage.make_account()
    return stage


@pytest.fixture
async def counted(cluster: LocalCluster) -> AsyncIterator[Traffic]:
    """A counted way to the cluster."""
    async with traffic(cluster) as counted:
        yield counted


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """An API server that knows nothing of our kinds."""
    with running(tmp_path_factory.mktemp("other"), "other") as other:
        yield other


@pytest.fixture
async def elsewhere(stage: Stage, other: LocalCluster, tmp_path: Path) -> AsyncIterator[Elsewhere]:
    """The stage as a hub, and another cluster with a namespace of the same name and an account in it."""
    access = kubeconfig(other.kubeconfig)
    async with Client(access) as client:
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.namespace}}
        await client.create(NAMESPACES, document)
        there = Stage(client, access, stage.namespace, tmp_path)
        await there.make_account()
        yield Elsewhere(stage, there, other)
