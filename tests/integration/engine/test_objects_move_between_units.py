"""An object moves between units of a namespace without being deleted, whichever of the two changes first."""

import pytest

from starling.engine.ownership import LABEL
from starling.engine.unit import unit_hash
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import Scene, config_map
from tests.integration.engine.traffic import Asked, Traffic
from tests.integration.engine.world import running_engine, unit_id


@pytest.mark.parametrize("leaving_first", [True, False], ids=["old unit first", "new unit first"])
async def test_it_moves_whole(scene: Scene, leaving_first: bool) -> None:
    """It is the same object afterwards, marked as the new unit's, in one record and no longer in the other."""
    moving = config_map("moving", x="1")
    old = scene.render("old", config_map("stays"), moving)
    new = scene.render("new", config_map("there"))
    async with running_engine(scene):
        await scene.synced(old, new)
        uid = (await scene.live("moving"))["metadata"]["uid"]
        if leaving_first:
            scene.render("old", config_map("stays"))
            scene.render("new", config_map("there"), moving)
        else:
            scene.render("new", config_map("there"), moving)
            await scene.until(new, lambda status: status.problems)
            scene.render("old", config_map("stays"))
        await scene.synced(new, old)
        await scene.until(old, lambda status: {key.name for key in status.inventory} == {"stays"})
        assert {key.name for key in scene.status(new).inventory} == {"there", "moving"}
        metadata = (await scene.live("moving"))["metadata"]
        assert metadata["uid"] == uid
        assert metadata["labels"][LABEL] == unit_hash(new)
        assert scene.status(new).drift == scene.status(old).drift == ()

        scene.render("old", config_map("stays", x="2"))
        await scene.synced(old)
        assert (await scene.live("moving"))["metadata"]["uid"] == uid
        await scene.client.merge_patch(
            CONFIG_MAPS.ref("moving", scene.namespace), {"data": {"x": "9"}}, manager="someone"
        )
        await scene.until(new, lambda status: status.drift)
        assert await scene.data("moving") == {"x": "1"}


@pytest.mark.parametrize("refused_first", [False, True], ids=["at once", "after it was refused"])
async def test_it_is_written_down_before_it_is_taken(scene: Scene, traffic: Traffic, refused_first: bool) -> None:
    """Whoever is killed right then finds it in the new unit's record: else nobody might ever look for it again."""
    moving = config_map("moving", x="1")
    old = scene.render("old", config_map("stays"), moving)
    new = scene.render("new", config_map("there"))
    recorded: list[set[str]] = []

    async def look(asked: Asked) -> None:
        if (asked.verb, asked.name) == ("apply", "moving"):
            recorded.append({key.name for key in scene.status(new).inventory})

    async with running_engine(scene):
        await scene.synced(old, new)
        traffic.before = look
        if refused_first:
            scene.render("new", config_map("there"), moving)
            await scene.until(new, lambda status: status.problems)
        scene.render("old", config_map("stays"))
        scene.render("new", config_map("there"), moving)
        await scene.synced(new, old)
    assert recorded == [{"there", "moving"}]


async def test_the_guard_asks_of_what_has_not_moved(scene: Scene) -> None:
    """That one object went elsewhere doesn't show that a render without all the others is meant."""
    old = scene.render("old", config_map("moving"), config_map("a"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(old)
        new = scene.render("new", config_map("moving"))
        await scene.until(new, lambda status: status.problems)
        scene.render("old")
        status = await scene.until(old, lambda status: status.problems)
        assert [problem.reason for problem in status.problems] == ["WouldDeleteEverything"]
        assert await scene.names() == {"moving", "a", "b"}
        scene.render("old", config_map("a"))
        await scene.synced(new, old)
        assert await scene.names() == {"moving", "a"}


async def test_a_units_only_object_moves(scene: Scene) -> None:
    """Handing everything over is no deletion of everything: nobody has to confirm it."""
    moving = config_map("moving", x="1")
    old = scene.render("old", moving)
    async with running_engine(scene):
        await scene.synced(old)
        uid = (await scene.live("moving"))["metadata"]["uid"]
        new = scene.render("new", moving)
        await scene.until(new, lambda status: status.problems)
        scene.render("old")
        await scene.synced(new)
        await scene.until(old, lambda status: not status.inventory and not status.problems)
        assert (await scene.live("moving"))["metadata"]["uid"] == uid


async def test_it_moves_while_nobody_looks(scene: Scene) -> None:
    """Both changed while no process ran: the one that starts finds the same end."""
    moving = config_map("moving", x="1")
    old = scene.render("old", config_map("stays"), moving)
    new = scene.render("new", config_map("there"))
    async with running_engine(scene):
        await scene.synced(old, new)
    uid = (await scene.live("moving"))["metadata"]["uid"]
    scene.render("old", config_map("stays", x="2"))
    scene.render("new", config_map("there"), moving)
    async with running_engine(scene):
        await scene.synced(new, old)
        await scene.until(old, lambda status: {key.name for key in status.inventory} == {"stays"})
        assert (await scene.live("moving"))["metadata"]["uid"] == uid


async def test_what_goes_with_another_field_dropped(scene: Scene) -> None:
    """Fields that the old unit said and the new one doesn't are gone."""
    old = scene.render("old", config_map("stays"), config_map("moving", x="1", y="1"))
    async with running_engine(scene):
        await scene.synced(old)
        new = scene.render("new", config_map("moving", x="1"))
        await scene.until(new, lambda status: status.problems)
        scene.render("old", config_map("stays"))
        await scene.synced(new)
        assert await scene.data("moving") == {"x": "1"}


async def test_nothing_is_handed_over_to_other_tenants(scene: Scene) -> None:
    """What a unit of another namespace renders is pruned like anything else."""
    moving = config_map("moving", x="1")
    old = scene.render("old", config_map("stays"), moving)
    async with running_engine(scene):
        await scene.synced(old)
        theirs = scene.render(unit_id("new", namespace=f"{scene.namespace}-other"), config_map("moving", x="theirs"))
        await scene.until(theirs, lambda status: status.problems)
        uid = (await scene.live("moving"))["metadata"]["uid"]
        scene.render("old", config_map("stays"))
        await scene.synced(old)
        await scene.synced(theirs)  # it was deleted, so now whoever wants one may make it
        assert (await scene.live("moving"))["metadata"]["uid"] != uid
