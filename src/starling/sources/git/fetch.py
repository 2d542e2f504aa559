"""From a repository and a version policy to an artifact: look, fetch, verify, and write the files into the store.

    ls-remote ─► Version ─► mirror: fetch ─► verify ─► ls-tree ─► blobs that the store lacks ─► listing ─► Artifact

Looking is cheap, and everyone does it with their own credentials: what one may read of a mirror that all share is
what the server let them see. Questions that are alike are asked once while the answer is awaited. Nothing is fetched
that is there already.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from starling.aio import Slots
from starling.errors import InputError
from starling.files import write_private
from starling.objects import digest
from starling.sources.errors import NoSuchVersion, Refused, SourceError
from starling.sources.git.command import Git, exchange
from starling.sources.git.credentials import ANONYMOUS, Credentials
from starling.sources.git.files import Commit, Reading
from starling.sources.git.mirror import Mirror
from starling.sources.git.refs import HEADS, TAGS, Ref, Version, choose, parse_listing, patterns
from starling.sources.git.url import GitUrl, parse_url
from starling.sources.git.verify import Keys, verify
from starling.sources.ignore import Ignore
from starling.sources.pool import Incomplete, NotStored
from starling.sources.store import Artifact, ArtifactStore
from starling.sources.trees import Entry

__all__ = ["FetchSettings", "GitSource", "GitSources"]

T = TypeVar("T")

DEEPEST: Final = 5
"""Submodules in submodules in …"""


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
    """Git repositories, as artifacts. Mutable: mirrors and questions under way; all else is in files below `root`."""

    def __init__(self, root: Path, store: ArtifactStore, settings: FetchSettings | None = None) -> None:
        self._root = root
        self._store = store
        self._settings = settings or FetchSettings()
        self._mirrors: dict[str, Mirror] = {}
        self._slots = Slots(self._settings.at_once, self._settings.patience)
        self._under_way: dict[object, asyncio.Future[Any]] = {}

    async def look(self, source: GitSource, credentials: Credentials = ANONYMOUS) -> Version:
        """Which version it is at now: asks the server, fetches nothing."""
        url = self._url(source.url)
        question = (url.text, source.ref, credentials.fingerprint)
        return await self._together(question, lambda: self._look(url, source.ref, credentials))

    async def main_branch(self, address: str, credentials: Credentials = ANONYMOUS) -> str:
        """What the repository calls its main branch."""
        url = self._url(address)
        async with self._talking(url, credentials) as git:
            command = ("ls-remote", "--quiet", "--symref", url.text, "HEAD")
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

    async def _artifact(self, source: GitSource, version: Version, credentials: Credentials) -> Artifact:
        url = self._url(source.url)
        how = msgspec.to_builtins([url.repository, source.submodules, source.ignore, source.keys])
        made = self._root / "made" / _name([how, version.ref, version.named])
        known = _read_json(made, Artifact)
        if known is not None and self._store.has(known.digest):
            return known

        async def make() -> Artifact:
            last = self._root / "last" / _name(how)
            artifact = await self._make(url, source, version, credentials, _read_json(last, _Made))
            await asyncio.to_thread(_write_json, made, artifact)
            await asyncio.to_thread(_write_json, last, _Made(version.commit, artifact))
            return artifact

        # With others only if they have the same credentials: what is fetched is fetched with these.
        return await self._together((made, credentials.fingerprint), make)

    async def _make(
        self, url: GitUrl, source: GitSource, version: Version, credentials: Credentials, last: "_Made | None"
    ) -> Artifact:
        """An artifact of a version: the last one with what has changed, if there is a last one and that is known."""
        if last is not None and not source.submodules:
            try:
                changes = await self._changes(url, source, version, credentials, last.commit)
                if changes is not None:
                    return await self._store.amend(last.artifact, version.revision, changes)
            except (NotStored, Incomplete):
                pass  # it was collected
        try:
            return await self._put(url, source, version, credentials)
        except Incomplete:  # collected just now
            return await self._put(url, source, version, credentials)

    async def _put(self, url: GitUrl, source: GitSource, version: Version, credentials: Credentials) -> Artifact:
        files = await self._files(url, source, version, credentials, depth=0)
        return await self._store.put(version.revision, files)

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
            command = ("ls-remote", "--quiet", url.text, *names)
            done = await git.run(*command, folder=Path("/"), within=self._settings.look_within)
        return parse_listing(done.output)

    @asynccontextmanager
    async def _talking(self, url: GitUrl, credentials: Credentials) -> AsyncIterator[Git]:
        place = await self._slots.take()
        try:
            async with exchange(url, credentials) as git:
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

    async def _files(
        self, url: GitUrl, source: GitSource, version: Version, credentials: Credentials, *, depth: int
    ) -> list[Entry]:
        """All files of a version, those of its submodules among them, each of them in the store."""
        commit = await self._commit(url, source, version, credentials)
        files = list(commit.files)
        for path, address, pinned in commit.submodules:
            if depth == DEEPEST:
                raise Refused(f"{url}: submodules in submodules, more than {DEEPEST} deep, at {path}")
            there = url.joined(address) if address.startswith(("./", "../")) else self._url(address)
            if there.scheme == "file" and url.scheme != "file":
                raise Refused(f"{url}: the submodule {path} would come from this machine's disk")
            same_host = (there.scheme, there.host) == (url.scheme, url.host)
            as_whom = credentials if same_host else ANONYMOUS
            inner = msgspec.structs.replace(source, url=there.text, ref=Ref(commit=pinned), keys=None, ignore=())
            found = await self.look(inner, as_whom)  # whoever may not read it gets nothing of it
            inside = await self._files(there, inner, found, as_whom, depth=depth + 1)
            files += [msgspec.structs.replace(each, path=f"{path}/{each.path}") for each in inside]
        return files

    async def _commit(self, url: GitUrl, source: GitSource, version: Version, credentials: Credentials) -> Commit:
        """One version's own files. A mirror that turns out to be broken is made anew, once."""
        async with self._reading(url, source, credentials) as reading:
            try:
                await self._fetch(reading, source, version)
                return await reading.commit(version)
            except SourceError as error:
                if type(error) is not SourceError:
                    raise
                await reading.mirror.renew()
                await self._fetch(reading, source, version)
                return await reading.commit(version)

    async def _changes(
        self, url: GitUrl, source: GitSource, version: Version, credentials: Credentials, before: str
    ) -> dict[str, Entry | None] | None:
        """What has changed since a commit; None if that isn't known, or isn't little."""
        async with self._reading(url, source, credentials) as reading:
            if not reading.mirror.has(before):
                return None
            try:
                await self._fetch(reading, source, version)
                return await reading.changes(before, version)
            except SourceError as error:
                if type(error) is not SourceError:
                    raise
                return None

    @asynccontextmanager
    async def _reading(self, url: GitUrl, source: GitSource, credentials: Credentials) -> AsyncIterator[Reading]:
        mirror, settings = self._mirror(url), self._settings
        async with mirror.held(), self._talking(url, credentials) as git:
            yield Reading(
                mirror, git, self._store, Ignore(source.ignore), source.submodules,
                settings.largest_file, settings.fetch_within,
            )  # fmt: skip

    async def _fetch(self, reading: Reading, source: GitSource, version: Version) -> None:
        if not reading.mirror.has(version.named):
            await reading.mirror.fetch(
                reading.git, version, without_files=bool(source.ignore), within=self._settings.fetch_within
            )
        if source.keys is not None:
            await verify(reading.mirror, version, source.keys)

    def _mirror(self, url: GitUrl) -> Mirror:
        if (known := self._mirrors.get(url.repository)) is None:
            name = _name(url.repository)[:32]
            known = self._mirrors[url.repository] = Mirror(self._root / "git" / name, url)
        return known


class _Made(msgspec.Struct, frozen=True):
    """What was made last, and of which commit."""

    commit: str
    artifact: Artifact


def _name(of: object) -> str:
    return digest(of).removeprefix("sha256:")


def _read_json(file: Path, into: type[T]) -> T | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=into)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _write_json(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_private(file, msgspec.json.encode(value))
