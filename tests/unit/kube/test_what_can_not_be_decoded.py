"""What can't be decoded is told with its name and the place in it, and never with a value of its."""

import json
from datetime import datetime
from typing import Any, Literal

import msgspec
import pytest

from starling.kube import Metadata, Unreadable
from starling.kube.resources import Unread, decode, decode_object


class Even(msgspec.Struct):
    """A number that is checked in Python, in words that quote it."""

    number: int = 0

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError(f"{self.number} - at `$.number` is odd")


class Thing(msgspec.Struct):
    """Fields that can be wrong in many ways."""

    metadata: Metadata
    when: datetime | None = None
    size: Literal["small", "large"] = "small"
    even: Even | None = None
    evens: dict[str, Even] = {}
    days: dict[datetime, int] = {}
    anything: Any = None


THINGS = msgspec.json.Decoder(Thing)
DEEP = 2_000
WRONG = {
    "a date": ({"when": "hunter2"}, "Invalid RFC3339 encoded datetime - at `$.when`"),
    "none of a few": ({"size": "hunter2"}, "Invalid enum value … - at `$.size`"),
    "with quotes": ({"size": "hun'ter2\" - at `$.x`"}, "Invalid enum value … - at `$.size`"),
    "another type": ({"size": 1234}, "Expected `str`, got `int` - at `$.size`"),
    "a check of ours": ({"even": {"number": 1235}}, "a value that isn't allowed - at `$.even`"),
    "in a map": ({"evens": {"hunter2": {"number": 1235}}}, "a value that isn't allowed - at `$.evens[...]`"),
    "a key": ({"days": {"hunter2": 1}}, "Invalid RFC3339 encoded datetime - at `key` in `$.days`"),
}


@pytest.mark.parametrize(("fields", "cause"), WRONG.values(), ids=WRONG)
def test_the_cause_has_no_value(fields: dict[str, Any], cause: str) -> None:
    """Msgspec's words, less what they quote."""
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    raw = msgspec.Raw(json.dumps({**fields, "metadata": metadata}).encode())
    assert decode_object(THINGS, raw, "list Thing") == Unread(Metadata("a", "ns", "u", "7"), cause)
    with pytest.raises(Unreadable) as raised:
        decode(THINGS, raw, "get Thing ns/a")
    assert str(raised.value) == f"get Thing ns/a: the answer isn't what was asked for: {cause}"


def test_a_check_of_the_whole_has_no_place() -> None:
    """Nor has what is told of it a value."""
    with pytest.raises(Unreadable, match=r"asked for: a value that isn't allowed$"):
        decode(msgspec.json.Decoder(Even), b'{"number": 1235}', "get Even a")


def test_what_has_no_name_is_unreadable() -> None:
    """Nothing can be said of which object it is, so the answer as a whole isn't what was asked for."""
    with pytest.raises(Unreadable, match=r"list Thing: .*`name`"):
        decode_object(THINGS, msgspec.Raw(b'{"metadata": {"uid": "u"}}'), "list Thing")


def test_depth_without_end_is_unreadable() -> None:
    """Nesting beyond what Python bears is no error of ours."""
    deep = b'{"metadata": {"name": "a"}, "anything": ' + b"[" * DEEP + b"]" * DEEP + b"}"
    with pytest.raises(Unreadable, match="list Thing: "):
        decode(THINGS, deep, "list Thing")
