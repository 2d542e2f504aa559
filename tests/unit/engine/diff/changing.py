"""Makes the changes that a diff reports, by nothing but what a Change says of itself."""

import copy
from typing import Any

from msgspec import UNSET

from starling.engine.diff import Change
from starling.engine.paths import pointer_tokens

Json = Any


def found(content: Json, tokens: tuple[str, ...]) -> Json:
    """What a JSON pointer leads to."""
    for token in tokens:
        content = content[int(token)] if isinstance(content, list) else content[token]
    return content


def put(content: Json, change: Change) -> None:
    """Make one change that isn't a removal."""
    tokens = pointer_tokens(change.pointer)
    parent, last = found(content, tokens[:-1]), tokens[-1]
    if change.reordered:
        fields = {field for key in change.after for field in key}
        items = {tuple(item.get(field) for field in fields): item for item in found(content, tokens)}
        parent[int(last) if isinstance(parent, list) else last] = [
            items[tuple(key.get(field) for field in fields)] for key in change.after
        ]
    elif isinstance(parent, list) and change.before is UNSET:
        parent.insert(int(last), change.after)
    else:
        parent[int(last) if isinstance(parent, list) else last] = change.after


def changed(before: Json, changes: tuple[Change, ...]) -> Json:
    """`before` after the changes: removals from the end, by the pointers into it; then the others in their order."""
    content = copy.deepcopy(before)
    for change in reversed(changes):
        if change.after is UNSET:
            *way, last = pointer_tokens(change.pointer)
            parent = found(content, tuple(way))
            del parent[int(last) if isinstance(parent, list) else last]
    for change in changes:
        if change.after is not UNSET:
            put(content, change)
    return content
