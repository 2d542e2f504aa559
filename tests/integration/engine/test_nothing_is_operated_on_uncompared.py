"""A unit that waits its turn while its cluster is connected anew is compared first with what is there."""

import asyncio
from collections.abc import Sequence

import pytest

from starling.engine import ClusterAccess, Engine, Limits, ReconciliationSettings, Task, Unit, UnitSeen
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until

PATIENT = Limits(first_retry=0.2, longest_retry=1.0, patience=HOUR)


def there(scene: Scene, name: str) -> str:
    """The id of a unit on the cluster whose access can change."""
    return f"test/{scene.namespace}/Sync.{name}@there"


async def keep_busy(scene: Scene, traffic: Traffic) -> None:
    """Have the only one who operates wait for an answer."""
    traffic.held = frozenset({"slow"})
    traffic.answers.clear()
    scene.render(there(scene, "busy"), config_map("slow", x="2"), interval=HOUR)
    await until(lambda: "slow" in {each.name for each in traffic.writes()})


async def in_the_queue(scene: Scene) -> None:
    """Wait until all that has happened to units was looked at: there is one who looks, and this unit comes last."""
    last = scene.render(there(scene, "last"), held="for the test")
    await scene.until(last, lambda status: status.message == "for the test")


async def connect_anew(scene: Scene, engine: Engine, way: str) -> None:
    """Change what the connection to the cluster depends on, and wait until the old one is let go of."""
    if way == "settings":
        engine.set_reconciliation_settings(ReconciliationSettings())
    else:
        scene.others["there"] = ClusterAccess(scene.access, "2")
        scene.clusters_changed.put_nowait("there")
        await until(scene.clusters_changed.empty)


@pytest.mark.parametrize("way", ["settings", "credentials"])
async def test_a_unit_that_goes_takes_its_objects_along(scene: Scene, traffic: Traffic, way: str) -> None:
    """It isn't reported removed because nothing has been seen of it yet."""
    scene.others["there"] = ClusterAccess(scene.access, "1")
    unit = scene.render(there(scene, "web"), config_map("a"), config_map("b"), interval=HOUR)
    busy = scene.render(there(scene, "busy"), config_map("slow"), interval=HOUR)
    async with running_engine(scene, limits=PATIENT, processors=1) as engine:
        await scene.synced(unit, busy)
        await keep_busy(scene, traffic)
        scene.render(unit, deleting=True)
        await in_the_queue(scene)
        assert not scene.status(unit).removed
        await connect_anew(scene, engine, way)
        traffic.answers.set()
        await scene.until(unit, lambda status: status.removed)
        assert await scene.names() == {"slow"}
        await scene.synced(busy)


@pytest.mark.parametrize("way", ["settings", "credentials"])
async def test_a_unit_that_is_as_it_should_be_writes_nothing(scene: Scene, traffic: Traffic, way: str) -> None:
    """Its objects aren't applied as if they were new, though all of their kind has been seen again by then."""
    scene.others["there"] = ClusterAccess(scene.access, "1")
    unit, busy, other = (
        scene.render(there(scene, name), config_map(name), interval=HOUR) for name in ("web", "busy", "other")
    )
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def consider(which: Unit, _tasks: Sequence[Task]) -> None:
        if which.id == busy:
            asked.set()
            await let_go.wait()

    seen: list[UnitSeen] = []
    async with running_engine(scene, limits=PATIENT, processors=1) as engine:
        await scene.synced(unit, busy, other)
        engine.on_before_sync(consider)
        scene.render(busy, config_map("busy", x="2"), interval=HOUR)
        await asked.wait()
        scene.render(unit, config_map("web"), interval=HOUR, timeout=299.0)  # a reason to look, none to write
        await in_the_queue(scene)
        traffic.asked.clear()
        await connect_anew(scene, engine, way)
        await until(lambda: traffic.count()["watch"] > 0)  # the other unit had its kinds listed
        engine.on_status(seen.append)
        let_go.set()
        await until(lambda: unit in {each.unit_id for each in seen if each.trouble is None})
        await scene.synced(busy, unit)
        assert {each.name for each in traffic.writes()} == {"busy"}
