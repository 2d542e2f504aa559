"""What manifests are made of: a folder or a repository, a version of it, a path in it, values and variables."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import typer

from starling.cli import console
from starling.cli.files import STDIN, content
from starling.errors import InputError
from starling.objects import Manifest, load_documents, load_manifests, refuse_duplicates
from starling.rendering import KUBE_VERSION, Cache, Package, Renderer, Request
from starling.rendering.detect import detect
from starling.rendering.plain import SUFFIXES
from starling.rendering.substitution import substitute
from starling.rendering.tree import locate
from starling.sources import (
    ANONYMOUS,
    Artifact,
    ArtifactStore,
    Credentials,
    FetchSettings,
    GitSource,
    GitSources,
    Keys,
    NoSuchVersion,
    Ref,
)

__all__ = [
    "Cluster",
    "CredentialsFolder",
    "How",
    "KeyFiles",
    "Materials",
    "RefOption",
    "Repository",
    "cache_folder",
]

KEPT_FOR: Final = 7 * 24 * 3600.0
"""Files that no command has wanted for so long go."""

RefOption = Annotated[
    str | None,
    typer.Option(
        "--ref",
        metavar="REF",
        help="Of a repository: a branch, tag, commit or range of versions; branch=…, tag=…, semver=… and commit=… say "
        "which is meant. Without, its main branch.",
        show_default=False,
    ),
]
CredentialsFolder = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="DIR",
        help="Files as a Source's Secret has them: username and password, bearerToken, identity and known_hosts, "
        "ca.crt.",
        show_default=False,
    ),
]
KeyFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--verify", metavar="FILE", help="Public keys, ssh or gpg: one of them must have signed it.", show_default=False
    ),
]


class Cluster(NamedTuple):
    """What a chart may know of where it goes."""

    version: str = KUBE_VERSION
    api_versions: Sequence[str] = ()
    namespace: str = "default"


NOWHERE: Final = Cluster()
Found = TypeVar("Found")
Target = Callable[[], Awaitable[Cluster]]
"""Asks a cluster, once a chart wants to know."""

_ADDRESS: Final = re.compile(r"[a-z+]+://|[A-Za-z0-9_][\w.-]*@[A-Za-z0-9][\w.-]*:", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_RANGE: Final = re.compile(r"[<>=~^*|, ]|(^|\.)[xX](\.|$)")
_KINDS: Final = ("branch", "tag", "semver", "commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository as a command is asked for it."""

    url: str
    ref: str | None = None
    credentials: Path | None = None
    keys: Sequence[Path] = ()
    submodules: bool = False

    async def fetch(self) -> tuple[Artifact, ArtifactStore]:
        """The files of the version that is meant."""
        store, sources = _stored()
        as_whom = _credentials(self.credentials)
        artifact = await sources.fetch(self._source(await self._meant(sources, as_whom)), as_whom)
        await store.collect({artifact.digest}, older_than=KEPT_FOR)
        await sources.collect(older_than=KEPT_FOR)
        return artifact, store

    async def look(self) -> str:
        """The exact version that is meant; nothing is fetched unless that is what shows it: a commit, a signature."""
        _, sources = _stored()
        as_whom = _credentials(self.credentials)
        ref = await self._meant(sources, as_whom)
        if self.keys or ref.commit:
            return (await sources.fetch(self._source(ref), as_whom)).revision
        return (await sources.look(self._source(ref), as_whom)).revision

    async def _meant(self, sources: GitSources, as_whom: Credentials) -> Ref:
        """What the ref means; a bare name is a branch or a tag, and must not be both."""
        if self.ref is None:
            return Ref(branch=await sources.main_branch(self.url, as_whom))
        if not self.ref:
            raise InputError("--ref is empty", hint="leave it out for the repository's main branch")
        kind, equals, name = self.ref.partition("=")
        if equals and kind in _KINDS:
            return Ref(**{kind: name})
        if _COMMIT.fullmatch(self.ref):
            return Ref(commit=self.ref)
        if _RANGE.search(self.ref):
            return Ref(semver=self.ref)
        found: list[Ref] = []
        missing: list[NoSuchVersion] = []
        for ref in (Ref(branch=self.ref), Ref(tag=self.ref)):
            try:
                await sources.look(self._source(ref), as_whom)
                found.append(ref)
            except NoSuchVersion as error:
                missing.append(error)
        if len(found) == 2:
            raise InputError(
                f"{self.url}: {self.ref} is a branch and a tag", hint=f"say branch={self.ref} or tag={self.ref}"
            )
        if not found:
            words = "; ".join(dict.fromkeys(error.message.removeprefix(f"{self.url}: ") for error in missing))
            raise NoSuchVersion(f"{self.url}: {words}", hint="commits are taken by their full id")
        return found[0]

    def _source(self, ref: Ref) -> GitSource:
        keys = Keys.of(_there(file, "--verify").read_text() for file in self.keys) if self.keys else None
        return GitSource(self.url, ref, self.submodules, keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What is to be made of which version: the options that render, apply and diff share, as `options` spreads them."""

    ref: RefOption = None
    path: Annotated[str, typer.Option("--path", metavar="PATH", help="The folder or file in it.")] = "."
    values: Annotated[
        list[Path] | None,
        typer.Option(
            "--values", metavar="FILE", help="A chart's values; - is stdin. May be repeated.", show_default=False
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One of them, as with Helm. May be repeated.", show_default=False
        ),
    ] = None
    variables: Annotated[
        list[str] | None,
        typer.Option(
            "--substitute", metavar="NAME=VALUE", help="What ${NAME} stands for. May be repeated.", show_default=False
        ),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="A variable that has neither value nor default is an error.")
    ] = False
    kube_version: Annotated[
        str,
        typer.Option(
            "--kube-version", metavar="VERSION", help="The Kubernetes that a chart is rendered for.", show_default=False
        ),
    ] = ""
    release: Annotated[
        str,
        typer.Option(
            "--release",
            metavar="NAME",
            help="A chart's release; else apply and diff take the unit's name, render the folder's.",
        ),
    ] = ""
    package: Annotated[Package | None, typer.Option("--package", help="What it is; else what is found there.")] = None
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="It may fetch bases and charts from elsewhere.")
    ] = False
    credentials: CredentialsFolder = None
    keys: KeyFiles = None
    submodules: Annotated[bool, typer.Option("--submodules", help="Fetch the repository's submodules too.")] = False

    def repository(self, url: str) -> Repository:
        """The repository at an address, in the version that is meant."""
        return Repository(
            url=url, ref=self.ref, credentials=self.credentials, keys=self.keys or (), submodules=self.submodules
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """What a command makes manifests of. Charts are told of `cluster`, unless there is a real one to ask."""

    places: Sequence[str]
    how: How
    name: str = ""
    cluster: Cluster = NOWHERE
    may_be_empty: bool = False
    stdin: bytes = b""
    revisions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse options that mean nothing here."""
        how = self.how
        if (how.ref is not None or how.keys or how.submodules or how.credentials) and not any(
            map(is_address, self.places)
        ):
            raise InputError(
                f"{self.places[0]} is here: --ref, --verify, --submodules and --credentials are for repositories",
                hint="file:///… is the address of one on this machine's disk",
            )

    def with_stdin(self) -> "Materials":
        """These, with stdin read if it is wanted; to be done before asyncio, which Ctrl-C can't get out of a read."""
        wanted = [*self.places, *map(str, self.how.values or ())].count(STDIN)
        if wanted > 1:
            raise InputError("stdin can be read once only: - is there twice")
        return replace(self, stdin=content(Path(STDIN))[0]) if wanted else self

    async def manifests(self, target: Target | None = None) -> list[Manifest]:
        """All of them, in order, with variables put in; `revisions` comes to have the repositories' versions.

        InputError if one is no object or there twice, or if a place has none: that is more likely a wrong path than a
        wish.
        """
        renderer = Renderer(cache=Cache(cache_folder() / "renders"), report=console.note)
        variables = _variables(self.how.variables or ())
        found = [each for place in self.places for each in await self._made(renderer, place, target)]
        manifests = substitute(found, variables, strict=self.how.strict)
        refuse_duplicates(manifests)
        return manifests

    async def _made(self, renderer: Renderer, place: str, target: Target | None) -> Sequence[Manifest]:
        if place == STDIN:
            found = load_manifests(self.stdin, "stdin")
            if not found and not self.may_be_empty:
                raise InputError("stdin has no manifests", hint="did what is piped fail?")
            return found
        root, path, digest = await self._files(place)
        cluster = await target() if target and _is_chart(root, path, self.how) else self.cluster
        result = await renderer.render(root, digest, self._request(path, cluster))
        if not result.manifests and not self.may_be_empty and not _has_files(root / path):
            raise InputError(
                f"{place} has no manifests", hint="of a folder .json, .yaml, .yml are read, hidden files aren't"
            )
        return result.manifests

    async def _files(self, place: str) -> tuple[Path, str, str | None]:
        """A tree, the place in it that is meant, and the tree's digest if it is known."""
        if not is_address(place):
            return *_tree(Path(place), self.how.path), None
        artifact, store = await self.how.repository(place).fetch()
        console.note(f"{place} at {artifact.revision}")
        self.revisions.append(artifact.revision)
        return await store.checkout(artifact.digest), self.how.path, artifact.digest

    def _request(self, path: str, cluster: Cluster) -> Request:
        how = self.how
        return Request(
            path=path, package=how.package, release_name=how.release or self.name, namespace=cluster.namespace,
            values=[self._values(file) for file in how.values or ()], settings=how.settings or (),
            kube_version=how.kube_version or cluster.version, api_versions=cluster.api_versions,
            allow_remote=how.allow_remote,
        )  # fmt: skip

    def _values(self, file: Path) -> Mapping[str, Any]:
        text, name = (self.stdin, "stdin") if str(file) == STDIN else content(_there(file, "--values"))
        documents = load_documents(text, name)
        if not documents:
            return {}
        if len(documents) > 1 or not isinstance(documents[0].value, dict):
            raise InputError(f"{name}: values are one mapping")
        values: Mapping[str, Any] = documents[0].value
        return values


def is_address(place: str) -> bool:
    """Whether this names a repository somewhere, rather than a folder here."""
    return _ADDRESS.match(place) is not None


def _is_chart(root: Path, path: str, how: How) -> bool:
    return detect(locate(root.resolve(), path), how.package, path) is Package.HELM


def _has_files(place: Path) -> bool:
    """Whether there was something to read: a file without objects may be meant, a folder without files hardly."""
    if place.is_file():
        return True
    read = (each.relative_to(place) for each in place.rglob("*") if each.suffix in SUFFIXES)
    return any(not any(part.startswith(".") for part in each.parts) for each in read)


def _tree(place: Path, path: str) -> tuple[Path, str]:
    """The root that a kustomization may refer to, and the place in it: a work tree's, if this is in one."""
    if not place.exists():
        raise InputError(
            f"there is no file or folder {place}", hint="a repository's address has a scheme or user@host:"
        )
    here = place.resolve()
    within = here if here.is_dir() else here.parent
    root = next((each for each in (within, *within.parents) if (each / ".git").exists()), within)
    return root, os.path.normpath(os.path.join(here.relative_to(root), path))  # noqa: PTH118 - not resolved yet


def _variables(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((name for name, equals, _ in pairs if not equals), None):
        raise InputError(f"--substitute {wrong} has no value", hint="write NAME=VALUE; NAME= is empty")
    return {name: value for name, _, value in pairs}


def _there(file: Path, option: str) -> Path:
    if not file.is_file():
        raise InputError(f"{option} {file} is no file")
    return file


def _credentials(folder: Path | None) -> Credentials:
    if folder is None:
        return ANONYMOUS
    if not folder.is_dir():
        raise InputError(f"--credentials {folder} is no folder")
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    if files.keys().isdisjoint(Credentials.KEYS):
        raise InputError(f"--credentials {folder} has none of the files {', '.join(Credentials.KEYS)}")
    return Credentials.from_secret({name: text.rstrip(b"\r\n") for name, text in files.items()})


def _stored() -> tuple[ArtifactStore, GitSources]:
    """What was fetched before, and what fetches more."""
    store = ArtifactStore(cache_folder() / "artifacts")
    return store, GitSources(cache_folder() / "sources", store, FetchSettings(allow_file=True))


def cache_folder() -> Path:
    """What was fetched and rendered before; it may be deleted at any time."""
    if own := os.environ.get("STARLING_CACHE_DIR"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "starling"
