"""Components and commands are killed at any instant; the next `up` carries on and `down` leaves nothing."""

import asyncio
import os
import random
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL

import pytest

from starling.local import LocalClusters, LocalError
from tests.integration.clusters import kill
from tests.integration.local.conftest import KubectlOn, processes_of
from tests.rounds import ROUNDS
from tests.waiting import until


async def test_killed_components_come_back_with_their_data(clusters: LocalClusters, kubectl_on: KubectlOn) -> None:
    """After kill -9 of either or both components, `up` starts just those, at the same port, with all data."""
    [cluster] = await clusters.up("hub")
    for number, components in enumerate((["kube-apiserver"], ["etcd"], ["kube-apiserver", "etcd"])):
        kubectl_on(cluster, "create", "configmap", f"made-{number}")
        before = cluster.pids()
        kill(cluster, *components)
        assert await clusters.up("hub") == [cluster]
        changed = {component for component, pid in cluster.pids().items() if pid != before[component]}
        assert changed == set(components)
    assert kubectl_on(cluster, "get", "configmaps", "-o", "name").count("made-") == 3


async def test_a_port_taken_meanwhile_is_given_up(clusters: LocalClusters, kubectl_on: KubectlOn) -> None:
    """If someone else listens on the API server's port when it restarts, it moves, and the kubeconfig with it."""
    [cluster] = await clusters.up("hub")
    kill(cluster, "kube-apiserver")
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await until(lambda: bound(squatter, cluster.port))  # once the kernel is done with the killed one's socket
        squatter.listen()
        [moved] = await clusters.up("hub")
    assert moved.port != cluster.port
    assert kubectl_on(moved, "get", "namespace", "default", "-o", "name") == "namespace/default\n"


def bound(taker: socket.socket, port: int) -> bool:
    """Tell whether a socket has got a port."""
    try:
        taker.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


@pytest.mark.rounds
@pytest.mark.parametrize("_round", range(2 * ROUNDS))
async def test_a_killed_up_is_no_obstacle(clusters: LocalClusters, _round: int) -> None:
    """`up` is killed at a random instant; the next one works all the same."""
    delay = random.uniform(0.5, 3)
    command = [sys.executable, "-m", "starling", "local", "up", "hub"]
    environment = {**os.environ, "STARLING_LOCAL_DIR": str(clusters.root)}
    up = await asyncio.create_subprocess_exec(*command, env=environment, stderr=DEVNULL, stdout=DEVNULL)
    try:
        await asyncio.wait_for(up.wait(), delay)
    except TimeoutError:
        up.kill()
    assert await up.wait() in (0, -signal.SIGKILL)
    [cluster] = await clusters.up("hub")
    assert set(cluster.pids()) == {"etcd", "kube-apiserver"}, f"killed after {delay} s"
    assert len(processes_of(clusters)) == 2, f"killed after {delay} s"


async def test_a_component_that_cannot_start_says_why(clusters: LocalClusters) -> None:
    """When a component ends at once, the error has its last words."""
    [cluster] = await clusters.up("hub")
    kill(cluster, "kube-apiserver")
    cluster.pki.server.key.write_text("not a key")
    with pytest.raises(LocalError, match="kube-apiserver didn't stay up") as caught:
        await clusters.up("hub")
    assert "failed to find any PEM data in key input" in caught.value.message
    assert caught.value.hint == "the whole log: starling local logs hub kube-apiserver"


async def test_processes_without_their_folder_are_found(clusters: LocalClusters) -> None:
    """`down` ends what runs even if someone deleted what marks the folder as a cluster's."""
    [cluster] = await clusters.up("hub")
    (cluster.folder / "cluster.json").unlink()
    assert clusters.list() == []
    with pytest.raises(LocalError, match="isn't a cluster's folder"):
        await clusters.down()
    assert processes_of(clusters) == []
