"""An object that someone made anew without our marks, or took them off, isn't deleted when its unit lets go of it."""

import pytest

from starling.engine.ownership import LABEL, TRACKING
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine


async def strip(scene: Scene, name: str) -> None:
    """Take our marks off."""
    marks = {"labels": {LABEL: None}, "annotations": {TRACKING: None}}
    await scene.client.merge_patch(CONFIG_MAPS.ref(name, scene.namespace), {"metadata": marks}, manager="someone")


async def make_anew(scene: Scene, name: str) -> None:
    """Delete it and make another of the same name."""
    await scene.client.delete(CONFIG_MAPS.ref(name, scene.namespace))
    await scene.client.create(CONFIG_MAPS, config_map(name, x="someone's"), namespace=scene.namespace)


LOSSES = {"made anew": make_anew, "stripped": strip}


@pytest.mark.parametrize("seen", [True, False], ids=["seen", "not seen yet"])
@pytest.mark.parametrize("end", ["dropped", "deleted"])
@pytest.mark.parametrize("loss", LOSSES)
async def test_it_stays(scene: Scene, traffic: Traffic, loss: str, end: str, seen: bool) -> None:
    """The rest of the unit is done with as ever; its end isn't held up."""
    both = (config_map("a", x="1"), config_map("b"))
    unit = scene.render("web", *both, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        fence = scene.render("fence", config_map("fence", x="1"), interval=HOUR)
        await scene.synced(fence)
        scene.render("web", *both, held="for now", interval=HOUR)
        await scene.until(unit, lambda status: status.message == "for now")
        if not seen:
            traffic.events.clear()
        await LOSSES[loss](scene, "a")
        lost = (await scene.live("a"))["metadata"]["uid"]
        if seen:
            await scene.everything_seen("fence")
        if end == "dropped":
            scene.render("web", config_map("b", x="2"), interval=HOUR)
            await scene.until(unit, lambda status: {key.name for key in status.inventory} == {"b"})
            await scene.synced(unit)
        else:
            scene.render("web", deleting=True)
            status = await scene.until(unit, lambda status: status.removed)
            assert status.inventory == {}
        assert (await scene.live("a"))["metadata"]["uid"] == lost
        assert await scene.names() == ({"a", "b", "fence"} if end == "dropped" else {"a", "fence"})
        traffic.events.set()
