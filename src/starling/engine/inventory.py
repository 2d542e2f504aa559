"""The unit's record: what it owns as compact text, and one digest that says whether all of it is as we left it."""

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

from starling.errors import InputError
from starling.objects import ObjectKey, digest

__all__ = ["baseline", "pack", "unpack"]

# A name may be any path segment (RBAC names hold ":", spaces, even line breaks); "%" and "/" alone can't be in one.
# The record is written before the API server has had its say, so whatever isn't plain is escaped in every part.
_PLAIN: Final = re.compile(r"[A-Za-z0-9.:_-]*", re.ASCII)


def pack(inventory: Mapping[ObjectKey, str]) -> list[str]:
    """One line per object, `<group>/<kind>/<namespace>/<name> <short digest>`, sorted by key."""
    return [
        f"{_escaped(key.group)}/{_escaped(key.kind)}/{_escaped(key.namespace)}/{_escaped(key.name)} {short}"
        for key, short in sorted(inventory.items())
    ]


def unpack(lines: Iterable[str]) -> dict[ObjectKey, str]:
    """What `pack` made the lines from; InputError for a line that it can't have made."""
    inventory: dict[ObjectKey, str] = {}
    for line in lines:
        place, _, short = line.partition(" ")
        parts = place.split("/")
        if len(parts) != 4 or not parts[1] or not parts[3]:
            raise InputError(
                f"the record's line {line[:120]!r} names no object",
                hint="someone changed the record: put the line right, <group>/<kind>/<namespace>/<name> <digest>",
            )
        group, kind, namespace, name = map(unquote, parts) if "%" in place else parts
        key = ObjectKey(sys.intern(group), sys.intern(kind), sys.intern(namespace), name)
        inventory[key] = short
    return inventory


def baseline(entries: Iterable[tuple[ObjectKey, str, int]]) -> str:
    """One digest over every object's key, manifest digest and entry digest, in whichever order they come."""
    return digest(sorted(entries))


def _escaped(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else quote(part, safe=":")
