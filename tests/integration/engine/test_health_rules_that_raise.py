"""A rule of someone's for health that raises: its objects' readiness is unknown, and nothing else suffers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starling.engine import Health, Readiness, ReconciliationSettings, ResourceOverride
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map
from tests.integration.engine.world import running_engine
from tests.waiting import until


def rule(obj: Mapping[str, Any], _now: datetime) -> Health:
    """One that can't cope with some objects."""
    if obj["metadata"]["name"].startswith("bad"):
        raise KeyError("conditions")
    return Health(Readiness.CURRENT)


async def test_it_is_said_and_the_watch_goes_on(scene: Scene) -> None:
    """What happens to either object is still seen and put right; other units are well."""
    settings = ReconciliationSettings(resource_overrides={"/ConfigMap": ResourceOverride(health=rule)})
    unit = scene.render("web", config_map("bad", x="1"), config_map("good", x="1"), interval=HOUR)
    async with running_engine(scene, settings):
        status = await scene.until(unit, lambda status: "the rule for its health failed" in status.message)
        assert status.readiness is Readiness.UNKNOWN
        assert "ConfigMap" in status.message
        assert "KeyError: 'conditions'" in status.message
        await scene.until(unit, lambda status: status.objects == {Readiness.UNKNOWN: 1, Readiness.CURRENT: 1})
        for name in ("bad", "good"):
            ref = CONFIG_MAPS.ref(name, scene.namespace)
            await scene.client.merge_patch(ref, {"data": {"x": "theirs"}}, manager="someone")

        async def are_right() -> bool:
            return await scene.data("bad") == await scene.data("good") == {"x": "1"}

        await until(are_right)
        await scene.synced(scene.render("other", config_map("fine"), interval=HOUR))
