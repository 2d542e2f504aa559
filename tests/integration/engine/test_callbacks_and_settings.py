"""Those who have a say or want to know; a look on request; units that are held; and bounds on what is under way."""

import asyncio
from collections.abc import Sequence

import pytest

from starling.engine import ClusterAccess, Limits, ResourceEvent, SyncCompleted, Task, Unit, UnitSeen
from starling.kube import Access
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map, deployment
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until


async def edit(scene: Scene, name: str, **data: str) -> None:
    """Change a ConfigMap by someone's hand."""
    await scene.client.merge_patch(CONFIG_MAPS.ref(name, scene.namespace), {"data": data}, manager="someone")


# Before a sync


async def test_tasks_can_be_changed_before_a_sync(scene: Scene) -> None:
    """What is left out isn't done, nor tried over and over; it is done when nobody minds any more."""
    calls = []

    def without_b(unit: Unit, tasks: Sequence[Task]) -> Sequence[Task]:
        calls.append(unit.id)
        return [task for task in tasks if task.key is None or task.key.name != "b"]

    unit = scene.render("web", config_map("a"), config_map("b"), interval=HOUR)
    async with running_engine(scene) as engine:
        unsubscribe = engine.on_before_sync(without_b)
        await scene.has_applied(unit)
        assert await scene.names() == {"a"}
        unsubscribe()
        unsubscribe()
        engine.refresh(unit)
        await until(lambda: "b" in {key.name for key in scene.status(unit).inventory})
        await scene.synced(unit)
        assert await scene.names() == {"a", "b"}
        assert set(calls) == {unit}


@pytest.mark.parametrize("way", ["plain", "async"])
async def test_a_veto_is_reported_and_tried_again(scene: Scene, traffic: Traffic, way: str) -> None:
    """With the words of who said no; nothing is written meanwhile, and the sync comes when it is allowed."""
    allowed = False

    def veto(_unit: Unit, _tasks: Sequence[Task]) -> None:
        if not allowed:
            raise ValueError("not on a Sunday")

    async def slow_veto(unit: Unit, tasks: Sequence[Task]) -> None:
        await asyncio.sleep(0)
        veto(unit, tasks)

    unit = scene.render("web", config_map("a"))
    async with running_engine(scene) as engine:
        engine.on_before_sync(veto if way == "plain" else slow_veto)
        status = await scene.until(unit, lambda status: status.problems)
        assert status.problems[0].reason == "Vetoed"
        assert status.message == f"the sync of {unit} was vetoed: not on a Sunday"
        assert traffic.writes() == []
        allowed = True
        await scene.synced(unit)
        assert scene.status(unit).problems == ()


async def test_a_veto_of_a_repair_is_not_asked_for_without_a_pause(scene: Scene) -> None:
    """The drift stays until the next try; asking goes on with pauses."""
    asked = 0

    def veto(unit: Unit, _tasks: Sequence[Task]) -> None:
        nonlocal asked
        if unit.id == repaired:
            asked += 1
            raise ValueError("leave it")

    repaired = scene.render("web", config_map("a", x="1"), interval=HOUR)
    fence = scene.render("fence", config_map("fence", x="1"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(repaired, fence)
        unsubscribe = engine.on_before_sync(veto)
        await edit(scene, "a", x="2")
        await scene.until(repaired, lambda status: status.problems)
        for _ in range(3):
            await scene.everything_seen("fence")
        assert asked < 10
        assert await scene.data("a") == {"x": "2"}
        unsubscribe()
        await scene.until(repaired, lambda status: not status.problems)
        assert await scene.data("a") == {"x": "1"}


# Being told


async def test_everything_is_told_to_who_subscribed(scene: Scene) -> None:
    """And to nobody who has unsubscribed."""
    told: list[object] = []
    clusters: list[str] = []
    unit = scene.render("web", config_map("a"), config_map("b"), interval=HOUR)
    key = ObjectKey("", "ConfigMap", scene.namespace, "b")
    async with running_engine(scene) as engine:
        unsubscribes = [
            subscribe(told.append)
            for subscribe in (engine.on_sync_completed, engine.on_resource_updated, engine.on_resource_removed)
        ]
        engine.on_cluster_cache_initialized(clusters.append)
        await scene.synced(unit)
        [completed] = [each for each in told if isinstance(each, SyncCompleted)]
        assert (completed.unit.id, completed.operation.phase.value) == (unit, "Succeeded")
        updated = [each.change for each in told if isinstance(each, ResourceEvent)]  # also of other tests' units
        assert {change.key.name for change in updated if change.owner == unit} == {"a", "b"}
        scene.render("web", config_map("a"), interval=HOUR)
        await scene.synced(unit)
        last = [each.change for each in told if isinstance(each, ResourceEvent) and each.change.key == key][-1]
        assert last.readiness.value == "Missing"
        assert clusters == ["here"]
        for unsubscribe in unsubscribes:
            unsubscribe()
        told.clear()
        scene.render("web", config_map("a", x="2"), interval=HOUR)
        await scene.synced(unit)
        assert told == []
    assert {event.outcome for event in scene.events if event.task.key == key} == {"created", "pruned"}


async def test_a_cluster_is_told_of_once_and_when_it_was_seen(scene: Scene, traffic: Traffic) -> None:
    """Not again when another kind comes into use, and not of a cluster that can't be reached."""

    async def nowhere() -> Access:
        return Access("http://127.0.0.1:1", None)

    scene.others["away"] = ClusterAccess(nowhere)
    away = scene.render(f"test/{scene.namespace}/Sync.web@away", config_map("a"))
    clusters: list[tuple[str, bool]] = []
    unit = scene.render("web", config_map("a"), interval=HOUR)
    async with running_engine(scene) as engine:
        engine.on_cluster_cache_initialized(lambda name: clusters.append((name, traffic.count()["list"] > 0)))
        await scene.synced(unit)
        await scene.until(away, lambda status: "127.0.0.1:1" in status.message)
        scene.render("web", config_map("a"), deployment(), interval=HOUR)
        await scene.has_applied(unit)
    assert clusters == [("here", True)]


async def test_one_subscription_of_two_ends(scene: Scene) -> None:
    """A callback that is there twice is still there once."""
    told: list[SyncCompleted] = []
    unit = scene.render("web", config_map("a"))
    async with running_engine(scene) as engine:
        first = engine.on_sync_completed(told.append)
        engine.on_sync_completed(told.append)
        first()
        first()
        await scene.synced(unit)
    assert len(told) == 1


async def test_who_raises_when_told_harms_nothing(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the others are told all the same."""

    def raises(value: object) -> None:
        raise RuntimeError(f"what is {type(value).__name__}?")

    told: list[object] = []
    unit = scene.render("web", config_map("a"), config_map("old"))
    async with running_engine(scene) as engine:
        for subscribe in (
            engine.on_sync_completed,
            engine.on_cluster_cache_initialized,
            engine.on_resource_updated,
            engine.on_resource_removed,
            engine.on_sync_event,
            engine.on_status,
        ):
            subscribe(raises)
        engine.on_sync_completed(told.append)
        await scene.synced(unit)
        scene.render("web", config_map("a"))
        await scene.synced(unit)
    assert len(told) == 2
    for name in (
        "on_sync_completed", "on_cluster_cache_initialized", "on_resource_updated", "on_resource_removed",
        "on_sync_event", "on_status",
    ):  # fmt: skip
        assert f"a callback of {name} raised" in caplog.text


# On request


async def test_a_refresh_renders_anew(scene: Scene) -> None:
    """Manifests that nobody announced are found, past the generator's cache; of a stranger nothing comes."""
    unit = scene.render("web", config_map("a"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        assert scene.generated_anew == 0
        quiet = scene.render("other", config_map("a", x="2"), config_map("b"), interval=HOUR)
        scene.texts[unit] = scene.texts.pop(quiet)
        del scene.units[quiet]
        engine.refresh(unit)
        engine.refresh("test/nobody/Sync.knows@here")
        await scene.synced(unit)
        assert await scene.names() == {"a", "b"}
        assert scene.generated_anew > 0


async def test_a_held_unit_does_nothing_and_says_why(scene: Scene, traffic: Traffic) -> None:
    """No apply, repair or prune, and no endless looking either, though its time is over; released, it goes on."""
    looks = 0

    def look(seen: UnitSeen) -> None:
        nonlocal looks
        looks += seen.unit_id == unit

    unit = scene.render("web", config_map("a", x="1"), config_map("old"), interval=0.2)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        engine.on_status(look)
        scene.render("web", config_map("a", x="1"), config_map("old"), held="waits for base", interval=0.2)
        await scene.until(unit, lambda status: status.message == "waits for base")
        traffic.asked.clear()
        scene.render("web", config_map("a", x="1"), config_map("new"), held="waits for base", interval=0.2)
        await edit(scene, "a", x="2")
        looks = 0
        fence = scene.render("fence", config_map("fence", x="1"), interval=HOUR)
        await scene.synced(fence)
        for _ in range(3):
            await scene.everything_seen("fence")
        assert {each.name for each in traffic.writes()} == {"fence"}
        assert looks < 50
        assert await scene.names() == {"a", "old", "fence"}
        assert scene.status(unit).message == "waits for base"
        scene.render("web", config_map("a", x="1"), config_map("new"))
        await scene.synced(unit)
        assert await scene.names() == {"a", "new", "fence"}
        assert await scene.data("a") == {"x": "1"}


# Bounds


async def test_no_more_is_under_way_than_allowed(scene: Scene, traffic: Traffic) -> None:
    """Writes to one cluster, and to all of them together."""
    scene.others["other"] = ClusterAccess(scene.access)
    many = [config_map(f"c-{number}") for number in range(10)]
    here = scene.render("web", *many)
    limits = Limits(per_cluster=3, in_all=4, patience=HOUR)
    traffic.answers.clear()
    async with running_engine(scene, limits=limits):
        await until(lambda: len(traffic.writes()) == 3)
        for _ in range(20):  # as many turns as any further write would need
            await scene.names()
        assert len(traffic.writes()) == 3
        others = [config_map(f"d-{number}") for number in range(10)]
        there = scene.render(f"test/{scene.namespace}/Sync.web@other", *others)
        await until(lambda: len(traffic.writes()) == 4)
        for _ in range(20):
            await scene.names()
        assert len(traffic.writes()) == 4
        traffic.answers.set()
        await scene.synced(here, there)
    assert len(await scene.names()) == 20
