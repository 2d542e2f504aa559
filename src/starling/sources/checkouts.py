# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH211 - paths are bytes here, which pathlib knows nothing of
"""A tree as a folder: made from the store's blobs, each checked while it is copied, and seen to be as it was made.

What says that a folder is whole is the file of its lock: which start of the machine it was made in, since a power
failure may tear what was never synced, and how many files and folders there are. Its time is later than any of theirs.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from starling.sources.trees import Entry

__all__ = ["make_folder", "remove_folder", "unchanged"]

CHUNK: Final = 1 << 20


def make_folder(folder: Path, entries: list[Entry], blob: Callable[[str], Path], lock: int) -> Entry | None:
    """Make a folder with exactly these files, and say so in the lock's file; or give an entry whose blob is bad.

    Links come last, so that nothing is ever written through one. Paths are bytes here: they are what they are,
    whatever this machine's locale.
    """
    os.ftruncate(lock, 0)
    remove_folder(folder)
    top = os.fsencode(folder)
    folder.mkdir(mode=0o700)
    made = {b""}
    for entry in sorted(entries, key=lambda entry: entry.mode == "link"):
        path = entry.path.encode("utf-8", "surrogateescape")
        _make_parents(top, path.rpartition(b"/")[0], made)
        target = top + b"/" + path
        if not _copy(blob(entry.digest), target, entry):
            return entry
    for inner in sorted(made, reverse=True):
        os.chmod(top + b"/" + inner, 0o555)  # noqa: S103 - for reading alone
    os.pwrite(lock, _mark(len(entries) + len(made)), 0)
    return None


def _make_parents(top: bytes, folder: bytes, made: set[bytes]) -> None:
    missing = []
    while folder not in made:
        missing.append(folder)
        folder = folder.rpartition(b"/")[0]
    for one in reversed(missing):
        os.mkdir(top + b"/" + one, 0o700)
        made.add(one)


def _copy(blob: Path, target: bytes, entry: Entry) -> bool:
    """Copy one file; False if its bytes aren't those that the entry names."""
    expected = entry.digest.removeprefix("sha256:")
    try:
        source = os.open(blob, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        content = os.read(source, CHUNK)
        if entry.mode == "link":
            right = hashlib.sha256(content).hexdigest() == expected
            if right:
                os.symlink(content, target)
            return right
        mode = 0o555 if entry.mode == "executable" else 0o444
        destination = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        try:
            digest = hashlib.sha256()
            while content:
                digest.update(content)
                written = os.write(destination, content)
                while written < len(content):
                    written += os.write(destination, content[written:])
                content = os.read(source, CHUNK) if len(content) == CHUNK else b""
            os.fchmod(destination, mode)  # whatever the umask
        finally:
            os.close(destination)
        return digest.hexdigest() == expected
    finally:
        os.close(source)


def unchanged(folder: Path, lock: int) -> bool:
    """Tell whether a folder is whole and nothing in it was touched since: no later time, nothing more, nothing less."""
    said = os.pread(lock, 200, 0)
    made = os.fstat(lock).st_mtime_ns
    found = 1
    try:
        if os.lstat(folder).st_ctime_ns > made:
            return False
        ahead = [os.fsencode(folder)]
        while ahead:
            with os.scandir(ahead.pop()) as entries:
                for entry in entries:
                    if entry.stat(follow_symlinks=False).st_ctime_ns > made:
                        return False
                    found += 1
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(entry.path)
    except FileNotFoundError:
        return False
    return said == _mark(found)


def remove_folder(folder: Path) -> None:
    """Take a folder away with all that is in it, though it is read-only; none is fine."""
    folders = [os.fsencode(folder)]
    for one in folders:
        try:
            os.chmod(one, 0o700)
            with os.scandir(one) as found:
                inside = list(found)
        except FileNotFoundError:
            continue
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                os.unlink(entry.path)
    for one in reversed(folders):
        with suppress(FileNotFoundError):
            os.rmdir(one)


def _mark(number: int) -> bytes:
    return f"{_start_of_machine()} {number}\n".encode()


@cache
def _start_of_machine() -> str:
    """An id that is another after each start of the machine; where the kernel tells none, one of this process."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return secrets.token_hex(16)
