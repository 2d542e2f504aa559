"""An object as rules look at it: it may be of any shape, and reading it holds no surprise."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeGuard, TypeVar

import msgspec

__all__ = ["Condition", "Malformed", "Subject", "conditions_of", "mapping", "must_be", "text", "whole", "whole_or_none"]

_INT64: Final = 2**63
_NOTHING: Final[Mapping[str, Any]] = {}
_NAMES: Final[Mapping[type, str]] = {dict: "a mapping", list: "a list", str: "text"}

T = TypeVar("T")


class Malformed(Exception):
    """A field that decides isn't what it should be. Rules turn it into Unknown; it goes no further."""


class Condition(msgspec.Struct, frozen=True, gc=False):
    """One of status.conditions; what it leaves out is empty."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def holds(self) -> bool:
        """Whether its status is True."""
        return self.status == "True"


class Subject(msgspec.Struct, frozen=True):
    """An object's parts, each a mapping whatever was there, and the time at which it is looked at."""

    kind: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    now: datetime


def text(parent: Mapping[str, Any], name: str, default: str = "") -> str:
    """A text; the default if it is missing or anything else."""
    value = parent.get(name)
    return value if isinstance(value, str) else default


def whole(parent: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A whole number; the default if it is missing or anything else."""
    value = parent.get(name)
    return value if _is_whole(value) else default


def mapping(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A mapping; an empty one if it is missing or anything else."""
    value = parent.get(name)
    return value if isinstance(value, dict) else _NOTHING


def must_be(wanted: type[T], value: Any, path: str) -> T:
    """The value, if it is of this type, which is dict, list or str; else Malformed."""
    if isinstance(value, wanted):
        return value
    raise Malformed(f"{path} is {_called(value)}, not {_NAMES[wanted]}")


def whole_or_none(parent: Mapping[str, Any], name: str, path: str) -> int | None:
    """A whole number, None if it is missing; Malformed if it is anything else, also null."""
    if name not in parent:
        return None
    value = parent[name]
    if _is_whole(value):
        return value
    raise Malformed(f"{path} is {_called(value)}, not a whole number of 64 bits")


def conditions_of(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions in order; Malformed unless they are a list, or null, of mappings of texts, or nulls."""
    found = status.get("conditions")
    if found is None:
        return ()
    numbered = enumerate(must_be(list, found, "status.conditions"))
    return tuple([_condition(each, f"status.conditions[{number}]") for number, each in numbered])


def _condition(value: Any, path: str) -> Condition:
    found = {} if value is None else must_be(dict, value, path)
    return Condition(*[_text_or_empty(found.get(name), path, name) for name in ("type", "status", "reason", "message")])


def _text_or_empty(value: Any, path: str, name: str) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else must_be(str, value, f"{path}.{name}")


def _is_whole(value: Any) -> TypeGuard[int]:
    """Whether Go's reader of JSON makes it an int64: true is no number, 1.0 is no whole one, 2**63 is too large."""
    return type(value) is int and -_INT64 <= value < _INT64


def _called(value: Any) -> str:
    """A value as a message names it, cut short."""
    if isinstance(value, dict | list):
        return _NAMES[type(value)]
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"the number {value!r}"
