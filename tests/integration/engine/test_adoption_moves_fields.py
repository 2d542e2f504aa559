"""Coming from other tools: what git says becomes ours alone, what it doesn't say goes, and nothing restarts."""

import copy
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from starling.engine.adoption import adopt
from starling.engine.fields import own_entry, shared
from starling.kube import Client, Invalid, Ref
from starling.objects import ObjectKey
from tests.integration.conftest import Kubectl
from tests.integration.managed_objects import entries, ref_of, take_over

POD: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "web:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 80}],
            }
        ]
    },
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": POD},
}
OBJECTS: dict[str, dict[str, Any]] = {
    "Deployment": DEPLOYMENT,
    "Service": {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    },
    "ConfigMap": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "data": {"a": "1", "b": "2"},
    },
    "PersistentVolumeClaim": {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    "Job": {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}},
    },
    "Pod": {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": POD["spec"],
    },
    "StatefulSet": {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": POD},
    },
    "Ingress": {
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    },
    "ServiceAccount": {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web", "labels": {"tier": "front"}},
    },
    "CronJob": {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"schedule": "@daily",
                 "jobTemplate": {"spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}}},
    },
}  # fmt: skip
Maker = Callable[[Ref, dict[str, Any]], Awaitable[None]]
TOOLS = ["kubectl apply", "kubectl apply --server-side", "kubectl create", "kubectl replace", "helm", "helm by apply",
         "kustomize-controller", "argocd-controller"]  # fmt: skip


@pytest.fixture
def make(request: pytest.FixtureRequest, client: Client, kubectl: Kubectl) -> Maker:
    """Brings a manifest into the cluster as the tool does that the parameter names."""
    tool: str = request.param

    async def by_tool(ref: Ref, content: dict[str, Any]) -> None:
        if tool.startswith("kubectl"):
            if tool == "kubectl replace":
                await client.create(ref.resource, content, namespace=ref.namespace, manager="kubectl-create")
                content = {**content, "metadata": {**content["metadata"], "annotations": {"replaced": "x"}}}
            done = kubectl(*tool.split()[1:], "-n", ref.namespace, "-f", "-", input=json.dumps(content))
            assert done.returncode == 0, done.stderr
        elif tool == "helm":
            await client.create(ref.resource, content, namespace=ref.namespace, manager=tool)
        else:
            await client.apply(ref, content, manager=tool.partition(" ")[0])

    return by_tool


def marked(content: dict[str, Any]) -> dict[str, Any]:
    """The manifest as we apply it: with a mark of ours."""
    content = copy.deepcopy(content)
    content["metadata"]["labels"]["starling.dev/sync"] = "x"
    return content


def unmarked(live: dict[str, Any]) -> dict[str, Any]:
    """An object without what a write of metadata changes. The generation of a Deployment counts annotations, too."""
    live = copy.deepcopy(live)
    for name in ("managedFields", "resourceVersion", *(["generation"] if live["kind"] == "Deployment" else [])):
        live["metadata"].pop(name)
    live["metadata"].pop("annotations", None)
    live["metadata"]["labels"].pop("starling.dev/sync", None)
    return live


# What can't change can't be replaced.
PAIRS = [(tool, kind) for kind in OBJECTS for tool in TOOLS if kind not in ("Job", "Pod") or "replace" not in tool]


@pytest.mark.parametrize(("make", "kind"), PAIRS, indirect=["make"])
async def test_the_same_manifest_changes_nothing_but_owners(
    client: Client, namespace: str, make: Maker, kind: str
) -> None:
    """The object stays as it is, its generation too; we are its only owner; a field dropped later is gone."""
    if kind == "Pod":  # which needs an account, and no controller runs here to make it
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await client.apply(await ref_of(client, account, namespace), account)
    content = OBJECTS[kind]
    ref = await ref_of(client, content, namespace)
    await make(ref, content)
    before = (await client.get(ref)).json()

    ours = marked(content)
    body = await take_over(client, ref, ours)
    assert unmarked(body.json()) == unmarked(before)
    assert [entry.manager for entry in entries(body)] == ["starling"]
    assert "kubectl.kubernetes.io/last-applied-configuration" not in body.json()["metadata"].get("annotations", {})

    del ours["metadata"]["labels"]["tier"]
    assert "tier" not in (await client.apply(ref, ours)).json()["metadata"]["labels"]


@pytest.mark.parametrize("make", TOOLS, indirect=True)
async def test_fields_that_git_drops_later_go(client: Client, namespace: str, make: Maker) -> None:
    """Fields of list items, items and whole maps."""
    content = copy.deepcopy(DEPLOYMENT)
    content["spec"]["template"]["metadata"]["annotations"] = {"x": "y"}
    content["spec"]["minReadySeconds"] = 5
    ref = await ref_of(client, content, namespace)
    await make(ref, content)
    await take_over(client, ref, marked(content))

    del content["spec"]["template"]["metadata"]["annotations"], content["spec"]["minReadySeconds"]
    container = content["spec"]["template"]["spec"]["containers"][0]
    del container["env"][1], container["ports"]
    spec = (await client.apply(ref, marked(content))).json()["spec"]
    assert "minReadySeconds" not in spec
    assert "annotations" not in spec["template"]["metadata"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert "ports" not in container


@pytest.mark.parametrize("make", TOOLS, indirect=True)
async def test_what_git_no_longer_says_goes_at_once(client: Client, namespace: str, make: Maker) -> None:
    """What the earlier tool had said beyond git is removed by the apply that follows."""
    before = copy.deepcopy(DEPLOYMENT)
    before["metadata"]["annotations"] = {"old": "x"}
    before["spec"]["template"]["spec"]["containers"].append({"name": "old", "image": "old:1"})
    ref = await ref_of(client, before, namespace)
    await make(ref, before)
    live = (await take_over(client, ref, marked(DEPLOYMENT))).json()
    assert "old" not in live["metadata"].get("annotations", {})
    assert [container["name"] for container in live["spec"]["template"]["spec"]["containers"]] == ["web"]


@pytest.mark.parametrize("make", ["kubectl apply"], indirect=True)
async def test_who_still_acts_keeps_what_it_has(client: Client, namespace: str, make: Maker, kubectl: Kubectl) -> None:
    """An autoscaler's replicas, an operator's fields, and the mark of a restart by hand stay; pods don't restart."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await make(ref, DEPLOYMENT)
    scale = {"spec": {"replicas": 7}}
    await client.merge_patch(Ref(ref.resource, ref.name, namespace, "scale"), scale, manager="kube-controller-manager")
    operators = {**DEPLOYMENT, "metadata": {"name": "web", "labels": {"tier": "front", "operated": "yes"}}}
    await client.apply(ref, {k: v for k, v in operators.items() if k != "spec"}, manager="operator")
    await client.merge_patch(ref.status, {"status": {"replicas": 1}}, manager="kube-controller-manager")
    assert kubectl("rollout", "restart", "deployment/web", "-n", namespace).returncode == 0
    before = await client.get(ref)

    body = await take_over(client, ref, marked(DEPLOYMENT))
    assert body.json()["spec"] == before.json()["spec"]
    assert body.json()["metadata"]["labels"]["operated"] == "yes"
    managers = {(entry.manager, entry.subresource) for entry in entries(body)}
    assert managers == {
        ("starling", ""), ("operator", ""), ("kubectl-rollout", ""),
        ("kube-controller-manager", "scale"), ("kube-controller-manager", "status"),
    }  # fmt: skip
    (drift,) = shared(ObjectKey("apps", "Deployment", namespace, "web"), marked(DEPLOYMENT), entries(body))
    assert (drift.manager, drift.fields) == ("operator", ("metadata.labels.tier",))


async def test_an_object_without_managed_fields(client: Client, namespace: str) -> None:
    """What it had beforehand and git doesn't say, such as replicas that were scaled, stays; what git says is ours."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.create(ref.resource, DEPLOYMENT, namespace=namespace, manager="ancient")
    cleared = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    await client.merge_patch(ref, {"spec": {"replicas": 7}}, manager="ancient")
    await client.json_patch(ref, cleared, manager="ancient")
    assert not entries(await client.get(ref))

    ours = marked(DEPLOYMENT)
    body = await take_over(client, ref, ours)
    assert body.json()["spec"]["replicas"] == 7
    assert not shared(ObjectKey("apps", "Deployment", namespace, "web"), ours, entries(body))
    del ours["metadata"]["labels"]["tier"]
    assert "tier" not in (await client.apply(ref, ours)).json()["metadata"]["labels"]


async def test_fields_of_another_version(client: Client, namespace: str, kubectl: Kubectl) -> None:
    """They are converted by the API server: what only the old version's manifest said goes, the rest is ours."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    old = {
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "labels": {"tier": "front", "old": "x"}},
        "spec": {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 9},
    }  # fmt: skip
    new = marked({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"scaleTargetRef": target, "maxReplicas": 9},
    })  # fmt: skip
    assert kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(old)).returncode == 0
    ref = await ref_of(client, new, namespace)
    body = await take_over(client, ref, new)
    live = body.json()
    assert [(entry.manager, entry.api_version) for entry in entries(body)] == [("starling", "autoscaling/v2")]
    assert live["metadata"]["labels"].keys() == {"tier", "starling.dev/sync"}
    assert live["spec"]["maxReplicas"] == 9
    assert live["spec"]["minReplicas"] == 1
    del new["metadata"]["labels"]["tier"]
    assert "tier" not in (await client.apply(ref, new)).json()["metadata"]["labels"]


async def test_nothing_is_moved_that_was_not_seen(client: Client, namespace: str) -> None:
    """A write in between that touches an entry makes the patch Invalid; one to the status alone doesn't."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.create(ref.resource, DEPLOYMENT, namespace=namespace, manager="helm")
    ours = marked(DEPLOYMENT)
    first = adopt(entries(await client.apply(ref, ours)))
    assert first is not None
    assert first.managers == ("helm",)
    await client.merge_patch(ref, {"metadata": {"labels": {"later": "x"}}}, manager="helm")
    seen = await client.get(ref)
    with pytest.raises(Invalid):
        await client.json_patch(ref, first.operations)
    assert (await client.get(ref)).raw == seen.raw

    again = adopt(entries(seen))
    assert again is not None
    await client.merge_patch(ref.status, {"status": {"replicas": 1}}, manager="kube-controller-manager")
    body = await client.json_patch(ref, again.operations)
    assert [entry.manager for entry in entries(body)] == ["starling", "kube-controller-manager"]
    assert own_entry(entries(body))
