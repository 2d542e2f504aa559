"""Places in a tree: everything that is read lies in it, links and all, and is named from its root."""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from starling.rendering.errors import NotAllowed, PathMissing

__all__ = ["inside", "locate", "named", "subfolders"]

MOST_LOOKED_AT = 5000
"""Folders that are looked at to find one with a similar name."""


def locate(root: Path, path: str) -> Path:
    """The file or folder at a path of the tree, with links resolved; `root` is resolved already.

    PathMissing if there is none, with the names that are close; NotAllowed if it leads out.
    """
    # A leading / means the root, as people write it in Flux and Argo CD.
    parts = PurePosixPath(path.lstrip("/") or ".").parts
    found = inside(root, root.joinpath(*parts), f"the path {path}")
    if not found.exists():
        raise PathMissing(f"the path {path} isn't in the repository", hint=_similar(root, PurePosixPath(*parts)))
    return found


def inside(root: Path, place: Path, called: str) -> Path:
    """The place that this leads to, if that lies in the tree; NotAllowed otherwise. Links are followed first."""
    try:
        found = place.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, names too long, a zero byte
        raise NotAllowed(f"{called} can't be followed: its links form a circle or its name is no name") from error
    if not found.is_relative_to(root):
        raise NotAllowed(
            f"{called} leads out of the repository",
            hint="what is rendered must lie in one tree: give the folder above with a path to this one, or copy it",
        )
    return found


def named(root: Path, place: Path) -> str:
    """A place as messages and origins name it."""
    return place.relative_to(root).as_posix()


def subfolders(root: Path) -> Iterator[str]:
    """The folders of a tree by name, those left out that are hidden; not many more than are worth looking at."""
    looked_at = 0
    for parent, folders, _ in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            looked_at += 1
            if looked_at > MOST_LOOKED_AT:
                return
            yield named(root, Path(parent, name))


def _similar(root: Path, wanted: PurePosixPath) -> str | None:
    there = list(subfolders(root))
    text = str(wanted)
    close = difflib.get_close_matches(text, there, n=3, cutoff=0.6)
    close += [name for name in there if PurePosixPath(name).name == wanted.name and name not in close]
    if close:
        return f"there is {', '.join(close[:3])}"
    top = [name for name in there if "/" not in name]
    return f"there is {', '.join(top[:8])}" if top else None
