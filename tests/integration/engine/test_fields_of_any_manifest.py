"""What we read off managed fields is what a real API server meant by them, whatever was applied and then changed."""

import itertools
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from starling.engine.fields import lost, own_entry
from starling.engine.fieldsets import FieldSet, difference, parse
from starling.kube import ApiError, Body, Client
from tests.integration.managed_objects import entries, ref_of, serve_things
from tests.rounds import ROUNDS

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
