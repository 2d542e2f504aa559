"""Reads one JSON object as Kubernetes' Go tools do, refusing keys that stand twice."""

import json
import math
from collections import Counter
from typing import Any, NoReturn

import msgspec

from starling.objects.composer import DEPTH_LIMIT, Refused, too_deep
from starling.objects.scalars import json_number

__all__ = ["NotJsonError", "read_json"]


class NotJsonError(ValueError):
    """The text isn't JSON, though it may be YAML."""


def read_json(text: bytes) -> Any:
    """The value of a text that is JSON; NotJsonError if it isn't, Refused if it is but can't be used.

    Integers past 63 bits and floats without a fraction become what Go prints for them.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_number, parse_int=_integer, parse_constant=_no_constant
        )
        msgspec.json.encode(value)  # fails on half a surrogate pair
    except RecursionError:
        raise Refused(too_deep()) from None
    except ValueError as error:
        raise NotJsonError(str(error)) from error
    if _depth(value) > DEPTH_LIMIT:
        raise Refused(too_deep())
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Refused(f"key {twice!r} stands twice in one mapping")
    return found


def _number(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        raise Refused(f"{text[:40]} is too large")
    return json_number(value)


def _integer(text: str) -> int | float:
    if len(text) <= 20 and -(2**63) <= (value := int(text)) < 2**63:
        return value
    return _number(text)


def _no_constant(text: str) -> NoReturn:
    raise NotJsonError(f"{text} is not JSON")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth
