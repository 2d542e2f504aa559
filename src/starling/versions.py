"""Versions: the highest one among tag names in a range, as npm reads ranges and with what Flux's allow besides.

A tag counts if its whole name is a semantic version, with or without a leading `v`, as in Flux: `v1.2.3` does, `v1.2`
and `release-1` don't. In a range, a space or a comma means *and*, `||` means *or*; `=>`, `=<`, `~>` and `!=` are known.
Prereleases are npm's: one is in a range only if a bound names a prerelease of the very same three numbers, so that
`>=1.2.0-0` admits 1.2.0-rc.1 and 1.3.0, but not 1.3.0-rc.1. An exclusion (`!=`) admits none.

What npm and Flux (Masterminds/semver) understand in different ways is refused rather than guessed.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from starling.errors import InputError

__all__ = ["best", "is_version"]

LARGEST = 2**64 - 1
EXAMPLES = 'ranges look like ">=1.2.0 <2", "~1.4", "^1.4.2", "1.x", "1.2 - 1.4" or "1.x || >=2.1, !=2.3.0"'

_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRERELEASE = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_PRERELEASES = rf"(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*))?"
_BUILD = r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_TAG = re.compile(rf"v?({_NUMBER})\.({_NUMBER})\.({_NUMBER}){_PRERELEASES}{_BUILD}", re.ASCII)
_PART = rf"({_NUMBER}|[xX*])"
_TERM = re.compile(
    rf"(!=|[<>]=?|=[<>]?|~>?|\^)? *v?{_PART}(?:\.{_PART}(?:\.{_PART})?)?{_PRERELEASES}{_BUILD}(?=[ ,]|$)", re.ASCII
)
_JOINT = re.compile(r"( +- +)|( *, *| +)")

Identifier = tuple[int, int, str]
"""One part of a prerelease or of build metadata; numbers come before words."""

RELEASE: tuple[Identifier, ...] = ((2, 0, ""),)
"""What stands in a release for the prerelease: higher than any."""

LOWEST: tuple[Identifier, ...] = ((0, 0, ""),)
"""The prerelease `0`, before which there is none."""


class Version(NamedTuple):
    """A version, ordered by precedence; build metadata isn't part of it."""

    numbers: tuple[int, ...]
    prerelease: tuple[Identifier, ...] = RELEASE


class Bound(NamedTuple):
    """One comparison with a version."""

    holds: Callable[[Version, Version], bool]
    version: Version


EXACT: dict[str, Callable[[Version, Version], bool]] = {
    ">": Version.__gt__,
    ">=": Version.__ge__,
    "<": Version.__lt__,
    "<=": Version.__le__,
    "=": Version.__eq__,
}
"""What an operator means before a version of which nothing is left open."""

ANY = Bound(Version.__ge__, Version((0, 0, 0)))
"""No bound at all, as in npm: where another admits prereleases of 0.0.0, this doesn't keep them out."""


class Term(NamedTuple):
    """One part of a range as written: an operator and a version, of which the last numbers may be left open."""

    text: str
    operator: str
    numbers: tuple[int, ...]
    prerelease: tuple[Identifier, ...]


class Alternative(NamedTuple):
    """What a version must fulfil all of; a range is several of these."""

    bounds: tuple[Bound, ...]
    excluded: tuple[tuple[Bound, ...], ...]

    def admits(self, version: Version) -> bool:
        """Tell whether the version is in it."""
        if not _within(self.bounds, version) or any(_within(bounds, version) for bounds in self.excluded):
            return False
        return version.prerelease == RELEASE or any(
            bound.version.numbers == version.numbers and bound.version.prerelease != RELEASE for bound in self.bounds
        )


def is_version(name: str) -> bool:
    """Whether a name is a whole semantic version, with or without a `v`."""
    return _TAG.fullmatch(name) is not None


def best(names: Iterable[str], range_: str) -> str | None:
    """The tag with the highest version in the range; None if there is none. InputError if the range isn't one.

    Of tags whose versions differ in build metadata only, the one with the higher metadata is taken, compared like
    prereleases (none is lowest); of `1.2.3` and `v1.2.3`, the one with the `v`.
    """
    alternatives = _parse(range_)
    found: list[tuple[Version, tuple[Identifier, ...], str]] = []
    for name in names:
        match = _TAG.fullmatch(name)
        if match is None or any(len(number) > 20 or int(number) > LARGEST for number in match.group(1, 2, 3)):
            continue
        version = Version(tuple(map(int, match.group(1, 2, 3))), _identifiers(match[4], RELEASE))
        if any(alternative.admits(version) for alternative in alternatives):
            found.append((version, _identifiers(match[5], ()), name))
    return max(found)[2] if found else None


def _identifiers(text: str | None, without: tuple[Identifier, ...]) -> tuple[Identifier, ...]:
    if text is None:
        return without
    return tuple((0, int(part), part) if _is_number(part) else (1, 0, part) for part in text.split("."))


def _is_number(part: str) -> bool:
    return part.isdecimal() and len(part) <= 4000  # beyond that Python reads none; metadata may be any digits


def _within(bounds: Iterable[Bound], version: Version) -> bool:
    return all(bound.holds(version, bound.version) for bound in bounds)


def _parse(range_: str) -> list[Alternative]:
    try:
        return [_alternative(part.strip(" ")) for part in range_.split("||")]
    except ValueError as error:
        raise InputError(f'"{range_}" isn\'t a range of versions: {error}', hint=EXAMPLES) from None


def _alternative(text: str) -> Alternative:
    """Read what stands between two `||`."""
    bounds: list[Bound] = []
    excluded: list[tuple[Bound, ...]] = []
    for term in _terms(text):
        if not term.numbers and term.operator not in ("", "=", ">=", "~"):
            raise ValueError(f'"{text}" compares with any version')
        if term.operator == "!=":
            if len(term.numbers) < 3 and term.prerelease != RELEASE:
                raise ValueError(f'"{term.text}" leaves numbers open and names a prerelease')
            excluded.append(tuple(_bounds(term._replace(operator="="))))
        else:
            bounds += (bound for bound in _bounds(term) if bound != ANY)
    return Alternative(tuple(bounds), tuple(excluded))


def _terms(text: str) -> Iterable[Term]:
    """Cut an alternative into its terms; `a - b` becomes >=a and <=b."""
    position = 0
    low: Term | None = None
    while True:
        match = _TERM.match(text, position)
        if match is None:
            raise ValueError(f'"{text[position:]}" doesn\'t start with a version' if text else "a part of it is empty")
        term = _term(match)
        position = match.end()
        joint = _JOINT.match(text, position)
        if joint and joint[1]:
            if low or term.operator:
                raise ValueError(f'" - " stands between two plain versions, not as in "{text}"')
            low = term
        elif low:
            if term.operator:
                raise ValueError(f'" - " stands between two plain versions, not as in "{text}"')
            yield low._replace(operator=">=")
            yield term._replace(operator="<=")
            low = None
        else:
            yield term
        if joint is None:
            return
        position = joint.end()


def _term(match: re.Match[str]) -> Term:
    """One term, unless it is among those that npm and Flux read differently."""
    text = match[0]
    operator, *parts, prerelease, _ = match.groups()
    written = [part for part in parts if part is not None]
    numbers = tuple(int(part) for part in written if part.isdecimal())
    if any(number > LARGEST for number in numbers):
        raise ValueError(f'"{text}" has a number larger than a version can have')
    if not all(part.isdecimal() for part in written[: len(numbers)]):
        raise ValueError(f'"{text}" has a number after a wildcard')
    if prerelease is not None and len(written) > len(numbers):
        raise ValueError(f'"{text}" has a wildcard and names a prerelease')
    operator = {"=>": ">=", "=<": "<=", "~>": "~", None: ""}.get(operator, operator)
    return Term(text, operator, numbers, _identifiers(prerelease, RELEASE))


def _bounds(term: Term) -> list[Bound]:
    """What a term means; where numbers are left open, the lowest or the first beyond them."""
    numbers = term.numbers
    operator = (term.operator or "=") if numbers else ">="
    low = Version((*numbers, 0, 0, 0)[:3], term.prerelease)
    if operator in EXACT and len(numbers) == 3:
        return [Bound(EXACT[operator], low)]
    match operator:
        case ">=":
            return [Bound(Version.__ge__, low)]
        case ">":
            return [Bound(Version.__ge__, _after(numbers)._replace(prerelease=RELEASE))]
        case "<":
            return [Bound(Version.__lt__, low if low.prerelease != RELEASE else low._replace(prerelease=LOWEST))]
        case "<=":
            return [Bound(Version.__lt__, _after(numbers))]
    kept = numbers
    if operator == "~":
        kept = numbers[:2]
    elif operator == "^":  # up to the first number that isn't 0
        kept = numbers[: next((place for place, number in enumerate(numbers, 1) if number), len(numbers))]
    return [Bound(Version.__ge__, low), Bound(Version.__lt__, _after(kept))]


def _after(numbers: tuple[int, ...]) -> Version:
    """The first of all versions, prereleases among them, that come after those that start with these numbers."""
    return Version((*numbers[:-1], numbers[-1] + 1, 0, 0)[:3], LOWEST)
