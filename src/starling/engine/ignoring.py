"""Ignored differences: what to apply so that fields named by JSON pointers stay as they are in the cluster.

A field that we applied once can't just be left out: the API server would delete it. So `settle` lets git's value stand
when the object is created, then puts the live value in its place until another manager owns the field, and only then
leaves it out. Earlier managers whose place we take (`starling.engine.adoption`) don't count as others.

- A pointer to a map or list means each field of the manifest below it, one by one, as far as the API server owns them
  one by one; what others added to the object isn't taken up.
- An index counts in the manifest's list. The item is found in the live list by its key fields, as the managed fields
  tell them, or by the same index where items have no keys.
- Inside a value that is owned as a whole (an atomic list, such as an Ingress' rules) nothing can be left out: there
  the live value is always taken.
- What isn't in the live object is left out, but where whatever it would stand in is missing as well git's value stands:
  that part is created anew. Key fields of list items stay, or the item couldn't be found.

The live object is from a moment ago: apply with its resourceVersion where a write in between must not be undone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from starling.engine.adoption import is_maker
from starling.engine.fields import ManagedFields
from starling.engine.fieldsets import Nodes, below, goes_deeper, is_atomic, item_key, item_steps, parse
from starling.engine.paths import pointer_tokens
from starling.errors import InputError
from starling.kube import FIELD_MANAGER

__all__ = ["check_pointer", "left_out", "settle"]

Wanted: TypeAlias = dict[str, "Wanted"] | None
"""A tree of pointers' tokens; None: everything from here."""

_ABSENT: Final = object()
_IDENTITY: Final = frozenset({
    (), ("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace"),
})  # fmt: skip


def check_pointer(text: str) -> None:
    """Raise an InputError where a text is no JSON pointer, or points to what makes the object the one it is."""
    if pointer_tokens(text) in _IDENTITY:
        raise InputError(
            f"differences at {text or 'the whole object'} can't be ignored: they make the object another one",
            hint="name the fields, such as /spec/replicas",
        )


def settle(
    content: dict[str, Any],
    live: Mapping[str, Any] | None,
    entries: Sequence[ManagedFields],
    pointers: Iterable[str],
    manager: str = FIELD_MANAGER,
) -> dict[str, Any]:
    """The content to apply, given the object as it is now (None: there is none) and its managed fields.

    The content given stays as it is; what didn't change is shared with it.
    """
    wanted = _tree(pointers)
    if live is None or not wanted:
        return content
    others = [entry for entry in entries if _is_other(entry, manager)]
    ours = [entry for entry in entries if not _is_other(entry, manager)]
    nodes = tuple(parse(entry.fields_v1) for entry in (*ours, *others))
    settled: dict[str, Any] = _Settling(len(ours)).some(content, live, nodes, wanted)
    return settled


def _is_other(entry: ManagedFields, manager: str) -> bool:
    ours = entry.manager == manager and not entry.subresource
    return not ours and not is_maker(entry, manager)


def _tree(pointers: Iterable[str]) -> dict[str, Wanted]:
    """The pointers as one tree, in which a pointer covers those that go on from it."""
    root: dict[str, Wanted] = {}
    for pointer in sorted(pointers, key=len):
        check_pointer(pointer)
        *way, last = pointer_tokens(pointer)
        tree: Wanted = root
        for token in way:
            tree = None if tree is None else tree.setdefault(token, {})
        if tree is not None:
            tree[last] = None
    return root


@dataclass(frozen=True, slots=True)
class _Settling:
    """Rebuilds values; of the nodes at each, the first `ours` are our own and the rest others'."""

    ours: int

    def value(self, value: Any, live: Any, nodes: Nodes, wanted: Wanted) -> Any:
        """The value to apply; _ABSENT to leave it out. What it stands in is in the live object."""
        if wanted is not None:
            return self.some(value, live, nodes, wanted)
        if live is _ABSENT:
            return _ABSENT
        if value and isinstance(value, dict | list) and type(live) is type(value) and self._has_parts(value, nodes):
            every: dict[str, Wanted] = dict.fromkeys(value if isinstance(value, dict) else map(str, range(len(value))))
            return self.some(value, live, nodes, every)
        if value in ({}, []) and goes_deeper(nodes, value):
            return value  # what is in it now is others'
        return _ABSENT if any(node is not None and "." in node for node in nodes[self.ours :]) else live

    def some(self, value: Any, live: Any, nodes: Nodes, wanted: Mapping[str, Wanted]) -> Any:
        """The value with what is wanted of its parts settled."""
        if isinstance(value, dict) and isinstance(live, Mapping):
            parts = {
                name: self.value(part, live.get(name, _ABSENT), below(nodes, f"f:{name}"), wanted[name])
                if name in wanted
                else part
                for name, part in value.items()
            }
            return {name: part for name, part in parts.items() if part is not _ABSENT}
        if isinstance(value, list) and isinstance(live, list):
            steps = item_steps(value, nodes)
            items = [
                self._item(item, _live_item(live, step), below(nodes, step), step, wanted[str(index)])
                if str(index) in wanted
                else item
                for index, (item, step) in enumerate(zip(value, steps, strict=True))
            ]
            return [item for item in items if item is not _ABSENT]
        return value

    def _item(self, item: Any, live: Any, nodes: Nodes, step: str, wanted: Wanted) -> Any:
        if step.startswith("i:") and live is _ABSENT:
            return item  # part of a list that is owned as a whole, and longer than the live one
        settled = self.value(item, live, nodes, wanted)
        if settled is _ABSENT or not step.startswith("k:") or not isinstance(item, dict):
            return settled
        keys = {name: item[name] for name in item_key(step) if name in item}
        return {name: part for name, part in {**item, **settled, **keys}.items() if name in keys or name in settled}

    def _has_parts(self, value: Any, nodes: Nodes) -> bool:
        """Whether the API server owns the parts of a value one by one; a map that nobody owns might be such."""
        if isinstance(value, list):
            return goes_deeper(nodes, value)
        return not is_atomic(nodes, value)


def _live_item(live: Sequence[Any], step: str) -> Any:
    """The item of the live list that a step leads to."""
    if step.startswith("i:"):
        index = int(step[2:])
        return live[index] if index < len(live) else _ABSENT
    key = item_key(step)
    return next((item for item in live if all(_part(item, name) == value for name, value in key.items())), _ABSENT)


def _part(item: Any, name: str) -> Any:
    if not name:
        return item
    return item.get(name) if isinstance(item, Mapping) else None


def left_out(content: dict[str, Any], pointers: Sequence[str]) -> dict[str, Any]:
    """A content without what the pointers point at, for asking what else was lost; what needn't change is shared."""
    for pointer in pointers:
        content = _without(content, pointer_tokens(pointer))
    return content


def _without(value: Any, steps: Sequence[str]) -> Any:
    first, rest = steps[0], steps[1:]
    if isinstance(value, dict) and first in value:
        kept = {name: item for name, item in value.items() if name != first}
        return {**kept, first: _without(value[first], rest)} if rest else kept
    if isinstance(value, list) and first.isdecimal() and int(first) < len(value):
        place = int(first)
        kept_item = [_without(value[place], rest)] if rest else []
        return [*value[:place], *kept_item, *value[place + 1 :]]
    return value
