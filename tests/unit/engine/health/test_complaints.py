"""What an object says of itself that changes no readiness."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.health import complaint

JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


def saying(**condition: Any) -> dict[str, Any]:
    """An object with one condition."""
    return {"status": {"conditions": [{"type": "Ready", "status": "False"}, condition]}}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (
            saying(type="Available", status="False", reason="MissingEndpoints", message="no endpoints"),
            "not available: MissingEndpoints: no endpoints",
        ),
        (saying(type="Available", status="False"), "not available"),
        (saying(type="Available", status="True", reason="Passed"), ""),
        (saying(type="Available", status="Unknown"), ""),
        ({}, ""),
    ],
    ids=["with its words", "without words", "available", "unknown", "no status"],
)
def test_an_object_that_is_not_available_says_so(obj: dict[str, Any], said: str) -> None:
    """Its own words, if it has any."""
    assert complaint(obj) == said


@given(status=JSON, conditions=JSON)
def test_nothing_is_raised(status: Any, conditions: Any) -> None:
    """Whatever is where conditions should be."""
    assert complaint({"status": status}) == ""
    assert complaint({"status": {"conditions": conditions}}) == ""
