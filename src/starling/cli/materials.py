"""What manifests are made of: a folder or a repository, a version of it, a path in it, values and variables."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from starling.cli import console
from starling.cli.files import STDIN, content
from starling.errors import InputError
from starling.objects import Manifest, load_documents, load_manifests, refuse_duplicates
from starling.rendering import Cache, Package, Renderer, Request
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
    "KubeVersion",
    "Materials",
    "PathOption",
    "RefOption",
    "Repository",
    "Settings",
    "Strict",
    "Submodules",
    "ValueFiles",
    "Variables",
]

KEPT_FOR: Final = 7 * 24 * 3600.0
"""Files that no command has wanted for so long go."""

RefOption = Annotated[
    str,
    typer.Option(
        "--ref",
        metavar="REF",
        help="Of a repository: a branch, tag, commit or range of versions; branch=…, tag=… and semver=… say which is "
        "meant. Without, its main branch.",
        show_default=False,
    ),
]
PathOption = Annotated[str, typer.Option("--path", metavar="PATH", help="The folder or file in it.")]
ValueFiles = Annotated[
    list[Path] | None,
    typer.Option("--values", metavar="FILE", help="A chart's values; - is stdin. May be repeated.", show_default=False),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One of them, as with Helm. May be repeated.", show_default=False),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--substitute", metavar="NAME=VALUE", help="What ${NAME} stands for. May be repeated.", show_default=False
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="A variable that has neither value nor default is an error.")]
KubeVersion = Annotated[
    str,
    typer.Option(
        "--kube-version", metavar="VERSION", help="The Kubernetes that a chart is rendered for.", show_default=False
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
Submodules = Annotated[bool, typer.Option("--submodules", help="Fetch the repository's submodules too.")]


class Cluster(NamedTuple):
    """What a chart may know of where it goes."""

    version: str
    api_versions: Sequence[str]
    namespace: str


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
    ref: str = ""
    credentials: Path | None = None
    keys: Sequence[Path] = ()
    submodules: bool = False

    async def fetch(self) -> tuple[Artifact, ArtifactStore]:
        """The files of the version that is meant."""
        store = ArtifactStore(_cache() / "artifacts")
        sources = GitSources(_cache() / "sources", store, FetchSettings(allow_file=True))
        as_whom = _credentials(self.credentials)
        artifact = await self._fetch(sources, as_whom)
        await store.collect({artifact.digest}, older_than=KEPT_FOR)
        return artifact, store

    async def look(self) -> str:
        """The exact version that is meant; nothing is fetched unless its signature is wanted."""
        if self.keys:
            artifact, _ = await self.fetch()
            return artifact.revision
        store = ArtifactStore(_cache() / "artifacts")
        sources, as_whom = (
            GitSources(_cache() / "sources", store, FetchSettings(allow_file=True)),
            _credentials(self.credentials),
        )
        for last, ref in await self._refs(sources, as_whom):
            try:
                return (await sources.look(self._source(ref), as_whom)).revision
            except NoSuchVersion:
                if last:
                    raise
        raise AssertionError

    async def _fetch(self, sources: GitSources, as_whom: Credentials) -> Artifact:
        for last, ref in await self._refs(sources, as_whom):
            try:
                return await sources.fetch(self._source(ref), as_whom)
            except NoSuchVersion:
                if last:
                    raise
        raise AssertionError

    async def _refs(self, sources: GitSources, as_whom: Credentials) -> list[tuple[bool, Ref]]:
        """What the ref may mean, in order, with whether it is the last."""
        if not self.ref:
            return [(True, Ref(branch=await sources.main_branch(self.url, as_whom)))]
        kind, equals, name = self.ref.partition("=")
        if equals and kind in _KINDS:
            return [(True, Ref(**{kind: name}))]
        if _COMMIT.fullmatch(self.ref):
            return [(True, Ref(commit=self.ref))]
        if _RANGE.search(self.ref):
            return [(True, Ref(semver=self.ref))]
        return [(False, Ref(tag=self.ref)), (True, Ref(branch=self.ref))]

    def _source(self, ref: Ref) -> GitSource:
        keys = Keys.of(file.read_text() for file in self.keys) if self.keys else None
        return GitSource(self.url, ref, self.submodules, keys)


@dataclass(frozen=True, slots=True)
class Materials:
    """What a command is to make manifests of."""

    places: Sequence["str | Repository"]
    how: "How"

    @classmethod
    def of(
        cls,
        places: Sequence[str],
        how: "How",
        *,
        ref: str = "",
        credentials: Path | None = None,
        keys: Sequence[Path] | None = None,
        submodules: bool = False,
    ) -> "Materials":
        """Folders, files and stdin as they are, addresses as the repository and version that the options say."""
        repositories = [place for place in places if is_address(place)]
        if (ref or keys or submodules or credentials) and not repositories:
            raise InputError(
                f"{places[0]} is here: --ref, --verify, --submodules and --credentials are for repositories",
                hint="file:///… is the address of one on this machine's disk",
            )
        found = [
            Repository(url=place, ref=ref, credentials=credentials, keys=keys or (), submodules=submodules)
            if place in repositories
            else place
            for place in places
        ]
        return cls(found, how)

    async def manifests(self, target: Target | None = None) -> list[Manifest]:
        """All of them, in order, with variables put in.

        InputError if one is no object or there twice, or if a place has none: that is more likely a wrong path than a
        wish.
        """
        read = [*self.places, *map(str, self.how.values)]
        if read.count(STDIN) > 1:
            raise InputError("stdin can be read once only: - is there twice")
        renderer = Renderer(cache=Cache(_cache() / "renders"), report=console.note)
        variables = _variables(self.how.variables)
        found = [each for place in self.places for each in await _manifests(renderer, place, self.how, target)]
        manifests = substitute(found, variables, strict=self.how.strict)
        refuse_duplicates(manifests)
        return manifests


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What is to be made of the files."""

    path: str = "."
    values: Sequence[Path] = ()
    settings: Sequence[str] = ()
    variables: Sequence[str] = ()
    strict: bool = False
    kube_version: str = ""
    api_versions: Sequence[str] = ()
    release: str = ""
    namespace: str = "default"
    package: Package | None = None
    allow_remote: bool = False
    may_be_empty: bool = False


def is_address(place: str) -> bool:
    """Whether this names a repository somewhere, rather than a folder here."""
    return _ADDRESS.match(place) is not None


async def _manifests(
    renderer: Renderer, place: str | Repository, how: How, target: Target | None
) -> Sequence[Manifest]:
    if place == STDIN:
        return load_manifests(*content(Path(STDIN)))
    digest = None
    if isinstance(place, Repository):
        artifact, store = await place.fetch()
        console.note(f"{place.url} at {artifact.revision}")
        root, path, digest = await store.checkout(artifact.digest), how.path, artifact.digest
    else:
        root, path = _tree(Path(place), how.path)
    request = Request(
        path=path, package=how.package, release_name=how.release, namespace=how.namespace,
        values=[_values(file) for file in how.values], settings=how.settings,
        kube_version=how.kube_version, api_versions=how.api_versions, allow_remote=how.allow_remote,
    )  # fmt: skip
    if target is not None and _is_chart(root, path, how):
        cluster = await target()
        request = replace(
            request,
            kube_version=how.kube_version or cluster.version,
            api_versions=[*how.api_versions, *cluster.api_versions],
            namespace=cluster.namespace,
        )
    result = await renderer.render(root, digest, request)
    if not result.manifests and not how.may_be_empty and not _has_files(root / path):
        called = place.url if isinstance(place, Repository) else place
        raise InputError(
            f"{called} has no manifests", hint="of a folder .json, .yaml, .yml are read, hidden files aren't"
        )
    return result.manifests


def _is_chart(root: Path, path: str, how: How) -> bool:
    return detect(locate(root.resolve(), path), how.package, path) is Package.HELM


def _has_files(place: Path) -> bool:
    """Whether there was something to read: a file without objects may be meant, a folder without files hardly."""
    return place.is_file() or any(each.suffix in SUFFIXES for each in place.rglob("*"))


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


def _values(file: Path) -> Mapping[str, Any]:
    text, name = content(file)
    documents = load_documents(text, name)
    if not documents:
        return {}
    if len(documents) > 1 or not isinstance(documents[0].value, dict):
        raise InputError(f"{name}: values are one mapping")
    values: Mapping[str, Any] = documents[0].value
    return values


def _variables(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((name for name, equals, _ in pairs if not equals), None):
        raise InputError(f"--substitute {wrong} has no value", hint="write NAME=VALUE; NAME= is empty")
    return {name: value for name, _, value in pairs}


def _credentials(folder: Path | None) -> Credentials:
    if folder is None:
        return ANONYMOUS
    if not folder.is_dir():
        raise InputError(f"--credentials {folder} is no folder")
    files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    return Credentials.from_secret({name: text.rstrip(b"\r\n") for name, text in files.items()})


def _cache() -> Path:
    """What was fetched and rendered before; it may be deleted at any time."""
    if own := os.environ.get("STARLING_CACHE_DIR"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "starling"
