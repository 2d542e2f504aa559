"""A preview tells on request what an apply would find out: what is there already, and what has really changed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starling.engine import Engine, IgnoredDifference, Plan, Preview, ReconciliationSettings
from starling.engine.diff import Effect
from starling.engine.ownership import LABEL
from starling.engine.tasks import DOUBTED
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import Json, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until


@asynccontextmanager
async def previewed(scene: Scene, unit: str) -> AsyncIterator[Preview]:
    """What a process that starts now would do."""
    engine = Engine(ReconciliationSettings(), scene, scene, scene)
    try:
        yield await engine.preview(unit)
    finally:
        await engine.close()


def reasons(plan: Plan) -> dict[str, str]:
    """Why each object is written."""
    return {task.key.name: task.reason for task in plan.work if task.key is not None}


async def test_what_exists_already_is_adopted(scene: Scene, traffic: Traffic) -> None:
    """The plan itself asks nothing of each object; a closer look does, and writes nothing."""
    await scene.client.create(CONFIG_MAPS, config_map("there"), namespace=scene.namespace, manager="helm")
    unit = scene.render("web", config_map("there"), config_map("yet-to-come"))
    async with previewed(scene, unit) as preview:
        assert reasons(preview.plan) == {"there": "new", "yet-to-come": "new"}
        assert not traffic.gets()
        assert reasons(await preview.examined()) == {
            "there": "exists already, and will be adopted",
            "yet-to-come": "new",
        }
    assert not traffic.writes()


async def test_after_drift_only_what_drifted_is_to_do(scene: Scene) -> None:
    """The record says just that something has changed; what an apply wouldn't change is unchanged, as it will say."""
    names = ("drifted", "same", "unlabelled", "gone", "shared")
    unit = scene.render("web", *(config_map(name, x="1", y="2") for name in names))
    async with running_engine(scene):
        await scene.synced(unit)

    async def patch(name: str, patch: Json) -> None:
        await scene.client.merge_patch(CONFIG_MAPS.ref(name, scene.namespace), patch, manager="someone")

    await patch("drifted", {"data": {"x": "other"}})
    await patch("unlabelled", {"metadata": {"labels": {LABEL: None}}})
    await scene.client.apply(CONFIG_MAPS.ref("shared", scene.namespace), config_map("shared", x="3"), manager="someone")
    await patch("shared", {"data": {"x": "1"}})
    await scene.client.delete(CONFIG_MAPS.ref("gone", scene.namespace))
    async with previewed(scene, unit) as preview:
        assert set(reasons(preview.plan).values()) == {DOUBTED, "missing"}
        plan = await preview.examined()
    assert reasons(plan) == {
        "drifted": "drifted: data.x",
        "unlabelled": "has lost the label that is our mark",
        "gone": "missing",
        "shared": "drifted: others own fields of it",
    }
    assert plan.unchanged == 1
    scene.events.clear()
    async with running_engine(scene):
        await until(lambda: len(scene.events) >= len(names))
    outcomes = {event.task.key.name: event.outcome for event in scene.events if event.task.key is not None}
    assert {name for name, outcome in outcomes.items() if outcome == "unchanged"} == {"same"}


async def test_what_drifted_and_cannot_be_put_right(scene: Scene) -> None:
    """The server's words are the reason; with force the object will be made anew."""
    content = {**config_map("fixed", x="1"), "immutable": True}
    unit = scene.render("web", content)
    async with running_engine(scene):
        await scene.synced(unit)
    live = await scene.live("fixed")
    await scene.client.delete(CONFIG_MAPS.ref("fixed", scene.namespace))
    marks = {name: live["metadata"][name] for name in ("name", "labels", "annotations")}
    other = {**content, "metadata": marks, "data": {"x": "2"}}
    await scene.client.create(CONFIG_MAPS, other, namespace=scene.namespace, manager="someone")
    for force, began in ((False, "would be refused: "), (True, "deleted and created anew: ")):
        scene.render("web", content, force=force)
        async with previewed(scene, unit) as preview:
            assert reasons(await preview.examined())["fixed"].startswith(began)


async def test_what_force_does_not_touch_is_not_said_to_need_it(scene: Scene) -> None:
    """With force or without: it would be refused all the same."""
    kept = {**config_map("kept", x="1"), "immutable": True}
    kept["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    unit = scene.render("web", kept)
    async with running_engine(scene):
        await scene.synced(unit)
    for force in (False, True):
        scene.render("web", {**kept, "data": {"x": "2"}}, force=force)
        async with previewed(scene, unit) as preview:
            [diff] = await preview.diffs()
            assert (diff.effect, diff.needs_force) == (Effect.REFUSED, False)


async def test_first_contact_in_a_diff(scene: Scene) -> None:
    """What goes with the tool is in the diff of the first apply, and what someone adds later in none."""
    theirs = config_map("web", x="1", besides="2")
    await scene.client.create(CONFIG_MAPS, theirs, namespace=scene.namespace, manager="helm")
    unit = scene.render("web", config_map("web", x="1"))
    async with previewed(scene, unit) as preview:
        [diff] = await preview.diffs()
        assert "data.besides" in [change.path for change in diff.changes]
    async with running_engine(scene):
        await scene.synced(unit)
    assert await scene.data("web") == {"x": "1"}
    patch = {"data": {"x": "3", "later": "4"}}
    await scene.client.merge_patch(CONFIG_MAPS.ref("web", scene.namespace), patch, manager="helm")
    async with previewed(scene, unit) as preview:
        [diff] = await preview.diffs()
        assert [change.path for change in diff.changes] == ["data.x"]


async def test_ignored_differences_are_in_no_diff(scene: Scene) -> None:
    """Nor a reason to apply: what a sync would leave as it is isn't told as a change."""
    ignored = (IgnoredDifference(kind="ConfigMap", json_pointers=("/data/scaled",)),)
    unit = scene.render("web", config_map("web", x="1", scaled="1"), ignore_differences=ignored)
    async with running_engine(scene):
        await scene.synced(unit)
    await scene.client.merge_patch(CONFIG_MAPS.ref("web", scene.namespace), {"data": {"scaled": "5"}}, manager="scaler")
    async with previewed(scene, unit) as preview:
        assert [change for diff in await preview.diffs() for change in diff.changes] == []
        assert "data.scaled" not in str(reasons(await preview.examined()))
    scene.render("web", config_map("web", x="2", scaled="2"), ignore_differences=ignored)
    async with previewed(scene, unit) as preview:
        [diff] = await preview.diffs()
        assert [change.path for change in diff.changes] == ["data.x"]
