"""Paths to fields: as people read them, and as JSON pointers.

    spec.template.spec.containers[name=web].image       a list's item by its key
    metadata.labels[app.kubernetes.io/name]             a name with dots or slashes
    metadata.finalizers[=example.org/keep]              a member of a set
    spec.rules[0]                                       an item by its index

Whatever would read ambiguously, or isn't printable, stands in double quotes as JSON has it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from starling.errors import InputError

__all__ = ["Step", "field_path", "json_pointer", "pointer_tokens"]

Step = str | int | Mapping[str, Any]
"""A field's name; an item's index; an item's key fields, of which a single one named "" is the item itself."""

_NAME = re.compile(r"[A-Za-z0-9_$-]+")
_PLAIN = re.compile(r"[A-Za-z0-9_$.:/@*+%~-]+")
_BAD_ESCAPE = re.compile(r"~(?![01])")


def field_path(steps: Iterable[Step]) -> str:
    """The path as people read it."""
    path = ""
    for step in steps:
        if isinstance(step, str) and _NAME.fullmatch(step):
            path += f".{step}" if path else step
        elif isinstance(step, Mapping):
            path += f"[{','.join(f'{name}={_plain(value)}' for name, value in step.items())}]"
        else:
            path += f"[{_plain(step)}]"
    return path


def json_pointer(steps: Iterable[str | int]) -> str:
    """The path as RFC 6901 has it."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def pointer_tokens(pointer: str) -> tuple[str, ...]:
    """The names and indices that a JSON pointer consists of; InputError if it is none."""
    if (pointer and not pointer.startswith("/")) or _BAD_ESCAPE.search(pointer):
        raise InputError(f"{pointer!r} is no JSON pointer", hint="such as /spec/replicas; ~1 stands for /, ~0 for ~")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else json.dumps(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
