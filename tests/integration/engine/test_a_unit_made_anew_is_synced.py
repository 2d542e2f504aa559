"""A unit that was being removed and is wanted after all is a unit like any other again."""

from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.traffic import Traffic
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
