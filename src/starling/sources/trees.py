"""Trees: the files of one version as a list of names and contents' digests, and what no tree of ours may hold.

All pure. A tree's listing is one record for each file, in the order of the paths' bytes, each ended by a NUL, which no
path can have in it: `mode sha256:… size path`. The tree's digest is the listing's, so it knows nothing of the order of
files, times, owners or a machine's habits.
"""

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from starling.sources.errors import Refused

__all__ = [
    "Entry",
    "Limits",
    "amend",
    "check_links",
    "check_tree",
    "digest_of",
    "links_of",
    "listing",
    "read_listing",
]

Mode = Literal["file", "executable", "link"]
MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}

LONGEST_NAME = 255
LONGEST_PATH = 3000
"""In bytes; the system's limit is 4095 for all, with the folder that the tree is put into."""

MOST_HOPS = 40
"""As many links as Linux follows in one path."""

MOST_STEPS = 20_000_000
"""For all links of a tree together: a second or two of work. Ten thousand ordinary links need a hundredth of it."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
# What file systems of other systems drop from a name: HFS+ these letters, NTFS dots, blanks and streams at its end.
_UNSEEN = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
_GIT_SOMEWHERE = re.compile(r"[/\\](?:\.git|git~1)[. ]*[:/\\]")
_GIT_FOLDER = re.compile(r"(?:\.git|git~1)(?:[. ]*(?::.*)?)", re.IGNORECASE | re.DOTALL)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One file: its path, with / between parts, and its content's digest and size; a link's content is its target.

    Bytes of a path that aren't UTF-8 stand in it as Python has it, by surrogates.
    """

    path: str
    mode: Mode
    digest: str
    size: int


class Limits(msgspec.Struct, frozen=True):
    """How much a tree may hold; beyond, it is taken for a bomb."""

    files: int = 100_000
    file_size: int = 256 << 20
    total_size: int = 2 << 30


def digest_of(content: bytes) -> str:
    """A content's name in the store."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def listing(entries: Iterable[Entry]) -> bytes:
    """What a tree is, in bytes that are the same on any machine."""
    ordered = sorted(entries, key=lambda entry: entry.path)
    text = "".join([f"{entry.mode} {entry.digest} {entry.size} {entry.path}\0" for entry in ordered])
    try:
        return text.encode()
    except UnicodeEncodeError:  # bytes that aren't UTF-8, which sort elsewhere than what stands for them
        ordered.sort(key=lambda entry: entry.path.encode("utf-8", "surrogateescape"))
        text = "".join([f"{entry.mode} {entry.digest} {entry.size} {entry.path}\0" for entry in ordered])
        return text.encode("utf-8", "surrogateescape")


def read_listing(content: bytes) -> list[Entry]:
    """The entries of a listing whose digest was checked."""
    entries = []
    for record in content.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        mode, digest, size, path = record.split(" ", 3)
        entries.append(Entry(path, MODES[mode], digest, int(size)))
    return entries


def links_of(content: bytes) -> list[Entry]:
    """The links of a listing, at little cost where there is none."""
    if not content.startswith(b"link ") and b"\0link " not in content:
        return []
    return read_listing(b"\0".join([*(each for each in content.split(b"\0") if each.startswith(b"link ")), b""]))


def amend(content: bytes, changes: Mapping[str, Entry | None], limits: Limits) -> tuple[bytes, int]:
    """A listing with some files written or, where there is None, gone; and by how many bytes the tree grows.

    Only what is new is looked at, so it costs little though the tree is large. Refused as `check_tree` refuses.
    """
    records = content.split(b"\0")[:-1]
    grown = 0
    for path, entry in changes.items():
        name = path.encode("utf-8", "surrogateescape")
        place = bisect_left(records, name, key=_path)
        there = place < len(records) and _path(records[place]) == name
        if there:
            grown -= int(records[place].split(b" ", 3)[2])
        if entry is not None:
            _check_path(path)
            grown += entry.size
        new = [] if entry is None else [listing([entry])[:-1]]
        records[place : place + there] = new
    for path in (path for path, entry in changes.items() if entry is not None):
        _check_place(records, path.encode("utf-8", "surrogateescape"))
    _check_contents([entry for entry in changes.values() if entry is not None], limits)
    if len(records) > limits.files:
        raise Refused(f"there are more than {limits.files:,} files", hint="leave some out with ignore patterns")
    return b"\0".join([*records, b""]), grown


def _path(record: bytes) -> bytes:
    return record.split(b" ", 3)[3]


def _check_place(records: Sequence[bytes], name: bytes) -> None:
    """A file's path may be no folder's, and none of its folders a file's."""
    below = bisect_left(records, name + b"/", key=_path)
    if below < len(records) and _path(records[below]).startswith(name + b"/"):
        raise Refused(f"{_shown(name.decode('utf-8', 'surrogateescape'))} is a file and a folder at once")
    while b"/" in name:
        name = name.rpartition(b"/")[0]
        place = bisect_left(records, name, key=_path)
        if place < len(records) and _path(records[place]) == name:
            raise Refused(f"{_shown(name.decode('utf-8', 'surrogateescape'))} is a file and a folder at once")


def check_tree(entries: Collection[Entry], limits: Limits) -> None:
    """Refuse, naming it, what no tree of ours may hold. It looks at all at once first: nearly always all is well."""
    if len(entries) > limits.files:
        raise Refused(f"there are more than {limits.files:,} files", hint="leave some out with ignore patterns")
    paths = [entry.path for entry in entries]
    unique = set(paths)
    if _suspicious(paths):
        for path in sorted(unique):
            _check_path(path)
    if len(unique) < len(paths):
        twice = min(path for path, number in Counter(paths).items() if number > 1)
        raise Refused(f"{_shown(twice)} is there twice")
    if both := unique & _folders(paths):
        raise Refused(f"{_shown(min(both))} is a file and a folder at once")
    _check_contents(entries, limits)


def _check_contents(entries: Collection[Entry], limits: Limits) -> None:
    total = 0
    for entry in entries:
        size = entry.size
        total += size
        if size < 0 or entry.mode not in MODES or not _DIGEST.fullmatch(entry.digest):
            raise Refused(f"{_shown(entry.path)} has no mode, digest or size such as a file has")
        if size > limits.file_size:
            raise Refused(
                f"{_shown(entry.path)} has {size:,} bytes, more than {limits.file_size:,}",
                hint="leave it out with an ignore pattern",
            )
        if total > limits.total_size:
            raise Refused(
                f"the files have more than {limits.total_size:,} bytes in all, up to {_shown(entry.path)}",
                hint="leave some out with ignore patterns",
            )


def _folders(paths: Iterable[str]) -> set[str]:
    """All folders that files are in, and those above."""
    folders: set[str] = set()
    ahead = {path.rpartition("/")[0] for path in paths}
    while ahead := ahead - folders:
        folders |= ahead
        ahead = {folder.rpartition("/")[0] for folder in ahead}
    return folders


def _suspicious(paths: list[str]) -> bool:
    """Tell whether a path among these may be refused; a closer look tells which, and whether."""
    text = "/" + "/\0/".join(paths) + "/"
    return (
        not text.isascii()
        or text.count("\0") >= max(1, len(paths))
        or max(map(len, paths), default=0) > LONGEST_NAME
        or any(part in text for part in ("//", "/./", "/../"))
        or _GIT_SOMEWHERE.search(text.lower()) is not None
    )


def _check_path(path: str) -> None:
    """Look closely at a path."""
    if "\0" in path:
        raise Refused(f"{_shown(path)} has a NUL in it")
    try:
        size = len(path.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise Refused(f"{_shown(path)} isn't a name that a file can have") from None
    if size > LONGEST_PATH:
        raise Refused(f"{_shown(path)} is longer than {LONGEST_PATH} bytes")
    if path.startswith("/"):
        raise Refused(f"{_shown(path)} starts at the root")
    for part in path.split("/"):
        if part in ("", ".", ".."):
            raise Refused(f'{_shown(path)} has "{part}" for one of its parts')
        if len(part.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
            raise Refused(f"{_shown(path)} has a part longer than {LONGEST_NAME} bytes")
        # A backslash is a letter like any other to us, and to others a slash.
        if any(_GIT_FOLDER.fullmatch(piece.translate(_UNSEEN)) for piece in part.split("\\")):
            raise Refused(f'{_shown(path)} has a part that some systems take for git\'s own folder, ".git"')


def check_links(targets: Mapping[str, str]) -> None:
    """Refuse links that lead out of their tree, alone or through each other, or around in a circle.

    Both ways of reading `..` are tried: as the system does, which goes to where a link leads first, and as programs do
    that shorten a path by its text.
    """
    steps = MOST_STEPS
    for path, target in targets.items():
        if not target or "\0" in target or len(target) > LONGEST_PATH:
            raise Refused(f"the link {_shown(path)} leads nowhere that a link can lead to")
        folder = path.split("/")[:-1]
        for links in ({}, targets):
            steps -= _steps(folder, target, links)
            if steps < 0:
                raise Refused(
                    f"the link {_shown(path)} leads to {_shown(target)}: out of the tree, or around in circles",
                    hint="leave it out with an ignore pattern",
                )


def _steps(folder: list[str], target: str, links: Mapping[str, str]) -> int:
    """How much work it is to go to a link's target from its folder; MOST_STEPS and more if that leaves the tree."""
    here = list(folder)
    ahead = target.split("/")[::-1]
    steps = hops = 0
    out = target.startswith("/")
    while ahead and not out:
        part = ahead.pop()
        steps += 1 + len(here)
        if part == "..":
            out = not here
            del here[-1:]
        elif part not in ("", "."):
            here.append(part)
            following = links.get("/".join(here)) if links else None
            if following is not None:
                hops += 1
                out = hops > MOST_HOPS or following.startswith("/")
                here.pop()
                ahead += following.split("/")[::-1]
    return MOST_STEPS + 1 if out else steps


def _shown(path: str) -> str:
    """A path for a message: as it is if that is readable, and not at any length."""
    cut = path if len(path) <= 200 else f"{path[:200]}…"
    return cut if cut.isprintable() and cut.strip() == cut and cut else repr(cut)
