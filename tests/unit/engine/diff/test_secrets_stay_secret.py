"""Nothing that comes out of a comparison has anything of a Secret's values in it."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine.diff import MASK, MASK_CHANGED, Change, compare, diff_added, diff_removed, document, masked, render
from starling.engine.diff.masking import Seals, quotes_secret

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
Secret = dict[str, Any]

# Digits, which nothing else in these objects or in a diff's words has, so that any four of them in a row are a leak.
VALUES = st.text(alphabet="0123456789", min_size=4, max_size=40) | st.integers(min_value=1000)
ODD = VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2)
FIELDS = st.dictionaries(st.sampled_from(["password", "token", "a.b"]), ODD, max_size=3) | VALUES | st.none()


@st.composite
def secrets(draw: st.DrawFn) -> Secret:
    """Secrets, well formed or not, with or without what kubectl keeps of them."""
    content: Secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    content |= draw(st.fixed_dictionaries({}, optional={"data": FIELDS, "stringData": FIELDS}))
    if draw(st.booleans()):
        content["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(content), "other": "shown"}
    return content


def pieces(content: Secret) -> set[str]:
    """Every four characters in a row of the values."""
    text = json.dumps([content.get("data"), content.get("stringData")])
    runs = "".join(sign if sign.isdigit() else " " for sign in text).split()
    return {run[start : start + 4] for run in runs for start in range(len(run) - 3)}


@given(secrets(), secrets())
def test_no_piece_of_a_secret_gets_out(before: Secret, after: Secret) -> None:
    """Neither text nor JSON nor repr of a diff, a sealed or a masked object has four characters of one in a row."""
    diffs = [compare(before, after), diff_added(after), diff_removed(before)]
    sealed = Seals().sealed(before)
    out = [repr(diffs), str(diffs), render(diffs), render(diffs, colour=True), repr(sealed), repr(masked(before))]
    out.append(json.dumps([*map(document, diffs), masked(after)]))
    leaked = [piece for piece in pieces(before) | pieces(after) for text in out if piece in text]
    assert leaked == []


@given(secrets(), secrets(), st.text(alphabet="abc", min_size=1, max_size=30))
def test_a_diff_tells_only_which_values_are_equal(before: Secret, after: Secret, salt: str) -> None:
    """Other secrets, of other lengths, that are equal and different at the same places make the very same diff."""

    def salted(value: Any) -> Any:
        match value:
            case dict():
                return {name: salted(item) for name, item in value.items()}
            case list():
                return [salted(item) for item in value]
            case None:
                return None
            case _:
                return salt + json.dumps(value)

    def other(content: Secret) -> Secret:
        return {name: salted(value) if name in ("data", "stringData") else value for name, value in content.items()}

    assert compare(other(before), other(after)) == compare(before, after)


def secret(**values: str) -> Secret:
    """A Secret with these values."""
    data = {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}


def test_a_change_is_seen_and_equal_values_are_not() -> None:
    """What changed, came and went is shown by name; what stayed isn't there at all."""
    before, after = secret(same="hunter2", other="hunter2", gone="hunter2"), secret(same="hunter2", other="x", new="y")
    assert compare(before, after).changes == (
        Change("data.other", "/data/other", MASK, MASK_CHANGED),
        Change("data.gone", "/data/gone", MASK),
        Change("data.new", "/data/new", after=MASK),
    )


def test_masked_leaves_the_rest_alone() -> None:
    """Names and metadata stay readable, other kinds are as they were, and the object itself isn't touched."""
    content = secret(password="hunter2")
    assert masked(content) == {**content, "data": {"password": MASK}}
    assert content == secret(password="hunter2")
    others: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
        {"apiVersion": "example.org/v1", "kind": "Secret", "data": {"a": "b"}},
    ]
    assert [masked(other) for other in others] == others


@pytest.mark.parametrize(
    ("words", "quotes"),
    [
        ("Secret s is invalid: type: field is immutable", False),
        ("data.password: got hunter2", True),
        ("data.password: got hunt…", True),
        ("data.password: got aHVudGVyMg==", True),
        ('data.pin: got "42"', True),
        ("line 42 is wrong", False),
    ],
    ids=["harmless", "plain", "cut short", "base64", "short", "not quoted"],
)
def test_words_that_quote_a_secret_are_told(words: str, quotes: bool) -> None:
    """A refusal is searched for the values in every form they can have."""
    for content in (
        secret(password="hunter2", pin="42"),
        {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2", "pin": "42"}},
    ):
        assert quotes_secret(words, content) is quotes
        assert quotes_secret(words, {**content, "data": {"port": 5432}})
        assert not quotes_secret(words, {**content, "kind": "ConfigMap"})
