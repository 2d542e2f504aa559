"""Manifests as they stand in files.

Of a folder and those below it every *.yaml, *.yml and *.json is read, by name; hidden ones are left out. Links may
lead about in the tree, but not from folder to folder: what would be read twice is there twice. A kustomization or a
chart further down is refused rather than taken for manifests.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from starling.objects import Manifest, load_manifests, refuse_duplicates
from starling.rendering.detect import CHART, KUSTOMIZATIONS
from starling.rendering.errors import NotAllowed, RenderError
from starling.rendering.tree import inside, named

__all__ = ["read_plain"]

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_OTHERS: Final = {**dict.fromkeys(KUSTOMIZATIONS, "a kustomization"), CHART: "a chart"}


def read_plain(root: Path, place: Path, most: int) -> list[Manifest]:
    """Every object in a file or folder of the tree; RenderError beyond `most` bytes in all."""
    manifests: list[Manifest] = []
    for file in [place] if place.is_file() else _files(root, place):
        _refuse_other(root, file)
        target = inside(root, file, f"the link {named(root, file)}")
        if not target.is_file():
            raise RenderError(f"{named(root, file)} is no file, or a link to none")
        most -= target.stat().st_size
        if most < 0:
            raise RenderError(f"{named(root, place)} holds more than may be read at once, up to {named(root, file)}")
        manifests += load_manifests(target.read_bytes(), named(root, file))
    refuse_duplicates(manifests)
    return manifests


def _files(root: Path, folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_fail):
        folders[:] = _shown(folders)
        for path in (Path(parent, name) for name in folders):
            if path.is_symlink():
                inside(root, path, f"the link {named(root, path)}")
                raise NotAllowed(
                    f"{named(root, path)} is a link to a folder, whose manifests would be read twice",
                    hint="remove the link, or give a path below which there is none",
                )
        # In the order of whole paths' parts, whatever os.walk makes of it: files before folders.
        for name in _shown(names):
            if Path(name).suffix in SUFFIXES or name in _OTHERS:
                yield Path(parent, name)


def _shown(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("."))


def _refuse_other(root: Path, file: Path) -> None:
    if other := _OTHERS.get(file.name):
        folder = named(root, file.parent)
        raise RenderError(
            f"{named(root, file)} is {other}, among what is to be read as plain manifests",
            hint=f"render {folder} by itself, with a path that ends there"
            if folder != "."
            else "leave the package out to have it rendered as what it is",
        )


def _fail(error: OSError) -> None:
    raise error
