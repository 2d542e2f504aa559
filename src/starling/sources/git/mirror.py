"""One repository on this machine: a bare, shallow clone that all who use the repository share.

It has the commits that someone asked for, each under `refs/starling/<id>`, so that the next fetch brings only what is
new. It is a cache: what was made of it is in the artifact store, and a broken one is thrown away and fetched anew.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from starling.files import locked
from starling.programs import child
from starling.sources.errors import NoSuchVersion, Refused, SourceError
from starling.sources.git.command import LOCALLY, Git
from starling.sources.git.refs import Version
from starling.sources.git.url import GitUrl

__all__ = ["GitEntry", "Mirror"]

KEPT: Final = 32
"""How many commits are kept under refs when it is tidied up, which is done at twice as many."""

QUICK: Final = 60.0
_FETCH: Final = (
    "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules", "--depth=1",
)  # fmt: skip


class GitEntry(msgspec.Struct, frozen=True):
    """One line of a commit's tree: a file (100644, 100755), a link (120000) or a submodule's commit (160000)."""

    mode: str
    object: str
    path: str


class Mirror:
    """The clone of one repository. Whatever changes it is done while `held`."""

    def __init__(self, folder: Path, url: GitUrl) -> None:
        self.folder = folder
        self.url = url
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Nobody else changes it meanwhile, in this process or another; made now if there is none yet."""
        async with self._lock:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            async with locked(self.folder.with_suffix(".lock"), lambda: None):
                if not self.folder.exists():
                    await self._create()
                yield

    def has(self, object_id: str) -> bool:
        """Whether a commit or tag object was fetched, apart from files that were left out."""
        return (self.folder / "refs" / "starling" / object_id).exists()

    async def fetch(self, git: Git, version: Version, *, without_files: bool, within: float) -> None:
        """Have a version's commit, tag object and trees; and its files, unless those are chosen one by one later.

        Asked for by its id, which servers allow for what their refs name, or, of those who don't, by its ref.
        """
        options = (*_FETCH, "--filter=blob:none" if without_files else "--no-filter")
        wanted = f"{version.named}:refs/starling/{version.named}"
        try:
            await git.run(*options, "origin", wanted, folder=self.folder, within=within)
        except NoSuchVersion:
            if not version.ref:
                raise
            await git.run(
                *options, "origin", f"+{version.ref}:refs/starling/by-name", folder=self.folder, within=within
            )
            await self._rename(version)
        await self._tidy(git, within)

    async def fetch_files(self, git: Git, files: Iterable[str], within: float) -> None:
        """Have these files, by the ids of their blobs, all at once."""
        wanted = "".join(f"{each}\n" for each in files).encode()
        # No haves: what is wanted are just these, and what else we have doesn't matter to the server.
        options = ("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
        await git.run(
            *options, "--no-auto-gc", "--no-recurse-submodules", "--filter=blob:none", "--stdin", "origin",
            folder=self.folder, within=within, feed=wanted,
        )  # fmt: skip

    async def entries(self, commit: str) -> list[GitEntry]:
        """Everything in a commit's tree, folders taken apart, in git's order."""
        done = await self._locally("ls-tree", "-r", "-z", "--full-tree", commit)
        return [_entry(line) for line in done.split(b"\0") if line]

    async def changes(self, before: str, after: str) -> list[GitEntry]:
        """What a commit's tree has otherwise than another's; mode "" for what it no longer has."""
        done = await self._locally("diff-tree", "-r", "-z", "--no-renames", before, after)
        parts = done.split(b"\0")[:-1]
        return [_changed(head, name) for head, name in zip(parts[::2], parts[1::2], strict=True)]

    async def contents(self, files: Mapping[str, str], largest: int) -> AsyncIterator[tuple[str, bytes | None]]:
        """Blobs one after the other, None for those that were never fetched; Refused, with its path, if too large."""
        command = ("git", "cat-file", "--batch", "--buffer")
        async with child(
            *command, environment=LOCALLY.environment, cwd=self.folder, stdin=asyncio.subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            feeding = asyncio.create_task(_feed(process.stdin, files))
            try:
                for each, path in files.items():
                    head = (await process.stdout.readline()).split()
                    if len(head) == 2:
                        yield each, None
                        continue
                    if len(head) != 3:
                        raise SourceError(f"{self.url}: the copy of the repository on this machine can't be read")
                    if int(head[2]) > largest:
                        raise Refused(
                            f"{self.url}: {path} has {int(head[2]):,} bytes, more than {largest:,}",
                            hint="leave it out with an ignore pattern",
                        )
                    content = await process.stdout.readexactly(int(head[2]) + 1)
                    yield each, content[:-1]
            finally:
                feeding.cancel()
                await asyncio.wait([feeding])

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
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        await self._create()

    async def _locally(self, *arguments: str, feed: bytes | None = None) -> bytes:
        done = await LOCALLY.run(*arguments, folder=self.folder, within=QUICK * 5, feed=feed)
        return done.output

    async def _create(self) -> None:
        """An empty repository, under its name when it is whole."""
        partial = self.folder.with_suffix(".partial")
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        partial.mkdir(parents=True)
        await LOCALLY.run("init", "--quiet", "--bare", "--template=", ".", folder=partial, within=QUICK)
        await LOCALLY.run("config", "remote.origin.url", self.url.text, folder=partial, within=QUICK)
        partial.rename(self.folder)

    async def _rename(self, version: Version) -> None:
        """What came under its name must be what the server said it was."""
        found = (await self._locally("rev-parse", "refs/starling/by-name")).decode().strip()
        if found != version.named:
            raise NoSuchVersion(f"{self.url}: {version.name} moved while it was fetched; it will be looked at again")
        await self._locally("update-ref", f"refs/starling/{found}", found)

    async def _tidy(self, git: Git, within: float) -> None:
        """Let go of the commits that were fetched longest ago."""
        refs = sorted((self.folder / "refs" / "starling").iterdir(), key=lambda ref: ref.stat().st_mtime, reverse=True)
        if len(refs) < 2 * KEPT:
            return
        for ref in refs[KEPT:]:
            ref.unlink()
        await git.run("gc", "--quiet", "--prune=now", folder=self.folder, within=within)


async def _feed(pipe: asyncio.StreamWriter, files: Iterable[str]) -> None:
    for each in files:
        pipe.write(f"{each}\n".encode())
        await pipe.drain()
    pipe.close()


def _entry(line: bytes) -> GitEntry:
    head, _, name = line.partition(b"\t")
    mode, _, object_id = head.decode().split(" ")
    return GitEntry(mode, object_id, _path(name))


def _changed(head: bytes, name: bytes) -> GitEntry:
    _, mode, _, object_id, status = head.decode().split(" ")
    return GitEntry("" if status == "D" else mode, object_id, _path(name))


def _path(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"the name of a file isn't UTF-8: {name.decode(errors='replace')}") from error
