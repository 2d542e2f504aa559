"""Taking away what nobody needs: listings first, then the blobs that no listing names, so that none ever lacks one."""

import fcntl
import os
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import msgspec

from starling.sources.checkouts import remove_folder
from starling.sources.pool import Pool, key_of, older, try_lock

__all__ = ["Collected", "collect"]

BATCH: Final = 500
"""How many blobs are taken away at a time, while nobody can add a listing: a hundredth of a second or so."""


class Collected(msgspec.Struct, frozen=True):
    """What was taken away."""

    artifacts: int = 0
    blobs: int = 0
    size: int = 0


def collect(pool: Pool, keep: Collection[str], before: float) -> Collected:
    """Take away what no artifact to keep needs and was last touched before that time, but for folders in use."""
    kept = {key_of(digest) for digest in keep}
    old = [path.name for path in pool.listings.iterdir() if path.name not in kept and older(path, before)]
    artifacts = sum(_drop(pool, name, before) for name in old)
    folders = {path.name.removesuffix(".lock") for path in pool.trees.iterdir()}
    for name in folders - {path.name for path in pool.listings.iterdir()}:
        _drop(pool, name, before)
    blobs, size = _sweep(pool, before)
    for path in pool.partial.iterdir():
        if older(path, before):
            path.unlink(missing_ok=True)  # its writer, if there is one, starts over
    return Collected(artifacts, blobs, size)


def _drop(pool: Pool, name: str, before: float) -> bool:
    """Take a listing and its folder away, unless it is in use or was touched just now."""
    lock_file = pool.trees / f"{name}.lock"
    lock = try_lock(lock_file, fcntl.LOCK_EX)
    if lock is None:
        return False
    try:
        with pool.alone():
            path = pool.listings / name
            there = path.exists()
            if there and not older(path, before):
                return False
            path.unlink(missing_ok=True)
        os.ftruncate(lock, 0)
        remove_folder(pool.trees / name)
        lock_file.unlink(missing_ok=True)
        return there
    finally:
        os.close(lock)


def _sweep(pool: Pool, before: float) -> tuple[int, int]:
    """Take away blobs that no listing names: how many, and their size."""
    seen: set[str] = set()
    used: set[str] = set()
    _learn(pool, seen, used)
    unused = [
        (digest, path)
        for folder in pool.blobs.iterdir()
        for path in folder.iterdir()
        if (digest := f"sha256:{folder.name}{path.name}") not in used and older(path, before)
    ]
    number = size = 0
    for start in range(0, len(unused), BATCH):
        with pool.alone():
            pool.new_generation()
            _learn(pool, seen, used)  # listings that came since
            for digest, path in unused[start : start + BATCH]:
                with suppress(FileNotFoundError):
                    state = path.stat()
                    if digest not in used and state.st_mtime <= before:
                        path.unlink()
                        number, size = number + 1, size + state.st_size
    return number, size


def _learn(pool: Pool, seen: set[str], used: set[str]) -> None:
    """Add what the listings that weren't seen yet use."""
    for path in pool.listings.iterdir():
        if path.name in seen:
            continue
        seen.add(path.name)
        content = pool.read_listing(f"sha256:{path.name}")
        if content is not None:
            used.update(record.split(b" ", 2)[1].decode() for record in content.split(b"\0")[:-1])
