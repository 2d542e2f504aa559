"""The rules of a .helmignore, as Helm reads them: nearly, but not quite, those of a .gitignore.

Patterns are those of Go's filepath.Match, with its ways: one that is broken is only noticed where the text before
matches, so Helm takes many that are, and they match nothing.
"""

from dataclasses import dataclass
from typing import Final

from starling.errors import InputError

__all__ = ["Rules", "matches", "parse_rules"]

DEFAULT: Final = "templates/.?*"
"""What Helm always leaves out, after the rules of the file."""
_PROBE: Final = "abc"
"""What Helm tries a rule on to see whether it can be read."""


class _BadPattern(ValueError):
    """A pattern that is broken where it was looked at."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: str
    negated: bool
    folders_only: bool
    anywhere: bool
    """Is only the last part of a path looked at?"""

    def applies(self, path: str) -> bool:
        try:
            return matches(self.pattern, path.rpartition("/")[2] if self.anywhere else path)
        except _BadPattern:
            return False


@dataclass(frozen=True, slots=True)
class Rules:
    """What a chart's folder holds besides the chart."""

    rules: tuple[_Rule, ...]

    def ignore(self, path: str, *, folder: bool) -> bool:
        """Is this left out, and for a folder all that is in it? The first rule that applies decides.

        A negated rule leaves out whatever it doesn't match; that is what Helm does, and nobody expects.
        """
        for rule in self.rules:
            if rule.negated:
                if (rule.folders_only and not folder) or not rule.applies(path):
                    return True
            elif (folder or not rule.folders_only) and rule.applies(path):
                return True
        return False


def parse_rules(text: str, called: str = ".helmignore") -> Rules:
    """The rules of a .helmignore; InputError for what Helm refuses."""
    lines = (line.strip() for line in [*text.removeprefix("\ufeff").split("\n"), DEFAULT])
    return Rules(tuple(_rule(line, called) for line in lines if line and not line.startswith("#")))


def _rule(text: str, called: str) -> _Rule:
    if "**" in text:
        raise InputError(f"{called}: {text}: helm knows no **", hint="* stops at a /; give a rule for each level")
    try:
        matches(text, _PROBE)
    except _BadPattern as error:
        hint = "a [ is closed by ], and a backslash isn't last"
        raise InputError(f"{called}: {text} is no pattern", hint=hint) from error
    rule = text.removeprefix("!")
    folders_only = rule.endswith("/")
    rule = rule.removesuffix("/")
    return _Rule(rule.lstrip("/"), text.startswith("!"), folders_only, "/" not in rule)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is of a pattern: * and ? stop at a /, [a-z] and [^a-z] don't, a backslash takes the next as it is.

    _BadPattern if the pattern is broken, as far as it was looked at.
    """
    while pattern:
        star, chunk, pattern = _chunk(pattern)
        if star and not chunk:
            return "/" not in name
        # Without a star the chunk stands here; with one, here or after any of what follows up to the next /.
        reach = len(name.partition("/")[0]) if star else 0
        for skipped in range(reach + 1):
            rest = _match_chunk(chunk, name[skipped:])
            if rest is not None and (pattern or not rest):
                name = rest
                break
        else:
            return False
    return not name


def _chunk(pattern: str) -> tuple[bool, str, str]:
    """Whether it starts with stars, what stands up to the next star, and the rest."""
    without = pattern.lstrip("*")
    star, at, in_class = without != pattern, 0, False
    while at < len(without):
        sign = without[at]
        if sign == "\\":
            at += 1
        elif sign in "[]":
            in_class = sign == "["
        elif sign == "*" and not in_class:
            return star, without[:at], without[at:]
        at += 1
    return star, without, ""


def _match_chunk(chunk: str, name: str) -> str | None:
    """What is left of the name after the chunk, None if that isn't how it begins; all of the chunk is checked."""
    failed, at = False, 0
    while at < len(chunk):
        failed = failed or not name
        sign = chunk[at]
        at += 1
        if sign == "[":
            within, at = _class(chunk, at, name[:1])
            failed = failed or not within
        elif sign == "?":
            failed = failed or name[0] == "/"
        else:
            if sign == "\\":
                sign, at = _literal(chunk, at), at + 1
            failed = failed or name[0] != sign
        name = name[1:]
    return None if failed else name


def _class(chunk: str, at: int, sign: str) -> tuple[bool, int]:
    """Whether a sign is of the class that is opened before this place, and where it ends."""
    negated = chunk[at : at + 1] == "^"
    at += negated
    found, start = False, at
    while at == start or _literal(chunk, at) != "]":
        low, at = _member(chunk, at)
        high = low
        if _literal(chunk, at) == "-":
            high, at = _member(chunk, at + 1)
        found = found or low <= sign <= high
    return found != negated, at + 1


def _member(chunk: str, at: int) -> tuple[str, int]:
    sign = _literal(chunk, at)
    if sign in "-]":
        raise _BadPattern(chunk)
    return (_literal(chunk, at + 1), at + 2) if sign == "\\" else (sign, at + 1)


def _literal(chunk: str, at: int) -> str:
    if at >= len(chunk):
        raise _BadPattern(chunk)
    return chunk[at]
