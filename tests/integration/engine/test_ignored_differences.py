"""Ignored differences: git's value at creation, then whatever others make of it; never deleted, never reported."""

from typing import Any

import pytest

from starling.engine import IgnoredDifference, ReconciliationSettings, ResourceOverride
from tests.integration.engine.edits import DEPLOYMENTS
from tests.integration.engine.scene import HOUR, Scene, config_map, deployment
from tests.integration.engine.world import running_engine
from tests.waiting import until

POINTER = "/spec/replicas"
PLACES: dict[str, tuple[dict[str, Any], ReconciliationSettings]] = {
    "unit": (
        {"ignore_differences": (IgnoredDifference(kind="Deployment", json_pointers=(POINTER,)),)},
        ReconciliationSettings(),
    ),
    "settings": (
        {},
        ReconciliationSettings(resource_overrides={"apps/Deployment": ResourceOverride(ignored_pointers=(POINTER,))}),
    ),
}


async def replicas(scene: Scene) -> int:
    """How many the object asks for."""
    found: int = (await scene.live("web", "Deployment"))["spec"]["replicas"]
    return found


@pytest.mark.parametrize(("options", "settings"), PLACES.values(), ids=PLACES.keys())
async def test_replicas_that_another_scales(
    scene: Scene, options: dict[str, Any], settings: ReconciliationSettings
) -> None:
    """Git's at creation; the scaler's from then on, through repairs and new manifests; and no drift is told."""
    unit = scene.render("web", deployment(replicas=2), interval=HOUR, **options)
    ref = DEPLOYMENTS.ref("web", scene.namespace)
    async with running_engine(scene, settings):
        await scene.has_applied(unit)
        assert await replicas(scene) == 2
        await scene.client.merge_patch(ref, {"spec": {"replicas": 5}}, manager="scaler")
        await until(lambda: len(scene.events) == 2)  # the field is let go of
        assert scene.status(unit).drift == ()
        await scene.client.merge_patch(ref, {"metadata": {"labels": {"tier": "back"}}}, manager="someone")
        status = await scene.until(unit, lambda status: status.drift)
        assert {(each.manager, each.fields) for each in status.drift} == {("someone", ("metadata.labels.tier",))}
        assert (await scene.live("web", "Deployment"))["metadata"]["labels"]["tier"] == "front"
        assert await replicas(scene) == 5

        scene.render("web", deployment(replicas=3, minReadySeconds=1), interval=HOUR, **options)
        await scene.has_applied(unit)
        live = await scene.live("web", "Deployment")
        assert (live["spec"]["replicas"], live["spec"]["minReadySeconds"]) == (5, 1)


@pytest.mark.parametrize(("options", "settings"), PLACES.values(), ids=PLACES.keys())
async def test_nobody_scales_it(scene: Scene, options: dict[str, Any], settings: ReconciliationSettings) -> None:
    """The live value stays, apply after apply, and isn't deleted, which would make it 1."""
    unit = scene.render("web", deployment(replicas=2), interval=HOUR, **options)
    async with running_engine(scene, settings):
        await scene.has_applied(unit)
        for seconds in (1, 2):
            scene.render("web", deployment(replicas=3, minReadySeconds=seconds), interval=HOUR, **options)
            await scene.has_applied(unit)
            assert await replicas(scene) == 2


async def test_fields_that_are_not_named_are_put_right(scene: Scene) -> None:
    """Ignoring is for the objects that it matches, and for the fields that it names."""
    ignored = IgnoredDifference(kind="ConfigMap", name="a", json_pointers=("/data/x",))
    unit = scene.render(
        "web", config_map("a", x="1", y="1"), config_map("b", x="1"), interval=HOUR, ignore_differences=(ignored,)
    )
    async with running_engine(scene):
        await scene.synced(unit)
        await scene.everything_seen("b")
        assert (await scene.until(unit, lambda status: status.drift)).drift[0].key.name == "b"
