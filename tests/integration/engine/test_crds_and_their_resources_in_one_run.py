"""CRDs with their resources in one set: waited for, applied, unchanged at the next apply, and removed in reverse."""

from collections.abc import AsyncIterator

import pytest

from starling.engine import Phase
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.edits import CRDS
from tests.integration.engine.kinds import OwnKind, own_kind
from tests.integration.engine.scene import Json, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.waiting import until


@pytest.fixture(params=["Namespaced", "Cluster"])
async def kind(request: pytest.FixtureRequest, scene: Scene) -> AsyncIterator[OwnKind]:
    """Widgets, in a namespace or in none."""
    async with own_kind(scene.client, f"{scene.namespace}.test", request.param) as kind:
        yield kind


async def test_one_run_brings_both(scene: Scene, kind: OwnKind) -> None:
    """Written in any order and even in a later wave; nothing fails on the way."""
    unit = scene.render("web", kind.widget("w"), in_wave(5, kind.crd()), config_map("a"))
    async with running_engine(scene):
        await scene.synced(unit)
    assert await scene.live("w", kind.resource)
    done = [(event.task.key.kind, event.outcome) for event in scene.events if event.task.key is not None]
    assert done == [("CustomResourceDefinition", "created"), ("ConfigMap", "created"), ("Widget", "created")]
    place = scene.namespace if kind.scope == "Namespaced" else ""
    assert ObjectKey(kind.group, "Widget", place, "w") in scene.status(unit).inventory
    assert not [status for status in scene.history if status.problems]


async def test_it_all_goes_in_reverse(scene: Scene, kind: OwnKind, traffic: Traffic) -> None:
    """The resource before its CRD, so that it is deleted by us and not swept away."""
    unit = scene.render("web", kind.crd(), kind.widget("w"), config_map("a"))
    async with running_engine(scene):
        await scene.synced(unit)
        traffic.asked.clear()
        scene.render("web", config_map("a"))
        await scene.synced(unit)
    assert [each.name for each in traffic.writes()] == ["w", f"widgets.{kind.group}"]

    async def is_gone() -> bool:
        return not await scene.live(f"widgets.{kind.group}", CRDS)

    await until(is_gone)  # the API server looks for resources of the kind first


async def test_an_apply_of_the_same_writes_nothing(scene: Scene, kind: OwnKind, traffic: Traffic) -> None:
    """Empty labels, annotations, finalizers and owners included: the API server would write a custom resource anew."""
    empty: Json = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    plain = config_map("a")
    plain["metadata"].update(empty)
    unit = scene.render("web", kind.crd(), kind.widget("w", **empty), plain, interval=0.5)
    async with running_engine(scene):
        await scene.synced(unit)
        versions = [await version(scene, kind), await version(scene)]
        traffic.asked.clear()
        await until(lambda: {"w", "a"} <= {each.name for each in traffic.writes()})
        await until(lambda: len([each for each in traffic.writes() if each.name == "w"]) > 1)
        assert [await version(scene, kind), await version(scene)] == versions


async def version(scene: Scene, kind: OwnKind | None = None) -> str:
    """The resourceVersion of the widget, or of the ConfigMap."""
    found = await (scene.live("w", kind.resource) if kind is not None else scene.live("a", CONFIG_MAPS))
    return str(found["metadata"]["resourceVersion"])


async def test_a_crd_that_is_refused_fails_and_so_does_its_resource(scene: Scene, kind: OwnKind) -> None:
    """The unit says which CRD and why, and both come when it is mended."""
    broken = kind.crd()
    broken["metadata"]["name"] = f"gadgets.{kind.group}"
    unit = scene.render("web", broken, kind.widget("w"), config_map("a"))
    async with running_engine(scene):
        status = await scene.until(unit, lambda status: status.problems)
        assert status.problems[0].key == ObjectKey(
            "apiextensions.k8s.io", "CustomResourceDefinition", "", f"gadgets.{kind.group}"
        )
        assert status.operation is not None
        assert status.operation.phase is Phase.FAILED
        scene.render("web", kind.crd(), kind.widget("w"), config_map("a"))
        await scene.synced(unit)
        assert await scene.live("w", kind.resource)
