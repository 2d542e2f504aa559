"""What leaves the manifests leaves the cluster; unless that would be everything, or it is to be kept."""

import re

from starling.engine import Readiness
from starling.kube import Client, Resource
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.waves import in_wave
from tests.integration.engine.world import running_engine
from tests.waiting import until

ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)


def annotated(content: Json, name: str, value: str) -> Json:
    """A manifest with an annotation."""
    return {**content, "metadata": {**content["metadata"], "annotations": {name: value}}}


def bears_no_marks(live: Json) -> bool:
    """Whether an object is there, and nothing on it tells that it ever was ours."""
    metadata = live["metadata"]
    managers = {entry["manager"] for entry in metadata.get("managedFields", [])}
    marks = {**metadata.get("labels", {}), **metadata.get("annotations", {})}
    return not [name for name in marks if name.startswith("starling.dev/")] and "starling" not in managers


async def test_prunes_are_in_reverse_and_after_everything(scene: Scene, traffic: Traffic) -> None:
    """The last wave goes first, and only once the new objects are there."""
    unit = scene.render(
        "web", config_map("stays"), in_wave(-1, config_map("one")), in_wave(1, config_map("two")),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "account"}},
    )  # fmt: skip
    async with running_engine(scene):
        await scene.synced(unit)
        traffic.asked.clear()
        scene.render("web", config_map("stays"), in_wave(3, config_map("new")))
        await scene.synced(unit)
    assert [(each.verb, each.name) for each in traffic.writes()] == [
        ("apply", "new"), ("delete", "two"), ("delete", "account"), ("delete", "one"),
    ]  # fmt: skip
    assert {key.name for key in scene.status(unit).inventory} == {"stays", "new"}


async def test_what_is_to_be_kept_stays_without_our_marks(scene: Scene) -> None:
    """By any tool's word for it; and what a controller owns is that controller's."""
    owner = await scene.client.create(CONFIG_MAPS, config_map("owner"), namespace=scene.namespace)
    uid = owner.json()["metadata"]["uid"]
    controlled = config_map("controlled")
    controlled["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": True}
    ]
    kept = [
        annotated(config_map("helm"), "helm.sh/resource-policy", "keep"),
        annotated(config_map("flux"), "kustomize.toolkit.fluxcd.io/prune", "disabled"),
        annotated(config_map("argo"), "argocd.argoproj.io/sync-options", "Validate=false,Prune=false"),
        annotated(config_map("cli-utils"), "client.lifecycle.config.k8s.io/deletion", "detach"),
        controlled,
    ]
    unit = scene.render("web", config_map("stays"), config_map("goes"), *kept)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("stays"))
        await scene.synced(unit)
    names = {content["metadata"]["name"] for content in kept}
    assert await scene.names() == {"stays", "owner"} | names
    for name in names:
        assert bears_no_marks(await scene.live(name)), name
    assert {key.name for key in scene.status(unit).inventory} == {"stays"}


async def test_an_empty_render_deletes_nothing_until_it_is_confirmed(scene: Scene) -> None:
    """With the digest that the refusal prints, once: what is made anew afterwards is guarded again."""
    unit = scene.render("web", config_map("a"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web")
        status = await scene.until(unit, lambda status: status.problems)
        assert (status.readiness, status.problems[0].reason) == (Readiness.FAILED, "WouldDeleteEverything")
        found = re.search(r"starling\.dev/confirm: (\S+)", status.problems[0].hint)
        assert found is not None
        assert await scene.names() == {"a", "b"}
        scene.render("web", confirm="sha256:another")
        await scene.client.merge_patch(CONFIG_MAPS.ref("b", scene.namespace), {"data": {"theirs": "1"}})
        scene.render("web", confirm=found.group(1))
        await scene.synced(unit)
        assert await scene.names() == set()
        scene.render("web", config_map("a"), config_map("b"), confirm=found.group(1))
        await scene.synced(unit)
        scene.render("web", confirm=found.group(1))
        await scene.until(unit, lambda status: status.problems)
        assert await scene.names() == {"a", "b"}
        scene.render("web", allow_empty=True)
        await scene.synced(unit)
        assert await scene.names() == set()


async def test_another_path_altogether_is_guarded_too(scene: Scene) -> None:
    """None of what the unit had would stay: nothing is applied, nothing is pruned."""
    unit = scene.render("web", config_map("a"))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("other"))
        await scene.until(unit, lambda status: status.problems)
        assert await scene.names() == {"a"}
        assert [key.name for key in scene.status(unit).inventory] == ["a"]
    async with running_engine(scene):
        await scene.until(unit, lambda status: status.problems)
        assert await scene.names() == {"a"}
        scene.render("web", config_map("other"), config_map("a"))
        await scene.synced(unit)


async def test_a_refused_unit_is_not_tried_without_a_pause(scene: Scene, client: Client) -> None:
    """Though its objects drift meanwhile."""
    unit = scene.render("web", config_map("a", x="1"))
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web")
        await scene.until(unit, lambda status: status.problems)
        before = scene.generated
        await client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), {"data": {"x": "2"}}, manager="someone")
        fence = scene.render("fence", config_map("fence", x="1"))
        await scene.synced(fence)
        for _ in range(3):
            await scene.everything_seen("fence")
        assert scene.generated - before < 40


async def test_without_pruning_objects_stay_and_are_let_go(scene: Scene, traffic: Traffic) -> None:
    """They are remembered: pruning switched on takes them; a restart in between writes nothing."""
    unit = scene.render("web", config_map("a"), config_map("old"), prune=False, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("a"), prune=False, interval=HOUR)
        await scene.synced(unit)
    assert await scene.names() == {"a", "old"}
    traffic.asked.clear()
    async with running_engine(scene):
        fence = scene.render("fence", config_map("fence"))
        await scene.synced(fence, unit)
        assert [each.name for each in traffic.writes()] == ["fence"]
        scene.render("web", config_map("a"), interval=HOUR)
        await until(lambda: {key.name for key in scene.status(unit).inventory} == {"a"})
    assert await scene.names() == {"a", "fence"}


async def test_a_finalizer_delays_and_holds_up_nothing(scene: Scene, traffic: Traffic) -> None:
    """The unit is Terminating until it is gone, later revisions come meanwhile, and a restart finds all as it was."""
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    unit = scene.render("web", config_map("a"), held, interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        scene.render("web", config_map("a"), interval=HOUR)
        await scene.until(unit, lambda status: status.readiness is Readiness.TERMINATING)
        scene.render("web", config_map("a", x="2"), interval=HOUR)

        async def is_new() -> bool:
            return await scene.data("a") == {"x": "2"}

        await until(is_new)
        assert len([each for each in traffic.writes() if each.verb == "delete"]) == 1
        ref = CONFIG_MAPS.ref("held", scene.namespace)
        await scene.client.merge_patch(ref, {"metadata": {"finalizers": None}}, manager="someone")
        await scene.synced(unit)
        assert {key.name for key in scene.status(unit).inventory} == {"a"}
    traffic.asked.clear()
    async with running_engine(scene):
        fence = scene.render("fence", config_map("fence"))
        await scene.synced(fence, unit)
    assert [each.name for each in traffic.writes()] == ["fence"]
