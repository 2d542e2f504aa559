"""Managed fields that someone takes off an object: whoever stands in them beside us, all that git says is ours again.

Values stay as they were, so nothing but the entries tells of it.
"""

import pytest

from starling.engine.ownership import LABEL, TRACKING
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, key_of
from tests.integration.engine.world import running_engine

MINE = config_map("a", x="1", y="1")
THEIRS = config_map("a", y="1", z="theirs")
"""An operator's part: it says `y` too, in the same words."""

MARKS = (f"metadata.labels[{LABEL}]", f"metadata.annotations[{TRACKING}]")


async def entries(scene: Scene) -> dict[str, Json]:
    """The fields that each manager has."""
    found = (await scene.live("a"))["metadata"].get("managedFields", [])
    return {entry["manager"]: entry["fieldsV1"] for entry in found}


async def strip_ours(scene: Scene) -> None:
    """Take away our entry alone."""
    managers = [entry["manager"] for entry in (await scene.live("a"))["metadata"]["managedFields"]]
    place = managers.index("starling")
    operations = [{"op": "remove", "path": f"/metadata/managedFields/{place}"}]
    await scene.client.json_patch(CONFIG_MAPS.ref("a", scene.namespace), operations, manager="someone")


async def clear(scene: Scene) -> None:
    """Take away all entries."""
    cleared: Json = {"metadata": {"managedFields": [{}]}}
    await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), cleared, manager="someone")


REPORTS = {
    # What the operator says too is the operator's, the rest is nobody's.
    "ours alone": (strip_ours, {("operator", ("data.y",)), ("", (*MARKS, "data.x"))}),
    "all": (clear, {("", ())}),
}


@pytest.mark.parametrize("case", REPORTS)
async def test_beside_anothers(scene: Scene, case: str) -> None:
    """It is seen, reported with who has the fields now, and mended; what git drops then goes, theirs stays."""
    stripped, reports = REPORTS[case]
    unit = scene.render("web", MINE, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        await scene.client.apply(CONFIG_MAPS.ref("a", scene.namespace), THEIRS, manager="operator")
        before = await entries(scene)
        assert before.keys() == {"starling", "operator"}
        await stripped(scene)
        status = await scene.until(unit, lambda status: status.drift)
        assert {each.key for each in status.drift} == {key_of(MINE, scene.namespace)}
        assert {(each.manager, each.fields) for each in status.drift} == reports
        assert (await entries(scene))["starling"] == before["starling"]
        scene.render("web", config_map("a", y="1"), interval=HOUR)
        await scene.synced(unit)
        assert await scene.data("a") == {"y": "1", "z": "theirs"}


@pytest.mark.parametrize("case", REPORTS)
async def test_while_nobody_looked(scene: Scene, case: str) -> None:
    """The next process finds another baseline, though an operator's entry is there and every value is right."""
    stripped, _ = REPORTS[case]
    unit = scene.render("web", MINE, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
    await scene.client.apply(CONFIG_MAPS.ref("a", scene.namespace), THEIRS, manager="operator")
    before = await entries(scene)
    await stripped(scene)
    assert "starling" not in await entries(scene)
    scene.history.clear()
    async with running_engine(scene):
        await scene.until(unit, lambda status: scene.history and status.baseline)
        assert (await entries(scene))["starling"] == before["starling"]
        scene.render("web", config_map("a", y="1"), interval=HOUR)
        await scene.synced(unit)
        assert await scene.data("a") == {"y": "1", "z": "theirs"}
