"""Writes YAML that ours and Go's readers, and YAML 1.2 ones, all read back as the same value.

Blocks all the way, keys in their order, text plain where nothing can take it for something else, in several lines as
a literal block, otherwise in double quotes.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from starling.errors import InputError
from starling.objects.composer import DEPTH_LIMIT, too_deep
from starling.objects.manifest import Manifest
from starling.objects.scalars import json_number, resolve_plain

__all__ = ["dump", "dump_all"]

_LONGEST_SIMPLE_KEY: Final = 900  # a parser looks for the colon within 1,024 characters

_PLAIN: Final = re.compile(
    r"(?!(?i:y|n|yes|no|on|off|true|false|null)$)"  # words that some reader takes for a boolean or null
    r"(?![0-9.][0-9a-fA-FoOxX_.:,TtZz +-]*$)"  # digits, and whatever makes them a number, a time or a date
    r"[A-Za-z0-9_./](?:[A-Za-z0-9_./@=,;+%$^(){}\[\]<>*?!&|~'\"\\-]|:(?![ ]|$)|(?<![ ])\#|[ ](?![ ]*$))*",
)
_BLOCK: Final = re.compile(
    r"(?=.*\n)(?![ \t\n])[\t\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]+", re.DOTALL
)
_UNPRINTABLE: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def dump(value: Any) -> str:
    """One document: a value made of dicts with text keys, lists, text, numbers, booleans and None, or a Manifest.

    InputError for what JSON or 64 bits can't hold.
    """
    if isinstance(value, Manifest):
        value = value.content
    return "".join(_node(value, 0)) if _has_entries(value) else f"{_scalar(value, 0)}\n"


def dump_all(values: Iterable[Any]) -> str:
    """Several documents, each introduced by `---`."""
    return "".join(f"---\n{dump(value)}" for value in values)


def _node(value: Any, indent: int) -> Iterator[str]:
    """The lines of a mapping or sequence that has entries, each at this indent."""
    if indent > 2 * DEPTH_LIMIT:
        raise InputError(too_deep())
    pad = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _after(pad + _key(key, pad), item, indent, indent + 2)
    else:
        for item in value:
            yield from _item(pad, item, indent)


def _after(lead: str, value: Any, list_indent: int, indent: int) -> Iterator[str]:
    """A key with its value: on the same line if it is a scalar, else below."""
    if _has_entries(value):
        yield lead + "\n"
        yield from _node(value, list_indent if isinstance(value, list) else indent)
    else:
        yield f"{lead} {_scalar(value, indent)}\n"


def _item(pad: str, value: Any, indent: int) -> Iterator[str]:
    """A list's item, whose first line shares the dash's."""
    if not _has_entries(value):
        yield f"{pad}- {_scalar(value, indent + 2)}\n"
        return
    lines = _node(value, indent + 2)
    yield f"{pad}- {next(lines)[indent + 2 :]}"
    yield from lines


def _has_entries(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _key(key: Any, pad: str) -> str:
    if not isinstance(key, str):
        raise InputError(f"key {key!r} is not text")
    text = key if _is_plain(key) else _quoted(key)
    return f"{text}:" if len(text) < _LONGEST_SIMPLE_KEY else f"? {text}\n{pad}:"


def _scalar(value: Any, indent: int) -> str:
    if isinstance(value, str):
        return _text(value, indent)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    raise InputError(f"{type(value).__name__} {value!r} can't be written as YAML")


def _integer(value: int) -> str:
    if not _fits(value):
        raise InputError(f"{value} doesn't fit into 64 bits")
    return str(value)


def _float(value: float) -> str:
    try:
        number = json_number(value)
    except ValueError as error:
        raise InputError(str(error)) from error
    return str(number) if isinstance(number, int) and _fits(number) else repr(value)


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**64


def _text(value: str, indent: int) -> str:
    if _is_plain(value):
        return value
    if not _BLOCK.fullmatch(value):
        return _quoted(value)
    body = value.rstrip("\n")
    ends = len(value) - len(body)
    pad = " " * max(indent, 2)
    lines = [pad + line if line else "" for line in body.split("\n")]
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    return "\n".join([f"|{chomping}", *lines]) + "\n" * (ends - 1)


def _is_plain(value: str) -> bool:
    return _PLAIN.fullmatch(value) is not None and isinstance(resolve_plain(value), str)


def _quoted(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{value!r} has half of a surrogate pair, which is no text") from error
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
