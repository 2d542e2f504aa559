"""Packed charts: read with bounds, and written the same for the same files.

An archive can be written so that Python and Go see different files in it. So whoever has looked through one gives Helm
not the archive but a new one (`repacked`), which holds what was seen and nothing else.
"""

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["DEEPEST", "LARGEST", "Budget", "archived", "packed", "repacked"]

LARGEST: Final = 100 << 20
"""Bytes that an archive may unpack to; it is Helm's own limit."""
LARGEST_FILE: Final = 5 << 20
DEEPEST: Final = 8
MOST_FILES: Final = 20_000
_BLOCK: Final = tarfile.BLOCKSIZE


@dataclass
class Budget:
    """Bytes that may still be unpacked of an archive and those within it. Mutable: it is counted down."""

    left: int = LARGEST


def archived(data: bytes, name: str, budget: Budget | None = None) -> list[tuple[str, bytes]]:
    """The files so called in a packed chart, and in charts packed in that; tarfile.TarError if it can't be read."""
    try:
        return list(_archived(data, name, budget or Budget(), DEEPEST))
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise tarfile.ReadError(str(error)) from error


def repacked(data: bytes) -> bytes:
    """A packed chart with the same files, and charts packed in it likewise; tarfile.TarError if it can't be read."""
    try:
        return _repacked(data, Budget(), DEEPEST)
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise tarfile.ReadError(str(error)) from error


def _archived(data: bytes, name: str, budget: Budget, depth: int) -> Iterator[tuple[str, bytes]]:
    for written, text in _members(data, budget, depth):
        path = _path(written)
        if posixpath.basename(path) == name:
            yield path, text
        elif _is_chart(path):
            yield from ((f"{path}/{inner}", found) for inner, found in _archived(text, name, budget, depth - 1))


def _repacked(data: bytes, budget: Budget, depth: int) -> bytes:
    return _packed(
        (written, _repacked(text, budget, depth - 1) if _is_chart(_path(written)) else text)
        for written, text in _members(data, budget, depth)
    )


def _members(data: bytes, budget: Budget, depth: int) -> Iterator[tuple[str, bytes]]:
    """Every file of an archive, by the name that is written there."""
    if not depth:
        raise tarfile.ReadError(f"it holds archives within archives, more than {DEEPEST} deep")
    allowed = budget.left
    content = gzip.GzipFile(fileobj=io.BytesIO(data)).read(allowed + 1)
    budget.left -= len(content)
    if budget.left < 0:
        raise tarfile.ReadError(f"it unpacks to more than {allowed} bytes")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for number, member in enumerate(archive):
            if number >= MOST_FILES:
                raise tarfile.ReadError(f"it holds more than {MOST_FILES} files")
            # Of what is neither, Helm makes a file, with whatever content it finds.
            if not (member.isfile() or member.isdir()) or member.issparse():
                raise tarfile.ReadError(f"{_path(member.name)} in it is neither a file nor a folder")
            if "\0" in member.name:  # which Go would take for its end
                raise tarfile.ReadError(f"{_path(member.name)!r} in it is no name")
            if member.isfile():
                yield member.name, _text(archive, member)
        # Where Python finds no header it stops without a word.
        if content[archive.offset : archive.offset + 2 * _BLOCK].strip(b"\0"):
            raise tarfile.ReadError(f"it is damaged after {archive.offset} bytes")


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    text = file.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise tarfile.ReadError(f"{_path(member.name)} in it is larger than {LARGEST_FILE} bytes")
    return text


def _path(name: str) -> str:
    """A name as Helm reads it."""
    return posixpath.normpath(name.replace("\\", "/"))


def _is_chart(path: str) -> bool:
    """Would Helm take a file at this path of an archive for a packed chart? Rather too often yes than too seldom."""
    folders, _, last = path.rpartition("/")
    return last.endswith(".tgz") and "charts" in folders.split("/")


def packed(folder: str, files: Iterable[tuple[str, bytes]]) -> bytes:
    """A .tgz that holds these files in a folder."""
    return _packed((f"{folder}/{path}", text) for path, text in files)


def _packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, text in files:
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return gzip.compress(content.getvalue(), compresslevel=1, mtime=0)
