"""What we read off managed fields is what a real API server meant by them: entries, and changes that have a name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from starling.engine.fields import attribute, entry_digest, lost, own_entry, shared
from starling.kube import Changed, Client, Selection, kubeconfig, watch
from starling.local import LocalCluster
from starling.objects import ObjectKey
from tests.integration.clusters import kill, revive, running
from tests.integration.conftest import Kubectl
from tests.integration.managed_objects import Seen, entries, ref_of, serve_things

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "labels": {"app.kubernetes.io/name": "web", "tier": "front"},
        "creationTimestamp": None,
    },
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {},
        "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": {"a/b": "c"}, "creationTimestamp": None},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "web:1",
                        "args": ["a", "b"],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
                        "resources": {"limits": {"cpu": "1000m", "memory": "0.5Gi"}},
                    },
                    {"name": "side", "image": "side:1", "env": [], "volumeMounts": None},
                ],
                "imagePullSecrets": [{"name": "pull"}],
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [],
                "volumes": [{"name": "cache", "emptyDir": {}}],
            },
        },
    },
    "status": {},
}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "annotations": {}, "finalizers": ["fields.test/keep"]},
    "spec": {
        "selector": {"app": "web"},
        "ports": [{"port": 80, "name": "a"}, {"port": 53, "protocol": "UDP", "name": "b"}],
    },
    "status": {"loadBalancer": {}},
}
THING: dict[str, Any] = {
    "apiVersion": "fields.test/v1",
    "kind": "Thing",
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {
        "zoo": {"b": {"c": 1}},
        "list": [1, {"x": []}],
        "none": None,
        "e": {},
        "ü <&> ~": "x",
        "a.b/c": [[]],
    },
    "status": {"kept": True},
}


@pytest.mark.parametrize("content", [DEPLOYMENT, SERVICE, THING], ids=lambda content: str(content["kind"]))
async def test_an_entry_is_the_same_wherever_it_is_read(
    client: Client, namespace: str, content: dict[str, Any]
) -> None:
    """The apply's answer, get, list and watch, in each version of the kind, give one digest."""
    await serve_things(client)
    ref = await ref_of(client, content, namespace)
    applied = entry_digest(own_entry(entries(await client.apply(ref, content))))
    assert applied
    again = await client.apply(ref, content)
    versions = {"v1", "v2"} if content is THING else {ref.resource.version}
    found = {entry_digest(own_entry(entries(body))) for body in (again, await client.get(ref))}
    for version in versions:
        other = {**content, "apiVersion": f"{ref.resource.group}/{version}".removeprefix("/")}
        resource = (await ref_of(client, other, namespace)).resource
        selection = Selection(namespace=namespace)
        listed = await client.list(resource, Seen, selection)
        found |= {entry_digest(own_entry(item.metadata.managed_fields)) for item in listed.items}
        async for event in watch(client, resource, Seen, selection):
            if isinstance(event, Changed):
                found.add(entry_digest(own_entry(event.object.metadata.managed_fields)))
                break
    assert found == {applied}


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster whose API server may be killed."""
    with running(tmp_path, "doomed") as cluster:
        yield cluster


async def test_an_entry_outlives_the_api_server(doomed: LocalCluster) -> None:
    """A restarted API server, with what was in memory gone, gives the same digests, by get and by an apply again."""
    before = {}
    async with Client(kubeconfig(doomed.kubeconfig)) as client:
        await serve_things(client)
        for content in (DEPLOYMENT, THING):
            ref = await ref_of(client, content, "default")
            before[ref.path] = entry_digest(own_entry(entries(await client.apply(ref, content))))
    kill(doomed)
    await revive(doomed)
    async with Client(kubeconfig(doomed.kubeconfig)) as client:
        await serve_things(client)
        for content in (DEPLOYMENT, THING):
            ref = await ref_of(client, content, "default")
            assert entry_digest(own_entry(entries(await client.get(ref)))) == before[ref.path]
            assert entry_digest(own_entry(entries(await client.apply(ref, content)))) == before[ref.path]


CHANGES: list[tuple[str, list[dict[str, Any]], list[str], list[str]]] = [
    ("scaled", [{"op": "replace", "path": "/spec/replicas", "value": 5}], ["spec.replicas"], []),
    ("an image", [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}],
     ["spec.template.spec.containers[name=web].image"], []),
    ("a label", [{"op": "replace", "path": "/metadata/labels/app.kubernetes.io~1name", "value": "x"}],
     ["metadata.labels[app.kubernetes.io/name]"], []),
    ("an atomic list", [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "c"}],
     ["spec.template.spec.containers[name=web].args"], []),
    ("an atomic map", [{"op": "add", "path": "/spec/template/spec/nodeSelector/more", "value": "x"}],
     ["spec.template.spec.nodeSelector"], []),
    ("a quantity", [{"op": "replace", "path": "/spec/template/spec/containers/0/resources/limits/cpu", "value": "2"}],
     ["spec.template.spec.containers[name=web].resources.limits.cpu"], []),
    ("additions", [{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "C"}},
                   {"op": "add", "path": "/spec/template/spec/containers/1/env", "value": [{"name": "D"}]},
                   {"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}},
                   {"op": "add", "path": "/spec/template/spec/volumes/0/emptyDir/sizeLimit", "value": "1Gi"}], [], []),
    ("a label removed", [{"op": "remove", "path": "/metadata/labels/tier"}], [], ["metadata.labels.tier"]),
    ("a variable removed", [{"op": "remove", "path": "/spec/template/spec/containers/0/env/0"}], [],
     ["spec.template.spec.containers[name=web].env[name=A]"]),
    ("a container removed", [{"op": "remove", "path": "/spec/template/spec/containers/0"}], [],
     ["spec.template.spec.containers[name=web]"]),
    ("a port removed", [{"op": "remove", "path": "/spec/template/spec/containers/0/ports/0"}], [],
     ["spec.template.spec.containers[name=web].ports[containerPort=53]"]),
    ("an empty list filled",
     [{"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}],
     ["spec.template.spec.tolerations"], []),
    ("a null filled", [{"op": "add", "path": "/spec/template/spec/containers/1/volumeMounts",
                        "value": [{"name": "cache", "mountPath": "/x"}]}],
     ["spec.template.spec.containers[name=side].volumeMounts"], []),
    ("a secret replaced",
     [{"op": "replace", "path": "/spec/template/spec/imagePullSecrets", "value": [{"name": "x"}]}], [],
     ["spec.template.spec.imagePullSecrets[name=pull]"]),
]  # fmt: skip
KEY = ObjectKey("apps", "Deployment", "test", "web")


@pytest.mark.parametrize(("operations", "taken", "removed"), [pytest.param(*rest, id=name) for name, *rest in CHANGES])
async def test_a_change_is_named_with_who_made_it(
    client: Client, namespace: str, operations: list[dict[str, Any]], taken: list[str], removed: list[str]
) -> None:
    """What was changed goes to its manager, what was removed to nobody, and what was added to nothing."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.apply(ref, DEPLOYMENT)
    after = entries(await client.json_patch(ref, operations, manager="someone"))
    drifts = {drift.manager: drift for drift in attribute(KEY, DEPLOYMENT, after)}
    expected = {"someone": taken, "": removed}
    assert {name: list(drift.fields) for name, drift in drifts.items()} == {k: v for k, v in expected.items() if v}
    if taken:
        assert drifts["someone"].time == next(entry.time for entry in after if entry.manager == "someone")
    found = [str(path) for path in lost(DEPLOYMENT, own_entry(after))]
    # Our entry alone may not tell whether a map is atomic or what a list's keys are, nor that a list was filled.
    told = [path for path in taken + removed if not path.endswith("tolerations")]
    assert len(found) == len(told)
    assert all(mine.startswith(path) or path.startswith(mine) for mine, path in zip(found, told, strict=True))
    assert lost(DEPLOYMENT, own_entry(entries(await client.apply(ref, DEPLOYMENT)))) == ()


async def test_kubectl_scale_is_named(client: Client, namespace: str, kubectl: Kubectl) -> None:
    """A write to a subresource counts."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.apply(ref, DEPLOYMENT)
    scaled = kubectl("scale", "deployment", "web", "--replicas=7", "-n", namespace)
    assert scaled.returncode == 0, scaled.stderr
    (drift,) = attribute(KEY, DEPLOYMENT, entries(await client.get(ref)))
    assert drift.fields == ("spec.replicas",)
    assert drift.manager == "kubectl"


async def test_what_another_applies_too_is_shared(client: Client, namespace: str) -> None:
    """Same values are owned together and nothing is lost; a field of ours that it changes is lost."""
    ref = await ref_of(client, DEPLOYMENT, namespace)
    await client.apply(ref, DEPLOYMENT)
    container = {"name": "web", "image": "web:1", "ports": [{"containerPort": 53, "protocol": "TCP"}], "tty": True}
    theirs = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"tier": "front"}},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }  # fmt: skip
    after = entries(await client.apply(ref, theirs, manager="operator"))
    assert attribute(KEY, DEPLOYMENT, after) == ()
    (drift,) = shared(KEY, DEPLOYMENT, after)
    assert (drift.manager, drift.fields) == (
        "operator",
        (
            "metadata.labels.tier",
            "spec.template.spec.containers[name=web].image",
            "spec.template.spec.containers[name=web].ports[containerPort=53,protocol=TCP]",
        ),
    )


async def test_a_map_without_a_schema(client: Client, namespace: str) -> None:
    """Fields of free-form maps are lost one by one."""
    await serve_things(client)
    ref = await ref_of(client, THING, namespace)
    await client.apply(ref, THING)
    operations: list[dict[str, Any]] = [
        {"op": "replace", "path": "/spec/zoo/b/c", "value": 2},
        {"op": "remove", "path": "/spec/a.b~1c"},
    ]
    after = entries(await client.json_patch(ref, operations, manager="someone"))
    found = {drift.manager: drift.fields for drift in attribute(KEY, THING, after)}
    assert found == {"someone": ("spec.zoo.b.c",), "": ("spec[a.b/c]",)}
