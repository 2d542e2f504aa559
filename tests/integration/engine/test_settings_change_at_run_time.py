"""Other settings for an engine that runs: they take effect, and nothing is written or deleted that needn't be."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from starling.engine import (
    Health,
    Phase,
    Readiness,
    ReconciliationSettings,
    ResourceOverride,
    ResourcesFilter,
    SyncCompleted,
)
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map, deployment
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until


async def edit(scene: Scene, name: str, **data: str) -> None:
    """Change a ConfigMap by someone's hand."""
    await scene.client.merge_patch(CONFIG_MAPS.ref(name, scene.namespace), {"data": data}, manager="someone")


async def test_the_same_settings_again_cost_no_write(scene: Scene, traffic: Traffic) -> None:
    """The cluster is seen anew, everything is as it was left, and later revisions come."""
    unit = scene.render("web", config_map("a"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        traffic.asked.clear()
        engine.set_reconciliation_settings(ReconciliationSettings())
        await until(lambda: traffic.count()["watch"] > 0)
        fence = scene.render("fence", config_map("fence"), interval=HOUR)
        await scene.synced(fence, unit)
        assert [each.name for each in traffic.writes()] == ["fence"]
        scene.render("web", config_map("a", x="2"), interval=HOUR)
        await scene.synced(unit)
        await edit(scene, "a", x="3")

        async def is_right() -> bool:
            return await scene.data("a") == {"x": "2"}

        await until(is_right)


@pytest.mark.parametrize("end", ["synced", "removed"])
async def test_in_the_middle_of_an_operation(scene: Scene, traffic: Traffic, end: str) -> None:
    """That its requests are cut off is no failure of it: it goes on with the new settings, and ends well once."""
    unit = scene.render("web", config_map("a"), config_map("b"), interval=HOUR)
    ended: list[SyncCompleted] = []
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        engine.on_sync_completed(ended.append)
        scene.history.clear()
        traffic.asked.clear()
        traffic.answers.clear()
        scene.render("web", config_map("a", x="2"), config_map("b", x="2"), interval=HOUR, deleting=end == "removed")
        await until(lambda: len(traffic.writes()) == 2)
        engine.set_reconciliation_settings(ReconciliationSettings())
        await until(lambda: traffic.count()["watch"] > 0)
        traffic.answers.set()
        await scene.until(unit, lambda status: status.removed if end == "removed" else scene.applied(unit))
        await until(lambda: len(ended) == (end == "synced"))
        assert [completed.operation.phase for completed in ended] == [Phase.SUCCEEDED] * len(ended)
        assert [status.problems for status in scene.history if status.problems] == []
    assert await scene.names() == (set() if end == "removed" else {"a", "b"})


async def test_another_label_takes_the_place_of_the_first(scene: Scene, traffic: Traffic) -> None:
    """On every object, by one write each and no deletion; what leaves the manifests later is still found."""
    unit = scene.render("web", config_map("a"), config_map("old"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        traffic.asked.clear()
        engine.set_reconciliation_settings(ReconciliationSettings(instance_label_key="example.com/unit"))

        async def relabelled() -> bool:
            both = [(await scene.live(name))["metadata"]["labels"] for name in ("a", "old")]
            return all("example.com/unit" in labels for labels in both)

        await until(relabelled)
        await scene.synced(unit)
        assert "starling.dev/sync" not in (await scene.live("a"))["metadata"]["labels"]
        assert sorted((each.verb, each.name) for each in traffic.writes()) == [("apply", "a"), ("apply", "old")]
        scene.render("web", config_map("a"), interval=HOUR)
        await scene.synced(unit)
        assert await scene.names() == {"a"}


async def test_kinds_that_are_left_alone_from_now_on(scene: Scene, traffic: Traffic) -> None:
    """Their objects aren't applied, repaired or pruned; and they are the unit's again when that is over."""
    unit = scene.render("web", config_map("a", x="1"), deployment(), interval=HOUR)
    alone = ReconciliationSettings(resources_filter=ResourcesFilter(("/ConfigMap",)))
    async with running_engine(scene) as engine:
        await scene.has_applied(unit)
        traffic.asked.clear()
        engine.set_reconciliation_settings(alone)
        await edit(scene, "a", x="2")
        scene.render("web", config_map("a", x="1"), config_map("new"), deployment(paused=True), interval=HOUR)

        async def is_paused() -> bool:
            return bool((await scene.live("web", "Deployment"))["spec"].get("paused"))

        await until(is_paused)
        await scene.has_applied(unit)
        assert await scene.names() == {"a"}
        assert await scene.data("a") == {"x": "2"}
        assert {each.name for each in traffic.writes()} == {"web"}
        assert "a" in {key.name for key in scene.status(unit).inventory}
        engine.set_reconciliation_settings(ReconciliationSettings())

        async def are_back() -> bool:
            return await scene.data("a") == {"x": "1"} and await scene.names() == {"a", "new"}

        await until(are_back)


async def test_other_rules_of_health_hold_at_once(scene: Scene, traffic: Traffic) -> None:
    """Without a write, there and back."""

    def never(_obj: Mapping[str, Any], _now: datetime) -> Health:
        return Health(Readiness.IN_PROGRESS, "never is")

    unit = scene.render("web", config_map("a"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        traffic.asked.clear()
        overrides = {"/ConfigMap": ResourceOverride(health=never)}
        engine.set_reconciliation_settings(ReconciliationSettings(resource_overrides=overrides))
        await scene.until(unit, lambda status: "never is" in status.message)
        engine.set_reconciliation_settings(ReconciliationSettings())
        await scene.synced(unit)
        assert traffic.writes() == []


async def test_differences_that_may_be_from_now_on(scene: Scene, traffic: Traffic) -> None:
    """They cost no write by themselves; a field that is ignored stays as someone makes it, another doesn't."""
    unit = scene.render("web", config_map("a", x="1", y="1"), interval=HOUR)
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        traffic.asked.clear()
        overrides = {"/ConfigMap": ResourceOverride(ignored_pointers=("/data/x",))}
        engine.set_reconciliation_settings(ReconciliationSettings(resource_overrides=overrides))
        await until(lambda: traffic.count()["watch"] > 0)
        fence = scene.render("fence", config_map("fence"), interval=HOUR)
        await scene.synced(fence, unit)
        assert [each.name for each in traffic.writes()] == ["fence"]
        await edit(scene, "a", x="theirs", y="theirs")

        async def is_right() -> bool:
            return await scene.data("a") == {"x": "theirs", "y": "1"}

        await until(is_right)
