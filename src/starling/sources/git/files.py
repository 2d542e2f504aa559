"""One commit's files, brought into the store: what the store has isn't read, what git has isn't fetched."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from starling.sources.errors import Refused, SourceError
from starling.sources.git.blobs import BlobIndex, Known
from starling.sources.git.command import Git
from starling.sources.git.mirror import GitEntry, Mirror
from starling.sources.git.refs import Version
from starling.sources.ignore import Ignore
from starling.sources.store import ArtifactStore
from starling.sources.trees import Entry, Mode

__all__ = ["Commit", "Reading"]

FILE_MODES: Final[Mapping[str, Mode]] = {"100644": "file", "100664": "file", "100755": "executable", "120000": "link"}
SUBMODULE: Final = "160000"
BATCH: Final = 16 << 20
"""How many bytes of files are read at a time; one file may have more."""
MOST_CHANGES: Final = 1000
"""Beyond these, a tree is cheaper read as a whole."""


class Commit(msgspec.Struct, frozen=True):
    """A commit's files, each of them in the store, and the submodules it names: path, address, commit."""

    files: tuple[Entry, ...]
    submodules: tuple[tuple[str, str, str], ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """How commits of one mirror are read, and where to. Whoever calls holds the mirror, and has fetched the commit."""

    mirror: Mirror
    git: Git
    store: ArtifactStore
    ignore: Ignore
    submodules: bool
    largest_file: int
    within: float

    async def commit(self, version: Version) -> Commit:
        """What a version has."""
        found = await self.mirror.entries(version.commit)
        wanted = self._wanted(found)
        if len(wanted) > self.store.limits.files:
            raise Refused(
                f"{self.mirror.url}: there are more than {self.store.limits.files:,} files",
                hint="leave some out with ignore patterns",
            )
        blobs = await self._blobs(wanted)
        files = tuple(_file(each, blobs) for each in wanted)
        links = [each for each in found if each.mode == SUBMODULE and not self.ignore.ignores(each.path)]
        if not self.submodules or not links:
            return Commit(files)
        await self._read({each.object: each.path for each in found if each.path == ".gitmodules"})
        urls = await self.mirror.submodule_urls(version.commit)
        if unknown := next((each.path for each in links if each.path not in urls), None):
            raise Refused(f"{self.mirror.url}: .gitmodules doesn't say where the submodule {unknown} comes from")
        return Commit(files, tuple((each.path, urls[each.path], each.object) for each in links))

    async def changes(self, before: str, version: Version) -> dict[str, Entry | None] | None:
        """The files that a version has otherwise than another commit, or no longer; None if they are too many."""
        found = await self.mirror.changes(before, version.commit)
        if len(found) > MOST_CHANGES or len({each.path for each in found}) < len(found):
            return None
        wanted = self._wanted(found)
        blobs = await self._read(_paths(wanted))
        gone = {each.path: None for each in found if not self.ignore.ignores(each.path)}
        return {**gone, **{each.path: _file(each, blobs) for each in wanted}}

    def _wanted(self, found: Iterable[GitEntry]) -> list[GitEntry]:
        return [each for each in found if each.mode in FILE_MODES and not self.ignore.ignores(each.path)]

    async def _blobs(self, wanted: Iterable[GitEntry]) -> dict[str, Known]:
        """What the store calls each file's content."""
        known = await asyncio.to_thread(self._index().read)
        paths = _paths(wanted)
        digests = {known[name].digest for name in paths if name in known}
        lost = await asyncio.to_thread(self.store.lacking, digests)
        unread = {name: path for name, path in paths.items() if name not in known or known[name].digest in lost}
        return known | await self._read(unread)

    def _index(self) -> BlobIndex:
        return BlobIndex(self.mirror.index)

    async def _read(self, paths: Mapping[str, str]) -> dict[str, Known]:
        """Bring blobs, given with a path of each, into the store; what a fetch left out is fetched now, all at once."""
        if not paths:
            return {}
        sizes = await self.mirror.sizes(paths)
        if missing := [name for name, size in sizes.items() if size is None]:
            await self.mirror.fetch_files(self.git, missing, self.within)
            sizes |= await self.mirror.sizes(missing)
        self._check(paths, sizes)
        read: dict[str, Known] = {}
        for batch in _batches(sizes):
            contents = await self.mirror.contents(batch)
            digests = await asyncio.to_thread(self.store.add_all, contents)
            read |= {name: Known(each, sizes[name] or 0) for name, each in zip(batch, digests, strict=True)}
        await asyncio.to_thread(self._index().append, read)
        return read

    def _check(self, paths: Mapping[str, str], sizes: Mapping[str, int | None]) -> None:
        """Refuse what is too much before any of it is read."""
        where, hint, left = self.mirror.url, "leave some out with ignore patterns", self.store.limits.total_size
        for name, size in sizes.items():
            if size is None:
                raise SourceError(f"{where}: the server doesn't give {paths[name]}")
            if size > self.largest_file:
                raise Refused(f"{where}: {paths[name]} has {size:,} bytes, more than {self.largest_file:,}", hint=hint)
            left -= size
            if left < 0:
                most = f"{self.store.limits.total_size:,}"
                raise Refused(f"{where}: the files have more than {most} bytes in all, up to {paths[name]}", hint=hint)


def _batches(sizes: Mapping[str, int | None]) -> Iterator[list[str]]:
    """The blobs in groups that fit into memory together."""
    batch: list[str] = []
    left = BATCH
    for name, size in sizes.items():
        left -= size or 0
        if left < 0 and batch:
            yield batch
            batch, left = [], BATCH - (size or 0)
        batch.append(name)
    if batch:
        yield batch


def _paths(wanted: Iterable[GitEntry]) -> dict[str, str]:
    """The blobs of files, each with the path of one that has it."""
    return {each.object: each.path for each in wanted}


def _file(entry: GitEntry, blobs: Mapping[str, Known]) -> Entry:
    known = blobs[entry.object]
    return Entry(entry.path, FILE_MODES[entry.mode], known.digest, known.size)
