"""What to leave out of a tree: patterns as in .gitignore, read as git reads them.

The last pattern that fits a path decides, `!` takes back; but what lies in a folder that is left out stays out, as in
git, which doesn't even look into it. Like git's, patterns are about bytes: `?` is one byte, not one letter.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Ignore"]

CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t\n\r",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
"""What git takes for these; its idea of a space has no form feed."""


class Pattern(NamedTuple):
    """One line: what it fits, and what that means."""

    fits: re.Pattern[bytes]
    whole_path: bool
    only_folders: bool
    taken_back: bool


class Never(Exception):
    """A pattern that fits nothing: an open bracket, a last backslash, an unknown class."""


class Ignore:
    """Patterns in their order; each text is a line, or several. What it decided of folders it remembers."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [
            pattern for text in lines for line in text.split("\n") if (pattern := _pattern(line.removesuffix("\r")))
        ]
        self._patterns.reverse()
        self._folders: dict[str, bool] = {"": False}

    def ignores(self, path: str) -> bool:
        """Tell whether a file, or a link, is left out; its path is relative and has / between its parts."""
        if not self._patterns:
            return False
        folder, _, _ = path.rpartition("/")
        return self._folder_ignored(folder) or self._decide(path, is_folder=False)

    def _folder_ignored(self, folder: str) -> bool:
        """Decide of a folder and those above it, from the top, without recursion: a path may have many parts."""
        unknown = []
        while folder not in self._folders:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        known = self._folders[folder]
        for one in reversed(unknown):
            known = self._folders[one] = known or self._decide(one, is_folder=True)
        return known

    def _decide(self, path: str, *, is_folder: bool) -> bool:
        whole = path.encode("utf-8", "surrogateescape")
        name = whole[whole.rfind(b"/") + 1 :]
        for pattern in self._patterns:
            if (is_folder or not pattern.only_folders) and pattern.fits.fullmatch(
                whole if pattern.whole_path else name
            ):
                return not pattern.taken_back
        return False


def _pattern(line: str) -> Pattern | None:
    """Read one line; None if it is empty, a comment or can't fit anything."""
    if line.startswith("#"):
        return None
    text = _without_trailing_spaces(line.encode("utf-8", "surrogateescape"))
    taken_back = text.startswith(b"!")
    text = text.removeprefix(b"!") if taken_back else text
    only_folders = text.endswith(b"/")
    text = text.removesuffix(b"/")
    whole_path = b"/" in text
    try:
        expression = _expression(text.removeprefix(b"/"))
    except Never:
        return None
    return Pattern(re.compile(expression, re.DOTALL), whole_path, only_folders, taken_back) if text else None


def _without_trailing_spaces(text: bytes) -> bytes:
    """Cut spaces at the end, but for one after a backslash."""
    kept = re.match(rb"(?:\\.|[^\\ ]| (?! *\Z))*\\?", text, re.DOTALL)
    assert kept is not None
    return kept[0]


def _expression(text: bytes) -> bytes:
    """A regular expression for a pattern.

    Whatever follows a star, up to the next, is taken at the first place where it fits, and no other is tried (an atomic
    group): if a later place would do, so does the first. The same goes for what is between two `**`. So no pattern,
    however spiteful, takes more than about the square of a path's length.
    """
    sections = [b""]  # one for each **
    piece = b""
    position = 0
    while position < len(text):
        if text[position : position + 1] != b"*":
            fitting, position = _one_byte(text, position)
            piece += fitting
            continue
        sections[-1] += piece
        piece = b""
        first = position
        while text[position : position + 1] == b"*":
            position += 1
        many = position - first > 1 and text[:first][-1:] in (b"", b"/")
        if many and text[position : position + 1] == b"/":
            sections.append(b"(?:[^/]+/)*?")
            position += 1
        elif many and (position == len(text) or text[position : position + 2] == rb"\/"):
            sections.append(b".*?")
        else:
            last = position
            while last < len(text) and text[last : last + 1] != b"*":
                fitting, last = _one_byte(text, last)
                piece += fitting
            piece = b"[^/]*?" + piece
            if last < len(text):
                piece = b"(?>" + piece + b")"
            position = last
    sections[-1] += piece
    first_section, *others = sections
    return first_section + b"".join(b"(?>" + section + b")" for section in others[:-1]) + b"".join(others[-1:])


def _one_byte(text: bytes, position: int) -> tuple[bytes, int]:
    """What fits the one byte that stands here in a pattern, and where the next starts."""
    char = text[position : position + 1]
    if char == b"?":
        return b"[^/]", position + 1
    if char == b"[":
        return _bracket(text, position + 1)
    if char == b"\\":
        position += 1
        char = text[position : position + 1]
        if not char:
            raise Never
    return re.escape(char), position + 1


def _bracket(text: bytes, position: int) -> tuple[bytes, int]:
    """A set of bytes, from after its opening bracket; a slash is never in it."""
    negated = text[position : position + 1] in (b"!", b"^")
    position += negated
    inside = b""
    start = position
    before: bytes | None = None  # what a range may begin with
    while (char := text[position : position + 1]) != b"]" or position == start:
        if char == b"[" and (named := re.compile(rb"\[:([^]]*):\]").match(text, position)):
            if named[1] not in CLASSES:
                raise Never
            inside += CLASSES[named[1]]
            position, before = named.end(), None
        elif char == b"-" and before is not None and text[position + 1 : position + 2] not in (b"]", b""):
            last, position = _member(text, position + 1)
            if before <= last:
                inside += re.escape(before) + b"-" + re.escape(last)
            before = None
        else:
            before, position = _member(text, position)
            inside += re.escape(before)
    if negated:
        return b"[^/" + inside + b"]", position + 1
    if not inside:
        raise Never
    return b"(?!/)[" + inside + b"]", position + 1


def _member(text: bytes, position: int) -> tuple[bytes, int]:
    """One byte of a set, escaped or not, and where the next starts."""
    position += text[position : position + 1] == b"\\"
    char = text[position : position + 1]
    if not char:
        raise Never
    return char, position + 1
