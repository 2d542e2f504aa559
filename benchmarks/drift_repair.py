"""How soon drift is put right: from the answer to a foreign write until an independent watcher sees it undone."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgspec

from benchmarks.apply_rate import CONFIG_MAPS, manifest
from benchmarks.rows import Row
from starling.engine import Limits
from starling.kube import Changed, Client, Metadata, Selection, Synced, kubeconfig, watch
from starling.local import LocalCluster
from starling.objects import Manifest
from tests.integration.engine.world import running_engine, world

OBJECTS = 1000
FOREIGN_WRITES = 50
SOON = 1.0


class Data(msgspec.Struct):
    """A ConfigMap as the watcher reads it."""

    metadata: Metadata
    data: dict[str, str] = {}


async def measure(cluster: LocalCluster) -> list[Row]:
    """One foreign write after the other, each to another object of a unit that has many."""
    surroundings = world(cluster)
    names = [f"drift-{number}" for number in range(OBJECTS)]
    unit_id = surroundings.give("drift", [Manifest(manifest(name)) for name in names], "first")
    source = kubeconfig(cluster.kubeconfig)
    async with running_engine(surroundings, limits=Limits()), Client(source) as foreign, Client(source) as watcher:
        await surroundings.synced(unit_id)
        async with undone(watcher) as events:
            waits = [await repaired(foreign, events, name) for name in names[:: OBJECTS // FOREIGN_WRITES]]
        reports = len(surroundings.status(unit_id).drift)
    worst = max(waits)
    return [
        Row(f"{len(waits)} foreign writes put right, median", f"{statistics.median(waits) * 1000:.0f} ms"),
        Row("  the slowest", f"{worst * 1000:.0f} ms", f"< {SOON:g} s", held=worst < SOON),
        Row("  reports of them that the status keeps", str(reports)),
    ]


async def repaired(client: Client, events: "asyncio.Queue[tuple[str, float]]", name: str) -> float:
    """Seconds until a write to one object of ours was undone."""
    ref = CONFIG_MAPS.ref(name, "default")
    await client.merge_patch(ref, {"data": {"key": "foreign"}}, manager="someone")
    answered = time.perf_counter()
    while True:
        undone_name, at = await events.get()
        if undone_name == name:
            return max(0.0, at - answered)


@asynccontextmanager
async def undone(client: Client) -> "AsyncIterator[asyncio.Queue[tuple[str, float]]]":
    """What had a foreign value and has ours again, and when that was seen."""
    found: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    synced = asyncio.Event()

    async def follow() -> None:
        foreign: set[str] = set()
        async with aclosing(watch(client, CONFIG_MAPS, Data, Selection("default"))) as events:
            async for event in events:
                match event:
                    case Synced():
                        synced.set()
                    case Changed(object=Data(metadata=meta, data=data)) if data.get("key") == "foreign":
                        foreign.add(meta.name)
                    case Changed(object=Data(metadata=meta)) if meta.name in foreign:
                        foreign.discard(meta.name)
                        found.put_nowait((meta.name, time.perf_counter()))

    following = asyncio.create_task(follow())
    await synced.wait()
    try:
        yield found
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
