"""A unit that goes takes its objects along, or leaves them as if it had never been; and says when that is done."""

from contextlib import suppress
from functools import partial

from starling.engine import Readiness, StoredUnit, UnitStatus
from starling.kube import NotFound, Resource
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import Json, Scene, config_map, deployment
from tests.integration.engine.test_prune_and_its_guard import annotated, bears_no_marks
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.waiting import until

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
SET: tuple[Json, ...] = (config_map("a", x="1"), deployment(), in_wave(-1, config_map("first")))


def has_not(name: str, status: UnitStatus) -> bool:
    """Whether an object is no longer the unit's."""
    return name not in {key.name for key in status.inventory}


async def test_it_takes_everything_along_in_reverse(scene: Scene, traffic: Traffic) -> None:
    """No guard asks: that everything goes is what was said. What is to be kept is left without marks."""
    kept = annotated(config_map("kept"), "helm.sh/resource-policy", "keep")
    unit = scene.render("web", *SET[::2], kept)
    async with running_engine(scene):
        await scene.synced(unit)
        traffic.asked.clear()
        scene.render("web", deleting=True)
        status = await scene.until(unit, lambda status: status.removed)
    *together, last = [(each.verb, each.name) for each in traffic.writes()]
    assert sorted(together) == [("delete", "a"), ("patch", "kept")]
    assert last == ("delete", "first")
    assert status.inventory == {}
    assert await scene.names() == {"kept"}
    assert bears_no_marks(await scene.live("kept"))


async def test_it_can_leave_everything(scene: Scene, traffic: Traffic) -> None:
    """Without label, annotation and managed fields of ours; otherwise untouched."""
    unit = scene.render("web", config_map("a", x="1"), deployment())
    async with running_engine(scene):
        await scene.has_applied(unit)
        before = await scene.live("web", "Deployment")
        traffic.asked.clear()
        scene.render("web", deleting=True, deletion_policy="Orphan")
        status = await scene.until(unit, lambda status: status.removed)
    assert [each for each in traffic.writes() if each.verb == "delete"] == []
    assert status.inventory == {}
    after = await scene.live("web", "Deployment")
    assert bears_no_marks(after)
    assert bears_no_marks(await scene.live("a"))
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert await scene.data("a") == {"x": "1"}


async def test_finalizers_delay_it(scene: Scene, traffic: Traffic) -> None:
    """It isn't removed before the last object is gone, asks for each deletion once, and needs no poll."""
    held = [config_map(name) for name in ("one", "two")]
    for content in held:
        content["metadata"]["finalizers"] = ["example.com/wait"]
    unit = scene.render("web", *held, config_map("free"))
    async with running_engine(scene):
        await scene.synced(unit)
        traffic.asked.clear()
        scene.render("web", deleting=True)
        await scene.until(unit, lambda status: status.readiness is Readiness.TERMINATING)
        for name in ("one", "two"):
            assert not scene.status(unit).removed
            ref = CONFIG_MAPS.ref(name, scene.namespace)
            await scene.client.merge_patch(ref, {"metadata": {"finalizers": None}}, manager="someone")
            await scene.until(unit, partial(has_not, name))
        await scene.until(unit, lambda status: status.removed)
    deleted = sorted(each.name for each in traffic.writes() if each.verb == "delete")
    assert deleted == ["free", "one", "two"]


async def test_a_restart_goes_on_with_it(scene: Scene) -> None:
    """A process that dies in the middle leaves the rest to the next."""
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    unit = scene.render("web", held, config_map("free"))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", deleting=True)
        await scene.until(unit, lambda status: status.readiness is Readiness.TERMINATING)
    ref = CONFIG_MAPS.ref("held", scene.namespace)
    await scene.client.merge_patch(ref, {"metadata": {"finalizers": None}}, manager="someone")
    async with running_engine(scene):
        await scene.until(unit, lambda status: status.removed)
    assert await scene.names() == set()


async def test_what_is_gone_or_another_s_by_then_is_no_obstacle(scene: Scene) -> None:
    """An object that another unit has taken over stays; one that someone deleted needs nothing."""
    unit = scene.render("web", config_map("a"), config_map("moves"), config_map("lost"))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("a"), config_map("lost"), prune=False)
        await scene.synced(unit)
        other = scene.render("other", config_map("moves"))
        await scene.synced(other)
        scene.render("web", deleting=True)
        await scene.until(unit, lambda status: status.removed)
        assert await scene.names() == {"moves"}


async def test_what_can_not_be_seen_may_be_there(scene: Scene) -> None:
    """While the API service behind a kind is down, its objects aren't taken for gone; without it there are none."""
    group = f"{scene.namespace}.test"
    hidden = ObjectKey(group, "Widget", scene.namespace, "w")
    service: Json = {
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{group}"},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                 "insecureSkipTLSVerify": True, "service": {"name": "nobody", "namespace": "default"}},
    }  # fmt: skip
    await scene.client.create(API_SERVICES, service)
    try:

        async def is_down() -> bool:
            return f"{group}/v1" in await scene.client.discovery.stale_groups()

        await until(is_down)
        unit = scene.render("web", deleting=True)
        scene.units[unit] = StoredUnit(scene.units[unit].unit, UnitStatus(inventory={hidden: "applied"}))
        async with running_engine(scene):
            status = await scene.until(unit, lambda status: status.problems)
            assert str(hidden) in status.problems[0].message
            assert not status.removed
            assert set(status.inventory) == {hidden}
            await scene.client.delete(API_SERVICES.ref(f"v1.{group}"))
            await scene.until(unit, lambda status: status.removed)
    finally:
        with suppress(NotFound):
            await scene.client.delete(API_SERVICES.ref(f"v1.{group}"))
