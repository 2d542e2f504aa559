"""A process that starts anew lists, compares with what was written down, and does no more than is needed."""

import msgspec
import pytest

from starling.engine import StoredUnit
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until

FREE = {"discover", "list", "watch"}
"""What a restart may ask of a cluster in which all is well."""


async def started_again(scene: Scene, traffic: Traffic, unit: str) -> None:
    """Run an engine until it has compared, and looked at the manifests."""
    traffic.asked.clear()
    scene.history.clear()
    scene.events.clear()
    before = scene.generated
    async with running_engine(scene) as engine:
        await until(lambda: scene.generated >= before + 2)  # once to know the kinds, once to plan
        await scene.synced(unit)
        engine.refresh(unit)
        asked = scene.generated
        await until(lambda: scene.generated > asked)  # the operation after next began, so the first has ended
        await scene.synced(unit)


async def test_all_as_it_was_left(scene: Scene, traffic: Traffic) -> None:
    """Nothing is asked but discovery, lists and watches, and nothing is written."""
    unit = scene.render("web", *(config_map(f"c{number}") for number in range(5)))
    async with running_engine(scene):
        await scene.synced(unit)
    left = scene.status(unit)
    await started_again(scene, traffic, unit)
    assert traffic.count().keys() == FREE
    assert traffic.count()["list"] == 1
    assert scene.history == []
    assert scene.status(unit) == left


async def test_one_manifest_changed_meanwhile(scene: Scene, traffic: Traffic) -> None:
    """One write to the cluster; the others are left alone."""
    rest = [config_map(f"c{number}") for number in range(5)]
    unit = scene.render("web", config_map("a", x="1"), *rest)
    async with running_engine(scene):
        await scene.synced(unit)
    scene.render("web", config_map("a", x="2"), *rest)
    await started_again(scene, traffic, unit)
    assert [(each.verb, each.name) for each in traffic.writes()] == [("apply", "a")]
    assert not traffic.gets()
    assert len(scene.history) == 2
    assert await scene.data("a") == {"x": "2"}


@pytest.mark.parametrize("changed", [False, True], ids=["same manifests", "another manifest too"])
async def test_a_foreign_edit_meanwhile(scene: Scene, traffic: Traffic, changed: bool) -> None:
    """One digest can't tell whose entry differs: the unit is applied again, as a whole."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"), config_map("c", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
    await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), {"data": {"x": "9"}}, manager="someone")
    if changed:
        scene.render("web", config_map("a", x="1"), config_map("b", x="2"), config_map("c", x="1"))
    await started_again(scene, traffic, unit)
    assert sorted((each.verb, each.name) for each in traffic.writes()) == [("apply", name) for name in "abc"]
    assert [await scene.data(name) for name in "abc"] == [{"x": "1"}, {"x": "2" if changed else "1"}, {"x": "1"}]
    assert scene.status(unit).baseline


@pytest.mark.parametrize("loss", ["deleted", "label stripped", "managedFields cleared"])
async def test_a_loss_meanwhile(scene: Scene, traffic: Traffic, loss: str) -> None:
    """An object that is gone, or doesn't look like ours any more, is made what it was."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
    before = await scene.live("a")
    ref = CONFIG_MAPS.ref("a", scene.namespace)
    if loss == "deleted":
        await scene.client.delete(ref)
    elif loss == "label stripped":
        await scene.client.json_patch(ref, [{"op": "remove", "path": "/metadata/labels"}], manager="someone")
    else:  # an empty entry in their place: removing them changes nothing
        await scene.client.merge_patch(ref, {"metadata": {"managedFields": [{}]}}, manager="someone")
        assert "managedFields" not in (await scene.live("a"))["metadata"]
    await started_again(scene, traffic, unit)
    after = await scene.live("a")
    assert "starling" in {entry["manager"] for entry in after["metadata"]["managedFields"]}
    assert after["data"] == {"x": "1"}
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert (after["metadata"]["uid"] == before["metadata"]["uid"]) == (loss != "deleted")


async def test_foreign_additions_meanwhile(scene: Scene, traffic: Traffic) -> None:
    """They aren't ours, so nothing differs."""
    unit = scene.render("web", config_map("a", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
    patch = {"data": {"y": "theirs"}, "metadata": {"labels": {"theirs": "too"}}}
    await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), patch, manager="someone")
    await started_again(scene, traffic, unit)
    assert traffic.count().keys() == FREE
    assert scene.history == []


async def test_killed_in_the_middle(scene: Scene, traffic: Traffic) -> None:
    """No baseline: who knows what was done. Everything is applied again, and what wasn't there yet is made."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
    begun = msgspec.structs.replace(scene.status(unit), baseline="")
    scene.units[unit] = StoredUnit(scene.units[unit].unit, begun)
    await scene.client.delete(CONFIG_MAPS.ref("b", scene.namespace))
    await started_again(scene, traffic, unit)
    assert sorted((each.verb, each.name) for each in traffic.writes()) == [("apply", "a"), ("apply", "b")]
    assert scene.status(unit).baseline


async def test_killed_and_then_git_took_it_back(scene: Scene, traffic: Traffic) -> None:
    """Our entry is dated in whole seconds, and may read as before the apply: only the record tells that one began."""
    before, after = config_map("a", x="1"), config_map("a", x="2")
    unit = scene.render("web", before)

    async def is_applied() -> bool:
        return await scene.data("a") == {"x": "2"}

    async def killed_within_a_second() -> bool:
        scene.render("web", before)
        async with running_engine(scene):
            await scene.synced(unit)
            left = (await scene.live("a"))["metadata"]["managedFields"]
            traffic.answers.clear()
            scene.render("web", after)
            await until(is_applied)
        traffic.answers.set()
        return bool((await scene.live("a"))["metadata"]["managedFields"] == left)

    await until(killed_within_a_second)
    scene.render("web", before)
    await started_again(scene, traffic, unit)
    assert await scene.data("a") == {"x": "1"}


async def test_killed_before_pruning(scene: Scene, traffic: Traffic) -> None:
    """What the record names and the manifests don't is pruned by whoever comes next."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
    scene.render("web", config_map("a", x="1"))
    await started_again(scene, traffic, unit)
    assert [(each.verb, each.name) for each in traffic.writes()] == [("delete", "b")]
    assert {key.name for key in scene.status(unit).inventory} == {"a"}


async def test_all_match_costs_no_request(scene: Scene, traffic: Traffic) -> None:
    """A unit that is looked at while all is well asks nothing at all."""
    unit = scene.render("web", config_map("a", x="1"))
    async with running_engine(scene) as engine:
        await scene.synced(unit)
        traffic.asked.clear()
        for _ in range(3):
            before = scene.generated
            engine.refresh(unit)
            await until(lambda before=before: scene.generated > before)  # type: ignore[misc] # a lambda's default
        assert traffic.asked == []
