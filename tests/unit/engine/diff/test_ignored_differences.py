"""Fields that a JSON pointer names are left out of a comparison."""

from typing import Any

import pytest

from starling.engine.diff import Effect, compare
from starling.errors import InputError

A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "1"}


@pytest.mark.parametrize(
    ("before", "after", "pointer", "left"),
    [
        pytest.param({"spec": {"x": 1, "y": 1}}, {"spec": {"x": 2, "y": 2}}, "/spec/x", ["spec.y"], id="a field"),
        pytest.param({"spec": {"x": {"y": 1}}}, {"spec": {"x": {"y": 2}}}, "/spec/x", [], id="below it"),
        pytest.param({"a/b": 1}, {"a/b": 2}, "/a~1b", [], id="escaped"),
        pytest.param({"l": [1, 2]}, {"l": [3, 4]}, "/l/1", ["l[0]"], id="an index"),
        pytest.param({"l": [A, B]}, {"l": [{**A, "image": "2"}, B]}, "/l/0/image", [], id="in a keyed list"),
        pytest.param(
            {"l": [A, B]}, {"l": [B, {**A, "image": "2"}]}, "/l/0/image", ["l"], id="by the index in either object"
        ),
        pytest.param({"l": [A]}, {"l": [A, B]}, "/l/1", [], id="a new item"),
        pytest.param({"l": [A, B]}, {"l": [A]}, "/l/1", [], id="an item that goes"),
        pytest.param({"l": [A, B]}, {"l": [B, A]}, "/l", [], id="an order"),
        pytest.param({}, {"annotations": {"x": "1"}}, "/annotations/x", [], id="all of a new mapping"),
        pytest.param({}, {"annotations": {}}, "/annotations/x", ["annotations"], id="an empty one isn't it"),
        pytest.param({"x": 1}, {"x": 2}, "/xy", ["x"], id="names aren't prefixes"),
        pytest.param({"x": 1}, {"x": 2}, "", [], id="the whole object"),
    ],
)
def test_what_is_ignored_is_left_out(before: Any, after: Any, pointer: str, left: list[str]) -> None:
    """What the pointer leads to in either object, and all below it, doesn't count; the rest does."""
    diff = compare(before, after, ignore=[pointer])
    assert [change.path for change in diff.changes] == left
    assert diff.effect is (Effect.CHANGED if left else Effect.UNCHANGED)


def test_part_of_a_new_value_is_left_out() -> None:
    """A mapping that is new as a whole is shown without what is ignored in it."""
    changes = compare({}, {"spec": {"x": 1, "y": [1, 2]}}, ignore=["/spec/x", "/spec/y/0"]).changes
    assert [(change.path, change.after) for change in changes] == [("spec", {"y": [2]})]


def test_a_new_object_has_it_all() -> None:
    """At creation git's value is applied, ignored or not, so it is shown."""
    assert [change.path for change in compare(None, {"x": 1}, ignore=["/x"]).changes] == ["x"]


def test_a_wrong_pointer_is_bad_input() -> None:
    """A path in dots would silently ignore nothing."""
    with pytest.raises(InputError, match=r"spec\.replicas"):
        compare({}, {}, ignore=["spec.replicas"])
