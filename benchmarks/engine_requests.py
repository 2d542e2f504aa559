"""What a sync asks of API servers: a first one, one after a restart, one changed manifest, and ten clusters at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from starling.engine import ClusterAccess, Limits
from starling.local import LocalCluster, LocalClusters
from starling.objects import Manifest
from tests.integration.engine.traffic import Traffic, traffic
from tests.integration.engine.world import World, running_engine

CLUSTERS = 10
OBJECTS = 1000
PER_CLUSTER = 300
MOST = 3200
QUIET = 1.0
NO_WRITES = frozenset({"discover", "list", "watch"})


@dataclass(frozen=True, slots=True)
class Fleet:
    """Surroundings with any number of clusters, each by a way that counts."""

    world: World
    ways: Mapping[str, Traffic]

    def give(self, cluster: str, manifests: Sequence[Manifest], revision: str) -> str:
        """Have the one unit of a cluster synced."""
        return self.world.give(f"bench/team/Sync.all@{cluster}", manifests, revision)

    def asked(self) -> Counter[str]:
        """What was asked of all of them, by verb."""
        return sum((way.count() for way in self.ways.values()), Counter())

    def forget(self) -> None:
        """Count anew."""
        for way in self.ways.values():
            way.asked.clear()


async def measure(cluster: LocalCluster) -> list[Row]:
    """One cluster in the manners of a day, then ten that see their units for the first time."""
    return [*await one_cluster(cluster), *await ten_clusters(cluster.folder.parent)]


async def one_cluster(cluster: LocalCluster) -> list[Row]:
    """A first sync, a restart, and one changed manifest."""
    async with counting(cluster) as fleet:
        unit_id = fleet.give(cluster.name, objects(OBJECTS), "first")
        async with running_engine(fleet.world, limits=Limits()):
            await fleet.world.synced(unit_id)
        first = fleet.asked()
        fleet.forget()
        async with running_engine(fleet.world, limits=Limits()):
            await quiet(fleet)
            again = fleet.asked()
            fleet.forget()
            fleet.give(cluster.name, [config_map(0, "another"), *objects(OBJECTS)[1:]], "second")
            await fleet.world.synced(unit_id)
            await quiet(fleet)
            changed = fleet.asked()
    only_reads = again.keys() <= NO_WRITES
    return [
        Row(f"requests of a first sync of {OBJECTS:,} objects", told(first)),
        Row("requests after a restart, nothing changed", told(again), "lists only", held=only_reads),
        Row("requests when one manifest changed", told(changed), "1 write", held=changed == Counter(apply=1)),
    ]


async def ten_clusters(folder: Path) -> list[Row]:
    """First syncs to many clusters by one engine."""
    clusters = LocalClusters(folder / "more")
    try:
        members = await clusters.up(*(f"member-{number}" for number in range(CLUSTERS)))
        async with counting(*members) as fleet:
            units = [fleet.give(member.name, objects(PER_CLUSTER), "first") for member in members]
            async with running_engine(fleet.world, limits=Limits()):
                await fleet.world.synced(*units)
                await quiet(fleet)
            asked = fleet.asked()
    finally:
        await clusters.down()
    number = asked.total()
    return [
        Row(f"the same for {CLUSTERS} clusters with {PER_CLUSTER} objects each, by verb", told(asked)),
        Row("  in all", f"{number:,}", f"≤ {MOST:,}", held=number <= MOST),
    ]


@asynccontextmanager
async def counting(*clusters: LocalCluster) -> AsyncIterator[Fleet]:
    """Surroundings on these clusters."""
    async with AsyncExitStack() as stack:
        ways = {cluster.name: await stack.enter_async_context(traffic(cluster)) for cluster in clusters}
        others = {name: ClusterAccess(way.access) for name, way in ways.items()}
        yield Fleet(World(next(iter(ways.values())).access, others=others), ways)


async def quiet(fleet: Fleet) -> None:
    """Wait until nothing was asked for a while: what isn't asked by then isn't asked at all."""
    before = -1
    while (number := fleet.asked().total()) != before:
        before = number
        await asyncio.sleep(QUIET)


def told(asked: Counter[str]) -> str:
    """The numbers by verb, in words."""
    return ", ".join(f"{number} {verb}" for verb, number in sorted(asked.items())) or "none"


def objects(number: int) -> Sequence[Manifest]:
    """As many small objects, of five kinds."""
    makers = (config_map, secret, account, service, role)
    return [makers[index % len(makers)](index) for index in range(number)]


def config_map(index: int, value: str = "value") -> Manifest:
    """A small ConfigMap."""
    return _manifest("v1", "ConfigMap", index, data={"key": value})


def secret(index: int) -> Manifest:
    """A small Secret."""
    return _manifest("v1", "Secret", index, stringData={"key": "value"})


def account(index: int) -> Manifest:
    """A ServiceAccount."""
    return _manifest("v1", "ServiceAccount", index)


def service(index: int) -> Manifest:
    """A Service."""
    return _manifest("v1", "Service", index, spec={"selector": {"app": "none"}, "ports": [{"port": 80}]})


def role(index: int) -> Manifest:
    """A Role."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    return _manifest("rbac.authorization.k8s.io/v1", "Role", index, rules=rules)


def _manifest(api_version: str, kind: str, index: int, **content: Any) -> Manifest:
    return Manifest({"apiVersion": api_version, "kind": kind, "metadata": {"name": f"object-{index}"}, **content})
