"""The engine's ManifestGenerator: from a Sync to its manifests, by way of git or of what was rendered before."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Backoff, Clock
from starling.api import Sync
from starling.api.v1alpha1 import ExactGit, HelmPackage
from starling.controllers.exact import exact_git
from starling.controllers.renders import Render, Renders, packed_manifests
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import Secrets
from starling.controllers.sync_status import marked_revision
from starling.controllers.sync_store import Given, Note, SyncStore
from starling.controllers.sync_units import DEFAULT_ACCOUNT, HERE, account_of, variables
from starling.engine import Problem, Unit
from starling.errors import InputError, StarlingError
from starling.fleet import TRANSIENT
from starling.kube import Client, Closed, NotFound, Resource
from starling.objects import Manifest, digest
from starling.rendering import KUBE_VERSION, Package, Request, ValuesFrom, resolve, substitute
from starling.runtime import key_of
from starling.sources import AccessDenied, Credentials, SourceError

__all__ = ["SyncManifests", "Wanted", "render_key"]

FORMAT: Final = 1
"""Raised when the same key would mean other manifests."""

VERSION_LIFE: Final = 600.0
FIRST_RETRY: Final = 5.0
LONGEST_RETRY: Final = 300.0
_ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
_CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)


class _ConfigMap(msgspec.Struct, rename="camel"):
    data: dict[str, str] | None = None
    binary_data: dict[str, bytes] | None = None


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that decides what a Sync's manifests are."""

    git: ExactGit
    revision: str
    request: Request
    variables: Mapping[str, str]
    key: str


class SyncManifests:
    """Renders Syncs, and keeps what was rendered. Mutable: the clusters' versions, and who failed how often.

    `connected` is the engine's client of a cluster: of another than ours it is asked what there is.
    """

    def __init__(
        self,
        client: Client,
        store: SyncStore,
        repositories: Repositories,
        secrets: Secrets,
        renders: Renders,
        *,
        connected: Callable[[str], Client | None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._store = store
        self._repositories = repositories
        self._secrets = secrets
        self._renders = renders
        self._connected = connected
        self._clock = clock
        self._versions: dict[str, tuple[float, str]] = {}
        self._failing: dict[str, Backoff] = {}

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """A unit's manifests, and which version that is, marked with the key of what was rendered.

        If a new version can't be had, those rendered last stay in force, and the unit is looked at again before long.
        """
        del revision  # what the Sync wants is no more than that
        given = self._store.given(unit.id)
        if unit.held:  # another unit wants to know what this one has: what it had
            stored = await self._renders.get(given.sync) or Render("", "", packed_manifests(()))
            return stored.manifests(), marked_revision(stored.revision, stored.key)
        try:
            if (cluster := given.around.cluster) is not None and cluster.spec.mode == "Cordoned":
                return await self._as_it_was(unit, given.sync)
            wanted = await self._wanted(unit, given)
            render, problem = await self._render(given.sync, wanted, no_cache=no_cache)
        except StarlingError as error:
            self._store.note(unit.id, Note(hopeless=error.reason not in TRANSIENT))
            raise
        note = Note(wanted=marked_revision(wanted.revision, wanted.key), problem=problem)
        self._store.note(unit.id, note, again_after=self._wait(unit, problem))
        return render.manifests(), marked_revision(render.revision, render.key)

    async def _as_it_was(self, unit: Unit, sync: Sync) -> tuple[Sequence[Manifest], str]:
        """What was rendered last, and that it stays though there is something new."""
        stored = await self._renders.get(sync)
        if stored is None:
            raise InputError(
                f"what was rendered last for Sync {key_of(sync)} is gone, and nothing new goes to a cordoned cluster",
                hint="make the Cluster Active",
            )
        problem, marked = None, marked_revision(stored.revision, stored.key)
        if unit.revision not in ("", stored.revision):
            problem = Problem("Cordoned", f"the cluster is cordoned: {stored.revision} stays, {unit.revision} waits")
        self._store.note(unit.id, Note(wanted=marked, problem=problem))
        return stored.manifests(), marked

    def _wait(self, unit: Unit, problem: Problem | None) -> float | None:
        if problem is None:
            self._failing.pop(unit.id, None)
            return None
        return self._failing.setdefault(unit.id, Backoff(FIRST_RETRY, LONGEST_RETRY)).next()

    async def _render(self, sync: Sync, wanted: Wanted, *, no_cache: bool) -> tuple[Render, Problem | None]:
        stored = await self._renders.get(sync)
        known = stored if stored is not None and stored.key == wanted.key else None
        if known is not None:
            known = msgspec.structs.replace(known, revision=wanted.revision)
            if not no_cache:
                return known, None
        try:
            credentials = await self._credentials(sync, wanted.git)
            rendered = await self._repositories.render(wanted.git, credentials, wanted.request, no_cache=no_cache)
        except SourceError as error:
            if known is not None:
                return known, None
            if stored is None:
                raise
            message = f"{stored.revision} stays, since {wanted.revision} can't be had: {error.message}"
            return stored, Problem(error.reason, message, hint=error.hint or "")
        manifests = substitute(rendered.manifests, wanted.variables)
        packed = await asyncio.to_thread(packed_manifests, manifests)
        made = Render(wanted.key, wanted.revision, packed)
        await self._renders.put(sync, made)
        return made, None

    async def _credentials(self, sync: Sync, git: ExactGit) -> Credentials:
        """Who we are to the git server; a Secret that isn't there or isn't one is as good as being turned away."""
        try:
            return await self._secrets.credentials(sync.metadata.namespace, git.secret_ref)
        except InputError as error:
            raise AccessDenied(error.message, hint=error.hint) from error

    async def _wanted(self, unit: Unit, given: Given) -> Wanted:
        sync = given.sync
        await self._check_account(unit, sync)
        git, revision = exact_git(sync, given.around.source)
        request = await self._request(unit, sync)
        named = variables(sync, given.around)
        return Wanted(git, revision, request, named, render_key(git, request, named))

    def _there(self, unit: Unit) -> Client:
        """A client of the cluster where the unit lands."""
        if unit.cluster == HERE:
            return self._client
        if (client := self._connected(unit.cluster)) is None:
            raise Closed(f"ask Cluster {unit.cluster}", "the connection has just been closed")
        return client.once()

    async def _check_account(self, unit: Unit, sync: Sync) -> None:
        """Refuse to act as an account that isn't there: the API server would let us, and someone might make it yet."""
        if account_of(sync) is None:
            return
        namespace, name = sync.metadata.namespace, sync.spec.service_account_name or DEFAULT_ACCOUNT
        try:
            await self._there(unit).get(_ACCOUNTS.ref(name, namespace))
        except NotFound:
            where = "" if unit.cluster == HERE else f" on Cluster {unit.cluster}"
            raise InputError(
                f"there is no ServiceAccount {namespace}/{name}{where} for Sync {key_of(sync)} to act as",
                hint=f"kubectl -n {namespace} create serviceaccount {name}, and give it rights with a RoleBinding; "
                "or name another in serviceAccountName",
            ) from None

    async def _request(self, unit: Unit, sync: Sync) -> Request:
        spec = sync.spec
        package, helm = _package(sync)
        values = await self._values(sync, helm) if helm is not None else []
        return Request(
            path=spec.path,
            package=package,
            release_name=helm.release_name if helm is not None else "",
            namespace=unit.target_namespace or unit.default_namespace,
            values=values,
            kube_version=await self._kube_version(unit) if package in (None, Package.HELM) else KUBE_VERSION,
            patches=[msgspec.to_builtins(each) for each in spec.patches],
        )

    async def _values(self, sync: Sync, helm: HelmPackage) -> list[Mapping[str, Any]]:
        namespace = sync.metadata.namespace

        async def lookup(kind: str, name: str) -> Mapping[str, bytes] | None:
            return await (self._secrets.data if kind == "Secret" else self._config_map)(namespace, name)

        references = [
            ValuesFrom(each.kind, each.name, each.values_key, each.optional, each.target_path)
            for each in helm.values_from
        ]
        return [*await resolve(references, lookup), *([helm.values] if helm.values else [])]

    async def _config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        try:
            found = (await self._client.get(_CONFIG_MAPS.ref(name, namespace))).decode(_ConfigMap)
        except NotFound:
            return None
        return {key: text.encode() for key, text in (found.data or {}).items()} | (found.binary_data or {})

    async def _kube_version(self, unit: Unit) -> str:
        """The cluster's version, as charts are told it; asked for now and then."""
        now = self._clock.monotonic()
        asked, version = self._versions.get(unit.cluster, (-VERSION_LIFE, ""))
        if not version or now - asked > VERSION_LIFE:
            said = (await self._there(unit).raw("GET", "/version")).decode(_Version).git_version
            found = re.match(r"v?(\d+\.\d+\.\d+)", said)
            version = found[1] if found is not None else KUBE_VERSION
            self._versions[unit.cluster] = (now, version)
        return version


def render_key(git: ExactGit, request: Request, named: Mapping[str, str]) -> str:
    """A name for what comes of all this: the same if nothing that matters to it differs.

    Whoever doesn't say what the path is may mean a chart, and what matters to charts counts.
    """
    parts: dict[str, Any] = {
        "format": FORMAT,
        "git": [git.url, git.commit, git.submodules, git.ignore],
        "path": request.path,
        "package": request.package,
        "variables": named,
    }
    if request.package in (None, Package.HELM):
        parts["chart"] = [request.release_name, request.namespace, list(request.values), request.kube_version]
    if request.patches:
        parts["patches"] = list(request.patches)
    return digest(msgspec.to_builtins(parts))


def _package(sync: Sync) -> tuple[Package | None, HelmPackage | None]:
    said = sync.spec.package
    if said is None:
        return None, None
    if said.helm is not None:
        return Package.HELM, said.helm
    return (Package.KUSTOMIZE if said.kustomize is not None else Package.PLAIN), None
