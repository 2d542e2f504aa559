"""Sets of fields in the grammar of `fieldsV1`, and how they lie over the values of a manifest.

A FieldSet is a tree of steps: `f:name` is a field, `k:{…}` a list's item by its key fields, `v:…` a member of a set. In
the tree a path is a member of the set if "." stands at its end; `fieldsV1` itself leaves that "." out where nothing
comes below, and `parse` and `unparse` translate.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from starling.engine.paths import Step
from starling.objects import canonical_json

__all__ = [
    "FieldSet",
    "Node",
    "Nodes",
    "below",
    "difference",
    "goes_deeper",
    "intersection",
    "is_atomic",
    "item_key",
    "item_steps",
    "parse",
    "readable",
    "union",
    "unparse",
    "without",
]

FieldSet: TypeAlias = dict[str, "FieldSet"]
Node: TypeAlias = FieldSet | None
"""What a set holds at one path; None if nothing."""
Nodes: TypeAlias = tuple[Node, ...]
"""What several sets hold at one path."""

_MEMBER = "."


def parse(fields_v1: bytes | msgspec.Raw) -> FieldSet:
    """The set that `fieldsV1` says."""
    return {step: _parsed(below) for step, below in (msgspec.json.decode(fields_v1) or {}).items() if step != _MEMBER}


def _parsed(tree: Mapping[str, Any]) -> FieldSet:
    if not tree:
        return {_MEMBER: {}}
    return {step: {} if step == _MEMBER else _parsed(below) for step, below in tree.items()}


def unparse(fields: FieldSet) -> dict[str, Any]:
    """The set as `fieldsV1` writes it."""
    if fields.keys() == {_MEMBER}:
        return {}
    return {step: unparse(below) for step, below in fields.items()}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either."""
    merged = {step: union(below, other.get(step, {})) for step, below in one.items()}
    return merged | {step: below for step, below in other.items() if step not in one}


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in the first and not in the second."""
    left: FieldSet = {}
    for step, here in one.items():
        if step == _MEMBER:
            if _MEMBER not in other:
                left[step] = {}
        elif rest := difference(here, other.get(step, {})):
            left[step] = rest
    return left


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both."""
    return difference(one, difference(one, other))


def below(nodes: Nodes, step: str) -> Nodes:
    """What the sets hold one step further."""
    return tuple(None if node is None else node.get(step) for node in nodes)


def goes_deeper(nodes: Iterable[Node], value: Any) -> bool:
    """Whether a set tells the parts of such a value, a map or a list, apart."""
    wanted = ("f:",) if isinstance(value, Mapping) else ("k:", "v:")
    return any(step.startswith(wanted) for node in nodes if node for step in node)


def is_atomic(nodes: Iterable[Node], value: Any) -> bool:
    """Whether a value is owned as a whole: a set holds it, and none tells its parts apart."""
    return not goes_deeper(nodes, value) and any(node is not None for node in nodes)


def without(value: Any, dropped: Node, kept: Node) -> Any:
    """A value after its owners dropped a set of fields, UNSET if nothing is left of it; what is kept stays.

    As the API server does it when an apply no longer says what it said: a field goes with all that is in it, unless
    something in there is kept; an item of a list goes unless the item itself is; what was emptied is null. Only an
    empty list whose items have keys would stay; there is no telling it from one that is owned as a whole.
    """
    if not dropped:
        return value
    if not kept:
        return msgspec.UNSET
    if not isinstance(value, Mapping | list) or not goes_deeper((dropped,), value):
        return value
    if isinstance(value, Mapping):
        fields = {name: without(part, dropped.get(f"f:{name}"), kept.get(f"f:{name}")) for name, part in value.items()}
        return {name: part for name, part in fields.items() if part is not msgspec.UNSET} or None
    steps = item_steps(value, (dropped, kept))
    items = [_item_without(item, dropped.get(step), kept.get(step)) for item, step in zip(value, steps, strict=True)]
    return [item for item in items if item is not msgspec.UNSET] or None


def _item_without(item: Any, dropped: Node, kept: Node) -> Any:
    if not dropped:
        return item
    if _MEMBER not in dropped:  # it was only changed by whoever dropped something in it
        return without(item, dropped, union(kept or {}, {_MEMBER: {}}))
    return without(item, dropped, kept) if kept and _MEMBER in kept else msgspec.UNSET


def item_steps(items: Sequence[Any], nodes: Iterable[Node]) -> list[str]:
    """For each item of a manifest's list the step that leads to it.

    A manifest may leave out key fields that have a default (a port's protocol): an item takes the step that says just
    its keys, or else one nobody took that says them and more. An item in no set gets a step of the keys it has.
    """
    known = dict.fromkeys(step for node in nodes if node for step in node if step[:2] in ("k:", "v:"))
    keys = {step: item_key(step) for step in known}
    names = next((tuple(key) for key in keys.values()), ())
    parts = [_part(item, names) for item in items]
    steps: dict[int, str] = {}
    for said in ({names}, {tuple(part) for part in parts if part} - {names}):
        for these in said:
            taken = set(steps.values())
            _take(steps, these, parts, {step: key for step, key in keys.items() if step not in taken})
    return [steps.get(index) or _made(parts[index], index) for index in range(len(items))]


def _take(
    steps: dict[int, str],
    names: tuple[str, ...],
    parts: Sequence[Mapping[str, Any]],
    free: dict[str, Mapping[str, Any]],
) -> None:
    """Give the items that say just these key fields, and have no step yet, the free ones that say the same of them."""
    by_value: dict[bytes, list[str]] = {}
    for step, key in free.items():
        by_value.setdefault(canonical_json([key.get(name) for name in names]), []).append(step)
    for index, part in enumerate(parts):
        found = by_value.get(canonical_json(list(part.values()))) if tuple(part) == names else None
        if found and index not in steps:
            steps[index] = found.pop(0)


@lru_cache(maxsize=4096)
def _decoded(text: str) -> Any:
    return json.loads(text)


def item_key(step: str) -> Mapping[str, Any]:
    """The key fields that a step to an item says; a member of a set is its own key, named ""."""
    value = _decoded(step[2:])
    return value if step.startswith("k:") else {"": value}


def _part(item: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """What an item says of key fields."""
    if not isinstance(item, Mapping):
        return {"": item} if "" in names else {}
    return {name: item[name] for name in names if item.get(name) is not None}


def _made(part: Mapping[str, Any], index: int) -> str:
    if not part:
        return f"i:{index}"
    return f"v:{json.dumps(part[''])}" if "" in part else f"k:{json.dumps(part, separators=(',', ':'))}"


def readable(steps: Iterable[str]) -> Iterator[Step]:
    """The same steps as `field_path` prints them."""
    for step in steps:
        match step[:2]:
            case "f:":
                yield step[2:]
            case "i:":
                yield int(step[2:])
            case _:
                yield item_key(step)
