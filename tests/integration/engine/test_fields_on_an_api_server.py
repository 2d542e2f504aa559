"""What we read off managed fields is what a real API server meant by them."""

import itertools
import json
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from starling.engine.fields import attribute, entry_digest, lost, own_entry, shared
from starling.engine.fieldsets import FieldSet, difference, parse
from starling.kube import ApiError, Body, Changed, Client, Selection, kubeconfig, watch
from starling.local import LocalCluster
from starling.objects import ObjectKey
from tests.integration.clusters import kill, revive, running
from tests.integration.conftest import Kubectl
from tests.integration.managed_objects import Seen, entries, ref_of, serve_things
from tests.rounds import ROUNDS

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


_numbers = itertools.count()
ABSENT = object()
NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["", "x", "0.50"])


def maps(values: Any) -> Any:
    """A map, an empty one, null, or none at all."""
    return st.just(ABSENT) | st.none() | st.dictionaries(st.sampled_from(["a", "b.c/d", "e"]), values, max_size=2)


def lists(items: Any, key: str) -> Any:
    """Items with different keys, an empty list, null, or no list."""
    return st.just(ABSENT) | st.none() | st.lists(items, max_size=3, unique_by=lambda item: item[key])


def struct(**fields: Any) -> Any:
    """A map with these fields, without those that came out as ABSENT."""
    return st.fixed_dictionaries(fields).map(lambda found: {k: v for k, v in found.items() if v is not ABSENT})


def maybe(*values: Any) -> Any:
    """One of these, null, or nothing."""
    return st.sampled_from([ABSENT, None, *values])


METADATA = struct(name=st.just("a"), labels=maps(TEXTS.filter(len)), annotations=maps(TEXTS), creationTimestamp=maybe(),
                  finalizers=maybe([], ["x.y/z"], ["x.y/z", "a.b/c"]))  # fmt: skip
CONTAINER = struct(
    name=NAMES, image=st.sampled_from(["i", "j"]), args=maybe([], ["x", "y"]), tty=maybe(True, False),
    env=lists(struct(name=NAMES, value=maybe("", "x")), "name"),
    ports=lists(struct(containerPort=st.sampled_from([1, 2, 3]), protocol=maybe("TCP", "UDP")), "containerPort"),
    resources=maybe({}, {"limits": {"cpu": 1, "memory": "1024Mi"}}, {"requests": {}}),
    securityContext=maybe({}, {"capabilities": {"drop": ["ALL"]}}, {"runAsUser": 0}),
    livenessProbe=maybe({"httpGet": {"path": "/", "port": "http"}}, {"exec": {"command": ["x"]}, "periodSeconds": 10}),
)  # fmt: skip
POD = struct(
    containers=st.lists(CONTAINER, min_size=1, max_size=3, unique_by=lambda item: item["name"]),
    nodeSelector=maps(TEXTS), imagePullSecrets=maybe([], [{"name": "s"}]),
    tolerations=maybe([], [{"operator": "Exists"}]),
    volumes=maybe([], [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c", "items": []}}]),
    affinity=maybe({}, {"podAntiAffinity": {}}), hostAliases=maybe([{"ip": "1.1.1.1", "hostnames": ["a"]}]),
    terminationGracePeriodSeconds=maybe(30, 0),
)  # fmt: skip
DEPLOYMENTS = struct(
    apiVersion=st.just("apps/v1"), kind=st.just("Deployment"), metadata=METADATA, status=maybe({}, {"replicas": 3}),
    spec=struct(
        replicas=maybe(0, 1, 3), paused=maybe(True), selector=st.just({"matchLabels": {"app": "a"}}),
        strategy=maybe({}, {"type": "Recreate"}, {"rollingUpdate": {"maxSurge": "25%"}}),
        template=struct(metadata=st.just({"labels": {"app": "a"}, "creationTimestamp": None}), spec=POD),
    ),
)  # fmt: skip
SERVICES = struct(
    apiVersion=st.just("v1"), kind=st.just("Service"), metadata=METADATA,
    spec=struct(
        selector=maps(TEXTS), type=maybe("ClusterIP", "NodePort"), externalIPs=maybe([], ["1.2.3.4"]),
        ports=st.lists(struct(port=st.integers(1, 3), name=st.sampled_from(["a", "b", "c"]), targetPort=maybe(1, "x"),
                              protocol=maybe("TCP")),
                       min_size=1, max_size=3, unique_by=(lambda port: port["port"], lambda port: port["name"])),
    ),
)  # fmt: skip
CONFIG_MAPS = struct(
    apiVersion=st.just("v1"), kind=st.just("ConfigMap"), metadata=METADATA, immutable=maybe(False),
    data=st.just(ABSENT) | st.none() | st.dictionaries(st.sampled_from(["a", "b.c", "e"]), TEXTS, max_size=2),
)  # fmt: skip
ROLES = struct(
    apiVersion=st.just("rbac.authorization.k8s.io/v1"), kind=st.just("Role"), metadata=METADATA,
    rules=maybe([], [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b.c/d", "ü~"]), inner, max_size=3)
    ),
    max_leaves=10,
)
ANYTHING = struct(apiVersion=st.just("fields.test/v1"), kind=st.just("Thing"), metadata=METADATA,
                  spec=JSON, status=JSON, more=JSON)  # fmt: skip
MANIFESTS = st.one_of(DEPLOYMENTS, DEPLOYMENTS, SERVICES, CONFIG_MAPS, ROLES, ANYTHING)
A_FEW = settings(
    max_examples=40 * ROUNDS,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    print_blob=True,
)


@A_FEW
@given(MANIFESTS)
async def test_nothing_is_lost_right_after_an_apply(client: Client, namespace: str, content: dict[str, Any]) -> None:
    """Nulls, empty values, defaults, atomic parts: whatever a manifest says, the entry is found to have it."""
    await serve_things(client)
    body = await client.apply(await ref_of(client, content, namespace), content, dry_run=True)
    assert [str(path) for path in lost(content, own_entry(entries(body)))] == []


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


def pointers(value: Any, way: str = "") -> list[str]:
    """The JSON pointers to everything in a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    escaped = [(str(name).replace("~", "~0").replace("/", "~1"), part) for name, part in parts]
    return [way, *(found for name, part in escaped for found in pointers(part, f"{way}/{name}"))]


async def taken(request: Awaitable[Body]) -> Body | None:
    """The answer to a write; None if the API server doesn't take it."""
    try:
        return await request
    except ApiError:
        return None


@pytest.mark.rounds
@A_FEW
@given(st.data(), MANIFESTS)
async def test_lost_is_what_the_api_server_took(
    client: Client, namespace: str, data: st.DataObject, content: dict[str, Any]
) -> None:
    """After random removals and changes our entry lacks what the paths say, and nothing else."""
    await serve_things(client)
    content = {**content, "metadata": {**content["metadata"], "name": f"fuzz-{next(_numbers)}"}}
    ref = await ref_of(client, content, namespace)
    applied = await taken(client.apply(ref, content))
    assume(applied and own_entry(entries(applied)))
    assert applied
    before = own_entry(entries(applied))
    places = ("/spec", "/data", "/metadata/labels", "/more")
    targets = st.sampled_from([place for place in pointers(applied.json()) if place.startswith(places)] or ["/spec"])
    for _ in range(data.draw(st.integers(1, 3))):
        value = data.draw(st.sampled_from(["x", 1, True, {}, {"a": "z"}, []]))
        change = {"op": data.draw(st.sampled_from(["remove", "replace"])), "path": data.draw(targets), "value": value}
        await taken(client.once().json_patch(ref, [change], manager="someone"))
    after = own_entry(entries(await client.get(ref)))
    left = parse(after.fields_v1) if after else {}
    gone = members(difference(parse(before.fields_v1), left)) if before else []
    found = [path.steps for path in lost(content, after)]
    assert all(any(_meet(steps, path) for path in gone) for steps in found)
    unsaid = [path for path in gone if not any(_meet(steps, path) for steps in found)]
    assert all(_reads_as_atomic(left, path) or _says_nothing(content, path) for path in unsaid)


def members(fields: FieldSet, way: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of a set."""
    here = [way] if "." in fields else []
    return here + [path for step, below in fields.items() if step != "." for path in members(below, (*way, step))]


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one path leads on from the other; a step may leave out key fields that have a default."""
    return all(
        want == have or (want[:2] == have[:2] == "k:" and json.loads(want[2:]).items() <= json.loads(have[2:]).items())
        for want, have in zip(one, other, strict=False)
    )


def _reads_as_atomic(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Whether a path leads into what now looks as if it were owned as a whole."""
    for step in path:
        if fields.keys() == {"."}:
            return True
        fields = fields.get(step, {})
    return False


def _says_nothing(value: Any, path: tuple[str, ...] = ()) -> bool:
    """Whether a manifest has there an empty list, or nulls: what an object doesn't have may be removed unnoticed."""
    for step in path:
        value = value.get(step[2:]) if isinstance(value, dict) else 0
    if isinstance(value, dict):
        return bool(value) and all(map(_says_nothing, value.values()))
    return value is None or value == []
