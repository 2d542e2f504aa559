"""Packed charts: read with bounds, and written the same for the same files."""

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["archived", "packed"]

LARGEST: Final = 100 << 20
"""Bytes that an archive may unpack to; it is Helm's own limit."""
LARGEST_FILE: Final = 5 << 20
DEEPEST: Final = 8


@dataclass
class _Budget:
    """Bytes that may still be unpacked of an archive and those within it. Mutable: it is counted down."""

    left: int = LARGEST


def archived(data: bytes, name: str) -> list[tuple[str, bytes]]:
    """The files so called in a packed chart, and in charts packed in that; tarfile.TarError if it can't be read."""
    try:
        return list(_archived(data, name, _Budget(), DEEPEST))
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise tarfile.ReadError(str(error)) from error


def _archived(data: bytes, name: str, budget: _Budget, depth: int) -> Iterator[tuple[str, bytes]]:
    content = gzip.GzipFile(fileobj=io.BytesIO(data)).read(budget.left + 1)
    budget.left -= len(content)
    if budget.left < 0:
        raise tarfile.ReadError(f"it unpacks to more than {LARGEST} bytes")
    if not depth:
        raise tarfile.ReadError(f"it holds archives within archives, more than {DEEPEST} deep")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            path = posixpath.normpath(member.name.replace("\\", "/"))  # as Helm reads it
            last = posixpath.basename(path)
            if not member.isfile() or (last != name and not last.endswith(".tgz")):
                continue
            file = archive.extractfile(member)
            assert file is not None
            text = file.read(LARGEST_FILE + 1)
            if len(text) > LARGEST_FILE:
                raise tarfile.ReadError(f"{path} in it is larger than {LARGEST_FILE} bytes")
            if last == name:
                yield path, text
            else:
                yield from ((f"{path}/{inner}", found) for inner, found in _archived(text, name, budget, depth - 1))


def packed(folder: str, files: Iterable[tuple[str, bytes]]) -> bytes:
    """A .tgz that holds these files in a folder."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, text in files:
            member = tarfile.TarInfo(f"{folder}/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return gzip.compress(content.getvalue(), compresslevel=1, mtime=0)
