"""A hub with 1,000 pull clusters and 20 Modules: how a new version spreads, what that costs, and what rest costs.

The hub is real: API server, `starling controller`, a private repository over HTTP. The clusters are simulated (see
`simulated_agents`), and share the machine with it. Try it small: STARLING_BENCH_CLUSTERS=50 STARLING_BENCH_MODULES=5.
"""

import asyncio
import base64
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec

from benchmarks.apply_rate import Apply, rate
from benchmarks.fleet_hub import (
    Process,
    Repository,
    Writes,
    apply_all,
    child,
    controller,
    installed,
    namespace,
    number,
    ours,
    told,
    until,
)
from benchmarks.rows import Row
from benchmarks.simulated_agents import PREFIX
from starling.api import Module, ObjectMeta, ProxyAssemblage, Source
from starling.api.enrolment import hub_documents
from starling.kube import Client, Selection, kubeconfig
from starling.local import GitServer, LocalCluster

CLUSTERS: Final = number("CLUSTERS", 1000)
MODULES: Final = number("MODULES", 20)
HEARTBEAT: Final = number("HEARTBEAT", 60)
AGENT_PROCESSES: Final = 2
WORK: Final = 0.5
"""Seconds that a simulated Sync takes."""
STEADY: Final = 60.0
IDLE: Final = 20.0
MOST_WRITES: Final = 4
MOST_OBJECTS: Final = 7
MOST_MEMORY: Final = 600 * 10**6

FLEET: Final = "fleet"
PASSWORD: Final = "a-password"  # noqa: S105 - of a server that lives for a minute
FAST, DEFAULT = "module-0", "module-1"
_OF_MODULES: Final = frozenset({"Module", "Source", "ControllerRevision", "Event"})


@dataclass(frozen=True, slots=True)
class Spent:
    """What something took; `writes` are all that the hub's API server made meanwhile."""

    seconds: float
    cpu: float
    writes: Writes

    @property
    def work(self) -> Writes:
        """Without Leases: heartbeats go on whatever happens, and have a figure of their own."""
        return self.writes.but("leases")

    @property
    def per_cluster(self) -> float:
        """Writes on the hub for each cluster, Leases aside."""
        return self.work.total() / CLUSTERS

    @property
    def rate(self) -> float:
        """Writes a second."""
        return self.writes.total() / self.seconds


class Hub:
    """The hub and what it costs. Mutable: the repository, and how often it was looked at."""

    def __init__(self, client: Client, process: Process, repository: Repository) -> None:
        self.client, self.process, self._repository = client, process, repository
        self._looks = 0

    async def load(self, url: str) -> None:
        """Have all clusters enrolled, and all Modules made."""
        secret = {"username": "bench", "password": PASSWORD}
        data = {name: base64.b64encode(value.encode()).decode() for name, value in secret.items()}
        meta = {"name": "git", "namespace": FLEET}
        git = {"url": url, "ref": {"branch": "main"}, "secretRef": {"name": "git"}}
        await apply_all(self.client, [{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}])
        await apply_all(self.client, [ours("Source", "git", FLEET, git=git, interval="10h")])
        await apply_all(self.client, (each for index in range(CLUSTERS) for each in enrolled(index)))
        await apply_all(self.client, (module(index) for index in range(MODULES)))

    async def rolled_out(self, *names: str, before: Mapping[str, str]) -> None:
        """Wait until all clusters are at a target other than the one before."""

        async def done() -> bool:
            for name in names:
                status = (await self.module(name)).status
                finished = status.phase == "Succeeded" and status.summary.succeeded == CLUSTERS and not status.admitted
                if status.target == before.get(name, "") or not finished:
                    return False
            return True

        await until(done)

    async def module(self, name: str) -> Module:
        """As it is now."""
        return (await self.client.get(Module.declaration.resource.ref(name, FLEET))).decode(Module)

    async def roll_out(self, name: str) -> Spent:
        """Another version of one Module on all clusters, from when the repository is looked at."""
        target = (await self.module(name)).status.target
        self._looks += 1
        self._repository.commit({name: f"version {self._looks}"})
        return await self.spent(self._looked(name, target))

    async def _looked(self, name: str, target: str) -> None:
        # Another spec has it looked at now; what waiting for the interval takes isn't our figure.
        patch = {"spec": {"interval": f"{10 + self._looks}h"}}
        await self.client.merge_patch(Source.declaration.resource.ref("git", FLEET), patch, manager="someone")
        await self.rolled_out(name, before={name: target})

    async def rest(self, seconds: float) -> Spent:
        """What happens when nothing happens."""
        return await self.spent(asyncio.sleep(seconds))

    async def spent(self, work: Awaitable[None]) -> Spent:
        """What something takes."""
        before, cpu, began = await Writes.read(self.client), self.process.cpu_seconds(), time.perf_counter()
        await work
        seconds, used = time.perf_counter() - began, self.process.cpu_seconds() - cpu
        spent = Spent(seconds, used, (await Writes.read(self.client)).since(before))
        told(f"{seconds:.1f} s, {used:.1f} s of CPU, RSS {self.process.resident() / 10**6:.0f} MB; {spent.writes}")
        return spent


async def measure(cluster: LocalCluster) -> list[Row]:
    """The hub alone, the fleet's first rollouts, two more of one Module, rest; then the bare server for comparison."""
    repository = Repository(cluster.folder.parent / "served" / "fleet.git", MODULES)
    async with Client(kubeconfig(cluster.kubeconfig)) as client:
        await installed(client)
        await apply_all(client, [namespace(FLEET)])
        async with GitServer(repository.folder.parent, "bench", PASSWORD) as server, controller(cluster) as process:
            hub = Hub(client, process, repository)
            rows, rollouts = await fleet(hub, cluster, f"{server.url}/fleet.git")
        bare = await bare_rate(cluster, client)
    ratios = [f"{spent.rate / bare:.0%} ({spent.rate:,.0f})" for spent in rollouts]
    return [
        *rows,
        Row("bare aiohttp, the same status applies with nobody else at work, applies/s", f"{bare:,.0f}"),
        Row("  hub writes/s of both rollouts against it", ", ".join(ratios)),
    ]


async def fleet(hub: Hub, cluster: LocalCluster, url: str) -> tuple[list[Row], list[Spent]]:
    """All that needs the controller; and both rollouts."""
    await asyncio.sleep(IDLE / 4)  # the server's own first writes
    told("the hub alone")
    alone, empty = await hub.rest(IDLE), hub.process.resident()
    told("clusters and Modules")
    await hub.load(url)
    told("their first rollouts")
    async with agents(cluster):
        first = await hub.spent(hub.rolled_out(*(f"module-{index}" for index in range(MODULES)), before={}))
        loaded = hub.process.resident()
        told("two rollouts")
        fast, default = await hub.roll_out(FAST), await hub.roll_out(DEFAULT)
        most = max((await belongings(hub.client)).values())
        told("rest")
        await asyncio.sleep(IDLE / 4)
        steady = await hub.rest(STEADY)
    rows = [
        Row(f"{MODULES} Modules to {CLUSTERS:,} new clusters", f"{first.seconds:.1f} s, {first.cpu:.1f} s of CPU"),
        Row("  hub writes per cluster, Leases aside", f"{first.per_cluster:.2f}: {first.work.per(CLUSTERS)}"),
        *rollout_rows("at most 200 at once", fast),
        *rollout_rows("10 % at once", default),
        Row("hub objects per cluster, Events aside", f"{most}", f"≤ {MOST_OBJECTS}", held=most <= MOST_OBJECTS),
        *memory_rows(hub.process, empty, loaded),
        *steady_rows(steady, alone),
    ]
    return rows, [fast, default]


def rollout_rows(how: str, spent: Spent) -> list[Row]:
    """One rollout's."""
    writes = spent.per_cluster
    return [
        Row(f"one Module's new version to all, {how}, each taking {WORK:g} s", f"{spent.seconds:.1f} s"),
        Row("  hub writes per cluster, Leases aside", f"{writes:.2f}", f"≤ {MOST_WRITES}", held=writes <= MOST_WRITES),
        Row("  by kind", spent.work.per(CLUSTERS)),
        Row("  controller's CPU", f"{spent.cpu:.1f} s"),
    ]


def memory_rows(process: Process, empty: int, loaded: int) -> list[Row]:
    """The controller's."""
    now, peak = process.resident(), process.peak()
    mega = [f"{each / 10**6:.0f} MB" for each in (empty, loaded, now, peak)]
    return [
        Row("controller's RSS: no clusters, all, after rollouts and rest", ", ".join(mega[:3])),
        Row("  the most it ever was", mega[3], f"≤ {MOST_MEMORY / 10**6:.0f} MB", held=peak <= MOST_MEMORY),
    ]


def steady_rows(steady: Spent, alone: Spent) -> list[Row]:
    """A minute of rest; heartbeats are merge patches of Leases, as nothing else is without leader election."""
    per_minute = {name: count * 60 / steady.seconds for name, count in steady.writes.items()}
    beats = per_minute.pop("PATCH leases", 0.0)
    other = {name: count for name, count in per_minute.items() if name not in alone.writes}
    named = ", ".join(f"{count:.0f} {name}" for name, count in other.items()) or "none"
    return [
        Row(f"at rest, heartbeats each {HEARTBEAT} s: heartbeats/min", f"{beats:,.0f}"),
        Row("  other writes/min that a hub without clusters hasn't", named, "none", held=not other),
        Row("  those that it has, the API server's own, /min", f"{alone.rate * 60:.0f}"),
        Row("  controller's CPU per minute", f"{steady.cpu * 60 / steady.seconds:.1f} s"),
    ]


@asynccontextmanager
async def agents(cluster: LocalCluster) -> AsyncIterator[None]:
    """All clusters' agents, in a few processes."""
    share = -(-CLUSTERS // AGENT_PROCESSES)
    async with AsyncExitStack() as stack:
        for first in range(0, CLUSTERS, share):
            numbers = (str(first), str(min(first + share, CLUSTERS)), str(HEARTBEAT), str(WORK))
            log = cluster.folder.parent / f"agents-{first}.log"
            await stack.enter_async_context(
                child(log, "benchmarks.simulated_agents", str(cluster.kubeconfig), FLEET, *numbers)
            )
        yield


async def belongings(client: Client) -> Counter[str]:
    """How many objects on the hub belong to each cluster: named after it, or owned by it."""
    found = Counter[str]()
    for resource in await client.discovery.resources():
        if not resource.namespaced or "list" not in resource.verbs or resource.kind in _OF_MODULES:
            continue
        for each in (await client.list(resource, Belonging, Selection(FLEET))).items:
            owners = [owner.name for owner in each.metadata.owner_references if owner.kind == "Cluster"]
            names = re.findall(rf"{PREFIX}-\d+", " ".join([each.metadata.name, *owners]))
            found.update(set(names))
    return found


class Belonging(msgspec.Struct):
    """What is read of any object."""

    metadata: ObjectMeta


async def bare_rate(cluster: LocalCluster, client: Client) -> float:
    """Status applies a second of the same objects in the same size, with aiohttp and nothing else."""
    listing = await client.list(ProxyAssemblage.declaration.resource, ProxyAssemblage, Selection(FLEET))
    bodies = {each.metadata.name: _changed(each) for each in listing.items}
    async with bare_applies(cluster, bodies) as apply:
        return await rate(apply, PREFIX, CLUSTERS)


def _changed(proxy: ProxyAssemblage) -> bytes:
    status = msgspec.structs.replace(proxy.status, observed=proxy.status.observed + 1)
    metadata = {"name": proxy.metadata.name, "namespace": FLEET}
    api_version, builtins = "starling.dev/v1alpha1", msgspec.to_builtins(status)
    return msgspec.json.encode(
        {"apiVersion": api_version, "kind": "ProxyAssemblage", "metadata": metadata, "status": builtins}
    )


@asynccontextmanager
async def bare_applies(cluster: LocalCluster, bodies: Mapping[str, bytes]) -> AsyncIterator[Apply]:
    """Server-side apply of one status, by the object's name."""
    access = await kubeconfig(cluster.kubeconfig)()
    headers = {"Content-Type": "application/apply-patch+yaml", "Accept": "application/json"}
    connector = aiohttp.TCPConnector(limit=0, ssl=access.tls or True)
    path = f"{access.server}{ProxyAssemblage.declaration.resource.path(FLEET)}"
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def apply(name: str) -> None:
            url = f"{path}/{name}/status?fieldManager=starling-agent&force=true"
            async with session.patch(url, data=bodies[name]) as response:
                response.raise_for_status()
                await response.read()

        yield apply


def enrolled(index: int) -> list[dict[str, Any]]:
    """What a cluster has on the hub when it has been enrolled."""
    return hub_documents(f"{PREFIX}-{index}", FLEET, {"region": f"region-{index % 5}"}, ())


def module(index: int) -> dict[str, Any]:
    """One for all clusters, as fast as may be, but for the one that is as careful as by default."""
    name = f"module-{index}"
    bindings = [{"name": "REGION", "objectFieldRef": {"fieldPath": "/metadata/labels/region"}}]
    sync = {"source": {"name": "git"}, "path": name, "bindings": bindings}
    rollout = {} if name == DEFAULT else {"rollout": {"maxConcurrent": 200}}
    return ours("Module", name, FLEET, selector={}, sync=sync, **rollout)
