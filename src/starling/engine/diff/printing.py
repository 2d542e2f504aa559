"""Diffs for people, and as JSON."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from starling.engine.diff.masking import MASK, MASK_CHANGED
from starling.engine.diff.values import Change, Effect, ObjectDiff
from starling.objects import dump

__all__ = ["document", "render"]

_NO_NEWLINE = "  (no newline at the end)"
_SAID: Mapping[Effect, str] = {
    Effect.CREATED: " (created)",
    Effect.REMOVED: " (removed)",
    Effect.REFUSED: " (would be refused)",
    Effect.REPLACED: " (deleted and created anew)",
}
_COLOURS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[36m", "!": "\x1b[33m", "=": "\x1b[1m"}
_PLAIN = "\x1b[0m"


def render(diffs: Iterable[ObjectDiff], *, colour: bool = False) -> str:
    """The differences as text: a header for each object, `-` before what goes and `+` before what comes.

    Objects that don't differ aren't mentioned; nothing differs: nothing is said.
    """
    objects = ("".join(_lines(diff, colour=colour)) for diff in diffs if diff.different)
    return "\n".join(objects)


def document(diff: ObjectDiff) -> dict[str, Any]:
    """One diff as JSON has it; a change has no `before` or `after` where the field isn't there."""
    key = diff.key
    return {
        "group": key.group,
        "kind": key.kind,
        "namespace": key.namespace,
        "name": key.name,
        "effect": diff.effect.value,
        "changes": [msgspec.to_builtins(change) for change in diff.changes],
        "message": diff.message,
        "needsForce": diff.needs_force,
        "ownership": diff.ownership,
    }


def _lines(diff: ObjectDiff, *, colour: bool) -> Iterator[str]:
    for line in _marked(diff):
        text = _visible(line.removeprefix("="))
        start = _COLOURS.get(line[0], "") if colour else ""
        yield f"{start}{text}{_PLAIN if start else ''}\n"


def _marked(diff: ObjectDiff) -> Iterator[str]:
    """Lines that begin with what they are: `=` a header, `-`, `+`, `@`, `!`, or a space."""
    key = diff.key
    name = f"{key.namespace}/{key.name}" if key.namespace else key.name
    yield f"={key.kind} {name}{_SAID.get(diff.effect, '')}"
    for line in diff.message.split("\n") if diff.message else ():
        yield f"! {line}"
    if diff.needs_force and diff.effect is Effect.REFUSED:
        yield "! needs force: it would be deleted and created anew"
    for change in diff.changes:
        yield from _change(change)


def _change(change: Change) -> Iterator[str]:
    before, after = change.before, change.after
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield f"  {change.path}:"
        yield from _line_diff(before, after)
        return
    for sign, value in (("-", before), ("+", after)):
        if change.reordered:
            yield f"{sign} {change.path} (order): {', '.join(_named(key) for key in value)}"
        elif value is not UNSET:
            yield from (f"{sign} {line}" for line in _written(change.path, value))


def _written(path: str, value: Any) -> Iterator[str]:
    """A field as YAML."""
    if value in (MASK, MASK_CHANGED):
        yield f"{path}: {value}"
    elif isinstance(value, dict | list) and value:
        yield f"{path}:"
        yield from (f"  {line}" for line in dump(value).split("\n")[:-1])
    else:
        yield from f"{path}: {dump(value)}".split("\n")[:-1]


def _line_diff(before: str, after: str) -> Iterator[str]:
    for line in list(difflib.unified_diff(_text_lines(before), _text_lines(after), lineterm=""))[2:]:
        yield line if line.startswith("@") else f"{line[0]}   {line[1:]}"


def _text_lines(text: str) -> list[str]:
    *lines, rest = text.split("\n")
    return [*lines, rest + _NO_NEWLINE] if rest else lines


def _named(key: Mapping[str, Any]) -> str:
    return "/".join(str(value) for value in key.values())


def _visible(text: str) -> str:
    """The text without anything that would steer a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\t" else ascii(sign)[1:-1] for sign in text)
