"""One commit's files, brought into the store: what the store has isn't read, what git has isn't fetched."""

import asyncio
from collections.abc import Iterable, Mapping
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
BATCH: Final = 4 << 20
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
        read, missing = await self._read_all(paths)
        if missing:
            await self.mirror.fetch_files(self.git, missing, self.within)
            more, missing = await self._read_all(missing)
            read |= more
        if missing:
            raise SourceError(f"{self.mirror.url}: the server doesn't give {next(iter(missing.values()))}")
        await asyncio.to_thread(self._index().append, read)
        return read

    async def _read_all(self, paths: Mapping[str, str]) -> tuple[dict[str, Known], dict[str, str]]:
        """Those that could be read, and those that aren't there."""
        read: dict[str, Known] = {}
        missing: dict[str, str] = {}
        batch: dict[str, bytes] = {}
        size = total = 0
        async for name, content in self.mirror.contents(paths, self.largest_file):
            if content is None:
                missing[name] = paths[name]
                continue
            batch[name] = content
            size += len(content)
            total += len(content)
            if total > self.store.limits.total_size:
                raise Refused(
                    f"{self.mirror.url}: the files have more than {self.store.limits.total_size:,} bytes in all, "
                    f"up to {paths[name]}",
                    hint="leave some out with ignore patterns",
                )
            if size > BATCH:
                read |= await self._add(batch)
                batch, size = {}, 0
        return read | await self._add(batch), missing

    async def _add(self, batch: Mapping[str, bytes]) -> dict[str, Known]:
        digests = await asyncio.to_thread(self.store.add_all, list(batch.values()))
        return {name: Known(each, len(batch[name])) for name, each in zip(batch, digests, strict=True)}


def _paths(wanted: Iterable[GitEntry]) -> dict[str, str]:
    """The blobs of files, each with the path of one that has it."""
    return {each.object: each.path for each in wanted}


def _file(entry: GitEntry, blobs: Mapping[str, Known]) -> Entry:
    known = blobs[entry.object]
    return Entry(entry.path, FILE_MODES[entry.mode], known.digest, known.size)
