"""Whose an object is: what bears both marks is its unit's, whatever else bears them isn't, and others' is refused."""

import json

import pytest

from starling.engine import Readiness, UnitStatus
from starling.engine.ownership import LABEL, TRACKING
from starling.engine.unit import unit_hash
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.conftest import Kubectl
from tests.integration.engine.scene import Json, Scene, config_map
from tests.integration.engine.world import running_engine, unit_id
from tests.waiting import until


def refused(status: UnitStatus, owner: str) -> bool:
    """Whether a status says that something belongs to this unit."""
    return any(problem.reason == "OwnedByAnother" and owner in problem.message for problem in status.problems)


async def test_what_we_apply_bears_both_marks(scene: Scene) -> None:
    """The label has the unit's hash, the annotation names unit and object."""
    unit = scene.render("web", config_map("a", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
        metadata = (await scene.live("a"))["metadata"]
        assert metadata["labels"] == {LABEL: unit_hash(unit)}
        assert metadata["annotations"] == {TRACKING: f"{unit}:/ConfigMap:{scene.namespace}/a"}


async def test_copies_are_not_ours(scene: Scene, kubectl: Kubectl) -> None:
    """Neither an object with our label, nor one copied with both marks under another name: they are never pruned."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
        live = await scene.live("a")
        labelled = {**config_map("labelled"), "metadata": {"name": "labelled", "labels": live["metadata"]["labels"]}}
        await scene.client.create(CONFIG_MAPS, labelled, namespace=scene.namespace)
        del live["metadata"]["managedFields"], live["metadata"]["resourceVersion"], live["metadata"]["uid"]
        copied = json.dumps(live).replace('"name": "a"', '"name": "copied"')
        assert kubectl("apply", "-f", "-", "-n", scene.namespace, input=copied).returncode == 0
        assert (await scene.live("copied"))["metadata"]["labels"] == live["metadata"]["labels"]

        scene.render("web", config_map("b", x="2"))
        await scene.synced(unit)
        assert await scene.names() >= {"labelled", "copied", "b"}
        assert "a" not in await scene.names()
        assert {key.name for key in scene.status(unit).inventory} == {"b"}

        scene.render("web", allow_empty=True)
        await scene.synced(unit)
        assert await scene.names() >= {"labelled", "copied"}
        assert "b" not in await scene.names()


async def test_a_restart_prunes_no_copy(scene: Scene) -> None:
    """Also who only lists tells copies from what is the unit's."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
    marks = {name: (await scene.live("a"))["metadata"][name] for name in ("labels", "annotations")}
    copied: Json = {**config_map("copied"), "metadata": {"name": "copied", **marks}}
    await scene.client.create(CONFIG_MAPS, copied, namespace=scene.namespace)
    scene.render("web", config_map("b", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
        assert await scene.names() >= {"copied", "b"}
        assert "a" not in await scene.names()


async def test_another_units_object_is_refused(scene: Scene) -> None:
    """The error names the unit; the rest of the manifests is applied, and the object stays as its owner has it."""
    first = scene.render("first", config_map("a", x="first"))
    async with running_engine(scene):
        await scene.synced(first)
        second = scene.render("second", config_map("a", x="second"), config_map("b", x="second"))
        status = await scene.until(second, lambda status: refused(status, first))
        assert status.readiness is Readiness.FAILED
        assert await scene.data("b") == {"x": "second"}
        assert await scene.data("a") == {"x": "first"}
        assert {key.name for key in status.inventory} == {"b"}


async def test_what_its_unit_no_longer_renders_is_taken(scene: Scene) -> None:
    """The object of a unit that keeps what it no longer wants moves to the one that wants it."""
    first = scene.render("first", config_map("a", x="first"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(first)
        scene.render("first", config_map("b"), prune=False)
        await scene.synced(first)
        uid = (await scene.live("a"))["metadata"]["uid"]
        second = scene.render("second", config_map("a", x="second"))
        await scene.synced(second)
        assert await scene.data("a") == {"x": "second"}
        assert (await scene.live("a"))["metadata"]["uid"] == uid
        await scene.until(first, lambda status: {key.name for key in status.inventory} == {"b"})


async def test_the_object_of_a_unit_that_is_gone_is_taken(scene: Scene) -> None:
    """Nobody renders what belongs to a unit that there isn't."""
    first = scene.render("first", config_map("a", x="first"))
    async with running_engine(scene):
        await scene.synced(first)
        second = scene.render("second", config_map("a", x="second"))
        await scene.until(second, lambda status: refused(status, first))
        scene.forget(first)
        await scene.synced(second)
        assert await scene.data("a") == {"x": "second"}


async def test_who_was_never_met_owns_what_the_record_says(scene: Scene) -> None:
    """A unit that this process hasn't looked at yet still owns what was written down of it, and nothing beyond."""
    first = scene.render("first", config_map("a", x="first"), config_map("b", x="first"))
    async with running_engine(scene):
        await scene.synced(first)
    scene.unlisted.add(first)
    second = scene.render("second", config_map("a", x="second"))
    async with running_engine(scene):
        await scene.until(second, lambda status: refused(status, first))
    assert await scene.data("a") == {"x": "first"}


@pytest.mark.parametrize("gone", [False, True], ids=["rendering", "gone"])
@pytest.mark.parametrize("other", ["instance", "namespace"])
async def test_across_boundaries_nothing_moves(scene: Scene, other: str, gone: bool) -> None:
    """What belongs to another installation or another namespace is refused, whether that one wants it or is gone."""
    theirs = {
        "instance": unit_id("first", instance="other", namespace=scene.namespace),
        "namespace": unit_id("first", namespace=f"{scene.namespace}-other"),
    }[other]
    first = scene.render(theirs, config_map("a", x="first"))
    async with running_engine(scene):
        await scene.synced(first)
        if gone:
            scene.forget(first)
        second = scene.render("second", config_map("a", x="second"), config_map("b"))
        await scene.until(second, lambda status: refused(status, first))
        tries = scene.generated
        await until(lambda: scene.generated > tries + 2)  # it was tried again, to no other end
        assert await scene.data("a") == {"x": "first"}
        scene.render("second", config_map("b", x="2"))
        await scene.synced(second)
        assert await scene.data("a") == {"x": "first"}
