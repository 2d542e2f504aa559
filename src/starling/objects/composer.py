"""Turns the C parser's events into values, by the rules that `starling.objects.reader` and `scalars` state."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from starling.objects.scalars import AMBIGUOUS, Scalar, json_number, key_text, resolve_plain, resolve_tagged

try:
    from yaml._yaml import CParser
except ImportError as error:
    raise ImportError("PyYAML here lacks its C parser: install its wheel, or libyaml and then PyYAML") from error

__all__ = ["DEPTH_LIMIT", "EXPANSION_LIMIT", "Composed", "Expansion", "Refused", "compose", "too_deep"]

DEPTH_LIMIT: Final = 200
EXPANSION_LIMIT: Final = 8_000_000
"""How much all aliases of one input may add: a character counts 1 and a node 16."""

_NODE_WEIGHT: Final = 16
_NO_KEY: Final = object()
_MERGE: Final = object()
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What the C parser counts lines by."""


class Mark(Protocol):
    """A place in the text, counted from 0."""

    line: int
    column: int


class _Node(Protocol):
    """What the parser tells of any node."""

    anchor: str | None
    start_mark: Mark
    end_mark: Mark


class _Scalar(_Node, Protocol):
    tag: str | None
    implicit: tuple[bool, bool]
    value: str
    style: str


class _Collection(_Node, Protocol):
    flow_style: bool


class Refused(Exception):
    """What is wrong, and on which line (from 0) of its text; it becomes a ManifestError, which knows the file too."""

    def __init__(self, problem: str, mark: Mark | int = 0, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line: int = mark if isinstance(mark, int) else mark.line
        self.hint = hint


def too_deep() -> str:
    """The message for what nests past the limit."""
    return f"nested more than {DEPTH_LIMIT} levels deep"


@dataclass(slots=True)
class Expansion:
    """What the aliases of one input may still add; shared by its documents, and counted down."""

    left: int = EXPANSION_LIMIT


@dataclass(slots=True, frozen=True)
class Composed:
    """A document's value; the line (from 0) where it starts, and those where the items of its `items` do."""

    value: Any
    line: int
    item_lines: list[int]


def compose(chunk: bytes, expansion: Expansion) -> Composed | None:
    """The one document in a text, or None if there is none; Refused or yaml.YAMLError if it can't be read."""
    parser = CParser(chunk)
    builder = _Builder(chunk, expansion)
    try:
        if not builder.run(parser):
            return None
        after: Any = parser.get_event()
    except yaml.MarkedYAMLError as error:
        if not builder.complete:
            raise
        problem = f"more follows after the document's end: {error.problem}"
        raise Refused(problem, error.problem_mark or 0) from error
    if type(after) is not StreamEndEvent:
        hint = "put a line '---' between documents"
        raise Refused("more follows after the document's end", after.start_mark, hint)
    if builder.not_finite and not _is_finite(builder.root):
        raise Refused("JSON has no infinity and no NaN", builder.not_finite, hint="put the text in quotes")
    return Composed(builder.root, builder.root_line, builder.item_lines)


@dataclass(slots=True)
class _Anchored:
    """What an anchor stands for, and how many nodes Go visits to read it."""

    value: Any = None
    nodes: int = 1
    closed: bool = True


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is still open."""

    target: dict[str, Any] | list[Any]
    mark: Mark
    nodes_before: int
    anchored: _Anchored | None
    flow: bool
    key: object = _NO_KEY
    written: set[str] | None = None
    """Once something was merged in: the keys that were written here, as opposed to merged."""


@dataclass(slots=True)
class _Builder:
    """One document in the making."""

    chunk: bytes
    expansion: Expansion
    root: Any = None
    root_line: int = 0
    complete: bool = False
    item_lines: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    frames: list[_Frame] = field(default_factory=list)
    anchors: dict[str, _Anchored] = field(default_factory=dict)
    nodes: int = 1
    aliased: int = 0
    not_finite: Mark | None = None
    """The first infinity or NaN; no error yet, since a mapping that merges it may override it."""

    def run(self, parser: CParser) -> bool:
        """Build up to the document's end; False if the text holds no document."""
        next_event = parser.get_event
        while True:
            event: Any = next_event()
            kind = type(event)
            if kind is ScalarEvent:
                self.scalar(event)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self.close()
            elif kind is MappingStartEvent:
                self.open(event, {})
            elif kind is SequenceStartEvent:
                self.open(event, [])
            elif kind is AliasEvent:
                self.alias(event)
            elif kind is DocumentEndEvent:
                return True
            elif kind is StreamEndEvent:
                return False

    def scalar(self, event: _Scalar) -> None:
        text, tag, plain = event.value, event.tag, event.implicit[0]
        if self.frames and self.frames[-1].flow:
            self.check_flow(event)
        value: Scalar = text
        if tag is not None:
            try:
                value = resolve_tagged(tag, text)
            except ValueError as error:
                raise Refused(str(error), event.start_mark) from error
        elif plain and text[:1] in AMBIGUOUS:
            value = resolve_plain(text)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value)
        if text == "<<" and (plain or tag == _MERGE_TAG) and self.awaits_key():
            self.frames[-1].key = _MERGE
            return
        self.nodes += 1
        self.place(value, event.start_mark)

    def check_flow(self, event: _Scalar) -> None:
        """Refuse what the C parser reads within [] and {} but Go's, which is older, reads otherwise or not at all."""
        if "?" in event.value and not event.style:
            raise Refused("'?' within [] or {}", event.start_mark, hint="put the text in quotes")
        if event.tag is not None and not event.value:
            mark = event.end_mark
            self.lines = self.lines or _BREAK.split(self.chunk.decode())
            line = self.lines[mark.line]
            if line[mark.column : mark.column + 1] == ",":
                raise Refused("a tag directly before ','", event.start_mark, hint="put a blank before the comma")

    def awaits_key(self) -> bool:
        return bool(self.frames) and type(self.frames[-1].target) is dict and self.frames[-1].key is _NO_KEY

    def open(self, event: _Collection, target: dict[str, Any] | list[Any]) -> None:
        frames = self.frames
        if len(frames) >= DEPTH_LIMIT:
            raise Refused(too_deep(), event.start_mark)
        anchored = None
        if event.anchor is not None:
            anchored = self.anchors[event.anchor] = _Anchored(closed=False)
        frames.append(_Frame(target, event.start_mark, self.nodes, anchored, event.flow_style))
        self.nodes += 1

    def close(self) -> None:
        frame = self.frames.pop()
        if frame.anchored is not None:
            frame.anchored.value = frame.target
            frame.anchored.nodes = self.nodes - frame.nodes_before
            frame.anchored.closed = True
        self.place(frame.target, frame.mark)

    def alias(self, event: _Node) -> None:
        anchored = self.anchors.get(str(event.anchor))
        if anchored is None:
            # It isn't named: it may be a password that nobody put into quotes.
            raise Refused("an alias has no anchor before it; a text that begins with * needs quotes", event.start_mark)
        if not anchored.closed:
            raise Refused(f"anchor &{event.anchor} contains itself", event.start_mark)
        self.nodes += 1 + anchored.nodes
        self.aliased += anchored.nodes
        if _too_much_aliasing(self.nodes, self.aliased):
            raise Refused("nearly all of the document is aliases written out", event.start_mark)
        value = self.copy(anchored.value, event.start_mark, len(self.frames))
        self.place(value, event.start_mark, aliased=True)

    def copy(self, value: Any, mark: Mark, depth: int) -> Any:
        """A copy for an alias: nothing that can change is shared between two places of a document."""
        self.expansion.left -= _NODE_WEIGHT + (len(value) if type(value) is str else 0)
        if self.expansion.left < 0:
            raise Refused(f"aliases expand to more than {EXPANSION_LIMIT} characters", mark)
        if not isinstance(value, dict | list):
            return value
        if depth >= DEPTH_LIMIT:
            raise Refused(too_deep(), mark)
        if isinstance(value, list):
            return [self.copy(item, mark, depth + 1) for item in value]
        return {key: self.copy(item, mark, depth + 1) for key, item in value.items()}

    def place(self, value: Any, mark: Mark, *, aliased: bool = False) -> None:
        """Put a finished value where it belongs: the root, the end of a list, a mapping's key or value."""
        frame = self.frames[-1] if self.frames else None
        if frame is not None and type(frame.target) is dict and frame.key is _NO_KEY:
            frame.key = self.new_key(frame, value, mark)
            return
        if type(value) is float:
            if math.isfinite(value):
                value = json_number(value)
            else:
                self.not_finite = self.not_finite or mark
        if frame is None:
            self.root, self.root_line, self.complete = value, mark.line, True
        elif isinstance(frame.target, list):
            frame.target.append(value)
            if len(self.frames) == 2 and self.frames[0].key == "items":
                self.item_lines.append(mark.line)
        elif frame.key is _MERGE:
            self.merge(frame, value, mark, aliased=aliased)
            frame.key = _NO_KEY
        else:
            frame.target[str(frame.key)] = value
            frame.key = _NO_KEY

    def new_key(self, frame: _Frame, value: Any, mark: Mark) -> str:
        """A key as text, after checking that the mapping doesn't have it yet; merged ones may be overridden."""
        if type(value) is str:
            key = value
        elif type(value) is dict or type(value) is list:
            raise Refused("a mapping or a sequence can't be a key", mark, hint="quote it if it is text: '{{ x }}'")
        else:
            try:
                key = key_text(value)
            except ValueError as error:
                raise Refused(str(error), mark, hint="quote it") from error
        if key in (frame.target if frame.written is None else frame.written):
            raise Refused(f"key {key!r} stands twice in one mapping", mark)
        if frame.written is not None:
            frame.written.add(key)
        return key

    def merge(self, frame: _Frame, value: Any, mark: Mark, *, aliased: bool) -> None:
        sources = [value] if type(value) is dict else value
        if type(sources) is not list or (aliased and sources is value) or any(type(s) is not dict for s in sources):
            raise Refused("'<<' merges a mapping or a list of mappings, nothing else", mark)
        target = frame.target
        assert type(target) is dict
        if frame.written is None:
            frame.written = set(target)
        for source in reversed(sources):
            target.update(source)


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _too_much_aliasing(nodes: int, aliased: int) -> bool:
    """Go's own bound: 99 % of what is read may come from aliases, falling to 10 % between 400,000 and 4,000,000."""
    large = min(1.0, max(0.0, (nodes - 400_000) / 3_600_000))
    return aliased > 100 and nodes > 1000 and aliased / nodes > 0.99 - 0.89 * large
