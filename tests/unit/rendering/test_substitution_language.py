"""Expressions in texts: what each operator does, what stays text, what is refused, and that nothing gets out of hand.

Flux's own module is asked about far more in tests/integration/rendering; these are the rules that people rely on.
"""

import time

import pytest

from starling.rendering.envsubst import LONGEST, NESTING, expand, mentioned
from starling.rendering.errors import SubstitutionError, VariableNotSet

VARIABLES = {"V": "hello.World.txt", "P": "/usr/lib/x", "EMPTY": "", "N": "-3", "U": "gr\u00fc\u00dfe"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ${V} b", "a hello.World.txt b"),
        ("${UNSET}|${EMPTY}", "|"),
        ("${UNSET:-x y}|${EMPTY:-x}|${V:-x}", "x y|x|hello.World.txt"),
        ("${UNSET:=x}|${EMPTY:=x}", "x|x"),
        ("${UNSET=x}|${EMPTY=x}|${UNSET=}", "x|x|"),
        ("${UNSET:-${EMPTY:-a${P}b}c}", "a/usr/lib/xbc"),
        ("${UNSET:-$${V}}", "$hello.World.txt"),
        ("${#V}|${#UNSET}|${#U}", "15|0|7"),
        ("${V:6}|${V:6:5}|${V:0:-4}|${V:${N}}|${V:99}", "World.txt|World|hello.World|txt|"),
        ("${V:x}|${V: -3}|${V:1:x}", "hello.World.txt|hello.World.txt|hello.World.txt"),
        ("${V^}|${V^^}|${P^}", "Hello.World.txt|HELLO.WORLD.TXT|/usr/lib/x"),
        ("${V,}|${V,,}|${U^^}", "hello.World.txt|hello.world.txt|GR\u00dc\u00dfE"),
        ("${V#*.}|${V##*.}|${V#x}", "World.txt|txt|hello.World.txt"),
        ("${V%.*}|${V%%.*}|${P%/*}", "hello.World|hello|/usr/lib"),
        ("${V#h?l}|${V#[a-h]}|${V#[^h]}", "lo.World.txt|ello.World.txt|hello.World.txt"),
        ("${V/o/0}|${V//o/0}|${V//o/}", "hell0.World.txt|hell0.W0rld.txt|hell.Wrld.txt"),
        ("${V/#hello/x}|${V/#World/x}|${V/%txt/md}", "x.World.txt|hello.World.txt|hello.World.md"),
        (r"${P//\//-}|${P/\/usr/}", "-usr-lib-x|/lib/x"),
        ("$V $(V) $ {V} $", "$V $(V) $ {V} $"),
        ("$${V} $$V $$$$ $$${V}", "${V} $V $$ $hello.World.txt"),
        (r"\${EMPTY} \\", "\\ \\\\"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    """Each operator gives what Flux gives."""
    assert expand(text, VARIABLES) == expected


@pytest.mark.parametrize(
    "text",
    [
        *["${", "${}", "${V", "${V:-x", "${V-x}", "${V+x}", "${V?x}", "${V x}", "${ V}", "${V:}", "${V#}", "${V/a}"],
        *["${V.x}", "${V/a/b", "${#}", "${#V:1}", "${V^^^}", "${V#a${P}}", "${V:1:}", "a ${$V}", "${V:1${N}}"],
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    """An expression that can't be read is an error with a way out, never passed on as it is."""
    with pytest.raises(SubstitutionError) as caught:
        expand(text, VARIABLES)
    assert "$$" in str(caught.value.hint)


def test_an_error_says_the_line_and_how_a_default_is_written() -> None:
    """Long scripts have many lines, and bash's other way to write a default is what people try."""
    with pytest.raises(SubstitutionError, match=r"line 3: .* follows \$\{V") as caught:
        expand("a\nb\n${V-x}\nc", VARIABLES)
    assert "${V:-word}" in str(caught.value.hint)


@pytest.mark.parametrize(
    "text", ["${X}", "${#X}", "${X^^}", "${X:1}", "${X#a}", "${X/a/b}", "${V:-${X}}", "${V/a/${X}}"]
)
def test_strict_wants_a_value(text: str) -> None:
    """Strict, whatever reads a variable without a default names it; an empty value is a value."""
    with pytest.raises(VariableNotSet, match="X is not set") as caught:
        expand(text, VARIABLES, strict=True)
    assert caught.value.variable == "X"
    assert expand(text, {**VARIABLES, "X": ""}, strict=True) == expand(text, VARIABLES)


@pytest.mark.parametrize("text", ["${X:-d}", "${X:=d}", "${X=d}", "${X:-${Y:-d}}"])
def test_strict_takes_a_default(text: str) -> None:
    """Who gives a default has thought of the value being missing."""
    assert expand(text, {}, strict=True) == "d"


def test_a_character_is_not_cut_in_half() -> None:
    """Offsets count bytes, as in Flux; a result that is no text is refused without telling the value."""
    assert expand("${U:2:2}", VARIABLES) == "\u00fc"
    with pytest.raises(SubstitutionError, match=r"\$\{U:…\} cuts a character") as caught:
        expand("${U:3}", VARIABLES)
    assert "gr\u00fc" not in str(caught.value)


def test_mentioned_variables() -> None:
    """Every name in a text, nested ones too, once."""
    assert mentioned("${A} $B ${C:-${D}} $${E} ${A/x/${F}}") == ["A", "C", "D", "F"]


def test_nesting_is_bounded() -> None:
    """As deep as anyone writes, and no deeper."""
    assert expand("${X:-" * NESTING + "x" + "}" * NESTING, {}) == "x"
    with pytest.raises(SubstitutionError, match="nested more than"):
        expand("${X:-" * 100_000 + "x" + "}" * 100_000, {})


@pytest.mark.parametrize(
    "text",
    ["${A}" * (LONGEST // 1000 + 1), "${A//a/${A//a/${A//a/${A}}}}}", "${A:-${A//a/${A//a/${A}}}}"],
    ids=["many", "nested", "unused"],
)
def test_results_are_bounded(text: str) -> None:
    """Small texts that would come to gigabytes are refused before they do."""
    with pytest.raises(SubstitutionError, match="longer than"):
        expand(text, {"A": "a" * 1000})


def test_hostile_globs_take_no_time() -> None:
    """Stars without end on a long value end soon, found or not."""
    started = time.process_time()
    for operator in ("#", "##", "%", "%%"):
        value = "a" * 20_000
        assert expand(f"${{A{operator}*a*a*a*a*a*a*a*a*b*c}}", {"A": value}) == value
    assert time.process_time() - started < 2
