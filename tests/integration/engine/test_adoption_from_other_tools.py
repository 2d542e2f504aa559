"""What other tools made becomes ours at first contact: nothing restarts, and what git drops later really goes."""

import copy
import json
from collections.abc import Awaitable, Callable

import pytest

from starling.kube import Client, Resource
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.conftest import Kubectl
from tests.integration.engine.edits import DEPLOYMENTS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, deployment
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine

STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
KINDS = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}
Maker = Callable[[Client, Kubectl, str, Json], Awaitable[None]]


def by_kubectl(*arguments: str) -> Maker:
    """As kubectl does it."""

    async def make(_client: Client, kubectl: Kubectl, namespace: str, content: Json) -> None:
        done = kubectl(*arguments, "-n", namespace, "-f", "-", input=json.dumps(content))
        assert done.returncode == 0, done.stderr

    return make


def by_apply(manager: str) -> Maker:
    """As a tool does that applies server-side under its own name."""

    async def make(client: Client, _kubectl: Kubectl, namespace: str, content: Json) -> None:
        await client.apply(KINDS[content["kind"]].ref("web", namespace), content, manager=manager)

    return make


def by_update(manager: str) -> Maker:
    """As a tool does that creates and patches under its own name, with Helm's marks on it."""

    async def make(client: Client, _kubectl: Kubectl, namespace: str, content: Json) -> None:
        content = copy.deepcopy(content)
        content["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm"
        content["metadata"]["annotations"]["meta.helm.sh/release-name"] = "web"
        await client.create(KINDS[content["kind"]], content, namespace=namespace, manager=manager)

    return make


MAKERS = {
    "kubectl apply": by_kubectl("apply"),
    "kubectl apply --server-side": by_kubectl("apply", "--server-side"),
    "kubectl create": by_kubectl("create"),
    "Helm": by_update("helm"),
    "Helm 4": by_apply("helm"),
    "Flux": by_apply("kustomize-controller"),
    "Flux's Helm": by_update("helm-controller"),
    "Argo CD": by_update("argocd-controller"),
    "Argo CD server-side": by_apply("argocd-controller"),
}


def dropped(content: Json) -> Json:
    """The manifest with less in it, in places where owners tell: a field, a label, an item's field."""
    content = copy.deepcopy(content)
    del content["spec"]["minReadySeconds"], content["metadata"]["labels"]["tier"]
    del content["spec"]["template"]["spec"]["containers"][0]["env"]
    return content


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
async def test_nothing_restarts_and_dropped_fields_go(
    scene: Scene, traffic: Traffic, kubectl: Kubectl, make: Maker, kind: str
) -> None:
    """The object, its pod template and its generation stay; fields removed from git later are gone."""
    manifest = {**deployment(minReadySeconds=5), "kind": kind}
    await make(scene.client, kubectl, scene.namespace, manifest)
    before = await scene.live("web", KINDS[kind])
    unit = scene.render("web", manifest, interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        after = await scene.live("web", KINDS[kind])
        assert after["spec"] == before["spec"]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        if kind != "Deployment":  # whose generation counts annotations, and we add one
            assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert not traffic.gets()
        assert scene.status(unit).shared == ()

        scene.render("web", dropped(manifest), interval=HOUR)
        await scene.has_applied(unit)
        after = await scene.live("web", KINDS[kind])
        assert after["spec"].get("minReadySeconds", 0) == 0
        assert "tier" not in after["metadata"]["labels"]
        assert "env" not in after["spec"]["template"]["spec"]["containers"][0]
        assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_no_object_is_asked_for(scene: Scene, traffic: Traffic, kubectl: Kubectl) -> None:
    """However many are adopted: earlier managers are seen in the answer to the apply."""
    manifests = [config_map(f"c{number}", x="1", y="1") for number in range(8)]
    made = kubectl("apply", "-n", scene.namespace, "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))
    assert made.returncode == 0, made.stderr
    unit = scene.render("web", *manifests)
    async with running_engine(scene):
        await scene.synced(unit)
        assert not traffic.gets()
        scene.render("web", *(config_map(f"c{number}", x="1") for number in range(8)))
        await scene.synced(unit)
        assert [await scene.data(f"c{number}") for number in range(8)] == [{"x": "1"}] * 8


async def test_objects_that_nobody_made_cost_one_write(scene: Scene, traffic: Traffic) -> None:
    """Adoption is for what is there: what we create needs no second look."""
    unit = scene.render("web", *(config_map(f"c{number}", x="1") for number in range(8)))
    async with running_engine(scene):
        await scene.synced(unit)
        assert traffic.count()["apply"] == len(traffic.writes()) == 8


async def test_what_stays_others_is_reported(scene: Scene) -> None:
    """Fields that operators own along with us: who removes them from git is told why they stay."""
    await scene.client.create(CONFIG_MAPS, config_map("a", x="1", y="1"), namespace=scene.namespace, manager="one")
    ref = CONFIG_MAPS.ref("a", scene.namespace)
    await scene.client.apply(ref, config_map("a", y="1"), manager="two")
    unit = scene.render("web", config_map("a", x="1", y="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        key = ObjectKey("", "ConfigMap", scene.namespace, "a")
        found = {(each.key, each.manager, each.fields) for each in scene.status(unit).shared}
        assert found == {(key, "one", ("data",)), (key, "two", ("data.y",))}
        scene.render("web", config_map("a", x="1"), interval=HOUR)
        await scene.synced(unit)
        assert await scene.data("a") == {"x": "1", "y": "1"}


async def test_reports_of_shared_fields_end_with_the_object(scene: Scene) -> None:
    """What is pruned isn't shared any more."""
    await scene.client.create(CONFIG_MAPS, config_map("a", x="1"), namespace=scene.namespace, manager="one")
    unit = scene.render("web", config_map("a", x="1"), config_map("b"))
    async with running_engine(scene):
        await scene.synced(unit)
        assert scene.status(unit).shared
        scene.render("web", config_map("b"))
        await scene.synced(unit)
        await scene.until(unit, lambda status: not status.shared)
