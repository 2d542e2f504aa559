"""A field that can't be changed is reported as it is; with force the object is deleted and made anew."""

import pytest

from starling.engine import Limits, Readiness
from starling.kube import Client
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.kinds import own_kind
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, deployment
from tests.integration.engine.test_prune_and_its_guard import annotated
from tests.integration.engine.world import running_engine

FINALIZER = "example.org/hold"


def fixed(value: str, *finalizers: str) -> Json:
    """A ConfigMap that nobody can change."""
    content = config_map("fixed", x=value)
    metadata = {**content["metadata"], **({"finalizers": list(finalizers)} if finalizers else {})}
    return {**content, "metadata": metadata, "immutable": True}


async def release(client: Client, namespace: str) -> None:
    """Take the finalizer off."""
    patch = [{"op": "remove", "path": "/metadata/finalizers"}]
    await client.json_patch(CONFIG_MAPS.ref("fixed", namespace), patch, manager="someone")


async def test_it_is_reported_as_the_server_says_it(scene: Scene) -> None:
    """The object stays, the problem names it and the server's words, the hint names the way out; others are done."""
    unit = scene.render("web", fixed("1"), config_map("a", x="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        uid = (await scene.live("fixed"))["metadata"]["uid"]
        scene.render("web", fixed("2"), config_map("a", x="2"), interval=HOUR)
        status = await scene.until(unit, lambda status: status.problems)
        (problem,) = status.problems
        assert problem.key is not None
        assert problem.key.name == "fixed"
        assert "immutable" in problem.message
        assert "force" in problem.hint
        assert status.readiness is Readiness.FAILED
        live = await scene.live("fixed")
        assert (live["metadata"]["uid"], live["data"]) == (uid, {"x": "1"})
        assert await scene.data("a") == {"x": "2"}


async def test_force_makes_it_anew(scene: Scene) -> None:
    """Another object of the same name, with what git says now."""
    unit = scene.render("web", fixed("1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        uid = (await scene.live("fixed"))["metadata"]["uid"]
        scene.render("web", fixed("2"), force=True, interval=HOUR)
        await scene.synced(unit)
        live = await scene.live("fixed")
        assert live["metadata"]["uid"] != uid
        assert live["data"] == {"x": "2"}
        assert scene.status(unit).drift == ()


async def test_force_also_when_it_is_taken_over(scene: Scene) -> None:
    """What another tool said besides goes at first contact; where it can't, the object is made anew."""
    theirs = {**fixed("1"), "data": {"x": "1", "besides": "2"}}
    await scene.client.create(CONFIG_MAPS, theirs, namespace=scene.namespace, manager="helm")
    uid = (await scene.live("fixed"))["metadata"]["uid"]
    unit = scene.render("web", fixed("1"), force=True, interval=HOUR)
    async with running_engine(scene, limits=Limits(first_retry=HOUR, longest_retry=HOUR)):
        await scene.synced(unit)
    live = await scene.live("fixed")
    assert live["metadata"]["uid"] != uid
    assert live["data"] == {"x": "1"}


async def test_force_waits_for_a_finalizer(scene: Scene) -> None:
    """Until the old one has gone nothing is done with it, nor is the operation over; then the new one is made."""
    unit = scene.render("web", fixed("1", FINALIZER), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        uid = (await scene.live("fixed"))["metadata"]["uid"]
        applied = scene.status(unit).applied_revision
        scene.render("web", fixed("2"), force=True, interval=HOUR)
        status = await scene.until(unit, lambda status: Readiness.TERMINATING in status.objects)
        assert status.applied_revision == applied
        assert not status.baseline
        await release(scene.client, scene.namespace)
        await scene.synced(unit)
        live = await scene.live("fixed")
        assert live["metadata"]["uid"] != uid
        assert live["data"] == {"x": "2"}
        assert scene.status(unit).drift == ()
        assert [key.name for key in scene.status(unit).inventory] == ["fixed"]


async def test_nothing_is_pruned_before_it_was_made_anew(scene: Scene) -> None:
    """What the revision drops may be what the old object needs to go, and the new one isn't there yet."""
    unit = scene.render("web", fixed("1", FINALIZER), config_map("old"), config_map("stays"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", fixed("2"), config_map("stays"), force=True, interval=HOUR)
        await scene.until(unit, lambda status: Readiness.TERMINATING in status.objects)
        assert await scene.names() == {"fixed", "old", "stays"}
        await release(scene.client, scene.namespace)
        await scene.synced(unit)
        assert await scene.names() == {"fixed", "stays"}


async def test_force_takes_what_another_tool_made(scene: Scene) -> None:
    """First contact with an object that can't be made what git says: it is replaced too."""
    made = await scene.client.create(CONFIG_MAPS, fixed("1"), namespace=scene.namespace, manager="helm")
    unit = scene.render("web", fixed("2"), force=True, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        live = await scene.live("fixed")
        assert live["metadata"]["uid"] != made.json()["metadata"]["uid"]
        assert live["data"] == {"x": "2"}


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "nobody's"])
async def test_force_deletes_nothing_that_is_to_be_kept(scene: Scene, ours: bool) -> None:
    """The problem is told as without force, and why force doesn't help."""
    keep = ("helm.sh/resource-policy", "keep")
    await scene.client.create(CONFIG_MAPS, annotated(fixed("1"), *keep), namespace=scene.namespace, manager="helm")
    uid = (await scene.live("fixed"))["metadata"]["uid"]
    unit = scene.render("web", *([annotated(fixed("1"), *keep)] if ours else []), config_map("a"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", annotated(fixed("2"), *keep), config_map("a"), force=True, interval=HOUR)
        status = await scene.until(unit, lambda status: status.problems)
        assert "immutable" in status.problems[0].message
        assert "marked to be kept" in status.problems[0].hint
        assert (await scene.live("fixed"))["metadata"]["uid"] == uid


async def test_force_deletes_no_crd(scene: Scene) -> None:
    """All of its kind would go along."""
    async with own_kind(scene.client, f"{scene.namespace}.test") as kind:
        unit = scene.render("web", kind.crd(), kind.widget("w"), force=True, interval=HOUR)
        async with running_engine(scene):
            await scene.synced(unit)
            uid = (await scene.live("w", kind.resource))["metadata"]["uid"]
            crd = kind.crd()
            crd["spec"]["scope"] = "Cluster"
            scene.render("web", crd, kind.widget("w"), force=True, interval=HOUR)
            status = await scene.until(unit, lambda status: status.problems)
            assert "force doesn't" in status.problems[0].hint
            assert (await scene.live("w", kind.resource))["metadata"]["uid"] == uid


async def test_force_is_not_for_what_only_reads_like_it(scene: Scene) -> None:
    """An object that is refused for another reason isn't deleted for its name, or for a value that it has."""
    name = "immutable-may-not-be-changed"
    unit = scene.render("web", config_map(name, x="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        uid = (await scene.live(name))["metadata"]["uid"]
        wrong = {**config_map(name, x="2"), "metadata": {"name": name, "labels": {"a": "is immutable"}}}
        scene.render("web", wrong, force=True, interval=HOUR)
        status = await scene.until(unit, lambda status: status.problems)
        assert "made anew" not in status.problems[0].message
        assert (await scene.live(name))["metadata"]["uid"] == uid


async def test_force_deletes_nothing_that_can_not_be_made_anew(scene: Scene) -> None:
    """The new manifest is wrong in itself: what is there stays until that is mended."""
    unit = scene.render("web", deployment(), force=True, interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        uid = (await scene.live("web", "Deployment"))["metadata"]["uid"]
        other = {"matchLabels": {"app": "other"}}
        scene.render("web", deployment(selector=other), force=True, interval=HOUR)
        status = await scene.until(unit, lambda status: status.problems)
        assert "couldn't be made anew: " in status.problems[0].message
        assert "does not match template" in status.problems[0].message
        assert (await scene.live("web", "Deployment"))["metadata"]["uid"] == uid
        labels = {"metadata": {"labels": {"app": "other"}}, "spec": deployment()["spec"]["template"]["spec"]}
        scene.render("web", deployment(selector=other, template=labels), force=True, interval=HOUR)
        await scene.has_applied(unit)
        assert (await scene.live("web", "Deployment"))["metadata"]["uid"] != uid


async def test_duplicate_list_keys_say_how_to_mend_them(scene: Scene) -> None:
    """What kubectl apply lets through and server-side apply refuses is told in words that help."""
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 80}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}}
    unit = scene.render("web", service, config_map("a"), interval=HOUR)
    async with running_engine(scene):
        status = await scene.until(unit, lambda status: status.problems)
        (problem,) = status.problems
        assert "duplicate entries for key" in problem.message
        assert "remove one" in problem.hint
        assert problem.key is not None
        assert problem.key.kind == "Service"
