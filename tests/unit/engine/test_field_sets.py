"""Sets of fields are sets: union, difference and intersection keep the laws, and nothing changes on the way to JSON."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.fieldsets import FieldSet, difference, intersection, item_steps, parse, union, unparse, without

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.lists(STEPS, min_size=1, max_size=4).map(tuple)
Paths = set[tuple[str, ...]]


def tree(paths: Paths) -> FieldSet:
    """A set from its members."""
    root: FieldSet = {}
    for path in paths:
        node = root
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return root


def members(fields: FieldSet, way: tuple[str, ...] = ()) -> Paths:
    """The members of a set."""
    found: Paths = {way} if "." in fields else set()
    return found.union(*(members(below, (*way, step)) for step, below in fields.items() if step != "."))


SETS = st.sets(PATHS, max_size=8)


@given(SETS, SETS)
def test_sets_are_sets(one: Paths, other: Paths) -> None:
    """Each operation on trees is the operation on their members."""
    assert members(union(tree(one), tree(other))) == one | other
    assert members(difference(tree(one), tree(other))) == one - other
    assert members(intersection(tree(one), tree(other))) == one & other


@given(SETS, SETS, SETS)
def test_union_takes_any_order(one: Paths, other: Paths, third: Paths) -> None:
    """It is commutative, associative and idempotent, and changes nothing that it was given."""
    a, b, c = tree(one), tree(other), tree(third)
    assert union(a, b) == union(b, a)
    assert union(union(a, b), c) == union(a, union(b, c))
    assert union(a, a) == a
    assert (a, b, c) == (tree(one), tree(other), tree(third))


@given(SETS)
def test_json_and_back(paths: Paths) -> None:
    """A set reads back as it was written, and an empty tree stands for a member."""
    assert parse(msgspec.json.encode(unparse(tree(paths)))) == tree(paths)


def test_json_is_the_api_servers() -> None:
    """A dot stands only where something comes below."""
    text = b'{"f:a":{},"f:b":{".":{},"f:c":{}},"f:d":{"f:e":{}}}'
    assert members(parse(text)) == {("f:a",), ("f:b",), ("f:b", "f:c"), ("f:d", "f:e")}
    assert msgspec.json.encode(unparse(parse(text))) == text
    assert parse(b"null") == {}


TCP, UDP = 'k:{"port":53,"protocol":"TCP"}', 'k:{"port":53,"protocol":"UDP"}'


@pytest.mark.parametrize(
    ("items", "known", "steps"),
    [
        pytest.param([{"port": 53, "protocol": "UDP"}], [TCP, UDP], [UDP], id="all keys said"),
        pytest.param([{"port": 53}], [TCP], [TCP], id="a key left to its default"),
        pytest.param([{"port": 53}, {"protocol": "UDP", "port": 53}], [UDP, TCP], [TCP, UDP], id="more keys first"),
        pytest.param([{"port": 53}, {"port": 53, "protocol": "UDP"}], [UDP], ['k:{"port":53}', UDP], id="one is gone"),
        pytest.param([{"port": 53}, {"port": 80}], [TCP], [TCP, 'k:{"port":80}'], id="one is new"),
        pytest.param([{"port": 53.0, "protocol": "TCP"}], [TCP], [TCP], id="numbers by value"),
        pytest.param(["a", "b"], ['v:"b"'], ['v:"a"', 'v:"b"'], id="a set"),
        pytest.param([1, True], ["v:true", "v:1"], ["v:1", "v:true"], id="a set in which true is not 1"),
        pytest.param([{"other": 1}], [TCP], ["i:0"], id="no key at all"),
        pytest.param([{"a": 1}], [], ["i:0"], id="a list without keys"),
    ],
)  # fmt: skip
def test_items_find_their_steps(items: list[Any], known: list[str], steps: list[str]) -> None:
    """Items of a manifest's list are found by key, whether or not they say all of it."""
    node: FieldSet = {step: {".": {}} for step in known}
    assert item_steps(items, [None, node]) == steps


def test_long_lists_are_matched_quickly() -> None:
    """Ten thousand items are no quadratic matter."""
    items = [{"port": number} for number in range(10_000)]
    node: FieldSet = {f'k:{{"port":{number},"protocol":"TCP"}}': {} for number in reversed(range(10_000))}
    assert item_steps(items, [node]) == [f'k:{{"port":{number},"protocol":"TCP"}}' for number in range(10_000)]


A, B = 'k:{"name":"a"}', 'k:{"name":"b"}'
ITEMS = [{"name": "a", "n": 1}, {"name": "b", "n": 2}]
DROPPED: dict[str, tuple[Any, Paths, Paths, Any]] = {
    "a field": ({"a": 1, "b": 2}, {("f:a",)}, {("f:b",)}, {"b": 2}),
    "a field that is kept": ({"a": 1}, {("f:a",)}, {("f:a",)}, {"a": 1}),
    "a field with what nobody owns in it": ({"a": {"b": 1, "c": 2}, "d": 3}, {("f:a", "f:b")}, {("f:d",)}, {"d": 3}),
    "a field in which something is kept": (
        {"a": {"b": 1, "c": 2}}, {("f:a",), ("f:a", "f:b")}, {("f:a", "f:c")}, {"a": {"c": 2}},
    ),
    "the last field of a map that is kept": ({"a": {"b": 1}}, {("f:a", "f:b")}, {("f:a",)}, {"a": None}),
    "an item": ({"a": ITEMS}, {("f:a", A), ("f:a", A, "f:name")}, {("f:a", B)}, {"a": ITEMS[1:]}),
    "an item of which only a field is kept": (
        {"a": ITEMS}, {("f:a", A)}, {("f:a", A, "f:n"), ("f:a", B)}, {"a": ITEMS[1:]},
    ),
    "a field of an item": ({"a": ITEMS}, {("f:a", A, "f:n")}, {("f:a", B)}, {"a": [{"name": "a"}, ITEMS[1]]}),
    "the last item, of which a field is kept": ({"a": ITEMS[:1]}, {("f:a", A)}, {("f:a", A, "f:n")}, {"a": None}),
    "a member": ({"a": ["x", "y"]}, {("f:a", 'v:"x"')}, {("f:a", 'v:"y"')}, {"a": ["y"]}),
    "a list as a whole": ({"a": [1, 2], "b": 0}, {("f:a",)}, {("f:b",)}, {"b": 0}),
    "everything": ({"a": 1}, {("f:a",)}, set(), msgspec.UNSET),
    "nothing": ({"a": 1}, set(), set(), {"a": 1}),
}  # fmt: skip


@pytest.mark.parametrize(("value", "dropped", "kept", "left"), DROPPED.values(), ids=DROPPED.keys())
def test_what_is_left_when_fields_are_dropped(value: Any, dropped: Paths, kept: Paths, left: Any) -> None:
    """As an API server does it, which other tests hold it to; and what was given stays as it was."""
    before = copy.deepcopy(value)
    assert without(value, tree(dropped), tree(kept)) == left
    assert value == before
