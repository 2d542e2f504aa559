"""A first sync through the Engine against bare applies of as many objects, on the same server, turn by turn."""

import asyncio
import statistics
import time

from benchmarks.apply_rate import bare_applies, manifest, rate
from benchmarks.rows import Row
from starling.engine import Engine, Limits, SyncCompleted
from starling.engine.ownership import mark
from starling.local import LocalCluster
from starling.objects import Manifest, ObjectKey
from tests.integration.engine.world import World, running_engine, unit_id, world

OBJECTS = 1000
TURNS = 9


async def measure(cluster: LocalCluster) -> list[Row]:
    """All ways in turn, so that what the machine does meanwhile falls on each."""
    surroundings = world(cluster)
    async with (
        running_engine(surroundings, limits=Limits()) as engine,
        bare_applies(cluster) as plain,
        bare_applies(cluster, marked) as same,
    ):
        turns = [
            (
                await rate(plain, f"plain{turn}", OBJECTS),
                await sync_rate(engine, surroundings, f"ours{turn}"),
                await rate(same, f"same{turn}", OBJECTS),
            )
            for turn in range(TURNS + 1)
        ][1:]  # the first only warms up
    plainly, ours, bare = (statistics.median(way) for way in zip(*turns, strict=True))
    ratios = sorted(mine / raw for _, mine, raw in turns)
    ratio = statistics.median(ratios)
    return [
        Row("bare applies/s of small objects, median of turns", f"{plainly:,.0f}"),
        Row("bare applies/s of what the engine sends, with its marks", f"{bare:,.0f}"),
        Row(f"a first sync of {OBJECTS:,}, objects/s", f"{ours:,.0f}, {ours / plainly:.0%} of small ones"),
        Row("a first sync against bare, lowest and highest turn", f"{ratios[0]:.0%} to {ratios[-1]:.0%}"),
        Row("a first sync against bare, median of turns", f"{ratio:.0%}", "≥ 80 %", held=ratio >= 0.8),
    ]


def marked(name: str) -> dict[str, object]:
    """An object as the engine would send it, under a label that no engine watches."""
    key = ObjectKey("", "ConfigMap", "default", name)
    return mark(manifest(name), unit_id("bare"), key, label_key="bench.dev/sync")


async def sync_rate(engine: Engine, surroundings: World, prefix: str) -> float:
    """Objects a second, from when the engine hears of a unit until its operation is over: plan and record included."""
    manifests = [Manifest(manifest(f"{prefix}-{number}")) for number in range(OBJECTS)]
    over = asyncio.Event()

    def completed(sync: SyncCompleted) -> None:
        if sync.unit.id == identity:
            over.set()

    unsubscribe = engine.on_sync_completed(completed)
    start = time.perf_counter()
    identity = surroundings.give(prefix, manifests, prefix)
    await over.wait()
    took = time.perf_counter() - start
    unsubscribe()
    await surroundings.synced(identity)
    return OBJECTS / took
