"""Digests: the same for the same value, another for any other."""

import copy
import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.objects import canonical_json, digest, short_digest

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    LEAVES, lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4)
)


def shuffled(value: Any, order: random.Random) -> Any:
    """The value with the keys of all its mappings in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        order.shuffle(items)
        return dict(items)
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


@given(value=VALUES, order=st.randoms(use_true_random=False))
def test_the_order_of_keys_means_nothing(value: Any, order: random.Random) -> None:
    """Shuffled mappings have the same digest."""
    assert digest(shuffled(value, order)) == digest(value)


@given(value=VALUES)
def test_json_and_back_changes_nothing(value: Any) -> None:
    """A value that went through JSON, spelled either way, keeps its digest."""
    assert digest(json.loads(json.dumps(value))) == digest(value)
    assert digest(json.loads(canonical_json(value))) == digest(value)


@given(value=st.dictionaries(st.text(), VALUES, min_size=1), leaf=LEAVES, data=st.data())
def test_any_change_shows(value: dict[str, Any], leaf: Any, data: st.DataObject) -> None:
    """Replacing one leaf by another changes the digest; by an equal one, it doesn't."""
    changed = copy.deepcopy(value)
    key = data.draw(st.sampled_from(sorted(value)))
    changed[key] = [leaf, value[key]]
    assert digest(changed) != digest(value)
    changed[key] = leaf
    same = canonical_json(leaf) == canonical_json(value[key])
    assert (digest(changed) == digest(value)) == same


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        ({"\ue000": 1, "\U0001f600": 2, "é": 3}, '{"é":3,"\ue000":1,"\U0001f600":2}'),
        ([1, 1.0, 1e0, 100.0, -0.0, 0], "[1,1,1,100,0,0]"),
        ([1.5, 1e20, 1e21, 5e-324, 2.0**63], "[1.5,100000000000000000000,1e+21,5e-324,9223372036854776000]"),
        ([2**64, -(2**80)], "[18446744073709551616,-1208925819614629174706176]"),
        ('"\\\n\t\x00\x7f\u2028/', '"\\"\\\\\\n\\t\\u0000\x7f\u2028/"'),
        ({"a": {}, "b": []}, '{"a":{},"b":[]}'),
    ],
    ids=["order", "code points", "whole numbers", "floats", "large integers", "escapes", "empty"],
)
def test_the_canonical_text_is_fixed(value: Any, text: str) -> None:
    """Records hold digests for years, so the text below them may never change."""
    assert canonical_json(value).decode() == text


def test_a_digest_is_fixed() -> None:
    """A known value has a known digest, whatever the machine."""
    full = digest({"kind": "Pod", "metadata": {"name": "web"}})
    assert full == "sha256:fed5f97e3d401e673749ade452615862b885806038d3d896447739f80458fa2f"
    assert short_digest(full) == full[7:23]


@pytest.mark.parametrize("value", [math.nan, math.inf, [None, {"a": -math.inf}]])
def test_what_json_lacks_has_no_digest(value: Any) -> None:
    """NaN and infinity are refused, not taken for null."""
    with pytest.raises(ValueError, match="JSON has no"):
        digest(value)
