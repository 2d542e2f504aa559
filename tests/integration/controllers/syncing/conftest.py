"""A stage of each test's own, on a cluster that serves our kinds."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from starling.api import KINDS, crds
from starling.kube import Client, kubeconfig
from starling.local import LocalCluster
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
