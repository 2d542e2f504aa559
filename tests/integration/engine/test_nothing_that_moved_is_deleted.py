"""What another unit of the namespace renders isn't deleted, however little is known of that unit yet."""

import pytest

from starling.engine.ownership import LABEL
from starling.engine.unit import unit_hash
from tests.integration.engine.edits import DEPLOYMENTS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, deployment
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine, unit_id

MOVING = config_map("moving", x="1")


async def uid(scene: Scene, name: str = "moving", kind: str = "ConfigMap") -> str:
    """Which object it is."""
    return str((await scene.live(name, kind))["metadata"]["uid"])


async def test_the_other_has_not_been_read_yet(scene: Scene) -> None:
    """It is in the store, and nobody has told this process of it."""
    old = scene.render("old", config_map("stays"), MOVING)
    new = unit_id("new", namespace=scene.namespace)
    async with running_engine(scene):
        await scene.synced(old)
        before = await uid(scene)
        scene.unannounced.add(new)
        scene.render(new, MOVING)
        scene.render("old", config_map("stays", x="2"))
        await scene.synced(old)
        assert await scene.data("stays") == {"x": "2"}
        assert await uid(scene) == before
        scene.unannounced.clear()
        scene.render(new, MOVING)
        await scene.synced(new)
        assert await uid(scene) == before
        assert (await scene.live("moving"))["metadata"]["labels"][LABEL] == unit_hash(new)


async def test_the_other_can_not_be_rendered_for_now(scene: Scene, traffic: Traffic) -> None:
    """Pruning waits and says why, what is to be applied is; then it moves."""
    old = scene.render("old", config_map("stays"), MOVING)
    new = scene.render("new", config_map("there"))
    async with running_engine(scene):
        await scene.synced(old, new)
        before = await uid(scene)
        scene.unread[new] = "{broken: ["
        scene.render("new", config_map("there"), MOVING)
        await scene.until(new, lambda status: status.problems)
        scene.render("old", config_map("stays", x="2"))
        status = await scene.until(old, lambda status: status.problems)
        (problem,) = status.problems
        assert problem.message.startswith("nothing is pruned: ")
        assert new in problem.message
        assert await scene.data("stays") == {"x": "2"}
        assert await uid(scene) == before
        del scene.unread[new]
        scene.render("new", config_map("there"), MOVING)
        await scene.synced(new, old)
        assert await uid(scene) == before
        assert (await scene.live("moving"))["metadata"]["labels"][LABEL] == unit_hash(new)
        assert scene.status(old).problems == ()
    assert [each for each in traffic.writes() if each.verb == "delete"] == []


async def test_a_wrong_path_is_guarded_though_the_other_can_not_be_rendered(scene: Scene) -> None:
    """Nothing of it is applied, else it would be what the unit has, and all that it had would go next."""
    old = scene.render("old", config_map("had"))
    new = scene.render("new", config_map("there"))
    async with running_engine(scene):
        await scene.synced(old, new)
        scene.unread[new] = "{broken: ["
        scene.render("old", config_map("wrong"))
        status = await scene.until(old, lambda status: status.problems)
        assert status.problems[0].message.startswith("nothing is pruned: ")
        assert await scene.names() == {"had", "there"}
        del scene.unread[new]
        await scene.until(old, lambda status: [p.reason for p in status.problems] == ["WouldDeleteEverything"])
        assert await scene.names() == {"had", "there"}


async def test_what_nobody_renders_goes_when_the_other_can_be_asked_again(scene: Scene) -> None:
    """The prune was only put off."""
    old = scene.render("old", config_map("stays"), config_map("dropped"))
    new = scene.render("new", config_map("there"))
    async with running_engine(scene):
        await scene.synced(old, new)
        scene.unread[new] = "{broken: ["
        scene.render("old", config_map("stays"))
        await scene.until(old, lambda status: status.problems)
        assert await scene.names() == {"stays", "dropped", "there"}
        del scene.unread[new]
        await scene.synced(old)
        assert await scene.names() == {"stays", "there"}


async def test_the_other_names_its_kind_in_a_version_that_is_not_served(scene: Scene) -> None:
    """That one can't apply it, but it is meant; with the right version it moves."""
    wrong: Json = {**deployment(), "apiVersion": "apps/v1beta1"}
    old = scene.render("old", config_map("stays"), deployment())
    new = scene.render("new", config_map("there"))
    async with running_engine(scene):
        await scene.has_applied(old, new)
        before = await uid(scene, "web", "Deployment")
        scene.render("new", config_map("there"), wrong)
        await scene.until(new, lambda status: status.problems)
        scene.render("old", config_map("stays", x="2"))
        await scene.has_applied(old)
        assert await scene.names(DEPLOYMENTS) == {"web"}
        assert await uid(scene, "web", "Deployment") == before
        scene.render("new", config_map("there"), deployment())
        await scene.has_applied(new)
        assert await uid(scene, "web", "Deployment") == before
        labels = (await scene.live("web", "Deployment"))["metadata"]["labels"]
        assert labels[LABEL] == unit_hash(new)


@pytest.mark.parametrize("known", [True, False], ids=["read", "only in the store"])
async def test_a_unit_that_goes_hands_over_what_another_renders(scene: Scene, known: bool) -> None:
    """The same object is the other's afterwards; the rest is deleted."""
    old = scene.render("old", config_map("goes"), MOVING, interval=HOUR)
    new = unit_id("new", namespace=scene.namespace)
    async with running_engine(scene):
        await scene.synced(old)
        before = await uid(scene)
        if not known:
            scene.unannounced.add(new)
        scene.render(new, config_map("there"), MOVING, interval=HOUR)
        if known:
            await scene.until(new, lambda status: status.problems)
        scene.render("old", deleting=True)
        await scene.until(old, lambda status: status.removed)
        if not known:
            scene.unannounced.clear()
            scene.render(new, config_map("there"), MOVING, interval=HOUR)
        await scene.synced(new)
        assert await scene.names() == {"there", "moving"}
        assert await uid(scene) == before
        assert (await scene.live("moving"))["metadata"]["labels"][LABEL] == unit_hash(new)
