"""Control planes of a test's own, gone when it ends, and kubectl for any of them."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from starling.local import LocalCluster, LocalClusters, find_binaries
from starling.local.processes import Process, find_all

KubectlOn = Callable[..., str]


def processes_of(clusters: LocalClusters) -> list[Process]:
    """Give all that runs of these clusters."""
    return [process for process in find_all() if process.folder.parent == clusters.root]


def processes_with(variable: str) -> list[int]:
    """Give the processes that have this in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if variable.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


@pytest.fixture
async def clusters(tmp_path: Path) -> AsyncIterator[LocalClusters]:
    """An empty root for clusters; whatever a test leaves there is ended, and nothing may be left then."""
    clusters = LocalClusters(tmp_path / "root", report=print)
    try:
        yield clusters
    finally:
        await clusters.down()
    assert processes_of(clusters) == []


@pytest.fixture(scope="session")
def kubectl_on() -> KubectlOn:
    """Kubectl on a cluster: gives what it prints; a failure of it fails the test."""
    command = asyncio.run(find_binaries(["kubectl"], print)).command("kubectl")

    def run(cluster: LocalCluster, *arguments: str, stdin: str = "") -> str:
        call = [*command, "--kubeconfig", str(cluster.kubeconfig), *arguments]
        done = subprocess.run(call, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
