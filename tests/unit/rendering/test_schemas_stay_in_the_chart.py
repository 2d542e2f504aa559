"""A chart's schema refers to itself and to URLs, never to files of the machine."""

import json
from typing import Any

import pytest

from starling.rendering import NotAllowed, RenderError
from starling.rendering.schemas import check_schema

CALLED = "app/values.schema.json"


def check(schema: Any, *, allow_remote: bool = False) -> None:
    """Check a schema."""
    check_schema(json.dumps(schema).encode(), CALLED, allow_remote=allow_remote)


@pytest.mark.parametrize(
    "reference",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "passwd",
        "/dev/zero",
        "../x.json",
        "//host/x",
        " file:///x",
        "ftp://x",
    ],
)
@pytest.mark.parametrize("name", ["$ref", "$dynamicRef", "$recursiveRef", "$schema"])
def test_files_are_refused(name: str, reference: str) -> None:
    """Whatever Helm would look for on this machine is refused by name, allowed or not."""
    for schema in ({name: reference}, {"properties": {"a": {"allOf": [{name: reference}]}}}):
        for allow_remote in (False, True):
            with pytest.raises(NotAllowed, match="which helm would read from this machine"):
                check(schema, allow_remote=allow_remote)


def test_a_base_that_makes_files_of_names_is_refused() -> None:
    """An $id that is a file would let a harmless name be one."""
    with pytest.raises(NotAllowed, match=r"\$id is file:///etc/, a file of this machine"):
        check({"$id": "file:///etc/", "properties": {"a": {"$ref": "#/x"}}})


def test_urls_are_for_those_who_may() -> None:
    """A URL is refused by name unless remote content is allowed."""
    with pytest.raises(NotAllowed, match=r"\$ref names https://example\.com/x\.json#/a, which is remote"):
        check({"$ref": "https://example.com/x.json#/a"})
    check({"$ref": "https://example.com/x.json#/a"}, allow_remote=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a"},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$dynamicRef": "#a"},
        {"$ref": "urn:example:a"},
        {"$ref": ""},
        {"$defs": {"a": {"$id": "https://example.com/a"}}, "$ref": "https://example.com/a#/x"},
        {"properties": {"$ref": {"type": "string"}, "id": {"type": "string"}}},
        True,
    ],
    ids=str,
)
def test_what_is_in_it_is_fine(schema: Any) -> None:
    """Parts of itself, schemas of schemas that Helm brings along, and properties that are merely called so."""
    check(schema)


def test_odd_bytes_hide_nothing() -> None:
    """Go reads past bytes that are no text and a mark at the start, so we do."""
    for text in (b'{"a": "\xff", "$ref": "file:///x"}', b'\xef\xbb\xbf{"$ref": "file:///x"}'):
        with pytest.raises(NotAllowed):
            check_schema(text, CALLED, allow_remote=False)


@pytest.mark.parametrize("text", [b"{", b"[" * 100_000, b""])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    """A schema that can't be read can't be judged."""
    with pytest.raises(RenderError, match=r"^app/values\.schema\.json can't be read as JSON"):
        check_schema(text, CALLED, allow_remote=False)
