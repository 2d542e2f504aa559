"""Our YAML reader against Go's: same values, same refusals, over tables and generated texts.

One round is about two thousand texts in all.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from starling.objects import ManifestError, digest, dump, load_documents
from tests.integration.go_programs import GoProgram, go_program
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds
SOURCES = Path(__file__).parent / "goyaml"

few = settings(max_examples=300 * ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))

INTENDED = {
    "stands twice in one mapping": "Go takes the last, or either",
    "more follows after the document's end": "Go drops it silently",
    "aliases expand to more than": "Go writes out larger bombs than we do",
    "levels deep": "Go goes down to 10,000",
    "not UTF-8": "Go reads UTF-16, and replaces odd bytes in JSON",
    "invalid Unicode character escape code": "Go replaces half surrogates in JSON",
    "a byte order mark starts a line": "Go takes it for text, the C parser for nothing",
    "can't be a key": "after an empty {} or [] at the start, Go overlooks the colon and drops the rest",
    "found unexpected ':'": "within [] and {}, the C parser wants a blank after a colon; Go takes it for text",
    "a tag directly before ','": "Go takes the comma for a part of the tag, the C parser doesn't",
    "found unknown escape character": "Go knows \\' in double quotes, the C parser doesn't",
    "while scanning a tag": "Go allows commas and brackets in a tag, the C parser doesn't",
    "while parsing a tag": "the same, where the tag is nothing else",
}
"""What we refuse though Go reads it: part of our message, and why. No more, but for what `check` says of [] and {}."""


class Go:
    """Go's reader."""

    def __init__(self, program: GoProgram) -> None:
        self._program = program

    def read(self, text: bytes) -> list[Any] | None:
        """The documents' values as Go reads them, None if it refuses the text."""
        answer = self._program.ask(base64.b64encode(text))
        return None if "error" in answer else answer["documents"]


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    """Go's reader, built here."""
    with go_program("goyaml", tmp_path_factory) as program:
        yield Go(program)


def exact(value: Any) -> str:
    """A text that tells 1 from true and from 1.5, which == does not always."""
    return json.dumps(value, sort_keys=True)


def check(go: Go, text: bytes | str) -> None:
    """Fail unless both read the same values, both refuse, or we refuse for an intended reason."""
    data = text.encode() if isinstance(text, str) else text
    theirs = go.read(data)
    try:
        ours = [document.value for document in load_documents(data)]
    except ManifestError as error:
        # After a document that is just [] or {}, Go looks no further and drops the rest, whatever it is.
        blind = theirs is not None and any(value in ([], {}) for value in theirs)
        intended = blind or any(part in error.problem for part in INTENDED)
        if theirs is not None and not intended:
            pytest.fail(f"{data!r}: {error}, Go reads {theirs!r}")
        return
    assert theirs is not None, f"{data!r}: Go refuses, we read {ours!r}"
    assert exact(ours) == exact(theirs), f"{data!r}: Go reads {theirs!r}"


TABLES: dict[str, list[str]] = json.loads((SOURCES / "texts.json").read_text())
"""Texts worth asking about: scalars, the tags and places to try each with, and whole inputs."""

SCALARS, TAGS, PLACES = TABLES["scalars"], TABLES["tags"], TABLES["places"]


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("place", PLACES)
def test_every_known_scalar_in_every_place(go: Go, place: str, tag: str) -> None:
    """A scalar means the same to both, whatever its tag and wherever it stands."""
    for scalar in SCALARS:
        check(go, place.format(tag + scalar))


@pytest.mark.parametrize("text", TABLES["timestamps"])
def test_timestamps_by_tag(go: Go, text: str) -> None:
    """A tag !!timestamp is honoured for the same texts."""
    check(go, f"a: !!timestamp '{text}'")


@pytest.mark.parametrize("text", TABLES["binaries"])
def test_binary_by_tag(go: Go, text: str) -> None:
    """A tag !!binary gives the same text, or the same refusal."""
    check(go, f"a: !!binary {text}")
    check(go, f"a: !!binary |\n  {text}\n")
    check(go, f'!!binary "{text}": 1')


@pytest.mark.parametrize("text", TABLES["texts"], ids=lambda text: repr(text)[:50])
def test_every_known_text(go: Go, text: str) -> None:
    """Separators, directives, line ends, marks, JSON, anchors, merges, odd keys and tags read alike."""
    check(go, text)


odd = st.text(alphabet="0123456789_-+.:eExXobBnyYNtTfF~<= ", max_size=12)


@few
@given(text=odd, tag=st.sampled_from(TAGS), place=st.sampled_from(PLACES))
def test_odd_scalars(go: Go, text: str, tag: str, place: str) -> None:
    """Scalars made of what numbers, booleans and times are made of mean the same to both."""
    check(go, place.format(tag + text))


@few
@given(
    exponent=st.integers(-400, 400), digits=st.from_regex(r"\A[-+]?[0-9]{1,25}(\.[0-9]{0,25})?\Z"), as_key=st.booleans()
)
def test_numbers_of_any_size(go: Go, exponent: int, digits: str, as_key: bool) -> None:
    """Numbers come out digit for digit as from Go, as values and as keys."""
    number = f"{digits}e{exponent}" if exponent % 3 else digits
    check(go, f"{number}: 1" if as_key else f"- {number}\n")


@few
@example(text="\ufeff\ufeff\r0")
@example(text="\r{\u0085!")
@given(text=st.text(alphabet="ab:-?,[]{}#&*!|>'\"%@<\\ \n\t\r01~.\u00e9\u0085\u2028\ufeff", max_size=30))
def test_soups_of_indicators(go: Go, text: str) -> None:
    """Whatever YAML's signs are thrown together, both read it alike or neither does."""
    check(go, text)


LEAVES = st.sampled_from([*SCALARS, "&a 1", "*a", "&b x", "*b", "'q'", '"d"', "!!str 1", "!foo x"])
KEYS = st.sampled_from(
    ["a", "b", "<<", "1", "0x1", "1.5", "yes", "~", "'k'", "*a ", "&a k", "!!str 1", "c d", "2001-01-01", "[x]"]
)


def flow(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Flow collections, some anchored or tagged."""
    lists = st.lists(children, max_size=4).map(lambda items: f"[{', '.join(items)}]")
    pairs = st.lists(st.tuples(KEYS, children), max_size=4)
    maps = pairs.map(lambda found: "{" + ", ".join(f"{key}: {value}" for key, value in found) + "}")
    return st.tuples(st.sampled_from(["", "", "", "&a ", "&b ", "!foo ", "!!map "]), lists | maps).map("".join)


def block(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Block mappings and sequences of what stands on their lines or, indented, below."""
    heads = st.sampled_from(["", " ", " &a", " &b", " !!map", " |", " >-", " # c"])

    def below(head: str, child: str) -> str:
        return head + "\n" + "".join(f"  {line}\n" for line in child.splitlines())

    values = st.one_of(children.map(lambda child: f" {child}\n"), st.builds(below, heads, children))
    maps = st.lists(st.builds("{}:{}".format, KEYS, values), min_size=1, max_size=4).map("".join)
    lists = st.lists(values.map("-{}".format), min_size=1, max_size=4).map("".join)
    return maps | lists


DOCUMENTS = st.recursive(LEAVES, lambda children: flow(children) | block(children), max_leaves=12)


@few
@given(text=DOCUMENTS)
def test_structured_documents(go: Go, text: str) -> None:
    """Nested documents with anchors, aliases, merges, tags, odd keys, flow and block styles read alike."""
    check(go, text)


MERGES = st.lists(
    st.one_of(
        st.sampled_from(
            ["<<: *x", "<<: *y", "<<: [*x, *y]", "<<: [*y, {a: 5}]", "<<: {b: 6, c: 7}", "<<: *z", "<<: []"]
        ),
        st.builds("{}: {}".format, st.sampled_from("abcd"), st.integers(8, 9)),
    ),
    max_size=5,
)


@few
@given(outer=MERGES, inner=MERGES)
def test_merges_win_in_the_same_order(go: Go, outer: list[str], inner: list[str]) -> None:
    """What a merge sets, and what overrides what, is the same."""
    anchors = "- &x {a: 1, b: 2}\n- &y {b: 3, c: 4}\n- &z [1]\n"
    check(go, f"{anchors}- {{{', '.join([*outer, 'i: {' + ', '.join(inner) + '}'])}}}\n")


SEPARATORS = st.sampled_from(
    [
        "---",
        "---\n---",
        "--- # c",
        "---  ",
        "...",
        "...\n---",
        "# c\n---",
        "---\n# c",
        "--- x",
        "%YAML 1.1\n---",
        "---\ufeff",
    ]
)


@few
@given(
    parts=st.lists(st.tuples(SEPARATORS, DOCUMENTS | st.sampled_from(["", '{"a": 1}', "# c", "~"])), max_size=5),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_streams_of_documents(go: Go, parts: list[tuple[str, str]], ends: str) -> None:
    """Streams are cut into the same documents, with any separators and line ends."""
    text = "".join(f"{separator}\n{document}\n" for separator, document in parts)
    check(go, text.replace("\n", ends))


@few
@given(data=st.binary(max_size=20) | st.text(max_size=20).map(str.encode))
def test_bytes_of_any_kind(go: Go, data: bytes) -> None:
    """Bytes that may not be text at all are read alike or refused."""
    check(go, data)
    check(go, b"a: '" + data + b"'")
    check(go, b'{"a": "' + data + b'"}')


TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(SCALARS),
    odd,
    st.text(alphabet="a \t\n#:-'\"|>\r\u0085\u2028\ufeff", max_size=20),
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXTS, children, max_size=4),
    max_leaves=20,
)


@few
@given(value=JSON_VALUES)
def test_what_we_write_both_read_back(go: Go, value: Any) -> None:
    """Any JSON value that we write is the very same value to Go and to ourselves."""
    written = dump(value)
    expected = [] if value is None else [digest(value)]
    assert [digest(found) for found in go.read(written.encode()) or []] == expected, written
    assert [digest(document.value) for document in load_documents(written)] == expected, written


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [" + "x, " * 2000 + "]\nb: [" + "*a, " * 50 + "]",
        "a: &a [" + "x, " * 20 + "]\nb: [" + "*a, " * 200 + "]",
        "a: &a [x]\nb: [" + "*a, " * 2000 + "]",
        "\n".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9 if n else 'x'}]" for n in range(12)),
        "\n".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 3 if n else 'x'}]" for n in range(8)),
        "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 1000 + "]",
        "[" * 300 + "]" * 300,
        '{"a": ' * 300 + "1" + "}" * 300,
        '{"a": ' * 30_000 + "1" + "}" * 30_000,
        "[" * 20_000 + "]" * 20_000,
        "".join(" " * n + "a:\n" for n in range(300)),
        "\n".join(f"- &a{n} [{f'*a{n - 1}' if n else 'x'}]" for n in range(300)),
    ],
    ids=lambda text: f"{text[:10]!r}, {len(text)} characters",
)
def test_bombs(go: Go, text: str) -> None:
    """What grows or nests out of bounds is refused; what Go's bounds refuse, ours do too."""
    check(go, text)


def test_the_table_of_intended_differences_is_alive(go: Go) -> None:
    """Each intended difference has a text that Go reads and we refuse with that message."""
    examples: dict[str, str | bytes] = {
        "stands twice in one mapping": "a: 1\na: 2",
        "more follows after the document's end": "a: 1\n...\nb: 2",
        "aliases expand to more than": "a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 1000 + "]",
        "levels deep": "[" * 300 + "]" * 300,
        "not UTF-8": b'{"a": "\xff"}',
        "invalid Unicode character escape code": '{"a": "\\ud83d"}',
        "a byte order mark starts a line": "a: 1\n\ufeffb: 2",
        "can't be a key": "{}: 1",
        "found unexpected ':'": "[a:]",
        "a tag directly before ','": "[!foo,bar baz]",
        "found unknown escape character": r'a: "it\'s"',
        "while scanning a tag": "a: !!str,x 1",
        "while parsing a tag": "!![",
    }
    assert examples.keys() == INTENDED.keys()
    for part, each in examples.items():
        data = each.encode() if isinstance(each, str) else each
        assert go.read(data) is not None
        with pytest.raises(ManifestError, match=re.escape(part)):
            load_documents(data)
