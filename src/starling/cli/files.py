"""Manifests from files, folders and stdin, all read before anything is done with any."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from starling.errors import InputError
from starling.objects import Manifest, load_manifests, refuse_duplicates

__all__ = ["content", "read_manifests"]

STDIN: Final = Path("-")
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


def read_manifests(paths: Sequence[Path]) -> list[Manifest]:
    """Every object in these files and folders, in order; InputError if one is no object, twice there, or there is none.

    A file without objects is fine; a folder without files is more likely a wrong path than a wish.
    """
    if paths.count(STDIN) > 1:
        raise InputError("stdin can be read once only: -f - is there twice")
    manifests = [manifest for path in paths for manifest in _read(path)]
    refuse_duplicates(manifests)
    return manifests


def content(file: Path) -> tuple[bytes, str]:
    """What is in a file, or comes from stdin, and what to call that."""
    return (sys.stdin.buffer.read(), "stdin") if file == STDIN else (file.read_bytes(), str(file))


def _read(path: Path) -> list[Manifest]:
    if path != STDIN and not path.exists():
        raise InputError(f"there is no file or folder {path}")
    if path == STDIN or not path.is_dir():
        return load_manifests(*content(path))
    files = list(_files(path))
    if not files:
        raise InputError(
            f"{path} has no manifests", hint=f"of a folder {', '.join(sorted(_SUFFIXES))} are read, hidden files aren't"
        )
    return [manifest for file in files for manifest in load_manifests(*content(file))]


def _files(folder: Path) -> Iterator[Path]:
    """The manifests in a folder and those in it, sorted by name; links may lead about in the folder, not out of it."""
    root = folder.resolve()
    for parent, folders, names in os.walk(folder, followlinks=False):
        folders[:] = _shown(folders)
        if linked := [path for name in folders if (path := Path(parent) / name).is_symlink()]:
            raise InputError(f"{linked[0]} is a link to a folder", hint="give the folder itself, with one more -f")
        for path in (Path(parent) / name for name in _shown(names)):
            if path.suffix not in _SUFFIXES:
                continue
            if not path.resolve().is_relative_to(root):
                raise InputError(f"{path} is a link out of {folder}", hint="give its target with one more -f")
            yield path


def _shown(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("."))
