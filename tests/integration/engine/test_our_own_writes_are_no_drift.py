"""An apply of ours is told twice, by its answer and by the watch: in whichever order, neither looks like drift."""

import pytest

from starling.engine import ResourceEvent
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.rounds import ROUNDS
from tests.waiting import until


class Told(list[ResourceEvent]):
    """What was told of the objects in one namespace: other tests' objects are in the cluster too."""

    def __init__(self, namespace: str) -> None:
        super().__init__()
        self._namespace = namespace

    def hear(self, event: ResourceEvent) -> None:
        """Keep an event of ours."""
        if event.change.key.namespace == self._namespace:
            self.append(event)


async def test_the_event_comes_first(scene: Scene, traffic: Traffic) -> None:
    """The watch tells of changes whose answers are still on their way."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    told = Told(scene.namespace)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        engine.on_resource_updated(told.hear)
        traffic.answers.clear()
        scene.render("web", config_map("a", x="2"), interval=HOUR)
        await until(lambda: bool(told))
        assert await scene.data("a") == {"x": "2"}
        traffic.answers.set()
        await scene.synced(unit)
        assert not any(event.change.drifted for event in told)
        assert scene.status(unit).drift == ()
        assert traffic.count()["apply"] == 2


async def test_the_answer_comes_first(scene: Scene, traffic: Traffic) -> None:
    """Events of states that answers have told already, and of states before those, change nothing."""
    unit = scene.render("web", config_map("a", x="1"), config_map("marker", x="1"), interval=HOUR)
    told = Told(scene.namespace)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        engine.on_resource_updated(told.hear)
        traffic.events.clear()
        for value in ("2", "3", "4"):
            scene.render("web", config_map("a", x=value), config_map("marker", x="1"), interval=HOUR)
            await scene.synced(unit)
        traffic.events.set()
        await scene.everything_seen("marker")
        assert {event.change.key.name for event in told if event.change.drifted} == {"marker"}
        assert [each.name for each in traffic.writes()] == ["a", "marker", "a", "a", "a", "marker"]


async def test_a_foreign_write_between_ours_and_its_answer(scene: Scene, traffic: Traffic) -> None:
    """It is seen before the answer, and is put right and reported all the same, with who did it."""
    traffic.answers.clear()
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    told = Told(scene.namespace)
    async with running_engine(scene) as engine:
        engine.on_resource_updated(told.hear)
        await until(lambda: bool(told))
        await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), {"data": {"x": "9"}}, manager="someone")
        await until(lambda: len(told) >= 2)
        traffic.answers.set()
        status = await scene.until(unit, lambda status: status.drift)
        assert await scene.data("a") == {"x": "1"}
        assert [(each.fields, each.manager) for each in status.drift] == [(("data.x",), "someone")]


@pytest.mark.rounds
async def test_many_changes_in_quick_succession(scene: Scene) -> None:
    """However answers and events fall: nothing of ours is ever taken for drift, and nothing is written twice."""
    objects, changes = 40, 5 * ROUNDS
    told = Told(scene.namespace)
    unit = ""
    async with running_engine(scene) as engine:
        engine.on_resource_updated(told.hear)
        for change in range(changes):
            manifests = [config_map(f"c{number}", x=f"{change}-{number}") for number in range(objects)]
            unit = scene.render("web", *manifests, interval=HOUR)
            await scene.synced(unit)
        await scene.everything_seen("c0")
        drifted = {event.change.key.name for event in told if event.change.drifted}
        assert drifted == {"c0"}
        status = await scene.until(unit, lambda status: status.drift)
        assert len(status.drift) == 1
        assert len(scene.events) == objects * changes + 1
