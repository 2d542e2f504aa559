"""A unit that was being removed and is wanted after all is a unit like any other again."""

from starling.engine import Phase, SyncCompleted
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.waiting import until


async def test_after_its_removal(scene: Scene, traffic: Traffic) -> None:
    """What it renders is there again, it isn't called removed, and its interval comes round."""
    unit = scene.render("web", config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", deleting=True)
        await scene.until(unit, lambda status: status.removed)
        assert await scene.names() == set()
        scene.render("web", config_map("a", x="2"), interval=1.0)
        await scene.until(unit, lambda status: not status.removed)
        await scene.synced(unit)
        assert await scene.data("a") == {"x": "2"}
        traffic.asked.clear()
        await until(lambda: traffic.count()["apply"] >= 2)
        assert not scene.status(unit).removed


async def test_in_the_middle_of_its_removal(scene: Scene) -> None:
    """What has gone comes back, what was going as well once it is gone."""
    slow = config_map("slow")
    slow["metadata"]["finalizers"] = ["example.com/wait"]
    unit = scene.render("web", slow, config_map("a"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", deleting=True)
        await scene.until(unit, lambda status: {key.name for key in status.inventory} == {"slow"})
        before = (await scene.live("slow"))["metadata"]["uid"]
        scene.render("web", config_map("slow"), config_map("a"), interval=HOUR)
        await scene.until(unit, lambda status: "a" in {key.name for key in status.inventory})
        ref = CONFIG_MAPS.ref("slow", scene.namespace)
        await scene.client.merge_patch(ref, {"metadata": {"finalizers": None}}, manager="someone")
        await scene.synced(unit)
        assert await scene.names() == {"a", "slow"}
        assert (await scene.live("slow"))["metadata"]["uid"] != before
        assert not [status for status in scene.history if status.removed]


async def test_with_the_very_manifests_that_it_had(scene: Scene) -> None:
    """Its operation begins anew, waves and all, and comes to an end that is told."""
    unit = scene.render("web", in_wave(-1, config_map("first")), config_map("second"))
    ended: list[SyncCompleted] = []
    async with running_engine(scene) as engine:
        engine.on_sync_completed(ended.append)
        await scene.synced(unit)
        scene.render("web", deleting=True)
        await scene.until(unit, lambda status: status.removed)
        ended.clear()
        scene.history.clear()
        scene.render("web", in_wave(-1, config_map("first")), config_map("second"))
        await until(lambda: bool(ended))
        assert await scene.names() == {"first", "second"}
    begun = scene.history[0]
    assert begun.operation is not None
    assert begun.operation.phase is Phase.RUNNING
    assert {key.name for key in begun.inventory} == {"first", "second"}
