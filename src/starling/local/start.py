"""Bringing one cluster up: start what doesn't run, and wait until all of it does its work."""

import asyncio
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from starling.kube import Client, Patience, kubeconfig
from starling.local.binaries import Binaries
from starling.local.cluster import LocalCluster
from starling.local.commands import CONTROL_PLANE, WORKLOADS, flags
from starling.local.errors import LocalError
from starling.local.probe import Probe
from starling.local.processes import Process, alive, exit_text, find, kill, spawn

__all__ = ["bring_up", "free_port"]

READY_LIMIT = 120.0
POLL = 0.05
ASKED_ONCE = Patience(attempts=1, silence=5.0)  # whoever asks looks at the processes between two tries
PORT_ATTEMPTS = 5
PORT_PATIENCE = 2.0
LOG_LINES = 12
# Below the ports that Linux hands out to outgoing connections (32768 and up): no client can sit on a remembered
# port while the API server is down, nor reach itself when it dials one that is closed.
PORTS = range(20000, 32000)
# A proxy, a KUBECONFIG and the like that the user has set have no business in a component.
PASSED_ON = ("PATH", "HOME", "TMPDIR", "GOMAXPROCS", "GOGC", "GOMEMLIMIT")


class PortTakenError(Exception):
    """Someone else got the port between our looking and the API server's binding it."""


def free_port() -> int:
    """Give a port that nobody listens on."""
    for port in random.sample(PORTS, len(PORTS)):
        if is_free(port):
            return port
    raise LocalError(f"no port from {PORTS.start} to {PORTS.stop} is free on 127.0.0.1")


def is_free(port: int) -> bool:
    """Tell whether the API server could listen on that port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


async def becomes_free(port: int) -> bool:
    """Tell whether a port is free, or is in a moment: a process just killed holds its sockets a little longer."""
    deadline = time.monotonic() + PORT_PATIENCE
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(POLL)
    return True


async def bring_up(cluster: LocalCluster, binaries: Binaries, report: Callable[[str], None]) -> LocalCluster:
    """Start what doesn't run and wait until it is ready; give the cluster, whose port may be a new one."""
    began = time.monotonic()
    for _ in range(PORT_ATTEMPTS):
        if "kube-apiserver" not in cluster.pids() and not await becomes_free(cluster.port):
            cluster = await move(cluster)
        try:
            started = await start_all(cluster, binaries)
        except PortTakenError:
            continue
        if started:
            what = "ready" if len(started) == len(cluster.components) else f"started {', '.join(started)}, ready"
            report(f"{cluster.name}: {what} at {cluster.server} after {time.monotonic() - began:.1f} s")
        else:
            report(f"{cluster.name}: runs already, at {cluster.server}")
        return cluster
    raise LocalError(f"cluster {cluster.name}: others took its API server's port {PORT_ATTEMPTS} times in a row")


async def move(cluster: LocalCluster) -> LocalCluster:
    """Give the cluster another port, since its own was taken while the API server was down."""
    await kill(process for process in find(cluster.folder) if process.component in WORKLOADS)
    return replace(cluster, port=free_port())


async def start_all(cluster: LocalCluster, binaries: Binaries) -> list[str]:
    """Start what doesn't run, wait until everything is ready, and give what had to be started."""
    cluster.save()
    async with Client(kubeconfig(cluster.kubeconfig), patience=ASKED_ONCE) as client:
        probe = Probe(client)
        started = await start(cluster, binaries, CONTROL_PLANE, probe.control_plane)
        if cluster.workloads:
            if "kwok" not in cluster.pids():
                await probe.release_node()
            started += await start(cluster, binaries, WORKLOADS, probe.workloads)
    return started


async def start(
    cluster: LocalCluster,
    binaries: Binaries,
    components: Sequence[str],
    missing: Callable[[], Awaitable[str | None]],
) -> list[str]:
    """Start those components that don't run; wait until nothing is `missing` any more; give what had to be started."""
    running = {process.component: process for process in find(cluster.folder)}
    ends = {component: log_size(cluster, component) for component in components}
    processes = [running.get(component) or launch(cluster, binaries, component) for component in components]
    deadline = time.monotonic() + READY_LIMIT
    while lack := await missing():
        check_alive(cluster, processes, ends)
        if time.monotonic() > deadline:
            raise LocalError(
                f"cluster {cluster.name} isn't ready after {READY_LIMIT:.0f} s: {lack}",
                hint=f"look at: starling local logs {cluster.name}",
            )
        await asyncio.sleep(POLL)
    check_alive(cluster, processes, ends)
    return [component for component in components if component not in running]


def launch(cluster: LocalCluster, binaries: Binaries, component: str) -> Process:
    """Start one component of a cluster."""
    command = [*binaries.command(component), *flags(component, cluster.port, audit=cluster.audited)]
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    # kwok would otherwise read settings from the user's home as well.
    environment["KWOK_WORKDIR"] = str(cluster.folder)
    return spawn(cluster.folder, component, command, cluster.log(component), environment)


def check_alive(cluster: LocalCluster, processes: Sequence[Process], log_ends: dict[str, int]) -> None:
    """Raise if a component ended, with the last that it wrote since its log was so long."""
    for process in processes:
        if alive(process):
            continue
        how = exit_text(process)
        with cluster.log(process.component).open("rb") as log:
            log.seek(log_ends[process.component])
            lines = log.read().decode(errors="replace").splitlines()
        if any("address already in use" in line for line in lines):
            raise PortTakenError
        tail = "".join(f"\n  {line}" for line in lines[-LOG_LINES:])
        raise LocalError(
            f"cluster {cluster.name}: {process.component} didn't stay up ({how}); its last words:{tail}",
            hint=f"the whole log: starling local logs {cluster.name} {process.component}",
        )


def log_size(cluster: LocalCluster, component: str) -> int:
    """Give how long a component's log is."""
    path = cluster.log(component)
    return path.stat().st_size if path.exists() else 0
