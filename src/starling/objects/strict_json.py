"""Reads one JSON object as Kubernetes' Go tools do, refusing keys that stand twice."""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import msgspec

from starling.objects.composer import DEPTH_LIMIT, Refused, too_deep
from starling.objects.scalars import json_number

__all__ = ["NotJsonError", "read_json"]

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{},]|[^][{},:" \t\n\r]+')


class NotJsonError(ValueError):
    """The text isn't JSON, though it may be YAML."""


class _Unusable(Exception):
    """Something up to here can't be used; `_walk` says what and where."""


def read_json(text: str) -> tuple[Any, list[int]]:
    """The value of a text that is JSON, and the lines (from 0) of its root's `items`.

    NotJsonError if it isn't JSON, Refused if it is but can't be used. Integers past 63 bits and floats without a
    fraction become what Go prints for them.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_number, parse_int=_integer, parse_constant=_no_constant
        )
        msgspec.json.encode(value)  # fails on half a surrogate pair
        _check_depth(value)
    except ValueError as error:
        raise NotJsonError(str(error)) from error
    except (_Unusable, RecursionError):
        _walk(text)
        raise
    return value, _walk(text) if isinstance(value, dict) and isinstance(value.get("items"), list) else []


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Unusable
    return found


def _number(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise _Unusable
    return json_number(value)


def _integer(text: str) -> int | float:
    if len(text) <= 20 and -(2**63) <= (value := int(text)) < 2**63:
        return value
    return _number(text)


def _no_constant(text: str) -> NoReturn:
    raise NotJsonError(f"{text} is not JSON")


def _check_depth(value: Any) -> None:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    if depth > DEPTH_LIMIT:
        raise _Unusable


@dataclass(slots=True)
class _Mapping:
    """A mapping that is still open: its keys so far, and the one whose value comes next or just came."""

    keys: set[str] = field(default_factory=set)
    key: str | None = None


def _walk(text: str) -> list[int]:
    """The lines (from 0) of the root's `items`; Refused, with its line, at the first thing that can't be used.

    json.loads keeps no positions, so this goes through the text again where they are wanted, sign by sign. It relies
    on the text being JSON, at least up to what is refused.
    """
    item_lines: list[int] = []
    opened: list[_Mapping | None] = []  # None: a list
    line = counted = 0
    for token in _TOKEN.finditer(text):
        sign, innermost = token[0], opened[-1] if opened else None
        line, counted = line + text.count("\n", counted, token.start()), token.start()
        if sign in "}]":
            opened.pop()
        elif sign == ",":
            if innermost:
                innermost.key = None
        elif innermost and innermost.key is None:
            innermost.key = _new_key(innermost, sign, line)
        else:
            if len(opened) == 2 and not innermost and opened[0] and opened[0].key == "items":
                item_lines.append(line)
            if sign in "{[":
                opened.append(_Mapping() if sign == "{" else None)
            _check_value(sign, len(opened), line)
    return item_lines


def _new_key(mapping: _Mapping, sign: str, line: int) -> str:
    key = str(json.loads(sign))
    if key in mapping.keys:
        raise Refused(f"key {key!r} stands twice in one mapping", line)
    mapping.keys.add(key)
    return key


def _check_value(sign: str, depth: int, line: int) -> None:
    if depth > DEPTH_LIMIT:
        raise Refused(too_deep(), line)
    if sign[0] in "-0123456789" and math.isinf(float(sign)):
        raise Refused(f"{sign[:40]} is too large", line)
