"""What we lost, to whom, and what we share, read off managed fields."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.fields import ManagedFields, attribute, entry_digest, lost, own_entry, shared
from starling.objects import ObjectKey

KEY = ObjectKey("apps", "Deployment", "default", "web")
NOON, LATER = "2026-01-01T12:03:00Z", "2026-01-01T12:05:00Z"


def entry(
    fields: Any, manager: str = "starling", operation: str = "Apply", *, version: str = "apps/v1", time: str = NOON
) -> ManagedFields:
    """An entry with these fields, given as YAML or as what YAML says."""
    tree = yaml.safe_load(fields) if isinstance(fields, str) else fields
    raw = msgspec.Raw(msgspec.json.encode(tree))
    return ManagedFields(manager, operation, version, time, fields_v1=raw)


def paths(manifest: str, fields: str) -> list[str]:
    """What a manifest, in YAML, lost of an entry."""
    return [str(path) for path in lost(yaml.safe_load(manifest), entry(fields))]


@pytest.mark.parametrize(
    ("manifest", "fields", "expected"),
    [
        ("spec: {replicas: 3, paused: true}", "f:spec: {f:replicas: {}, f:paused: {}}", []),
        ("spec: {replicas: 3, paused: true}", "f:spec: {f:paused: {}}", ["spec.replicas"]),
        ("spec: {replicas: 3}", "{}", ["spec.replicas"]),
        ("spec: {replicas: 3, paused: true}", "{}", ["spec"]),
        ("{apiVersion: v1, kind: A, metadata: {name: a, namespace: b, uid: c, resourceVersion: '1'}}", "{}", []),
        ("metadata: {labels: {app.kubernetes.io/name: a, b: c}}", "f:metadata: {f:labels: {f:b: {}}}",
         ["metadata.labels[app.kubernetes.io/name]"]),
        ("metadata: {labels: {a: b}, annotations: {c: d}}", "{}", ["metadata.labels.a", "metadata.annotations.c"]),
        ("metadata: {finalizers: [a/b, c/d]}", "f:metadata: {f:finalizers: {'v:\"a/b\"': {}}}",
         ["metadata.finalizers[=c/d]"]),
        ("spec: {selector: {a: b}}", "f:spec: {f:selector: {}}", []),
        ("spec: {rules: [{host: a}]}", "f:spec: {f:rules: {}}", []),
        ("spec: {rules: [{host: a}], x: 1}", "f:spec: {f:x: {}}", ["spec.rules"]),
        ("spec: {strategy: {}, template: null, env: []}", "f:spec: {f:strategy: {}, f:template: {}}", []),
        ("spec: {strategy: {}, template: null, env: []}", "{}", ["spec.strategy", "spec.template"]),
        ("{status: {}, data: {a: b}}", "f:data: {f:a: {}}", []),
        ("{status: {a: 1, b: 2}}", "f:status: {f:a: {}}", ["status.b"]),
    ],
    ids=[
        "nothing", "one field", "the only field", "a whole subtree", "identity", "a label", "two maps", "of a set",
        "an atomic map", "an atomic list", "an atomic list gone", "empty values", "empty values gone",
        "a status that is a subresource", "a status that isn't",
    ],
)  # fmt: skip
def test_what_is_lost(manifest: str, fields: str, expected: list[str]) -> None:
    """The most general paths that say what our entry no longer has."""
    assert paths(manifest, fields) == expected


CONTAINERS = "spec: {containers: [{name: web, image: i, args: [x]}, {name: side, image: i, env: []}], paused: true}"


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("'k:{\"name\":\"web\"}': {., f:name, f:image, f:args}, 'k:{\"name\":\"side\"}': {., f:name, f:image}", []),
        ("'k:{\"name\":\"web\"}': {., f:name, f:args}, 'k:{\"name\":\"side\"}': {., f:name, f:image}",
         ["spec.containers[name=web].image"]),
        ("'k:{\"name\":\"web\"}': {., f:name}, 'k:{\"name\":\"side\"}': {., f:name}",
         ["spec.containers[name=web]", "spec.containers[name=side].image"]),
        ("'k:{\"name\":\"web\"}': {., f:name, f:image, f:args}, 'k:{\"name\":\"side\"}': {., f:name}",
         ["spec.containers[name=side].image"]),
        ("'k:{\"name\":\"web\"}': {., f:name, f:image, f:args}", ["spec.containers[name=side]"]),
        ("'k:{\"name\":\"web\"}': {., f:name, f:image, f:args}, 'k:{\"name\":\"side\"}': {f:image}",
         ["spec.containers[name=side]"]),
    ],
    ids=["nothing", "a field of one", "all fields of all", "the only field of one", "a whole item", "but for a null"],
)  # fmt: skip
def test_list_items_are_named_by_key(items: str, expected: list[str]) -> None:
    """An item that is gone is one path, an item that is still ours has its fields named."""
    tree = yaml.safe_load(f"f:spec: {{f:paused: {{}}, f:containers: {{{items}}}}}")
    fields = msgspec.json.encode(tree).replace(b"null", b"{}").decode()
    assert paths(CONTAINERS, fields) == expected


REPLICAS = {"apiVersion": "apps/v1", "spec": {"replicas": 3, "paused": True, "selector": {"a": "b"}}}


def test_an_item_with_a_single_field_is_gone_as_an_item() -> None:
    """Though a map with a single field is named by that field."""
    manifest = "spec: {volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]}"
    assert paths(manifest, "f:spec: {f:volumes: {'k:{\"name\":\"v\"}': {'.': {}, f:name: {}, f:emptyDir: {}}}}") == [
        "spec.volumes[name=w]"
    ]


def test_drift_names_the_manager_and_its_time() -> None:
    """Fields go to who has them now, and what nobody has was removed."""
    entries = [
        entry("f:spec: {f:selector: {}}"),
        entry("f:spec: {f:replicas: {}, f:more: {}}", "kubectl", "Update", time=LATER),
        entry("f:spec: {f:selector: {}}", "other"),
    ]
    taken, removed = attribute(KEY, REPLICAS, entries)
    assert str(taken) == f"Deployment.apps default/web: spec.replicas, by kubectl, {LATER}"
    assert str(removed) == "Deployment.apps default/web: spec.paused, removed"
    (together,) = shared(KEY, REPLICAS, entries)
    assert (together.manager, together.fields) == ("other", ("spec.selector",))


def test_one_manager_is_named_once() -> None:
    """Several entries of a manager are one Drift, with the time of the last."""
    entries = [
        entry("f:spec: {f:selector: {}}"),
        entry("f:spec: {f:replicas: {}}", "a", "Update", time=NOON),
        entry("f:spec: {f:paused: {}}", "a", "Apply", time=LATER),
    ]
    (drift,) = attribute(KEY, REPLICAS, entries)
    assert (drift.manager, drift.time, drift.fields) == ("a", LATER, ("spec.replicas", "spec.paused"))


def test_an_object_without_our_entry_is_lost_as_a_whole() -> None:
    """With the managed fields cleared, everything that the manifest says is nobody's."""
    (drift,) = attribute(KEY, REPLICAS, [])
    assert drift.fields == ("spec",)


def test_empty_lists_are_lost_only_to_someone() -> None:
    """An entry has no trace of an empty list with keys; one that is owned as a whole shows in the taker's."""
    content = {"apiVersion": "apps/v1", "spec": {"args": [], "env": [], "x": 1}}
    ours = entry("f:spec: {f:x: {}}")
    theirs = entry("{f:spec: {f:args: {}, f:env: {'k:{\"name\":\"a\"}': {'.': {}}}}}", "a", "Update")
    assert attribute(KEY, content, [ours]) == ()
    (drift,) = attribute(KEY, content, [ours, theirs])
    assert drift.fields == ("spec.args",)


def test_additions_in_our_maps_are_not_shared() -> None:
    """Who sets a field inside an empty map of ours shares nothing with us."""
    content: dict[str, Any] = {"spec": {"emptyDir": {}}}
    entries = [entry("f:spec: {f:emptyDir: {}}"), entry("f:spec: {f:emptyDir: {f:sizeLimit: {}}}", "a", "Update")]
    assert shared(KEY, content, entries) == attribute(KEY, content, entries) == ()


def test_maps_without_a_schema_emptied_by_another() -> None:
    """Our entry then reads as an atomic map; another's of the same version, which tells its parts, betrays the loss."""
    content = {"spec": {"map": {"a": 1}}}
    ours = entry("f:spec: {f:map: {}}", version="x/v1")
    theirs = "f:spec: {f:map: {f:a: {}}}"
    (drift,) = attribute(KEY, content, [ours, entry(theirs, "a", "Update", version="x/v1")])
    assert drift.fields == ("spec.map.a",)
    old = entry(theirs, "b", "Update", version="x/v2")
    assert attribute(KEY, content, [ours, old]) == ()
    drifts = attribute(KEY, content, [old, ours, entry(theirs, "a", "Update", version="x/v1")])
    assert {drift.manager: drift.fields for drift in drifts} == {"a": ("spec.map.a",), "b": ("spec.map.a",)}


NAMES = st.sampled_from("abc")
CONTENTS = st.dictionaries(
    NAMES, st.recursive(st.integers(), lambda inner: st.dictionaries(NAMES, inner, min_size=1)), min_size=1
)
Steps = tuple[str, ...]


def leaves(value: Any, way: Steps = ()) -> list[Steps]:
    """The paths to all scalars."""
    if not isinstance(value, dict):
        return [way]
    return [leaf for name, part in value.items() for leaf in leaves(part, (*way, name))]


def holding(chosen: set[Steps]) -> dict[str, Any]:
    """The fieldsV1 of these paths."""
    root: dict[str, Any] = {}
    for path in chosen:
        node = root
        for name in path:
            node = node.setdefault(f"f:{name}", {})
    return root


@given(st.data(), CONTENTS)
def test_every_lost_field_is_reported_and_no_other(data: st.DataObject, content: dict[str, Any]) -> None:
    """The Drifts of all managers cover exactly what isn't ours, each of them just what that manager has."""
    everything = leaves(content)
    some = st.sets(st.sampled_from(everything))
    ours, one, other = data.draw(some), data.draw(some), data.draw(some)
    entries = [entry(holding(ours)), entry(holding(one), "one", "Update"), entry(holding(other), "other", "Update")]

    def covered(fields: tuple[str, ...]) -> set[Steps]:
        ways = [tuple(text.split(".")) for text in fields]
        return {leaf for leaf in everything if any(leaf[: len(way)] == way for way in ways)}

    taken = set(everything) - ours
    drifts = {drift.manager: covered(drift.fields) for drift in attribute(KEY, content, entries)}
    expected = {"one": taken & one, "other": taken & other, "": taken - one - other}
    assert drifts == {manager: fields for manager, fields in expected.items() if fields}
    assert covered(tuple(map(str, lost(content, entries[0])))) == taken
    together = {drift.manager: covered(drift.fields) for drift in shared(KEY, content, entries)}
    assert together == {name: fields & ours for name, fields in (("one", one), ("other", other)) if fields & ours}


def test_our_entry_is_what_we_applied() -> None:
    """Neither an update under our name nor an apply to a subresource is it."""
    ours = entry("f:a: {}")
    status = msgspec.structs.replace(ours, subresource="status")
    assert own_entry([entry("f:b: {}", operation="Update"), status, entry("f:c: {}", "other"), ours]) is ours
    assert own_entry([status]) is None


def test_digest_sees_each_part_and_stays() -> None:
    """It is the same in every process, fits 63 bits, and changes with fields, time and version."""
    ours = entry("f:a: {}")
    changed = [
        entry("f:b: {}"), entry("f:a: {}", time=LATER), entry("f:a: {}", version="v1"),
        msgspec.structs.replace(ours, time=None), None,
    ]  # fmt: skip
    digests = {entry_digest(one) for one in [ours, *changed]}
    assert len(digests) == 6
    assert all(0 <= found < 2**63 for found in digests)
    assert entry_digest(None) == 0
    program = f"""
import msgspec
from starling.engine.fields import ManagedFields, entry_digest
print(entry_digest(msgspec.json.decode({msgspec.json.encode(ours)!r}, type=ManagedFields)))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert entry_digest(ours) == int(printed)
    assert entry_digest(msgspec.structs.replace(ours, fields_v1=ours.fields_v1.copy())) == entry_digest(ours)
