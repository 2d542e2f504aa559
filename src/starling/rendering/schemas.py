"""What a chart's values.schema.json may refer to.

Helm checks values against it and loads whatever it refers to: from the network, and from any file of the machine. A
reference may point into the schema itself, or to a URL (which is fetched only by those who may use the network); not
to a file, since for Helm that is one of the machine, never one of the chart.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from starling.rendering.errors import NotAllowed, RenderError

__all__ = ["SCHEMA", "check_schema"]

SCHEMA: Final = "values.schema.json"
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$schema"})
_BASES: Final = frozenset({"$id", "id"})
_HARMLESS: Final = re.compile(r"#|urn:|\Z", re.IGNORECASE)
_URL: Final = re.compile(r"https?://", re.IGNORECASE)
_KNOWN: Final = re.compile(r"https?://json-schema\.org/(draft-0[4-7]|draft/20\d\d-\d\d)/(schema|meta/[a-z-]+)#?")
"""Schemas of schemas, which Helm has built in."""


def check_schema(text: bytes, called: str, *, allow_remote: bool) -> None:
    """Refuse a schema that has Helm read what isn't in it."""
    try:
        # Go replaces what isn't UTF-8, so that isn't what keeps Helm from reading it.
        schema = json.loads(text.decode(errors="replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise RenderError(f"{called} can't be read as JSON: {error}") from error
    identified = {text.partition("#")[0] for name, text in _texts(schema) if name in _BASES}
    for name, reference in _texts(schema):
        if name in _BASES:
            if reference.strip().lower().startswith("file:"):
                raise NotAllowed(f"{called}: {name} is {reference[:200]}, a file of this machine")
        elif _URL.match(reference):
            remote = not _KNOWN.fullmatch(reference) and reference.partition("#")[0] not in identified
            if remote and not allow_remote:
                raise NotAllowed(
                    f"{called}: {name} names {reference[:200]}, which is remote",
                    hint="copy what it names into the schema, or allow remote content for this unit",
                )
        elif not _HARMLESS.match(reference):
            raise NotAllowed(
                f"{called}: {name} names {reference[:200]}, which helm would read from this machine",
                hint="a schema may refer to parts of itself (#/…) and to URLs",
            )


def _texts(schema: Any) -> Iterator[tuple[str, str]]:
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            todo += item.values()
            yield from (
                (name, text) for name, text in item.items() if name in _REFERENCES | _BASES and isinstance(text, str)
            )
