"""One repository on this machine: a bare, shallow clone that all who use the repository share.

It has the commits that someone asked for, each under `refs/starling/<id>`, so that the next fetch brings only what is
new. It is a cache: what was made of it is in the artifact store. One that is broken, or has become large, is thrown
away and begun anew.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from starling.files import locked
from starling.sources.errors import MirrorBroken, NoSuchVersion, Refused
from starling.sources.git.command import LONGEST, Git, locally
from starling.sources.git.refs import Version
from starling.sources.git.url import GitUrl

__all__ = ["GitEntry", "Mirror"]

MOST_KEPT: Final = 64
"""How many commits one may have; then it is begun anew, with one."""

QUICK: Final = 60.0
_FETCH: Final = (
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules",
)  # fmt: skip


class GitEntry(msgspec.Struct, frozen=True):
    """One line of a commit's tree: a file (100644, 100755), a link (120000) or a submodule's commit (160000)."""

    mode: str
    object: str
    path: str


class Mirror:
    """The clone of one repository. Whatever changes it is done while `held`."""

    def __init__(self, folder: Path, url: GitUrl, object_format: str = "sha1") -> None:
        self.folder = folder
        self.url = url
        self._object_format = object_format
        self._git = locally(url)
        self._lock = asyncio.Lock()

    @property
    def index(self) -> Path:
        """What git and the store call the blobs that were read of it (`starling.sources.git.blobs`)."""
        return self.folder.with_suffix(".blobs")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Nobody else changes it meanwhile, in this process or another; made now if there is none yet."""
        async with self.alone():
            os.utime(self.folder.with_suffix(".lock"))  # it is in use: who collects sees it
            if not self.folder.exists():
                await self._create()
            yield

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """As held, to throw it away: nothing is made."""
        async with self._lock, locked(self.folder.with_suffix(".lock"), lambda: None):
            yield

    def has(self, object_id: str) -> bool:
        """Whether a commit or tag object was fetched, apart from files that were left out."""
        return (self.folder / "refs" / "starling" / object_id).exists()

    async def fetch(self, git: Git, version: Version, *, without_files: bool, within: float) -> None:
        """Have a version's commit, tag object and trees; and its files, unless those are chosen one by one later.

        Asked for by its id, which servers allow for what their refs name, or, of those who don't, by its ref.
        """
        kept = self.folder / "refs" / "starling"
        if kept.exists() and sum(1 for _ in kept.iterdir()) >= MOST_KEPT:
            await self.renew()
        options = (*_FETCH, "--depth=1", "--filter=blob:none" if without_files else "--no-filter")
        wanted = f"{version.named}:refs/starling/{version.named}"
        try:
            await git.run(*options, "origin", wanted, folder=self.folder, within=within)
        except NoSuchVersion:
            if not version.ref:
                raise
            by_name = f"+{version.ref}:refs/starling/by-name"
            await git.run(*options, "origin", by_name, folder=self.folder, within=within)
            await self._rename(version)

    async def fetch_files(self, git: Git, files: Iterable[str], within: float) -> None:
        """Have these files, by the ids of their blobs, all at once."""
        wanted = "".join(f"{each}\n" for each in files).encode()
        # No haves: what is wanted are just these, and what else we have doesn't matter to the server.
        options = ("-c", "fetch.negotiationAlgorithm=noop", *_FETCH, "--filter=blob:none", "--stdin", "origin")
        await git.run(*options, folder=self.folder, within=within, feed=wanted)

    async def check(self, version: Version) -> None:
        """Refused unless what the ref names is, or is a tag of, the very commit that the server said it is."""
        try:
            found = await self._locally("rev-parse", "--verify", "--quiet", f"{version.named}^{{commit}}")
        except MirrorBroken as error:
            raise Refused(f"{self.url}: {version.name or version.named} names no commit") from error
        if found.decode().strip() != version.commit:
            raise Refused(f"{self.url}: {version.name} isn't a tag of the commit that the server says it is")

    async def entries(self, commit: str) -> list[GitEntry]:
        """Everything in a commit's tree, folders taken apart, in git's order."""
        done = await self._locally("ls-tree", "-r", "-z", "--full-tree", commit)
        return [_entry(line) for line in done.split(b"\0") if line]

    async def changes(self, before: str, after: str) -> list[GitEntry]:
        """What a commit's tree has otherwise than another's; mode "" for what it no longer has."""
        done = await self._locally("diff-tree", "-r", "-z", "--no-renames", before, after)
        parts = done.split(b"\0")[:-1]
        return [_changed(head, name) for head, name in zip(parts[::2], parts[1::2], strict=True)]

    async def sizes(self, files: Iterable[str]) -> dict[str, int | None]:
        """How long these blobs are; None for those that were never fetched."""
        listing = await self._cat("--batch-check=%(objectname) %(objectsize)", files)
        parts = (line.split(b" ") for line in listing.splitlines())
        return {name.decode(): None if size == b"missing" else int(size) for name, size in parts}

    async def contents(self, files: Sequence[str]) -> list[bytes]:
        """These blobs, all at once, so not too many; each was fetched."""
        output = await self._cat("--batch", files)
        found: list[bytes] = []
        place = 0
        for _ in files:
            head = output.index(b"\n", place)
            size = int(output[place:head].rsplit(b" ", 1)[1])
            found.append(output[head + 1 : head + 1 + size])
            place = head + size + 2
        return found

    async def _cat(self, how: str, files: Iterable[str]) -> bytes:
        asked = "".join(f"{each}\n" for each in files).encode()
        return await self._locally("cat-file", how, "--buffer", feed=asked, longest=1 << 30)

    async def object(self, kind: str, object_id: str) -> bytes:
        """A commit or a tag object, as it is signed."""
        return await self._locally("cat-file", kind, object_id)

    async def submodule_urls(self, commit: str) -> Mapping[str, str]:
        """The addresses in the commit's .gitmodules, by the paths where the submodules belong."""
        listing = await self._locally("config", f"--blob={commit}:.gitmodules", "-z", "--list")
        values: dict[str, dict[str, str]] = {}
        for line in listing.decode(errors="replace").split("\0"):
            key, _, value = line.partition("\n")
            section, _, name = key.rpartition(".")
            if section.startswith("submodule."):
                values.setdefault(section, {})[name] = value
        return {each["path"]: each["url"] for each in values.values() if "path" in each and "url" in each}

    async def renew(self) -> None:
        """Throw the clone away, and begin another."""
        await self.discard()
        await self._create()

    async def discard(self) -> None:
        """Throw the clone away."""
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        self.index.unlink(missing_ok=True)

    async def _locally(self, *arguments: str, feed: bytes | None = None, longest: int = LONGEST) -> bytes:
        done = await self._git.run(*arguments, folder=self.folder, within=5 * QUICK, feed=feed, longest=longest)
        return done.output

    async def _create(self) -> None:
        """An empty repository, under its name when it is whole."""
        partial = self.folder.with_suffix(".partial")
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        options = ("--quiet", "--bare", "--template=", f"--object-format={self._object_format}")
        await self._git.run("init", *options, ".", folder=partial, within=QUICK)
        partial.rename(self.folder)

    async def _rename(self, version: Version) -> None:
        """What came under its name must be what the server said it was."""
        found = (await self._locally("rev-parse", "refs/starling/by-name")).decode().strip()
        if found != version.named:
            raise NoSuchVersion(f"{self.url}: {version.name} moved while it was fetched; it will be looked at again")
        await self._locally("update-ref", f"refs/starling/{found}", found)


def _entry(line: bytes) -> GitEntry:
    head, _, name = line.partition(b"\t")
    mode, _, object_id = head.decode().split(" ")
    return GitEntry(mode, object_id, _path(name))


def _changed(head: bytes, name: bytes) -> GitEntry:
    _, mode, _, object_id, status = head.decode().split(" ")
    return GitEntry("" if status == "D" else mode, object_id, _path(name))


def _path(name: bytes) -> str:
    """A path as trees have it: bytes that aren't UTF-8 stand in it by surrogates."""
    return name.decode("utf-8", "surrogateescape")
