"""Which items of two lists are the same item: those with the same key, where the lists have one."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Key", "KeyFields", "item_key", "key_fields", "key_step"]

KeyFields = tuple[str, ...]
Key = tuple[str | int | None, ...]

# What tells items apart in Kubernetes' lists. The first field must be there, the others may be missing.
_CANDIDATES: Sequence[KeyFields] = (
    ("name",),
    ("containerPort", "protocol"),
    ("port", "protocol"),
    ("mountPath",),
    ("devicePath",),
    ("ip",),
    ("topologyKey", "whenUnsatisfiable"),
    ("uid",),
    ("key",),
    ("type",),
    ("host",),
    ("path", "pathType"),
    ("name", "kind", "namespace"),
)


def key_fields(*lists: Sequence[Any]) -> KeyFields | None:
    """The fields that tell apart the items of each of these lists; None if no usual ones do."""
    return next((fields for fields in _CANDIDATES if all(_unique(items, fields) for items in lists)), None)


def item_key(item: Mapping[str, Any], fields: KeyFields) -> Key:
    """The values of an item's key fields."""
    return tuple(item.get(field) for field in fields)


def key_step(key: Key, fields: KeyFields) -> Mapping[str, Any]:
    """A key as a path has it."""
    return {field: value for field, value in zip(fields, key, strict=True) if value is not None}


def _unique(items: Sequence[Any], fields: KeyFields) -> bool:
    if not all(isinstance(item, Mapping) for item in items):
        return False
    keys = [item_key(item, fields) for item in items]
    return all(_usable(key) for key in keys) and len(set(keys)) == len(keys)


def _usable(key: Key) -> bool:
    first, *others = key
    return _plain(first) and all(value is None or _plain(value) for value in others)


def _plain(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
