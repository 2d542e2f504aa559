"""Our substitution against Flux's: the same text or object, or both refuse, over tables and generated templates.

One round is about three thousand questions in all.
"""

import json
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from starling.objects import Manifest, ManifestError, load_documents
from starling.rendering.envsubst import expand
from starling.rendering.errors import SubstitutionError
from starling.rendering.substitution import substitute
from tests.integration.go_programs import GoProgram, go_program
from tests.rounds import ROUNDS

pytestmark = pytest.mark.rounds
SOURCES = Path(__file__).parent.parent / "goenvsubst"

few = settings(max_examples=200 * ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))


class Flux:
    """Flux's substitution."""

    def __init__(self, program: GoProgram) -> None:
        self._program = program

    def ask(self, **question: Any) -> dict[str, Any]:
        """What the program says."""
        answer: dict[str, Any] = self._program.ask(question)
        return answer

    def expand(self, text: str, variables: dict[str, str], *, strict: bool) -> str | None:
        """The text that comes out, None if it is refused."""
        answer = self.ask(text=text, variables=variables, strict=strict)
        return None if "error" in answer else answer["text"]


@pytest.fixture(scope="module")
def flux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    """Flux's substitution, built here."""
    with go_program("goenvsubst", tmp_path_factory) as program:
        yield Flux(program)


def ours(text: str, variables: dict[str, str], *, strict: bool) -> str | None:
    """What we make of it, None if we refuse."""
    try:
        return expand(text, variables, strict=strict)
    except SubstitutionError:
        return None


def check(flux: Flux, text: str, variables: dict[str, str]) -> None:
    """Fail unless both give the same text or both refuse, strict or not."""
    for strict in (False, True):
        theirs = flux.expand(text, variables, strict=strict)
        assert ours(text, variables, strict=strict) == theirs, (text, variables, strict)


NAMES = st.sampled_from(["A", "B", "EMPTY", "UNSET", "N", "_x1"])
VALUES = st.text(alphabet="aabbc.AB/-*?[]\\^ 01${}", max_size=10) | st.sampled_from(["", "a.b.c", "/usr/lib/x.tar.gz"])
VARIABLES = st.fixed_dictionaries(
    {"A": VALUES, "B": VALUES, "EMPTY": st.just(""), "N": st.integers(-12, 12).map(str)}, optional={"_x1": VALUES}
)

SIGNS = [
    *["${", "${", "${", "}", "}", "$", "$$", "A", "B", "N", "EMPTY", "UNSET", "1x", ":", ":", ":-", ":=", ":?", ":+"],
    *["=", "-", "+", "?", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", "\\", "\\/", "\\\\", "*"],
    *["a", "b", ".", "0", "3", "-2", " ", "\n", "'", '"', "[a-c]", "{", "\u00e9", "\u0663", "\u00b2"],
]


@few
@given(signs=st.lists(st.sampled_from(SIGNS), max_size=14), variables=VARIABLES)
def test_soups_of_signs(flux: Flux, signs: list[str], variables: dict[str, str]) -> None:
    """Whatever signs of the language are thrown together, both make the same of it or neither does."""
    check(flux, "".join(signs), variables)


@few
@given(inside=st.lists(st.sampled_from(SIGNS), max_size=8), name=NAMES, variables=VARIABLES)
def test_soups_within_braces(flux: Flux, inside: list[str], name: str, variables: dict[str, str]) -> None:
    """The same for what follows a name."""
    check(flux, f"${{{name}{''.join(inside)}}}", variables)


GLOBS = st.lists(
    st.sampled_from([*"ab.*?/-*]", "\\*", "\\", "[ab]", "[^a]", "[a-c]", "[", "[c-a]", "]ba["]), max_size=5
)
LITERALS = st.text(alphabet="ab.01-/ \\$", max_size=4)


def expressions(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions as people write them, with any word where one may stand."""
    numbers = st.integers(-12, 12).map(str) | words
    defaults = st.sampled_from([":-", ":=", ":?", ":+", "=", "-"])
    replacing = st.sampled_from(["/", "//", "/#", "/%"])
    trimming = st.sampled_from(["#", "##", "%", "%%"])
    return st.one_of(
        st.builds("${{{}}}".format, NAMES),
        st.builds("${{#{}}}".format, NAMES),
        st.builds("${{{}{}}}".format, NAMES, st.sampled_from(["^", "^^", ",", ",,", "^,"])),
        st.builds("${{{}{}{}{}}}".format, NAMES, defaults, words, words),
        st.builds("${{{}:{}}}".format, NAMES, numbers),
        st.builds("${{{}:{}:{}}}".format, NAMES, numbers, numbers),
        st.builds("${{{}{}{}}}".format, NAMES, trimming, GLOBS.map("".join) | words),
        st.builds("${{{}{}{}/{}}}".format, NAMES, replacing, words, words),
    )


TEMPLATES = st.recursive(LITERALS, expressions, max_leaves=6)


@few
@given(texts=st.lists(TEMPLATES, max_size=3), variables=VARIABLES)
def test_expressions_in_expressions(flux: Flux, texts: list[str], variables: dict[str, str]) -> None:
    """Whole expressions, nested where they may be and where not, come out the same."""
    check(flux, "".join(texts), variables)


@few
@given(glob=GLOBS.map("".join), value=st.text(alphabet="abc.*/[]-\\\n", max_size=9), operator=st.sampled_from("#%"))
@example(glob="*", value="ab", operator="#")
@example(glob="[^]", value="^", operator="#")
def test_globs(flux: Flux, glob: str, value: str, operator: str) -> None:
    """Starts and ends that match a glob, shortest and longest, are the same ones."""
    for times in (1, 2):
        check(flux, f"${{A{operator * times}${{G}}}}", {"A": value, "G": glob})


@few
@given(
    value=st.text(alphabet="a\u00e9\u65e5\U0001f600\ufb01\u0130b", max_size=6),
    word=st.text(alphabet="a\u00e9\u65e5b", min_size=1, max_size=2),
    template=st.sampled_from(
        [
            *[
                "${#A}",
                "${A/#W/x}",
                "${A//W/x}",
                "${A%W}",
                "${A#*W}",
                "${A##*W}",
                "${A%%W*}",
                "${A^^}",
                "${A^}",
                "${A,}",
            ],
            *["${A:2}", "${A:1:2}", "${A:0:3}", "${A//${EMPTY}/W}", "${A:-W}", "W${A}W"],
        ]
    ),
)
def test_text_beyond_ascii(flux: Flux, value: str, word: str, template: str) -> None:
    """Lengths and offsets count bytes, all else goes by characters; half a character is refused."""
    check(flux, template.replace("W", word), {"A": value})


KNOWN: list[str] = json.loads((SOURCES / "texts.json").read_text())
"""Templates worth asking about: the corners of the language."""


@pytest.mark.parametrize("value", ["", "a", "ab", "aabb", "a/b/a", "]a[b", "a*b\\", "${x}$$", "a\u00e9", "^-a"])
def test_every_known_text(flux: Flux, value: str) -> None:
    """The corners of the language, each with values that meet them."""
    for template in KNOWN:
        for number in ("-1", "1", "x"):
            check(flux, template, {"A": value, "B": "b", "EMPTY": "", "N": number})


def test_every_letter_changes_case_alike(flux: Flux) -> None:
    """All of Unicode, one by one: no letter becomes two, as they do in Python."""
    known = [
        each
        for each in map(chr, range(ord(" "), sys.maxunicode))
        if unicodedata.category(each) not in {"Cs", "Cn", "Co"}
    ]
    value = "\n".join(known)
    for template in ("${A^^}", "${A,,}"):
        theirs = flux.expand(template, {"A": value}, strict=True)
        assert theirs is not None
        mine = expand(template, {"A": value}).split("\n")
        different = [(a, b, c) for a, b, c in zip(known, mine, theirs.split("\n"), strict=True) if b != c]
        assert different == []


@pytest.mark.parametrize(
    ("template", "value", "theirs", "mine"),
    [
        ("${A#?}", "\u00e9a", None, "a"),
        ("${A%?}", "a\u00e9", "a\ufffd", "a"),
        ("${A#*}", "\u00e9a", None, "a"),
        ("${A##*??}", "\u65e5", "", "\u65e5"),
        ("a\0b", "", "a", None),
        ("${A:1}x${A:0:1}", "\u00e9", None, None),
        ("${A:0:1}${A:1}", "\u00e9", "\u00e9", None),
        ("${A:1:9223372036854775807}", "ab", None, "b"),
        ("${A:-" * 50 + "x" + "}" * 50, "", "x", None),
    ],
)
def test_the_intended_differences_are_these(
    flux: Flux, template: str, value: str, theirs: str | None, mine: str | None
) -> None:
    """Where Flux cuts characters in half, stops at a NUL, or overflows, we don't."""
    assert flux.expand(template, {"A": value}, strict=False) == theirs
    assert ours(template, {"A": value}, strict=False) == mine


def manifest(spec: Any) -> Manifest:
    """An object with this at its end, where nothing comes behind that a value could swallow."""
    return Manifest({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})


def is_refused(text: str) -> bool:
    """Whether our reader refuses this YAML, for reasons that its own tests hold it to."""
    try:
        load_documents(text)
    except ManifestError:
        return True
    return False


def as_large(before: Any, after: Any) -> bool:
    """Whether each list and mapping still is one, of as many parts; what was neither may be anything."""
    match before:
        case [*items]:
            return isinstance(after, list) and len(items) == len(after) and all(map(as_large, items, after))
        case {**fields}:
            same = isinstance(after, dict) and len(fields) == len(after)
            return same and all(as_large(value, after[key]) for key, value in fields.items() if key in after)
    return True


def keeps_its_shape(spec: Any, after: dict[str, Any]) -> bool:
    """Whether a mapping of one key still is one, with its value: in Flux a key can make it a list, or a comment.

    And all lists are as long, all mappings as large: there a value that is a quote swallows what follows.
    """
    if not as_large(spec, after["spec"]):
        return False
    match spec, after["spec"]:
        case {**before}, {**found} if list(before.values()) == ["v"]:
            return list(found.values()) == ["v"]
        case {**before}, _:
            return list(before.values()) != ["v"]
    return True


def check_object(flux: Flux, spec: Any, variables: dict[str, str]) -> None:
    """Fail unless both make the same object, both refuse, or we refuse what our reader does, or what is no key."""
    before = manifest(spec)
    for strict in (False, True):
        answer = flux.ask(object=before.content, variables=variables, strict=strict)
        try:
            after = substitute([before], variables, strict=strict)[0].content
        except SubstitutionError as error:
            if "error" not in answer and not is_refused(answer["text"]) and keeps_its_shape(spec, answer["object"]):
                pytest.fail(f"{spec!r}, {variables!r}: {error}, Flux reads {answer['object']!r}")
        else:
            assert "error" not in answer, (spec, variables, after, answer)
            assert json.dumps(after, sort_keys=True) == json.dumps(answer["object"], sort_keys=True), answer["text"]


READ_BY_YAML = st.sampled_from(
    [
        *[
            "1",
            "-1",
            "1.50",
            "1e3",
            "0x1f",
            "010",
            "yes",
            "off",
            "Null",
            "~",
            "",
            "true",
            "2001-01-01",
            "12:30",
            ".inf",
        ],
        *[
            '"1"',
            "'yes'",
            '"',
            "'",
            "{a: b}",
            "[1, x]",
            '{"a": [1]}',
            "a: b",
            "- a",
            "# c",
            "a # c",
            "|",
            ">-",
            "!!str 1",
        ],
        *[
            "&a x",
            "*a",
            "%x",
            "@x",
            "x\ny",
            "a\n---\nb",
            "\\d+",
            "\\n",
            "\t",
            " x ",
            ",",
            "? a",
            "x: ",
            "a:b",
            "\u00e9",
        ],
    ]
)
SPOKEN = READ_BY_YAML | st.text(alphabet="ab1 :#'\"\\{}[],&*!|>-?%@\n\u00e9", max_size=6)
PIECES = st.sampled_from(["${A}", "${B}", "${A}", "${UNSET}", "${A:-1}", "$$", "$${A}", "${A^^}", "${B:0:1}"])
AROUND = st.text(alphabet="ab1 :#'\"\\{}[],&*!|>-?%@\n\t\u00e9\U0001f600$", max_size=3)
TEXTS = st.lists(PIECES | PIECES | AROUND, min_size=1, max_size=4).map("".join)


@few
@given(
    text=TEXTS,
    place=st.sampled_from(["value", "item", "key", "deep"]),
    variables=st.fixed_dictionaries({"A": SPOKEN, "B": SPOKEN}),
)
def test_values_are_read_as_yaml_where_they_stand(flux: Flux, text: str, place: str, variables: dict[str, str]) -> None:
    """Numbers, booleans, quotes, mappings, comments and nonsense come out of an object's text as in Flux."""
    specs: dict[str, Any] = {"value": {"z": text}, "item": [text], "key": {text: "v"}, "deep": [{"a": [[text]]}]}
    check_object(flux, specs[place], variables)


PLAIN = st.sampled_from(["1", "yes", "x", "a-b", '"1"', "{a: b}", "[]", "\u00e9"])
OTHERS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(alphabet="ab1 :#'\"\n-.$", max_size=8)
SPECS = st.recursive(
    OTHERS | st.lists(PIECES | st.text(alphabet="ab1.-/ ", max_size=40), min_size=1, max_size=6).map("".join),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text("abc", min_size=1), children, max_size=4),
    max_leaves=15,
)


@few
@given(spec=SPECS, variables=st.fixed_dictionaries({"A": PLAIN, "B": PLAIN}))
def test_whole_objects(flux: Flux, spec: Any, variables: dict[str, str]) -> None:
    """Objects with many fields, some with expressions, long lines among them, are the same ones afterwards."""
    check_object(flux, spec, variables)


@pytest.mark.parametrize(
    ("spec", "values", "theirs"),
    [
        ({"a": "${A:-x", "b": "y}"}, ["1"], {"a": 1}),
        ({"a": "${A}", "b": 'c"'}, ['"'], {"a": " b: c"}),
        ({"a": "${A}", "b": "${B}"}, ['"', '"'], {"a": " b: "}),
        ({"a": "${A}", "b": "${B}"}, ["[1, ", "]"], {"a": [1, {"b": None}]}),
        ({"a": "${A}", "b": "x"}, ["1\r  c: 2"], {"a": 1, "b": "x", "c": 2}),
        ({"a": "${A}", "b": "x"}, ["1\r---\rkind: Secret"], {"a": 1}),
        ({"a": "${A}", "b": "${B}"}, ["&x 1", "*x"], {"a": 1, "b": 1}),
    ],
    ids=["expression over two fields", "quote", "two quotes", "brackets", "new field", "new document", "anchor"],
)
def test_no_value_reaches_beyond_its_field(flux: Flux, spec: dict[str, str], values: list[str], theirs: Any) -> None:
    """What Flux reads across fields, and so changes one by a value meant for another, we refuse."""
    variables = dict(zip("AB", values, strict=False))
    answer = flux.ask(object=manifest(spec).content, variables=variables, strict=False)
    assert answer.get("object", {}).get("spec") == theirs
    with pytest.raises(SubstitutionError):
        substitute([manifest(spec)], variables)
