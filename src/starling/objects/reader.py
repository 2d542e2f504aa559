r"""Reads YAML and JSON as Kubernetes' Go tools do: the same values, the same refusals, and a line in every error.

A text is cut into documents as kubectl cuts it: at lines that start with `---`, after which only a comment may
follow; CRLF counts as LF and a missing last line break is added. A document that is one JSON object is read as JSON,
anything else as YAML 1.1 by the rules in `starling.objects.scalars`, and further:

- A merge key (plain `<<`) sets the keys of its mapping or list of mappings where it stands: what comes later in the
  mapping wins, in a list what comes earlier. The value is a mapping, an alias of one, or a list of these.
- An anchor may be redefined; an alias means the latest before it, and gets a copy of its own.
- Keys that aren't text become text; null, mappings and sequences can't be keys.
- A document that is empty, null or comments alone is none.

Go reads some things that are traps. Refused on purpose:

- a key twice in one mapping (also 1 and "1"), where Go takes the last or either;
- anything after a document's end (`...`, or a second root) that isn't introduced by `---`, which Go drops silently;
- aliases that would write out to more than EXPANSION_LIMIT, beside Go's own bound on their share;
- within [] and {}: a plain `?` inside text, `:` right before another sign (`{a:}`), a tag right before a comma, all
  of which the C parser and Go's, which is older, read differently; and commas or brackets in a tag;
- the escape \' in double quotes, which YAML doesn't have but Go takes for ';
- a byte order mark at the start of a line other than the first, or after another one: Go takes it for text, the C
  parser for nothing;
- nesting deeper than DEPTH_LIMIT, where Go stops at 10,000;
- input that isn't UTF-8 (Go takes UTF-16, and lets odd bytes and half surrogates pass in JSON).
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import msgspec
import yaml
from yaml.reader import ReaderError

from starling.objects.composer import DEPTH_LIMIT, EXPANSION_LIMIT, Composed, Expansion, Refused, compose
from starling.objects.origin import ManifestError, Origin
from starling.objects.strict_json import NotJsonError, read_json

__all__ = ["DEPTH_LIMIT", "EXPANSION_LIMIT", "Document", "load_documents"]


class Document(msgspec.Struct, frozen=True):
    """One document's value, where it starts, and the lines of its root's `items` (for lists of objects)."""

    value: Any
    origin: Origin
    item_lines: tuple[int, ...] = ()


_SEPARATOR: Final = re.compile(rb"^---([^\n]*)\n", re.MULTILINE)
_GO_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_MARK_STARTS_LINE: Final = re.compile(rb"(?:\A\xef\xbb\xbf|[\n\r]|\xc2\x85|\xe2\x80[\xa8\xa9])\xef\xbb\xbf")
_HINTS: Final = {
    "tab character": "indent with spaces; YAML allows no tabs there",
    "unknown escape character": "within double quotes a backslash is written twice, and ' without one",
}
_JSON_OBJECT: Final = re.compile(rb"\s*\{")


def load_documents(text: bytes | str, file: str = "") -> list[Document]:
    """The documents of a YAML or JSON text in order, empty ones left out; ManifestError if any can't be read."""
    data = _utf8(text, file)
    documents: list[Document] = []
    expansion = Expansion()
    for line, chunk in _chunks(data, file):
        origin = Origin(file, len(documents) + 1, line)
        if (document := _read(chunk, origin, expansion)) is not None:
            documents.append(document)
    return documents


def _utf8(text: bytes | str, file: str) -> bytes:
    """The text as UTF-8 with LF line ends and a last line break."""
    try:
        data = text.encode() if isinstance(text, str) else text
        data.decode()
    except UnicodeEncodeError as error:
        line = str(text)[: error.start].count("\n") + 1
        raise ManifestError("half of a surrogate pair is no text", Origin(file, 0, line)) from error
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise ManifestError(
            f"not UTF-8: {error.reason}", Origin(file, 0, line), hint="save the file as UTF-8"
        ) from error
    data = data.replace(b"\r\n", b"\n")
    return data if data.endswith(b"\n") or not data else data + b"\n"


def _chunks(data: bytes, file: str) -> Iterator[tuple[int, bytes]]:
    """Each document's text and the line it starts at. A separator with nothing before it stays in its document."""
    start, line = 0, 1
    for separator in _SEPARATOR.finditer(data):
        rest = separator[1].decode().strip(_GO_SPACE)
        if rest and not rest.startswith("#"):
            line += data.count(b"\n", start, separator.start())
            raise ManifestError(
                "something follows '---' on its line",  # what it is may be secret
                Origin(file, 0, line),
                hint="start the document on the next line",
            )
        if separator.start() > start:
            chunk = data[start : separator.start()]
            yield line, chunk
            line += chunk.count(b"\n") + 1
            start = separator.end()
    if start < len(data):
        yield line, data[start:]


def _read(chunk: bytes, origin: Origin, expansion: Expansion) -> Document | None:
    try:
        composed = _compose(chunk, expansion)
    except Refused as error:
        raise ManifestError(error.problem, _moved(origin, error.line), hint=error.hint) from None
    except ReaderError as error:
        line = chunk[: error.position].count(b"\n")
        raise ManifestError(f"{error.reason}: {error.character!r}", _moved(origin, line)) from error
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(error, origin)
    if composed is None or composed.value is None:
        return None
    lines = tuple(origin.line + line for line in composed.item_lines)
    return Document(composed.value, _moved(origin, composed.line), lines)


def _compose(chunk: bytes, expansion: Expansion) -> Composed | None:
    if before := _JSON_OBJECT.match(chunk):
        try:
            value, item_lines = read_json(chunk.decode())
        except NotJsonError:
            pass  # it may be YAML
        else:
            return Composed(value, before[0].count(b"\n"), item_lines)
    if found := _MARK_STARTS_LINE.search(chunk):
        raise Refused("a byte order mark starts a line", chunk.count(b"\n", 0, found.end()), hint="remove it")
    return compose(chunk, expansion)


def _refuse_syntax(error: yaml.MarkedYAMLError, origin: Origin) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    problem = ", ".join(part for part in (error.problem, error.context) if part)
    hint = next((hint for part, hint in _HINTS.items() if part in problem), None)
    raise ManifestError(problem, _moved(origin, mark.line if mark else 0), hint=hint) from error


def _moved(origin: Origin, lines: int) -> Origin:
    return Origin(origin.file, origin.document, origin.line + lines)
