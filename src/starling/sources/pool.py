"""The store's files: blobs and listings, written whole or not at all, and its lock. Synchronous; for threads."""

import fcntl
import itertools
import os
import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from starling.files import private_folder, same_file
from starling.sources.errors import NotStored, StoreError
from starling.sources.trees import digest_of

__all__ = ["Pool", "key_of", "older", "try_lock"]

MOST_ATTEMPTS: Final = 5
_DIGEST: Final = re.compile("sha256:([0-9a-f]{64})", re.ASCII)


class Pool:
    """The files under one root. Mutable only in what it remembers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs, self.listings, self.trees, self.partial = (
            private_folder(root / name) for name in ("blobs", "listings", "trees", "partial")
        )
        for first in range(256):
            private_folder(self.blobs / f"{first:02x}")
        self._blobs_text = str(self.blobs)
        self._partial_prefix = f"{self.partial}/{secrets.token_hex(8)}"
        self._partial_numbers = itertools.count()
        self._seen: tuple[bytes, dict[str, int]] = (b"", {})  # replaced as one: threads look at it without a lock

    def blob(self, digest: str) -> Path:
        """Where a content is."""
        key = key_of(digest)
        return self.blobs / key[:2] / key[2:]

    def size(self, digest: str) -> int | None:
        """How long a content is, None if it isn't there. Asked ten thousand times at once, so without pathlib."""
        key = key_of(digest)
        try:
            return os.stat(f"{self._blobs_text}/{key[:2]}/{key[2:]}").st_size  # noqa: PTH116
        except FileNotFoundError:
            return None

    def listing(self, digest: str) -> Path:
        """Where a tree's listing is."""
        return self.listings / key_of(digest)

    def read_listing(self, digest: str) -> bytes | None:
        """A listing, None if there is none; one that isn't what its name says is taken away."""
        path = self.listing(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if digest_of(content) == digest:
            return content
        path.unlink(missing_ok=True)
        return None

    def naming(self, digests: Collection[str]) -> list[Path]:
        """All listings that name one of these contents."""
        wanted = {digest.encode() for digest in digests}
        found = []
        for path in self.listings.iterdir():
            with suppress(FileNotFoundError):
                records = path.read_bytes().split(b"\0")
                if not wanted.isdisjoint(name for record in records for name in record.split(b" ", 2)[1:2]):
                    found.append(path)
        return found

    def write_blob(self, digest: str, content: bytes) -> None:
        """Have a content, whether it was there or not: to look first would cost more than it spares."""
        key = key_of(digest)
        self._write(f"{self._blobs_text}/{key[:2]}/{key[2:]}", content)

    def ensure(self, path: Path, content: bytes) -> None:
        """Have a file with that content; one of the same size that is there counts as written now."""
        if not self.touch(path, len(content)):
            self._write(path, content)

    def _write(self, path: Path | str, content: bytes) -> None:
        # Ten thousand at a time: without pathlib, and without a call of the system that isn't needed.
        for _ in range(MOST_ATTEMPTS):
            partial = self._partial_name()
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
            try:
                try:
                    _write_all(descriptor, content)
                finally:
                    os.close(descriptor)
                os.rename(partial, path)  # noqa: PTH104
            except FileNotFoundError:  # collected, since we were stopped for long
                continue
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial)  # noqa: PTH108
                raise
            return
        raise StoreError(f"what is written into {self.partial} doesn't stay there")

    def _partial_name(self) -> str:
        """A name that nobody else takes, in this process or another."""
        return f"{self._partial_prefix}-{os.getpid()}-{next(self._partial_numbers)}"

    def touch(self, path: Path, size: int) -> bool:
        """Tell whether a file of that size is there; if so, it counts as written now."""
        try:
            if path.stat().st_size != size:
                return False
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def remembered(self) -> dict[str, int]:
        """The sizes of blobs that were seen and not taken away since. Only who has the lock may add to it."""
        try:
            generation = (self.root / "generation").read_bytes()
        except FileNotFoundError:
            generation = b""
        seen = self._seen
        if generation != seen[0]:
            seen = self._seen = (generation, {})
        return seen[1]

    def new_generation(self) -> None:
        """Have all processes forget which blobs they saw. For who has the lock alone, before taking any away."""
        self._write(self.root / "generation", secrets.token_bytes(8))

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock, with others: nothing is taken away meanwhile."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock alone: no listing is added meanwhile. Not for long."""
        with self._locked(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


def key_of(digest: str) -> str:
    """What a digest is called on the disk; one that comes from anywhere must not lead elsewhere."""
    match = _DIGEST.fullmatch(digest)
    if match is None:
        raise NotStored(f'"{digest[:100]}" isn\'t a digest', hint="a digest is sha256: and 64 hex digits")
    return match[1]


def older(path: "Path | os.DirEntry[str]", before: float) -> bool:
    """Tell whether a file was last touched before that time; one that is gone wasn't."""
    try:
        return path.stat().st_mtime <= before
    except FileNotFoundError:
        return False


def _write_all(descriptor: int, content: bytes) -> None:
    """Write to the end: the system may take a part at a time."""
    written = os.write(descriptor, content)
    while written < len(content):
        written += os.write(descriptor, content[written:])


def try_lock(path: Path, kind: int) -> int | None:
    """A lock on a file, which lasts until the descriptor is closed; None if someone else has it, or took it away."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        if same_file(descriptor, path):
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None
