"""Digests of JSON values that come out the same on any machine: sha256 over canonical JSON.

Canonical is: keys sorted by code point, nothing between tokens, UTF-8 unescaped but for what JSON must escape, and
numbers as Go prints them, so that 1, 1.0 and 1e0 are one number and -0.0 is 0.
"""

import hashlib
from typing import Any, Final

import msgspec

from starling.objects.scalars import json_number

__all__ = ["SHORT_DIGEST_LENGTH", "canonical_json", "digest", "short_digest"]

SHORT_DIGEST_LENGTH: Final = 16


class _FloatFoundError(Exception):
    """There is a float, so the numbers have to be rewritten."""


def _stop(_: str) -> Any:
    raise _FloatFoundError


def _rewrite(text: str) -> msgspec.Raw:
    return msgspec.Raw(str(json_number(float(text))).encode())


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_FIND_FLOATS: Final = msgspec.json.Decoder(float_hook=_stop)
_REWRITE_FLOATS: Final = msgspec.json.Decoder(float_hook=_rewrite)


def canonical_json(value: Any) -> bytes:
    """The one JSON text of a value made of dicts with text keys, lists, text, numbers, booleans and None.

    ValueError for an infinite float or a NaN.
    """
    text = _ENCODER.encode(value)
    if b"null" in text:
        _refuse_non_finite(value)
    try:
        _FIND_FLOATS.decode(text)
    except _FloatFoundError:
        return _ENCODER.encode(_REWRITE_FLOATS.decode(text))
    return text


def digest(value: Any) -> str:
    """`sha256:` and the 64 hex digits of a value's canonical JSON."""
    return "sha256:" + hashlib.sha256(canonical_json(value)).hexdigest()


def short_digest(full: str) -> str:
    """The first 16 hex digits of a digest: enough to notice a change, and small in records."""
    return full.removeprefix("sha256:")[:SHORT_DIGEST_LENGTH]


def _refuse_non_finite(value: Any) -> None:
    """The encoder writes NaN and infinity as null, which would make them equal to it."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list | tuple):
            todo.extend(item)
        elif isinstance(item, float):
            json_number(item)
