"""A failed object keeps later waves and prunes from happening, while the rest of its wave goes on."""

from starling.engine import Phase, Readiness
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, deployment, key_of
from tests.integration.engine.traffic import Asked, Traffic
from tests.integration.engine.waves import in_wave, make_ready
from tests.integration.engine.world import running_engine
from tests.waiting import until

WRONG: Json = {**config_map("wrong"), "data": {"x": [1]}}


async def test_the_rest_of_the_wave_goes_on_and_nothing_else(scene: Scene) -> None:
    """Also what comes after it in the wave; mended, the later wave comes and the old object goes."""
    unit = scene.render("web", config_map("old"), config_map("stays"))
    async with running_engine(scene):
        await scene.synced(unit)
        rest = [config_map("stays"), config_map("rest"), deployment(), in_wave(1, config_map("later"))]
        scene.render("web", WRONG, *rest)
        status = await scene.until(unit, lambda status: status.readiness is Readiness.FAILED)
        [problem] = status.problems
        assert problem.key == key_of(WRONG, scene.namespace)
        assert f"ConfigMap {scene.namespace}/wrong" in problem.message
        assert status.message == problem.message
        assert status.operation is not None
        assert status.operation.phase is Phase.FAILED
        assert await scene.live("web", "Deployment")
        await make_ready(scene)
        await scene.until(unit, lambda status: status.objects.get(Readiness.IN_PROGRESS) is None)
        tries = len(scene.events)
        await until(lambda: len(scene.events) >= tries + 2)  # twice more, when only what is wrong is in the way
        assert await scene.names() == {"old", "stays", "rest"}
        scene.render("web", config_map("wrong"), *rest)
        await scene.synced(unit)
        assert await scene.names() == {"wrong", "stays", "rest", "later"}


async def test_failures_are_told_in_the_plans_order(scene: Scene, traffic: Traffic) -> None:
    """Not in that of the answers: a retry that ends the same is no news."""
    wrong = [{**config_map(name), "data": {"x": [1]}} for name in "ab"]

    async def b_has_failed(asked: Asked) -> None:
        if (asked.verb, asked.name) == ("apply", "a"):
            await until(lambda: bool(scene.events))

    traffic.before = b_has_failed
    unit = scene.render("web", *wrong)
    async with running_engine(scene):
        status = await scene.until(unit, lambda status: status.problems)
        assert [event.task.key for event in scene.events[:2]] == [key_of(each, scene.namespace) for each in wrong[::-1]]
        assert [problem.key for problem in status.problems] == [key_of(each, scene.namespace) for each in wrong]


async def test_a_wave_with_a_failure_is_not_passed(scene: Scene) -> None:
    """Though all that is live of it is Current: what was refused is still to come."""
    fixed = {**config_map("fixed", x="1"), "immutable": True}
    unit = scene.render("web", fixed)
    async with running_engine(scene):
        await scene.synced(unit)
        changed = {**config_map("fixed", x="2"), "immutable": True}
        scene.render("web", changed, in_wave(1, config_map("later")))
        status = await scene.until(unit, lambda status: status.problems)
        assert status.operation is not None
        assert status.operation.wave is None
        assert "force deletes and recreates" in status.problems[0].hint
        assert await scene.names() == {"fixed"}
        scene.render("web", changed, in_wave(1, config_map("later")), force=True)
        await scene.synced(unit)
        assert await scene.data("fixed") == {"x": "2"}
        assert await scene.names() == {"fixed", "later"}


async def test_it_is_tried_again_by_itself_with_pauses(scene: Scene, traffic: Traffic) -> None:
    """What someone else's object stands in the way of goes through when that is gone."""
    blocker = {**config_map("a", x="theirs"), "immutable": True}
    await scene.client.create(CONFIG_MAPS, blocker, namespace=scene.namespace, manager="someone")
    unit = scene.render("web", config_map("a", x="ours"), in_wave(1, config_map("b")))
    async with running_engine(scene):
        await scene.until(unit, lambda status: status.problems)
        await scene.client.delete(CONFIG_MAPS.ref("a", scene.namespace))
        await scene.synced(unit)
        assert await scene.data("a") == {"x": "ours"}
        tries = [each for each in traffic.writes() if each.name == "a"]
        assert len(tries) < 20


async def test_a_repair_that_fails_holds_up_no_wave(scene: Scene) -> None:
    """It is a problem, nothing is pruned for it, and the new revision comes."""
    late = in_wave(3, config_map("late", x="1"))
    unit = scene.render("web", config_map("old"), late, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        ref = CONFIG_MAPS.ref("late", scene.namespace)
        await scene.client.merge_patch(ref, {"immutable": True, "data": {"x": "theirs"}}, manager="someone")
        await scene.until(unit, lambda status: status.problems)
        scene.render("web", late, config_map("new"), interval=HOUR)
        status = await scene.until(unit, lambda status: status.revision == scene.texts[unit][0] and status.problems)
        assert [problem.key for problem in status.problems] == [key_of(late, scene.namespace)]
        assert await scene.names() == {"old", "late", "new"}
        await scene.client.delete(ref)
        await scene.synced(unit)
        assert await scene.names() == {"late", "new"}
