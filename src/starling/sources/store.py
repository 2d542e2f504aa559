"""The artifact store: all files by their content, trees as listings of them, and folders made of those on demand.

    blobs/ab/<rest>     a file's bytes, by their sha256
    listings/<digest>   a tree (see `trees`); where one is, all its blobs are
    trees/<digest>      its folder, which is whole if trees/<digest>.lock says so; trees/<digest>-1 if that can't be had
    partial/            what is being written; it gets its name when it is whole
    lock, generation    who may take away, and whether someone has

Any number of processes share a store; each may die at any instant. What they go by:

- *Whole or not there.* A blob or listing is written under another name and renamed. A folder is made under its lock,
  which the kernel lets go of when the maker dies, and counts only once the lock's file says that it is whole.
- *Nothing is synced to the disk.* Ten thousand calls of fsync take longer than fetching anew, and all that is read is
  checked: a blob against its digest while it is copied, a listing against its own; a folder counts only until the
  machine is next started. So what a power failure tears is found and made anew; a killed process tears nothing.
  A blob that turns out to be bad goes together with all listings that name it: those artifacts aren't there any more.
- *Locks decide, ages are a courtesy.* Listings are added under a shared lock and everything is taken away under the
  exclusive one, so a listing never comes to lack a blob; a folder in use is locked by its user. Ages alone would
  have to be guessed: longer than the slowest fetch, or the longest render. Here, too short an age costs work done
  twice (`Incomplete`: add these again), never a wrong tree.

Files in folders are read-only; so are the folders, for whoever isn't root. What changes them all the same is seen at
the next checkout, by the times that the system keeps, and the folder is made anew: in its place, or, while another
process has the changed one in use, beside it.
"""

import asyncio
import fcntl
import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import msgspec

from starling.programs import uninterrupted
from starling.sources.checkouts import make_folder, unchanged
from starling.sources.collecting import Collected, collect
from starling.sources.errors import Damaged, Incomplete, NotStored, Refused, StoreError
from starling.sources.pool import Pool, key_of, try_lock
from starling.sources.trees import (
    Entry,
    Limits,
    amend,
    check_links,
    check_tree,
    digest_of,
    links_of,
    listing,
    read_listing,
)

__all__ = ["Artifact", "ArtifactStore", "Collected", "Entry", "Limits"]

P = ParamSpec("P")
R = TypeVar("R")

LOCK_POLL: Final = 0.02
MOST_REMEMBERED: Final = 200_000
MOST_ATTEMPTS: Final = 5

IN_USE_FOR: Final = 2.0
"""Seconds to wait for a changed folder that others have in use. Who merely looks at it is done long before."""

MADE_WITHIN: Final = 120.0
"""Seconds to wait for who makes a folder: a stopped process must not hold up others for ever."""


class Artifact(msgspec.Struct, frozen=True):
    """The files of one version: where they are from, the digest of the tree, their size in all."""

    revision: str
    digest: str
    size: int


class ArtifactStore:
    """Files by content. For any number of processes; of one process, for one event loop and its threads.

    What was checked out stays in use by this store, and so isn't collected by another process, until this one's own
    `collect` finds it neither kept nor lately checked out, or the process ends.
    """

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.root = root
        self.limits = limits or Limits()
        self._pool = Pool(root)
        self._targets: dict[str, str] = {}
        self._in_use: dict[str, tuple[int, float]] = {}  # digest: its lock, when it was last checked out
        self._using = threading.Lock()
        weakref.finalize(self, _close_all, self._in_use)

    # Adding

    def add(self, content: bytes) -> str:
        """Store a file's content, unless it is there, and give its digest. For threads, if there are many."""
        digest = digest_of(content)
        with self._telling():
            self._pool.ensure(self._pool.blob(digest), content)
        return digest

    def add_all(self, contents: Iterable[bytes]) -> list[str]:
        """Store several, most of which aren't there, and give their digests, in order. For a thread."""
        digests = []
        with self._telling():
            for content in contents:
                digest = digest_of(content)
                self._pool.write_blob(digest, content)
                digests.append(digest)
        return digests

    def lacking(self, digests: Iterable[str]) -> set[str]:
        """Those of the contents that aren't there. What this store has seen before costs nothing."""
        with self._telling():
            there = self._pool.remembered()
            return {digest for digest in digests if digest not in there and self._pool.size(digest) is None}

    def has(self, digest: str) -> bool:
        """Tell whether there is such an artifact."""
        return self._pool.listing(digest).exists()

    async def put(self, revision: str, entries: Iterable[Entry]) -> Artifact:
        """Store a tree whose files' contents are there. Refused if it can't be a tree, Incomplete if some are not."""
        return await self._in_thread(self._mending, self._put, revision, list(entries))

    def _put(self, revision: str, entries: list[Entry]) -> Artifact:
        check_tree(entries, self.limits)
        content = listing(entries)
        digest = digest_of(content)
        targets = {entry.path: self._target(entry) for entry in entries if entry.mode == "link"}
        with self._pool.shared():
            self._check_contents(entries)
            check_links(targets)
            self._pool.ensure(self._pool.listing(digest), content)
        return Artifact(revision, digest, sum(entry.size for entry in entries))

    async def amend(self, base: Artifact, revision: str, changes: Mapping[str, Entry | None]) -> Artifact:
        """Store a tree that differs from another by these files, which are written or, where there is None, gone.

        As `put`, at a cost that depends on the changes; NotStored if the other tree isn't there any more.
        """
        return await self._in_thread(self._mending, self._amend, base, revision, dict(changes))

    def _amend(self, base: Artifact, revision: str, changes: dict[str, Entry | None]) -> Artifact:
        with self._pool.shared():
            known = self._pool.read_listing(base.digest)  # where it is, its contents are
            if known is None:
                raise NotStored(f"the store has no artifact {base.digest}", hint="fetch it again")
            content, grown = amend(known, changes, self.limits)
            size = base.size + grown
            if size > self.limits.total_size:
                raise Refused(f"the files have more than {self.limits.total_size:,} bytes in all")
            self._check_contents([entry for entry in changes.values() if entry is not None])
            check_links({entry.path: self._target(entry) for entry in links_of(content)})
            digest = digest_of(content)
            self._pool.ensure(self._pool.listing(digest), content)
        return Artifact(revision, digest, size)

    def _mending(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Take away what turns out to be bad, once the lock is free, so that adding again puts it right."""
        try:
            return function(*args, **kwargs)
        except Incomplete as error:
            self._discard(error.missing)
            raise

    def _check_contents(self, entries: list[Entry]) -> None:
        """See that all contents are there, and as long as they should be. For who has the lock."""
        there = self._pool.remembered()
        if len(there) > MOST_REMEMBERED:
            there.clear()
        missing: dict[str, str] = {}
        for entry in entries:
            size = there.get(entry.digest)
            if size is None:
                size = self._pool.size(entry.digest)
                if size is None:
                    missing[entry.digest] = entry.path
                    continue
                there[entry.digest] = size
            if size != entry.size:
                if not self._is_right(entry.digest):
                    missing[entry.digest] = entry.path
                    continue
                raise StoreError(
                    f"{entry.path} is listed with {entry.size} bytes, its content {entry.digest} has {size}"
                )
        if missing:
            example = min(missing.values())
            raise Incomplete(
                f"the store has no content for {len(missing)} of the files, {example} among them",
                frozenset(missing),
                hint="they were collected meanwhile, or damaged; fetch again",
            )

    def _target(self, entry: Entry) -> str:
        """Where a link leads; what it says is verified, for it decides whether a tree is harmless."""
        known = self._targets.get(entry.digest)
        if known is not None:
            return known
        try:
            content = self._pool.blob(entry.digest).read_bytes()
        except FileNotFoundError:
            content = None
        if content is None or digest_of(content) != entry.digest:
            raise Incomplete(
                f"the store has no right content for the link {entry.path}",
                frozenset([entry.digest]),
                hint="fetch again",
            )
        if len(self._targets) > MOST_REMEMBERED:
            self._targets.clear()
        target = self._targets[entry.digest] = content.decode("utf-8", "surrogateescape")
        return target

    # Checking out

    async def checkout(self, digest: str) -> Path:
        """A folder with exactly the files of an artifact, shared by all who ask for it; not to be written to.

        NotStored if there is no such artifact, Damaged if a file isn't what was put in.
        """
        key = key_of(digest)
        for name in (key, *(f"{key}-{number}" for number in range(1, MOST_ATTEMPTS))):
            if folder := await self._folder(digest, name):
                return folder
        raise StoreError(
            f"the folders of {digest} were changed and are in use",
            hint=f"find out what writes into {self._pool.trees}",
        )

    async def _folder(self, digest: str, name: str) -> Path | None:
        """The folder of that name, made if need be and in use by us; None if others don't let go of it in time."""
        folder, lock_file = self._pool.trees / name, self._pool.trees / f"{name}.lock"
        made, patience = 0, 1.0
        while made < MOST_ATTEMPTS:
            if not self.has(digest):
                raise NotStored(f"the store has no artifact {digest}", hint="fetch it again")
            # Both are tried in turn: another may be making it, or have made it and be using it.
            lock = try_lock(lock_file, fcntl.LOCK_SH)
            longest = MADE_WITHIN if lock is None else IN_USE_FOR
            if lock is not None and await self._in_thread(self._use, digest, lock, folder):
                return folder
            lock = try_lock(lock_file, fcntl.LOCK_EX)
            if lock is not None:
                await self._in_thread(self._make, digest, lock, folder)
                made += 1
                continue
            if patience <= 0:
                return None
            await asyncio.sleep(LOCK_POLL)  # without a thread: who has the lock may need one to get on
            patience -= LOCK_POLL / longest
        raise StoreError(
            f"the folder of {digest} is changed as often as it is made", hint=f"find out what writes into {folder}"
        )

    def _use(self, digest: str, lock: int, folder: Path) -> bool:
        """Keep a folder in use if it is whole; else let go of it, others of this process too."""
        keep = False
        try:
            keep = unchanged(folder, lock)
            if keep:
                with suppress(FileNotFoundError):
                    os.utime(self._pool.listing(digest))
        finally:
            with self._using:
                before, _ = self._in_use.pop(digest, (None, 0.0))
                if keep:
                    self._in_use[digest] = (lock, time.time())
                    lock = -1
                for descriptor in (before, lock):
                    if descriptor is not None and descriptor >= 0:
                        os.close(descriptor)
        return keep

    def _make(self, digest: str, lock: int, folder: Path) -> None:
        """Make a folder, for who has its lock alone."""
        try:
            if unchanged(folder, lock):
                return
            content = self._pool.read_listing(digest)
            if content is None:
                raise NotStored(f"the store has no artifact {digest}", hint="fetch it again")
            bad = make_folder(folder, read_listing(content), self._pool.blob, lock)
            if bad is not None:
                self._discard([bad.digest])
                raise Damaged(
                    f"{bad.path}: the stored content {bad.digest} is missing or damaged", hint="fetch the source again"
                )
        finally:
            os.close(lock)

    def _discard(self, digests: Collection[str]) -> None:
        """Take damaged blobs away, unless they were put right meanwhile, and all listings that lack one then."""
        with self._pool.alone():
            bad = {digest for digest in digests if not self._is_right(digest)}
            if not bad:
                return
            self._pool.new_generation()
            for path in self._pool.naming(bad):
                path.unlink(missing_ok=True)
            for digest in bad:
                self._pool.blob(digest).unlink(missing_ok=True)

    def _is_right(self, digest: str) -> bool:
        """Tell whether a content is there and what its name says."""
        try:
            with self._pool.blob(digest).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == key_of(digest)
        except FileNotFoundError:
            return False

    # Collecting

    async def collect(self, keep: Collection[str], older_than: float) -> Collected:
        """Take away what no artifact to keep needs and nobody has added or used for so many seconds.

        What someone has checked out stays in any case. What was added for a tree that isn't put yet is protected by its
        age alone: `put` tells if it is gone.
        """
        return await self._in_thread(self._collect, frozenset(keep), time.time() - older_than)

    def _collect(self, keep: frozenset[str], before: float) -> Collected:
        with self._using:
            for digest in [each for each, (_, when) in self._in_use.items() if each not in keep and when <= before]:
                os.close(self._in_use.pop(digest)[0])
        return collect(self._pool, keep, before)

    # Threads and errors

    async def _in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run to its end in a thread, whoever is cancelled meanwhile: it holds locks."""

        def work() -> R:
            with self._telling():
                return function(*args, **kwargs)

        return await uninterrupted(asyncio.create_task(asyncio.to_thread(work)))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn what the system says into an error that names the store."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"the artifact store in {self.root}: {error.strerror or error}",
                hint="see that its disk has room and that it belongs to who runs this",
            ) from error


def _close_all(in_use: dict[str, tuple[int, float]]) -> None:
    for descriptor, _ in in_use.values():
        os.close(descriptor)
