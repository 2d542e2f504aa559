"""Values of a chart that stand in ConfigMaps and Secrets, by the rules of `valuesFrom` in Flux's HelmRelease.

Each reference names an object and a key in it. Its text is YAML with values; or, with a target path, one value, read as
`helm --set path=value` reads it: lists in braces, true, false, null and whole numbers as what they are, a backslash
before what is to have no meaning, and text alone if it stands in quotes. Later references win over earlier ones.

Where objects come from is the caller's business. What is made here goes into files of values, never on a command line;
and no error says a value.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from starling.objects import ManifestError, load_documents
from starling.rendering.errors import RenderError, ValuesMissing

__all__ = ["Lookup", "ValuesFrom", "resolve"]

KINDS: Final = ("ConfigMap", "Secret")
DEEPEST: Final = 30
LAST_INDEX: Final = 65536
"""How deep a target path goes and how far a list, at most; both are Helm's own limits."""
_STEP: Final = re.compile(r"((?:[^\\.\[\]=,]|\\.)+)((?:\[[0-9]{1,9}\])*)(?:\.(?=.)|\Z)", re.DOTALL)
_CHARACTER: Final = re.compile(r"\\(.)|([^\\])", re.DOTALL)
_NUMBER: Final = re.compile(r"0|(?!0)[+-]?[0-9]{1,4000}")

Lookup = Callable[[str, str], Awaitable[Mapping[str, bytes] | None]]
"""The data of an object by kind and name; None if there is no such object."""


@dataclass(frozen=True, slots=True)
class ValuesFrom:
    """Where values stand: an object, a key of its data, and where in the values the text belongs ("": it is all)."""

    kind: Literal["ConfigMap", "Secret"]
    name: str
    key: str = "values.yaml"
    optional: bool = False
    """May the object, or the key in it, be missing?"""
    target_path: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise RenderError(f"values can't come from {self.kind}/{self.name}", hint=f"from {' or '.join(KINDS)} only")

    def __str__(self) -> str:
        """As messages name it."""
        return f"{self.kind}/{self.name}, key {self.key}"


async def resolve(references: Iterable[ValuesFrom], lookup: Lookup) -> list[Mapping[str, Any]]:
    """The values of all references in order, for Request.values; those written in the request itself come after.

    Each object is asked for once. What a target path sets may lie in a list that came before it, so everything up to
    there becomes one. ValuesMissing or another RenderError names the reference.
    """
    objects: dict[tuple[str, str], Mapping[str, bytes] | None] = {}
    found: list[dict[str, Any]] = []
    for each in references:
        place = (each.kind, each.name)
        if place not in objects:
            objects[place] = await lookup(*place)
        text = _text(each, objects[place])
        if text is None:
            continue
        if each.target_path:
            merged: dict[str, Any] = {}
            for values in found:
                merged = _merged(merged, values)
            _set(merged, each, text)
            found = [merged]
        else:
            found.append(_read(each, text))
    return list(found)


def _text(reference: ValuesFrom, data: Mapping[str, bytes] | None) -> bytes | None:
    """What stands there; None if it is missing and may be."""
    if data is not None and reference.key in data:
        return data[reference.key]
    if reference.optional:
        return None
    what = "there is no such object" if data is None else "the object has no such key"
    raise ValuesMissing(f"values from {reference}: {what}", hint="create it, or make the reference optional")


def _read(reference: ValuesFrom, text: bytes) -> dict[str, Any]:
    try:
        documents = load_documents(text)
    except ManifestError as error:  # not chained: it may quote what it couldn't read
        line = error.origin.line
        raise RenderError(f"values from {reference}: line {line} can't be read as YAML") from None
    if len(documents) > 1:
        raise RenderError(f"values from {reference}: it is more than one YAML document")
    value = documents[0].value if documents else {}
    if not isinstance(value, dict):
        raise RenderError(
            f"values from {reference}: it is no mapping", hint="a single value needs a target path, where it belongs"
        )
    return value


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, as Helm merges files of values: mappings key by key, of anything else the one above."""
    found = dict(below)
    for key, value in above.items():
        before = found.get(key)
        mappings = isinstance(before, dict) and isinstance(value, dict)
        found[key] = _merged(found[key], value) if mappings else value
    return found


def _set(values: dict[str, Any], reference: ValuesFrom, text: bytes) -> None:
    """Put a text where the reference's target path leads."""
    steps = _steps(reference)
    value = _value(reference, text)
    place: Any = values
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        if isinstance(step, int):
            place += [None] * (step + 1 - len(place))
        if last:
            place[step] = value
            return
        inner: dict[str, Any] | list[Any] = [] if isinstance(steps[number + 1], int) else {}
        there = place[step] if isinstance(step, int) else place.get(step, inner)
        if isinstance(there, type(inner)):
            inner = there
        elif not isinstance(step, int) or (there is not None and isinstance(inner, list)):
            # As with Helm, where an item of a list may become a mapping, but nothing else becomes something else.
            what = "list" if isinstance(inner, list) else "mapping"
            raise RenderError(f"values from {reference}: {_shown(reference, steps[: number + 1])} is no {what}")
        place[step] = inner
        place = inner


def _steps(reference: ValuesFrom) -> list[str | int]:
    """The keys and indexes of a target path."""
    steps: list[str | int] = []
    at, path = 0, reference.target_path
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise RenderError(
                f"values from {reference}: the target path {path} is no path",
                hint=r"write it as for helm --set: a.b[0].c, with \. for a dot in a key",
            )
        indexes = [int(index) for index in re.findall(r"[0-9]+", found[2])]
        if any(index > LAST_INDEX for index in indexes):
            raise RenderError(f"values from {reference}: the target path {path} has an index beyond {LAST_INDEX}")
        steps += [re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL), *indexes]
        at = found.end()
    if len(steps) > DEEPEST:
        raise RenderError(f"values from {reference}: the target path {path} is more than {DEEPEST} deep")
    return steps


def _shown(reference: ValuesFrom, steps: list[str | int]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return f"{text.removeprefix('.')} of the target path {reference.target_path}"


def _value(reference: ValuesFrom, text: bytes) -> Any:
    """What `--set` makes of a text."""
    try:
        written = text.decode()
    except UnicodeDecodeError:
        raise RenderError(f"values from {reference}: it is no text") from None
    quoted = any(written.startswith(quote) and written.endswith(quote) for quote in "'\"")
    if quoted:
        written = written.strip("'\"")
    as_list = written.startswith("{")
    parts, ends = _parts(written[1:], ",}") if as_list else _parts(written, ",")
    if as_list and ends.endswith("}") and not parts[-1]:
        parts, ends = parts[:-1], ends[:-1].replace(",", "")
    elif as_list:
        ends = "{"
    if ends:
        raise RenderError(
            f"values from {reference}: it is more than one value to helm --set, or a list that doesn't end",
            hint=r"a comma that belongs to a value is written \, and a brace at the start \{",
        )
    found = [part if quoted else _typed(part) for part in parts]
    return found if as_list else found[0]


def _parts(text: str, ends: str) -> tuple[list[str], str]:
    """The text cut at those characters where they aren't escaped, and which of them it was each time."""
    parts, met = [""], ""
    for found in _CHARACTER.finditer(text):
        if found[2] and found[2] in ends:
            parts.append("")
            met += found[2]
        else:
            parts[-1] += found[1] or found[2]
    return parts, met


def _typed(text: str) -> Any:
    known: dict[str, bool | None] = {"true": True, "false": False, "null": None}
    if text.casefold() in known:
        return known[text.casefold()]
    if _NUMBER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    return text
