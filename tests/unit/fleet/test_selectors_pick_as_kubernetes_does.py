"""Selectors pick labels as Kubernetes does."""

import pytest

from starling.api.v1alpha1 import LabelSelector, LabelSelectorRequirement
from starling.fleet import selects

LABELS = {"region": "eu", "ring": "canary", "empty": ""}


def requirement(key: str, operator: str, *values: str) -> LabelSelector:
    """A selector with one condition."""
    condition = LabelSelectorRequirement(key=key, operator=operator, values=values)  # type: ignore[arg-type]
    return LabelSelector(match_expressions=(condition,))


@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        pytest.param(LabelSelector(), True, id="empty picks all"),
        pytest.param(LabelSelector(match_labels={"region": "eu"}), True, id="label"),
        pytest.param(LabelSelector(match_labels={"region": "us"}), False, id="other value"),
        pytest.param(LabelSelector(match_labels={"zone": ""}), False, id="absent isn't empty"),
        pytest.param(LabelSelector(match_labels={"region": "eu", "ring": "x"}), False, id="all labels"),
        pytest.param(requirement("region", "In", "us", "eu"), True, id="In"),
        pytest.param(requirement("region", "In", "us"), False, id="In others"),
        pytest.param(requirement("zone", "In", ""), False, id="In, absent"),
        pytest.param(requirement("region", "NotIn", "us"), True, id="NotIn"),
        pytest.param(requirement("region", "NotIn", "us", "eu"), False, id="NotIn its own"),
        pytest.param(requirement("zone", "NotIn", "us"), True, id="NotIn, absent"),
        pytest.param(requirement("empty", "Exists"), True, id="Exists"),
        pytest.param(requirement("zone", "Exists"), False, id="Exists, absent"),
        pytest.param(requirement("zone", "DoesNotExist"), True, id="DoesNotExist"),
        pytest.param(requirement("empty", "DoesNotExist"), False, id="DoesNotExist, there"),
    ],
)
def test_a_selector_picks(selector: LabelSelector, *, picked: bool) -> None:
    """All conditions must hold; NotIn and DoesNotExist hold for a label that isn't there."""
    assert selects(selector, LABELS) is picked


def test_both_kinds_of_condition_must_hold() -> None:
    """Labels that match don't make up for an expression that doesn't."""
    condition = LabelSelectorRequirement(key="ring", operator="Exists")
    selector = LabelSelector(match_labels={"region": "eu"}, match_expressions=(condition,))
    assert selects(selector, LABELS)
    assert not selects(selector, {"region": "eu"})
    assert not selects(selector, {"ring": "canary"})
