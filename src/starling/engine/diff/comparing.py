"""The pure comparison of two objects."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from starling.engine.diff.lists import KeyFields, item_key, key_fields, key_step
from starling.engine.diff.masking import MASK, MASK_CHANGED, Seals, Token
from starling.engine.diff.values import Change, Effect, ObjectDiff
from starling.engine.paths import Step, field_path, json_pointer, pointer_tokens
from starling.objects import ObjectKey

__all__ = ["compare"]

_Tokens = tuple[str, ...]
_Ignored = AbstractSet[_Tokens]

_BOOKKEEPING: _Ignored = {
    ("metadata", name)
    for name in ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")
}


def compare(
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    *,
    ignore: Sequence[str] = (),
    status: bool = False,
) -> ObjectDiff:
    """How `after` differs from `before`; None is an object that isn't there, and one of them must be.

    What `ignore` points to, in either object, is left out where both are there: a new object gets it as it is
    written. The status counts only if someone applies it.
    """
    left_out = set(_BOOKKEEPING if status else _BOOKKEEPING | {("status",)})
    seals = Seals()
    if before is None or after is None:
        if (present := after if before is None else before) is None:
            raise ValueError("nothing to compare")
        effect = Effect.CREATED if before is None else Effect.REMOVED
        old, new = seals.sealed(before or {}), seals.sealed(after or {})
        return ObjectDiff(key=_key(present), effect=effect, changes=tuple(_walk(old, new, _Place(), left_out)))
    left_out.update(pointer_tokens(pointer) for pointer in ignore)
    changes = tuple(_walk(seals.sealed(before), seals.sealed(after), _Place(), left_out))
    effect = Effect.CHANGED if changes else Effect.UNCHANGED
    return ObjectDiff(key=_key(after), effect=effect, changes=changes, ownership=_managers(before) != _managers(after))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is: the path for people, and the way there in either object."""

    steps: tuple[Step, ...] = ()
    before: _Tokens = ()
    after: _Tokens = ()

    def field(self, name: str) -> "_Place":
        return _Place((*self.steps, name), (*self.before, name), (*self.after, name))

    def item(self, step: Step, before: int | None, after: int | None) -> "_Place":
        """An item; an index is None in a list that doesn't have it, and `-` is what a JSON pointer calls that."""
        old, new = ("-" if index is None else str(index) for index in (before, after))
        return _Place((*self.steps, step), (*self.before, old), (*self.after, new))

    def change(self, before: Any, after: Any, *, reordered: bool = False) -> Change:
        pointer = json_pointer(self.before if after is UNSET else self.after)
        return Change(field_path(self.steps), pointer, before, after, reordered)


def _walk(before: Any, after: Any, at: _Place, ignored: _Ignored) -> Iterator[Change]:
    """The changes, a list's own before those within it, and in it what goes before what stays or comes."""
    if at.before in ignored or at.after in ignored:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            yield from _walk(before.get(name, UNSET), after.get(name, UNSET), at.field(name), ignored)
    elif isinstance(before, list) and isinstance(after, list):
        if (fields := key_fields(before, after)) is None:
            yield from _walk_by_index(before, after, at, ignored)
        else:
            yield from _walk_by_key(before, after, fields, at, ignored)
    elif isinstance(before, bool) is not isinstance(after, bool) or before != after:
        yield from _change(before, after, at, ignored)


def _walk_by_index(before: list[Any], after: list[Any], at: _Place, ignored: _Ignored) -> Iterator[Change]:
    for index in range(max(len(before), len(after))):
        old = before[index] if index < len(before) else UNSET
        new = after[index] if index < len(after) else UNSET
        yield from _walk(old, new, at.item(index, index, index), ignored)


def _walk_by_key(
    before: list[Any], after: list[Any], fields: KeyFields, at: _Place, ignored: _Ignored
) -> Iterator[Change]:
    old = {item_key(item, fields): index for index, item in enumerate(before)}
    new = {item_key(item, fields): index for index, item in enumerate(after)}
    stays, will_stand = [key for key in old if key in new], [key for key in new if key in old]
    if stays != will_stand:
        orders = ([key_step(key, fields) for key in keys] for keys in (stays, will_stand))
        yield at.change(*orders, reordered=True)
    for key, index in old.items():
        if key not in new:
            yield from _walk(before[index], UNSET, at.item(key_step(key, fields), index, None), ignored)
    for key, index in new.items():
        there = before[old[key]] if key in old else UNSET
        yield from _walk(there, after[index], at.item(key_step(key, fields), old.get(key), index), ignored)


def _change(before: Any, after: Any, at: _Place, ignored: _Ignored) -> Iterator[Change]:
    """The change of one value as a whole, unless all that is in it is ignored."""
    before, after = _shown(before, at.before, ignored), _shown(after, at.after, ignored)
    if before is UNSET and after is UNSET:
        return
    if before == after == MASK:  # they differ, or we weren't here
        after = MASK_CHANGED
    yield at.change(before, after)


def _shown(value: Any, at: _Tokens, ignored: _Ignored) -> Any:
    """The value without what is ignored, UNSET if nothing is left of it; and with masks for tokens."""
    if at in ignored:
        return UNSET
    if isinstance(value, Mapping):
        fields = {name: _shown(item, (*at, name), ignored) for name, item in value.items()}
        kept = {name: item for name, item in fields.items() if item is not UNSET}
        return kept if kept or not value else UNSET
    if isinstance(value, list):
        items = [_shown(item, (*at, str(index)), ignored) for index, item in enumerate(value)]
        left = [item for item in items if item is not UNSET]
        return left if left or not value else UNSET
    return MASK if isinstance(value, Token) else value


def _key(content: Mapping[str, Any]) -> ObjectKey:
    metadata = _metadata(content)
    group = str(content.get("apiVersion", "")).rpartition("/")[0]
    names = (content.get("kind", ""), metadata.get("namespace", ""), metadata.get("name", ""))
    return ObjectKey(group, *map(str, names))


def _managers(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who owns which fields, whenever that was written."""
    entries = _metadata(content).get("managedFields") or []
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def _metadata(content: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
