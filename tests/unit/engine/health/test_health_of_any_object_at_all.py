"""Whatever an object is made of, its health is a value that rests on five fields and leaves the object alone."""

import copy
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from starling.engine.health import Readiness, assess
from tests.unit.engine.health.objects import anything, mangled_objects

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
DECODED = ("apiVersion", "kind", "metadata", "spec", "status")


@given(obj=mangled_objects() | st.dictionaries(st.sampled_from(DECODED), anything))
def test_nothing_is_raised_and_nothing_changed(obj: dict[str, Any]) -> None:
    """There is an answer for every object, Unknown says why, and the object stays as it was."""
    before = copy.deepcopy(obj)
    health = assess(obj, NOW)
    assert health.message or health.readiness is not Readiness.UNKNOWN
    assert repr(obj) == repr(before)


@given(obj=mangled_objects(), other=st.dictionaries(st.text(), anything))
def test_other_fields_do_not_matter(obj: dict[str, Any], other: dict[str, Any]) -> None:
    """A watch may decode five fields and leave the rest unread."""
    assert assess({**other, **obj}, NOW) == assess({**dict.fromkeys(("data", "items"), 1), **obj}, NOW)
