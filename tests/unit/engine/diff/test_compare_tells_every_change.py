"""The changes that a comparison reports are all there are, at the places it says."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.diff import Change, Effect, compare
from starling.objects import ObjectKey, canonical_json
from tests.unit.engine.diff.changing import changed

Json = Any


def with_key(*fields: str) -> st.SearchStrategy[list[dict[str, Json]]]:
    """Lists of mappings that these fields tell apart."""
    values = st.sampled_from(["u", "v", "w", 1, 2])
    items = st.fixed_dictionaries(
        {fields[0]: values},
        optional={**dict.fromkeys(fields[1:], values), "x": st.integers(0, 2), "y": st.none() | st.booleans()},
    )
    return st.lists(items, max_size=4, unique_by=lambda item: tuple(item.get(field) for field in fields))


SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "0", 1.0, 1.5])
KEYED = with_key("name") | with_key("port", "protocol") | with_key("mountPath")
JSON = st.recursive(
    SCALARS | KEYED,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "a/b", "~", "0", ""]), inner, max_size=4)
        | st.lists(st.builds(lambda name, x: {"name": name, "x": x}, st.sampled_from("uvw"), inner), max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "data", "a/b"]), JSON, max_size=3)


@given(OBJECTS)
def test_an_object_does_not_differ_from_itself(content: Json) -> None:
    """Comparing an object with a copy of itself finds nothing."""
    diff = compare(content, copy.deepcopy(content))
    assert diff.effect is Effect.UNCHANGED
    assert not diff.different
    assert diff.changes == ()


@given(OBJECTS, OBJECTS)
def test_making_the_changes_gives_the_other_object(before: Json, after: Json) -> None:
    """Nothing is left out and nothing stands at the wrong place, lists by key and their order included."""
    diff = compare(before, after)
    assert canonical_json(changed(before, diff.changes)) == canonical_json(after)
    assert diff.different is (canonical_json(before) != canonical_json(after))


@given(OBJECTS, st.randoms(use_true_random=False))
def test_a_shuffled_list_is_only_reordered(content: Json, random: Any) -> None:
    """Items with keys in another order are no other items."""
    items = [{"name": name, "content": content} for name in "abcd"]
    shuffled = random.sample(items, k=4)
    changes = compare({"spec": items}, {"spec": shuffled}).changes
    assert [change.reordered for change in changes] == ([] if shuffled == items else [True])


@given(OBJECTS)
def test_what_is_new_or_goes_is_told_whole(content: Json) -> None:
    """The changes of an object that is created or removed hold all of it."""
    created, removed = compare(None, content), compare(content, None)
    assert (created.effect, removed.effect) == (Effect.CREATED, Effect.REMOVED)
    assert changed({}, created.changes) == content
    assert changed(content, removed.changes) == {}


def containers(*items: dict[str, Json]) -> dict[str, Json]:
    """As a workload has them."""
    return {"spec": {"template": {"spec": {"containers": list(items)}}}}


WEB, PROXY = {"name": "web", "image": "a"}, {"name": "proxy", "image": "p"}
IN_POD = "spec.template.spec.containers"


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        pytest.param(
            {"spec": {"replicas": 2}},
            {"spec": {"replicas": 3}},
            [Change("spec.replicas", "/spec/replicas", 2, 3)],
            id="a value",
        ),
        pytest.param(
            containers(WEB, PROXY),
            containers(PROXY, {"name": "web", "image": "b"}),
            [
                Change(
                    IN_POD,
                    "/spec/template/spec/containers",
                    [{"name": "web"}, {"name": "proxy"}],
                    [{"name": "proxy"}, {"name": "web"}],
                    reordered=True,
                ),
                Change(f"{IN_POD}[name=web].image", "/spec/template/spec/containers/1/image", "a", "b"),
            ],
            id="an item that moved, too",
        ),
        pytest.param(
            containers(WEB, PROXY),
            containers(PROXY),
            [Change(f"{IN_POD}[name=web]", "/spec/template/spec/containers/0", WEB)],
            id="an item that goes",
        ),
        pytest.param(
            {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}},
            {"spec": {"ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]}},
            [Change("spec.ports[port=80,protocol=UDP]", "/spec/ports/0", after={"port": 80, "protocol": "UDP"})],
            id="a key of two fields",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "3"}]},
            [Change("env[1].value", "/env/1/value", "2", "3")],
            id="a name that stands twice is no key",
        ),
        pytest.param(
            {"args": ["a", "b"]},
            {"args": ["a"]},
            [Change("args[1]", "/args/1", "b")],
            id="no keys: by index",
        ),
        pytest.param({"a": 1}, {"a": True}, [Change("a", "/a", 1, after=True)], id="one isn't true"),
        pytest.param({"a": 1}, {"a": 1.0}, [], id="one is one"),
        pytest.param({}, {"a": None}, [Change("a", "/a", after=None)], id="null isn't absent"),
        pytest.param(
            {"metadata": {"annotations": {}}},
            {"metadata": {"annotations": {"a.b/c": "x"}}},
            [Change("metadata.annotations[a.b/c]", "/metadata/annotations/a.b~1c", after="x")],
            id="a name with slashes",
        ),
        pytest.param({"a": {"b": 1}}, {"a": [1]}, [Change("a", "/a", {"b": 1}, [1])], id="another type"),
    ],
)
def test_changes_are_named_by_what_people_call_them(before: Json, after: Json, changes: list[Change]) -> None:
    """A path has keys where a list's items have them; the pointer has indices."""
    assert list(compare(before, after).changes) == changes


def test_book_keeping_does_not_count() -> None:
    """What the server writes about an object is no difference in it, nor shown of a new one."""
    kept = {"name": "a", "namespace": "n"}
    old = {**kept, "uid": "1", "resourceVersion": "5", "generation": 1, "creationTimestamp": "t", "managedFields": []}
    new = {**kept, "uid": "1", "resourceVersion": "6", "generation": 2, "creationTimestamp": "t", "selfLink": "/"}
    before = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": old, "status": {"replicas": 1}}
    after = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": new, "status": {"replicas": 2}}
    diff = compare(before, after)
    assert (diff.effect, diff.key) == (Effect.UNCHANGED, ObjectKey("apps", "Deployment", "n", "a"))
    assert [change.after for change in compare(None, after).changes] == ["apps/v1", "Deployment", kept]
    assert [change.path for change in compare(before, after, status=True).changes] == ["status.replicas"]


def test_owners_that_change_are_told() -> None:
    """Another manager or other fields in managedFields are a change of ownership; another time is none."""
    entry = {"manager": "starling", "operation": "Apply", "time": "1", "fieldsV1": {"f:data": {}}}
    contents = [
        {"kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [other]}}
        for other in (entry, {**entry, "time": "2"}, {**entry, "fieldsV1": {}})
    ]
    assert [compare(contents[0], other).ownership for other in contents] == [False, False, True]
    assert not any(compare(contents[0], other).different for other in contents)


def test_something_must_be_there() -> None:
    """Nothing can't be compared with nothing."""
    with pytest.raises(ValueError, match="nothing"):
        compare(None, None)
