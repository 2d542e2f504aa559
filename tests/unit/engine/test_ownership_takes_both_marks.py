"""Whose an object is: label and tracking id together, and who may take it over."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.ownership import LABEL, TRACKING, mark, may_take, owner, tracking_id
from starling.engine.unit import unit_hash
from starling.objects import ObjectKey

UNIT = "home/shop/Sync.web@edge"
KEY = ObjectKey("rbac.authorization.k8s.io", "ClusterRole", "", "system:web:reader")
LABELS = {LABEL: unit_hash(UNIT)}
ANNOTATIONS = {TRACKING: tracking_id(UNIT, KEY)}


def test_the_tracking_id_reads_as_documented() -> None:
    """Tools and people rely on its form."""
    assert tracking_id(UNIT, ObjectKey("apps", "Deployment", "shop", "web")) == f"{UNIT}:apps/Deployment:shop/web"
    assert tracking_id(UNIT, KEY) == f"{UNIT}:rbac.authorization.k8s.io/ClusterRole:/system:web:reader"


def test_both_marks_make_an_owner() -> None:
    """Also where the name holds colons."""
    assert owner(KEY, LABELS, ANNOTATIONS) == UNIT
    assert owner(KEY, {"my/label": unit_hash(UNIT)}, ANNOTATIONS, "my/label") == UNIT


FORGED = "no-slashes"


@pytest.mark.parametrize(
    ("key", "labels", "annotations"),
    [
        pytest.param(KEY, {}, {}, id="neither"),
        pytest.param(KEY, None, None, id="no metadata"),
        pytest.param(KEY, LABELS, {}, id="the label alone"),
        pytest.param(KEY, {}, ANNOTATIONS, id="the tracking id alone"),
        pytest.param(KEY, {LABEL: unit_hash("home/shop/Sync.b@edge")}, ANNOTATIONS, id="another unit's label"),
        pytest.param(ObjectKey(KEY.group, KEY.kind, "", "copy"), LABELS, ANNOTATIONS, id="a copy of both"),
        pytest.param(ObjectKey("", KEY.kind, "", KEY.name), LABELS, ANNOTATIONS, id="a copy on another kind"),
        pytest.param(KEY, LABELS, {TRACKING: UNIT}, id="no object in the tracking id"),
        pytest.param(KEY, {LABEL: unit_hash(FORGED)}, {TRACKING: tracking_id(FORGED, KEY)}, id="no id of a unit"),
    ],
)
def test_less_than_both_is_nobodys(key: ObjectKey, labels: dict[str, str], annotations: dict[str, str]) -> None:
    """Other controllers copy labels and annotations; anyone can write them."""
    assert owner(key, labels, annotations) == ""


@pytest.mark.parametrize("metadata", [{}, {"labels": None, "annotations": None}, {"labels": {"a": "b", LABEL: "old"}}])
def test_a_marked_content_is_a_new_one(metadata: dict[str, Any]) -> None:
    """It is owned by the unit, keeps what was there, and leaves what it was made from alone."""
    content = {"metadata": metadata, "spec": {"a": [1]}}
    before = copy.deepcopy(content)
    marked = mark(content, UNIT, KEY, LABEL)
    assert content == before
    assert owner(KEY, marked["metadata"]["labels"], marked["metadata"]["annotations"]) == UNIT
    assert marked["metadata"]["labels"].get("a") == (metadata.get("labels") or {}).get("a")
    assert marked["spec"] is content["spec"]


NAMES = st.text("ab:.-", min_size=1)


@given(unit=st.text("ab@.", min_size=1), namespaces=st.tuples(NAMES, NAMES), names=st.tuples(NAMES, NAMES))
def test_marks_fit_one_object_only(unit: str, namespaces: tuple[str, str], names: tuple[str, str]) -> None:
    """Whatever two objects are called, the marks of one make no owner of the other."""
    unit_id = f"home/shop/{unit}"
    one, other = (ObjectKey("g", "K", *place) for place in zip(namespaces, names, strict=True))
    metadata = mark({"metadata": {}}, unit_id, one)["metadata"]
    assert owner(one, metadata["labels"], metadata["annotations"]) == unit_id
    assert (owner(other, metadata["labels"], metadata["annotations"]) == unit_id) == (one == other)


@pytest.mark.parametrize("renders", [True, False])
@pytest.mark.parametrize(
    ("owner_id", "refusal"),
    [
        ("away/shop/Sync.web@edge", "another installation"),
        ("home/bank/Sync.web@edge", "another namespace"),
    ],
)
def test_strangers_objects_are_never_taken(owner_id: str, refusal: str, renders: bool) -> None:
    """Neither another installation's nor another tenant's, even if they don't want them any more."""
    reason = may_take(UNIT, owner_id, renders)
    assert refusal in reason
    assert owner_id in reason


def test_a_neighbour_hands_over_what_it_no_longer_renders() -> None:
    """Within a namespace an object moves once its owner doesn't want it; what is nobody's or ours is free."""
    neighbour = "home/shop/Sync.old@edge"
    assert neighbour in may_take(UNIT, neighbour, renders=True)
    assert may_take(UNIT, neighbour, renders=False) == ""
    assert may_take(UNIT, UNIT, renders=True) == ""
    assert may_take(UNIT, "", renders=True) == ""
