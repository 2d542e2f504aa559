"""From a repository and a version policy to an artifact: look, fetch, verify, and write the files into the store.

    ls-remote ─► Version ─► mirror: fetch ─► verify ─► ls-tree ─► blobs that the store lacks ─► listing ─► Artifact

Looking is cheap, and everyone does it with their own credentials: what one may read of a mirror that all share is
what the server let them see. Questions that are alike are asked once while the answer is awaited. Nothing is fetched
that is there already.
"""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from starling.aio import Slots
from starling.errors import InputError
from starling.files import private_folder, write_private
from starling.objects import digest
from starling.sources.errors import Incomplete, MirrorBroken, NoSuchVersion, NotStored, Refused
from starling.sources.git.command import Git, exchange, sweep
from starling.sources.git.credentials import ANONYMOUS, Credentials
from starling.sources.git.files import Commit, Reading
from starling.sources.git.mirror import Mirror
from starling.sources.git.refs import HEADS, TAGS, Ref, Version, choose, parse_listing, patterns
from starling.sources.git.url import GitUrl, parse_url
from starling.sources.git.verify import Keys, verify
from starling.sources.ignore import Ignore
from starling.sources.store import Artifact, ArtifactStore
from starling.sources.trees import Entry

__all__ = ["FetchSettings", "GitSource", "GitSources"]

T = TypeVar("T")

DEEPEST: Final = 5
"""Submodules in submodules in …"""

MOST_SUBMODULES: Final = 100

NOWHERE: Final = parse_url("file:///nowhere")


class GitSource(msgspec.Struct, frozen=True):
    """What to fetch: files that `ignore` matches (as .gitignore says it) are neither fetched nor kept."""

    url: str
    ref: Ref
    submodules: bool = False
    keys: Keys | None = None
    ignore: tuple[str, ...] = ()


class FetchSettings(msgspec.Struct, frozen=True):
    """Whether repositories on this machine may be read; how many talk to servers at once; seconds; bytes.

    Who talks for longer than `patience` isn't counted any more: one slow server holds up no other.
    """

    allow_file: bool = False
    at_once: int = 8
    patience: float = 10.0
    look_within: float = 60.0
    fetch_within: float = 900.0
    largest_file: int = 64 << 20


class GitSources:
    """Git repositories, as artifacts. Mutable: mirrors and questions under way; all else is in files below `root`.

    git/    mirrors            made/   artifacts by version, so that what was made isn't made again
    last/   the artifact that was made last of a repository, onto which the next is made
    talks/  what git needs to talk to a server, while it does
    """

    def __init__(self, root: Path, store: ArtifactStore, settings: FetchSettings | None = None) -> None:
        self._root = private_folder(root)
        self._store = store
        self._settings = settings or FetchSettings()
        self._mirrors: dict[Path, Mirror] = {}
        self._slots = Slots(self._settings.at_once, self._settings.patience)
        self._under_way: dict[object, asyncio.Future[Any]] = {}
        for name in ("git", "made", "last", "talks"):
            private_folder(root / name)
        sweep(root / "talks")

    async def look(self, source: GitSource, credentials: Credentials = ANONYMOUS) -> Version:
        """Which version it is at now: asks the server, fetches nothing."""
        url = self._url(source.url)
        question = (url.text, source.ref, credentials.fingerprint)
        return await self._together(question, lambda: self._look(url, source.ref, credentials))

    async def main_branch(self, address: str, credentials: Credentials = ANONYMOUS) -> str:
        """What the repository calls its main branch."""
        url = self._url(address)
        async with self._talking(url, credentials) as git:
            command = ("ls-remote", "--quiet", "--symref", url.normal, "HEAD")
            done = await git.run(*command, folder=Path("/"), within=self._settings.look_within)
        for line in done.output.decode(errors="replace").splitlines():
            if line.startswith(f"ref: {HEADS}") and line.endswith("\tHEAD"):
                return line.removeprefix(f"ref: {HEADS}").removesuffix("\tHEAD")
        raise NoSuchVersion(f"{url} has no main branch", hint="say which version is meant")

    async def fetch(self, source: GitSource, credentials: Credentials = ANONYMOUS) -> Artifact:
        """The artifact of the version that it is at now; after a look, nothing more is asked if we have it."""
        version = await self.look(source, credentials)
        try:
            return await self._artifact(source, version, credentials)
        except NoSuchVersion:  # it may have moved since we looked
            again = await self.look(source, credentials)
            if again == version:
                raise
            return await self._artifact(source, again, credentials)

    async def collect(self, older_than: float) -> None:
        """Take away mirrors, and notes of what was made, that nobody has used for so many seconds."""
        before = time.time() - older_than
        await asyncio.to_thread(_forget, [self._root / "made", self._root / "last"], before)
        for lock in (self._root / "git").glob("*.lock"):
            if _age(lock) < before:
                mirror = self._mirrors.setdefault(lock.with_suffix(""), Mirror(lock.with_suffix(""), NOWHERE))
                async with mirror.alone():
                    await mirror.discard()
                    lock.unlink(missing_ok=True)
                    self._mirrors.pop(lock.with_suffix(""), None)

    async def _artifact(self, source: GitSource, version: Version, credentials: Credentials) -> Artifact:
        job = _Job(self._url(source.url), source, version, credentials)
        how = msgspec.to_builtins([job.url.repository, source.submodules, source.ignore, source.keys])
        made = self._root / "made" / _name([how, version.ref, version.named, version.commit])
        known = _read_json(made, _Made)
        if known is not None and self._store.has(known.artifact.digest):
            for address, pinned, ours in known.submodules:  # whoever may not read them gets nothing of them
                await self._look_at(address, pinned, credentials if ours else ANONYMOUS)
            return known.artifact

        async def make() -> Artifact:
            last = self._root / "last" / _name(how)
            new = await self._make(job, _read_json(last, _Made))
            for file in (made, last):
                await asyncio.to_thread(write_private, file, msgspec.json.encode(new))
            return new.artifact

        # With others only if they have the same credentials: what is fetched is fetched with these.
        return await self._together((made, credentials.fingerprint), make)

    async def _make(self, job: "_Job", last: "_Made | None") -> "_Made":
        """An artifact of a version: the last one with what has changed, if there is a last one and that is known."""
        if last is not None and not job.source.submodules:
            try:
                if (changes := await self._changes(job, last.commit)) is not None:
                    artifact = await self._store.amend(last.artifact, job.version.revision, changes)
                    return _Made(job.version.commit, artifact)
            except (NotStored, Incomplete):
                pass  # it was collected
        try:
            return await self._put(job)
        except Incomplete:  # collected just now
            return await self._put(job)

    async def _put(self, job: "_Job") -> "_Made":
        submodules: list[tuple[str, str, bool]] = []
        files = await self._files(job, submodules)
        return _Made(job.version.commit, await self._store.put(job.version.revision, files), tuple(submodules))

    # Asking

    def _url(self, text: str) -> GitUrl:
        url = parse_url(text)
        if url.scheme == "file" and not self._settings.allow_file:
            raise InputError(f"{url}: repositories on this machine's disk aren't read here", hint="serve it over https")
        return url

    async def _look(self, url: GitUrl, ref: Ref, credentials: Credentials) -> Version:
        try:
            return choose(await self._ls_remote(url, patterns(ref), credentials), ref)
        except NoSuchVersion as error:
            everything = await self._ls_remote(url, (f"{HEADS}*" if ref.branch else f"{TAGS}*",), credentials)
            try:
                return choose(everything, ref)  # which says what there is instead
            except NoSuchVersion as told:
                raise NoSuchVersion(f"{url}: {told.message}", hint=told.hint) from error

    async def _ls_remote(self, url: GitUrl, names: Sequence[str], credentials: Credentials) -> dict[str, str]:
        async with self._talking(url, credentials) as git:
            command = ("ls-remote", "--quiet", url.normal, *names)
            done = await git.run(*command, folder=Path("/"), within=self._settings.look_within)
        return parse_listing(done.output)

    @asynccontextmanager
    async def _talking(self, url: GitUrl, credentials: Credentials) -> AsyncIterator[Git]:
        place = await self._slots.take()
        try:
            async with exchange(url, credentials, self._root / "talks") as git:
                yield git
        finally:
            place.give_up()

    async def _together(self, question: object, answer: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The answer to a question that others may be asking at this moment, too."""
        if (under_way := self._under_way.get(question)) is None:
            under_way = self._under_way[question] = asyncio.ensure_future(answer())
            under_way.add_done_callback(lambda _: self._under_way.pop(question, None))
        found: T = await asyncio.shield(under_way)
        return found

    # Reading

    async def _files(self, job: "_Job", submodules: list[tuple[str, str, bool]], depth: int = 0) -> list[Entry]:
        """All files of a version, those of its submodules among them, each of them in the store.

        `submodules` comes to have each of those: address, commit, and whether our credentials went along.
        """
        commit = await self._commit(job)
        files = list(commit.files)
        url = job.url
        for path, address, pinned in commit.submodules:
            if depth == DEEPEST or len(submodules) == MOST_SUBMODULES:
                raise Refused(f"{url}: too many submodules, or too many within one another, at {path}")
            there = url.joined(address) if address.startswith(("./", "../")) else self._url(address)
            if there.scheme == "file" and url.scheme != "file":
                raise Refused(f"{url}: the submodule {path} would come from this machine's disk")
            ours = (there.scheme, there.host) == (url.scheme, url.host) and job.credentials != ANONYMOUS
            as_whom = job.credentials if ours else ANONYMOUS
            submodules.append((there.text, pinned, ours))
            found = await self._look_at(there.text, pinned, as_whom)
            inner = GitSource(there.text, Ref(commit=pinned), submodules=True)
            inside = await self._files(_Job(there, inner, found, as_whom), submodules, depth + 1)
            files += [msgspec.structs.replace(each, path=f"{path}/{each.path}") for each in inside]
        return files

    async def _look_at(self, address: str, pinned: str, credentials: Credentials) -> Version:
        return await self.look(GitSource(address, Ref(commit=pinned)), credentials)

    async def _commit(self, job: "_Job") -> Commit:
        """One version's own files. A mirror that turns out to be broken is made anew, once."""
        async with self._reading(job) as reading:
            try:
                await self._fetch(reading, job)
                return await reading.commit(job.version)
            except MirrorBroken:
                await reading.mirror.renew()
                await self._fetch(reading, job)
                return await reading.commit(job.version)

    async def _changes(self, job: "_Job", before: str) -> dict[str, Entry | None] | None:
        """What has changed since a commit; None if that isn't known, or isn't little."""
        async with self._reading(job) as reading:
            if not reading.mirror.has(before):
                return None
            try:
                await self._fetch(reading, job)
                return await reading.changes(before, job.version) if reading.mirror.has(before) else None
            except MirrorBroken:
                return None

    @asynccontextmanager
    async def _reading(self, job: "_Job") -> AsyncIterator[Reading]:
        mirror, settings, source = self._mirror(job.url, job.version), self._settings, job.source
        async with mirror.held(), self._talking(job.url, job.credentials) as git:
            yield Reading(
                mirror, git, self._store, Ignore(source.ignore), source.submodules,
                settings.largest_file, settings.fetch_within,
            )  # fmt: skip

    async def _fetch(self, reading: Reading, job: "_Job") -> None:
        """Have a version in the mirror, and be sure that it is what the server says; and signed, if it must be."""
        source, version = job.source, job.version
        new = not reading.mirror.has(version.named)
        if new:
            within = self._settings.fetch_within
            await reading.mirror.fetch(reading.git, version, without_files=bool(source.ignore), within=within)
        if new or version.is_tag_object:
            await reading.mirror.check(version)
        if source.keys is not None:
            await verify(reading.mirror, version, source.keys)

    def _mirror(self, url: GitUrl, version: Version) -> Mirror:
        form = "sha1" if len(version.commit) == 40 else "sha256"
        folder = self._root / "git" / f"{_name(url.repository)[:32]}-{form}"
        if (known := self._mirrors.get(folder)) is None:
            known = self._mirrors[folder] = Mirror(folder, url, form)
        return known


class _Job(msgspec.Struct, frozen=True):
    """One version to be fetched, and as whom."""

    url: GitUrl
    source: GitSource
    version: Version
    credentials: Credentials


class _Made(msgspec.Struct, frozen=True):
    """What was made, of which commit, and with which submodules: address, commit, whether with our credentials."""

    commit: str
    artifact: Artifact
    submodules: tuple[tuple[str, str, bool], ...] = ()


def _name(of: object) -> str:
    return digest(of).removeprefix("sha256:")


def _read_json(file: Path, into: type[T]) -> T | None:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=into)
        os.utime(file)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return found


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _forget(folders: Sequence[Path], before: float) -> None:
    for file in (file for folder in folders for file in folder.iterdir()):
        if _age(file) < before:
            file.unlink(missing_ok=True)
