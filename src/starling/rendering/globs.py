r"""Globs as envsubst has them: where a start of a text that matches one ends.

`*` matches any text, `?` any character, `[a-z\-]` and `[^…]` one of a class, `\c` the character c; all else itself.
A glob is cut at its stars first, except for those between `[` and `]`; a part that can't be read (an empty or
unfinished class, a lone backslash at the end) matches nothing, and so the glob doesn't either.

Each part but the last is taken where it first fits, which no other choice can better; so the time is bounded by the
product of the lengths, whatever the glob.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

__all__ = ["prefix_end"]

_CHARACTER: Final = r"(?:\\.|[^\\\]-])"
_RANGE: Final = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?", re.DOTALL)
_CLASS: Final = re.compile(rf"\[(\^?+)((?:{_CHARACTER}(?:-{_CHARACTER})?)+)\]", re.DOTALL)


def prefix_end(glob: str, text: str, *, longest: bool) -> int:
    """The length of the shortest or longest start of the text that the glob matches, at least 1; 0 if there is none."""
    if not glob or not text:
        return 0
    pattern = _compiled(glob, longest)
    found = pattern.match(text) if pattern else None
    return found.end() if found else 0


@lru_cache(maxsize=256)
def _compiled(glob: str, longest: bool) -> re.Pattern[str] | None:
    """A regular expression that matches just that start, None if nothing can match."""
    if not glob.strip("*"):
        return re.compile(".+" if longest else ".", re.DOTALL)
    parts = list(_parts(glob))
    pattern = ""
    for number, (star, part) in enumerate(parts, 1):
        if (fixed := _fixed(part)) is None:
            return None
        far = longest and number == len(parts)
        skipped = (".*" if far else ".*?") if star and (part or far) else ""
        pattern += f"(?>{skipped}{fixed})"
    return re.compile(pattern, re.DOTALL)


def _parts(glob: str) -> Iterator[tuple[bool, str]]:
    """The glob cut at its stars: whether a star comes before, and a part without any."""
    at = 0
    while at < len(glob):
        start = at
        while glob.startswith("*", at):
            at += 1
        star, start, in_class = at > start, at, False
        while at < len(glob) and (in_class or glob[at] != "*"):
            in_class = glob[at] == "[" or (in_class and glob[at] != "]")
            at += 2 if glob[at] == "\\" else 1
        yield star, glob[start:at]


def _fixed(part: str) -> str | None:
    """A part without stars as a regular expression, None if it can't be read."""
    pattern, at = "", 0
    while at < len(part):
        if part[at] == "[":
            if not (found := _CLASS.match(part, at)):
                return None
            pattern += _class(found[2], negated=bool(found[1]))
            at = found.end()
        elif part[at] == "?":
            pattern += "."
            at += 1
        else:
            at += part[at] == "\\"
            if at == len(part):
                return None
            pattern += re.escape(part[at])
            at += 1
    return pattern


def _class(ranges: str, *, negated: bool) -> str:
    pattern = ""
    for found in _RANGE.finditer(ranges):
        low = found[1][-1]
        high = (found[2] or low)[-1]
        if low <= high:
            pattern += f"{re.escape(low)}-{re.escape(high)}"
    if not pattern:  # all ranges are the wrong way round
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{pattern}]"
