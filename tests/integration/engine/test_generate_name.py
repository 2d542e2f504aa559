"""generateName: created once under a name made from unit and manifest; a retry finds it, a change makes another."""

import copy

import pytest

from starling.kube import DeleteOptions, Resource
from tests.integration.engine.scene import HOUR, Json, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until

JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)


def job(image: str = "task:1") -> Json:
    """A Job that each change makes anew."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "task", "image": image}]}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "task-"},
        "spec": {"template": {"spec": pod}},
    }  # fmt: skip


async def test_it_is_created_once(scene: Scene, traffic: Traffic) -> None:
    """Its name begins as the manifest says; further looks and restarts make no second one, and ask for nothing."""
    unit = scene.render("web", job(), config_map("a"), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        (name,) = await scene.names(JOBS)
        assert name.startswith("task-")
        assert traffic.count()["create"] == 1
    traffic.asked.clear()
    scene.render("web", job(), config_map("a", x="2"), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        assert await scene.names(JOBS) == {name}
        assert [(each.verb, each.name) for each in traffic.writes()] == [("apply", "a")]


async def test_a_retry_finds_it(scene: Scene, traffic: Traffic) -> None:
    """One whose answer was lost, and whose process too, is the one that the next process takes up."""
    unit = scene.render("web", job(), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
    (name,) = await scene.names(JOBS)
    begun = scene.history[0]
    scene.units[unit] = type(scene.units[unit])(scene.units[unit].unit, begun)
    async with running_engine(scene):
        await scene.has_applied(unit)
        assert await scene.names(JOBS) == {name}
        assert traffic.count()["create"] == 2
        assert [key.name for key in scene.status(unit).inventory] == [name]


async def test_one_that_went_away_is_not_made_again(scene: Scene, traffic: Traffic) -> None:
    """A finished Job's usual end; neither when it goes, nor at later syncs, nor by a new process."""
    unit = scene.render("web", job(), config_map("a"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.has_applied(unit)
        (name,) = await scene.names(JOBS)
        await scene.client.delete(JOBS.ref(name, scene.namespace), DeleteOptions(propagation="Background"))
        await scene.until(unit, lambda status: status.readiness.name == "CURRENT")
        assert scene.status(unit).drift == ()
        before = scene.generated
        engine.refresh(unit)
        await until(lambda: scene.generated > before)
        scene.render("web", job(), config_map("a", x="2"), interval=HOUR)
        await scene.has_applied(unit)
    scene.render("web", job(), config_map("a", x="3"), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        assert await scene.names(JOBS) == set()
        assert traffic.count()["create"] == 1


@pytest.mark.parametrize("there", [True, False], ids=["there", "gone by then"])
async def test_a_change_makes_another_and_prunes_the_old(scene: Scene, there: bool) -> None:
    """What the manifest says now is in a new object; the old one goes, from the record too."""
    unit = scene.render("web", job("task:1"), config_map("a"), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        (old,) = await scene.names(JOBS)
        if not there:
            await scene.client.delete(JOBS.ref(old, scene.namespace))
        scene.render("web", job("task:2"), config_map("a"), interval=HOUR)
        await scene.has_applied(unit)

        async def only_the_new() -> bool:
            return old not in await scene.names(JOBS)

        await until(only_the_new)
        (new,) = await scene.names(JOBS)
        await scene.until(unit, lambda status: {key.name for key in status.inventory} == {new, "a"})
        assert (await scene.live(new, JOBS))["spec"]["template"]["spec"]["containers"][0]["image"] == "task:2"


async def test_two_of_one_unit_with_other_contents_are_two(scene: Scene) -> None:
    """The name tells them apart, as it does for two units that say the same."""
    second = copy.deepcopy(job("task:2"))
    one = scene.render("one", job("task:1"), second, interval=HOUR)
    two = scene.render("two", job("task:1"), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(one, two)
        assert len(await scene.names(JOBS)) == 3
