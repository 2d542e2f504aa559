"""A real API server per test process, and ways to talk to it."""

import asyncio
import gc
import itertools
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from starling.kube import Client, kubeconfig
from starling.local import LocalCluster, find_binaries
from starling.objects import GroupVersionKind
from tests.integration.clusters import running

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
_numbers = itertools.count()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """What a module's tests left open is found here, not in whatever runs when the collector happens to come by."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A running API server with its etcd, shared by the tests of this process: leave it as it was found."""
    with running(tmp_path_factory.mktemp("clusters"), "shared") as cluster:
        yield cluster


@pytest.fixture(name="kubeconfig")
def kubeconfig_path(cluster: LocalCluster) -> Path:
    """The shared cluster's kubeconfig."""
    return cluster.kubeconfig


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    """The shared cluster's administrator."""
    async with Client(kubeconfig(cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    """A namespace of the test's own."""
    name = f"test-{os.getpid()}-{next(_numbers)}"
    resource = await client.discovery.resource(GroupVersionKind("", "v1", "Namespace"))
    await client.create(resource, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture(scope="session")
def kubectl(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The binary's own kubectl on the shared cluster; the caller looks at the exit code."""
    command = asyncio.run(find_binaries(["kubectl"], print)).command("kubectl")

    cache = str(tmp_path_factory.mktemp("kubectl"))  # the user's own is by port, and ports are used again

    def run(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, "--kubeconfig", str(cluster.kubeconfig), "--cache-dir", cache, *arguments],
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    return run
