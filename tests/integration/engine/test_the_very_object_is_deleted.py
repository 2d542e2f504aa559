"""A removal means one object in one state: what bears its name by then, or is another's, isn't touched."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from starling.aio import Slots
from starling.engine import ReconciliationSettings, Unit
from starling.engine.cache import ClusterCache, Seen
from starling.engine.health import assess
from starling.engine.ownership import LABEL, mark, owner
from starling.engine.prune import Deletion, delete_object
from starling.engine.target import Target
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Scene, config_map, key_of
from tests.integration.engine.test_namespaces_and_scopes import NAMESPACES, placed
from tests.integration.engine.test_prune_and_its_guard import bears_no_marks
from tests.integration.engine.traffic import Asked, Traffic
from tests.integration.engine.world import running_engine, unit_id


async def made_anew(scene: Scene) -> Seen:
    """Another object in place of "a", of someone's own."""
    await scene.client.delete(CONFIG_MAPS.ref("a", scene.namespace))
    body = await scene.client.create(CONFIG_MAPS, config_map("a", x="someone's"), namespace=scene.namespace)
    return body.decode(Seen)


@pytest.mark.parametrize("end", ["dropped", "deleted"])
async def test_made_anew_as_the_deletion_is_on_its_way(scene: Scene, traffic: Traffic, end: str) -> None:
    """When it was planned and sent, nobody could know; the API server is told which one was meant."""
    unit = scene.render("web", config_map("a", x="1"), config_map("b"), interval=HOUR)
    others: list[Seen] = []

    async def overtake(asked: Asked) -> None:
        if (asked.verb, asked.name) == ("delete", "a") and not others:
            others.append(await made_anew(scene))

    async with running_engine(scene):
        await scene.synced(unit)
        traffic.before = overtake
        if end == "dropped":
            scene.render("web", config_map("b"), interval=HOUR)
            await scene.synced(unit)
        else:
            scene.render("web", deleting=True)
            await scene.until(unit, lambda status: status.removed)
        (other,) = others
        assert (await scene.live("a"))["metadata"]["uid"] == other.metadata.uid
        assert "a" not in {key.name for key in scene.status(unit).inventory}


@pytest.mark.parametrize(("verb", "policy"), [("delete", ""), ("patch", "keep")], ids=["deleted", "left"])
async def test_another_takes_it_as_the_request_is_on_its_way(
    scene: Scene, traffic: Traffic, verb: str, policy: str
) -> None:
    """The object and their marks on it stay."""
    moving = config_map("a", x="1")
    moving["metadata"]["annotations"] = {"helm.sh/resource-policy": policy}
    unit = scene.render("web", moving, config_map("b"), interval=HOUR)
    other, key = unit_id("other", namespace=scene.namespace), key_of(moving, scene.namespace)
    theirs = mark({"metadata": {}}, other, key)
    taken: list[str] = []

    async def overtake(asked: Asked) -> None:
        if (asked.verb, asked.name) == (verb, "a") and not taken:
            taken.append(asked.name)
            await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), theirs, manager="someone")

    async with running_engine(scene):
        await scene.synced(unit)
        traffic.before = overtake
        scene.render("web", config_map("b"), interval=HOUR)
        await scene.synced(unit)
        assert taken
        marks = (await scene.live("a"))["metadata"]
        assert owner(key, marks["labels"], marks["annotations"]) == other
        assert "a" not in {key.name for key in scene.status(unit).inventory}


@pytest.mark.parametrize("when", ["before it is sent", "as it is on its way"])
async def test_it_is_marked_to_be_kept_after_all(scene: Scene, traffic: Traffic, when: str) -> None:
    """Though its deletion was planned by then, it is left, without our marks."""
    unit = scene.render("web", config_map("a"), config_map("b", x="1"), interval=HOUR)
    verb, name = ("apply", "b") if when == "before it is sent" else ("delete", "a")
    kept: list[str] = []

    async def overtake(asked: Asked) -> None:
        if (asked.verb, asked.name) == (verb, name) and not kept:
            kept.append(asked.name)
            patch = {"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}
            await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), patch, manager="someone")

    async with running_engine(scene):
        await scene.synced(unit)
        traffic.before = overtake
        scene.render("web", config_map("b", x="2"), interval=HOUR)
        await scene.synced(unit)
        assert kept
        assert bears_no_marks(await scene.live("a"))
        assert "a" not in {key.name for key in scene.status(unit).inventory}


async def test_what_holds_it_stays_with_it(scene: Scene, traffic: Traffic) -> None:
    """Marked to be kept as its deletion is on its way, it isn't taken along by its namespace, which was to go next."""
    other = f"{scene.namespace}-held"
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    stays = placed("stays", scene.namespace)
    unit = scene.render("web", made, placed("a", other), stays, target_namespace="", interval=HOUR)

    async def overtake(asked: Asked) -> None:
        if (asked.verb, asked.name) == ("delete", "a"):
            patch = {"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}
            await scene.client.merge_patch(CONFIG_MAPS.ref("a", other), patch, manager="someone")

    async with running_engine(scene):
        await scene.synced(unit)
        traffic.before = overtake
        scene.render("web", stays, target_namespace="", interval=HOUR)
        await scene.synced(unit)
    assert bears_no_marks(await scene.live(other, NAMESPACES))
    assert "deletionTimestamp" not in (await scene.live(other, NAMESPACES))["metadata"]
    await scene.client.delete(NAMESPACES.ref(other))


async def test_a_version_does_not_tell_which_object_it_is(scene: Scene) -> None:
    """A cluster that was restored counts anew: what stands there may have come to the version that is known."""
    unit = Unit(id=unit_id("web", namespace=scene.namespace), cluster="here")
    key = key_of(config_map("a"), scene.namespace)
    ours = mark(config_map("a", x="1"), unit.id, key)
    body = await scene.client.create(CONFIG_MAPS, ours, namespace=scene.namespace)
    cache = ClusterCache(LABEL, assess, lambda: datetime.now(UTC))
    known = cache.see(CONFIG_MAPS, body.decode(Seen))
    other = await made_anew(scene)
    assert known is not None
    known = msgspec.structs.replace(known, version=int(other.metadata.resource_version))
    settings, places = ReconciliationSettings(), asyncio.Semaphore(1)
    target = Target(unit, scene.client, scene.client, cache, settings, places, Slots(1, HOUR), 1)
    deletion = await delete_object(target, CONFIG_MAPS.ref("a", scene.namespace), known, lambda _record: False)
    assert deletion is not Deletion.GOING
    assert (await scene.live("a"))["metadata"]["uid"] == other.metadata.uid
