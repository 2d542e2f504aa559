"""What is applied where differences are ignored: git's value, the live one, or none."""

import copy
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.fields import ManagedFields
from starling.engine.ignoring import check_pointer, settle
from starling.errors import InputError


def entry(fields: str, manager: str = "starling", operation: str = "Apply", subresource: str = "") -> ManagedFields:
    """An entry with these fields, as YAML."""
    raw = msgspec.Raw(msgspec.json.encode(yaml.safe_load(fields)))
    return ManagedFields(manager, operation, "apps/v1", None, subresource, raw)


def settled(git: str, live: str, pointer: str, *entries: ManagedFields) -> Any:
    """What is applied of a manifest over a live object, both in YAML."""
    content, there = yaml.safe_load(git), yaml.safe_load(live)
    before = copy.deepcopy((content, there))
    found = settle(content, there, entries, [pointer])
    assert (content, there) == before
    return found


OURS = entry("f:spec: {f:replicas: {}}")
SCALED = entry("f:spec: {f:replicas: {}}", "kubectl", "Update", "scale")
HELM = entry("f:spec: {f:replicas: {}}", "helm", "Update")


@pytest.mark.parametrize(
    ("live", "entries", "expected"),
    [
        ("null", [], {"replicas": 3, "x": 1}),
        ("spec: {replicas: 5, x: 2}", [OURS], {"replicas": 5, "x": 1}),
        ("spec: {replicas: 5, x: 2}", [OURS, SCALED], {"x": 1}),
        ("spec: {replicas: 5, x: 2}", [OURS, HELM], {"replicas": 5, "x": 1}),
        ("spec: {replicas: 5, x: 2}", [], {"replicas": 5, "x": 1}),
        ("spec: {x: 2}", [], {"x": 1}),
        ("{}", [], {"replicas": 3, "x": 1}),
    ],
    ids=["created", "live", "owned by another", "owned by a maker", "nobody's", "removed", "created in a part"],
)
def test_the_life_of_an_ignored_field(live: str, entries: list[ManagedFields], expected: Any) -> None:
    """Git's value at creation, the live value while nobody else owns it, then none."""
    assert settled("spec: {replicas: 3, x: 1}", live, "/spec/replicas", *entries) == {"spec": expected}


WEB = "f:spec: {f:containers: {'k:{\"name\":\"web\"}': {'.': {}, f:name: {}, f:image: {}}}}"
GIT = "spec: {containers: [{name: side, image: s}, {name: web, image: i, args: [a]}]}"
LIVE = "spec: {containers: [{name: web, image: j}, {name: side, image: t}]}"


def test_items_are_found_by_key() -> None:
    """The index is the manifest's, the live value that of the item with the same name."""
    found = settled(GIT, LIVE, "/spec/containers/1/image", entry(WEB))
    assert found["spec"]["containers"] == [{"name": "side", "image": "s"}, {"name": "web", "image": "j", "args": ["a"]}]


def test_items_without_keys_are_found_by_index() -> None:
    """In a list that is owned as a whole the live value is taken even if the list is another's."""
    for owner in ("starling", "other"):
        atomic = entry("f:spec: {f:rules: {}}", owner)
        found = settled(
            "spec: {rules: [{host: a, x: 1}, {host: b}]}", "spec: {rules: [{host: c}]}", "/spec/rules/0/host", atomic
        )
        assert found["spec"]["rules"] == [{"host": "c", "x": 1}, {"host": "b"}]
    found = settled(
        "spec: {rules: [{a: 1}, {a: 2}]}", "spec: {rules: [{a: 3}]}", "/spec/rules/1", entry("f:spec: {f:rules: {}}")
    )
    assert found["spec"]["rules"] == [{"a": 1}, {"a": 2}]


def test_another_takes_an_item() -> None:
    """What it owns is left out, the key and the rest stay."""
    theirs = entry(WEB, "other", "Update")
    for pointer in ("/spec/containers/1", "/spec/containers/1/image", "/spec/containers"):
        found = settled(
            GIT.replace("args: [a]", "tty: true"),
            LIVE.replace("image: j", "image: j, tty: true"),
            pointer,
            entry(WEB),
            theirs,
        )
        assert found["spec"]["containers"][1] == {"name": "web", "tty": True}


def test_an_item_that_is_gone() -> None:
    """Ignored as a whole it stays away; ignored in a part it is created anew, and whole."""
    live = "spec: {containers: [{name: side, image: t}]}"
    side = entry("f:spec: {f:containers: {'k:{\"name\":\"side\"}': {'.': {}, f:name: {}, f:image: {}}}}")
    assert settled(GIT, live, "/spec/containers/1", side)["spec"]["containers"] == [{"name": "side", "image": "s"}]
    assert settled(GIT, live, "/spec/containers/1/image", side) == yaml.safe_load(GIT)


def test_a_map_means_each_of_its_fields() -> None:
    """Below a pointer every field of the manifest has its own owner, and others' additions aren't taken up."""
    found = settled(
        "spec: {limits: {cpu: 1, memory: 2, disk: 3}}",
        "spec: {limits: {cpu: 10, memory: 20, added: 40}}",
        "/spec/limits",
        entry("f:spec: {f:limits: {f:memory: {}}}"),
        entry("f:spec: {f:limits: {'.': {}, f:cpu: {}, f:added: {}}}", "autoscaler", "Update"),
    )
    assert found == {"spec": {"limits": {"memory": 20}}}


def test_an_atomic_map_is_taken_as_a_whole() -> None:
    """The live value with all that is in it, or nothing of it."""
    git, live = "spec: {selector: {a: b}}", "spec: {selector: {c: d}}"
    ours, theirs = entry("f:spec: {f:selector: {}}"), entry("f:spec: {f:selector: {}}", "other", "Update")
    assert settled(git, live, "/spec/selector", ours) == {"spec": {"selector": {"c": "d"}}}
    assert settled(git, live, "/spec/selector", theirs) == {"spec": {}}


def test_empty_values_stay_empty() -> None:
    """What another put into an empty map of ours isn't ours."""
    theirs = entry("f:spec: {f:emptyDir: {f:size: {}}}", "other", "Update")
    assert settled("spec: {emptyDir: {}}", "spec: {emptyDir: {size: 1}}", "/spec/emptyDir", theirs) == {
        "spec": {"emptyDir": {}}
    }


def test_pointers_with_slashes_and_many_pointers() -> None:
    """Escapes are read, overlapping pointers do no harm, and one that leads nowhere does nothing."""
    content = {"metadata": {"name": "a", "annotations": {"x/y": "1", "z": "2"}}, "data": {"a": "1"}}
    live = {"metadata": {"name": "a", "annotations": {"x/y": "9", "z": "9"}}, "data": {"a": "9"}}
    pointers = ["/metadata/annotations/x~1y", "/data/a", "/data", "/spec/replicas", "/data/a/b", "/metadata/labels/0"]
    assert settle(content, live, (), pointers) == {
        "metadata": {"name": "a", "annotations": {"x/y": "9", "z": "2"}}, "data": {"a": "9"}
    }  # fmt: skip
    assert settle(content, live, (), ()) is content


@pytest.mark.parametrize("pointer", ["spec/replicas", "/spec/~2", "/a~", "", "/metadata", "/metadata/name", "/kind"])
def test_wrong_pointers_are_refused(pointer: str) -> None:
    """Whatever is no pointer, or points to what the object is."""
    with pytest.raises(InputError) as caught:
        check_pointer(pointer)
    assert caught.value.hint
    with pytest.raises(InputError):
        settle({}, {}, (), [pointer])


@pytest.mark.parametrize("pointer", ["/spec/replicas", "/metadata/labels", "/a~0b~1c", "/data/", "/spec"])
def test_good_pointers_pass(pointer: str) -> None:
    """Any other field may be ignored."""
    check_pointer(pointer)


VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "data"]), VALUES, min_size=1)
POINTERS = st.lists(st.sampled_from(["spec", "data", "a", "b", "0", "1"]), min_size=1, max_size=4).map(
    lambda tokens: "/" + "/".join(tokens)
)


@given(OBJECTS, OBJECTS, st.lists(POINTERS, max_size=3))
def test_settling_twice_is_settling_once(content: Any, live: Any, pointers: list[str]) -> None:
    """And with the manifest itself live, or with no pointer of that field, nothing changes."""
    once = settle(content, live, (), pointers)
    assert settle(once, live, (), pointers) == once
    assert settle(content, content, (), pointers) == content
    untouched = content.keys() - {pointer.split("/")[1] for pointer in pointers}
    assert {name: once[name] for name in untouched} == {name: content[name] for name in untouched}
