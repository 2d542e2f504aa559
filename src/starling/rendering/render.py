"""From a folder and a request to manifests."""

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from starling.objects import digest as digest_of
from starling.rendering.cache import Cache
from starling.rendering.content import chart_digest, manifests_digest
from starling.rendering.detect import detect
from starling.rendering.errors import RenderError
from starling.rendering.helm import prepare_chart, template
from starling.rendering.kustomize import build_kustomization
from starling.rendering.patches import patch_manifests
from starling.rendering.plain import read_plain
from starling.rendering.request import Package, Rendered, Request
from starling.rendering.running import Job, Limits, scratch
from starling.rendering.tools import Report, Tools, find_helm, find_kustomize
from starling.rendering.tree import locate, named

__all__ = ["Renderer", "cache_key"]

_FORMAT: Final = 1
"""Raised when what is kept of a render changes its meaning."""


def _silent(_: str) -> None:
    pass


def cache_key(digest: str, path: str, package: Package, request: Request, program: str) -> str:
    """A name for what comes of a request: the same if, and only if, nothing that matters to it differs.

    Only charts depend on release, values and the target; of kustomizations and plain manifests any number of clusters
    share one. The program is in it: another version may render otherwise.
    """
    parts: dict[str, Any] = {"format": _FORMAT, "tree": digest, "path": path, "package": package, "program": program}
    if package is not Package.PLAIN:
        parts["remote"] = request.allow_remote
    if package is Package.HELM:
        parts |= {
            "release": request.release_name,
            "namespace": request.namespace,
            "values": list(request.values),
            "settings": list(request.settings),
            "kubeVersion": request.kube_version,
            "apiVersions": sorted(request.api_versions),
        }
    try:
        return digest_of(msgspec.to_builtins(parts))
    except (TypeError, ValueError) as error:
        raise RenderError(f"{path}: values must be what JSON can hold: {error}") from error


@dataclass
class Renderer:
    """Renders folders, few at a time, each thing once. Mutable: it keeps its tools once found; for one event loop."""

    tools: Tools = field(default_factory=Tools)
    cache: Cache = field(default_factory=Cache)
    limits: Limits = field(default_factory=Limits)
    scratch: Path | None = None
    """Where runs have their folders; None: where the machine has temporary ones."""
    report: Report = _silent
    """Hears how far a tool's build is, which may take a minute the first time."""
    at_once: int = field(default_factory=lambda: max(1, os.cpu_count() or 1))

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.at_once)
        self._finding = {package: asyncio.Lock() for package in Package}

    async def render(self, folder: Path, digest: str | None, request: Request, *, no_cache: bool = False) -> Rendered:
        """The manifests of a path in a folder that holds exactly the tree of this digest.

        Without a digest (a user's own folder, which may change) nothing is kept. RenderError, ManifestError or another
        InputError says what is wrong, with names from the folder's root.
        """
        root = folder.resolve()
        place = locate(root, request.path)
        called = named(root, place)
        package = detect(place, request.package, called)
        _check(package, request, called)
        command = await self._command(package)

        async def work() -> Rendered:
            async with self._slots:
                return await self._render(root, place, package, command, request)

        key = cache_key(digest, called, package, request, _identity(command)) if digest is not None else ""
        rendered = await self.cache.once(key, work, no_cache=no_cache) if key else await work()
        return await self._patched(rendered, key, request.patches, no_cache=no_cache) if request.patches else rendered

    async def _patched(
        self, rendered: Rendered, key: str, patches: Sequence[Mapping[str, Any]], *, no_cache: bool
    ) -> Rendered:
        """What was rendered under a key, with patches; where there is none, nothing is kept of this either."""
        command = await self._command(Package.KUSTOMIZE)

        async def work() -> Rendered:
            async with self._slots:
                with scratch(self.scratch) as own:
                    job = Job(command, own, own / "patched", own, self.limits)
                    made = await patch_manifests(job, rendered.manifests, patches)
            return Rendered(tuple(made), await asyncio.to_thread(manifests_digest, made))

        if not key:
            return await work()
        parts = {"format": _FORMAT, "rendered": key, "patches": list(patches), "program": _identity(command)}
        return await self.cache.once(digest_of(msgspec.to_builtins(parts)), work, no_cache=no_cache)

    async def content(self, folder: Path, digest: str, request: Request) -> str:
        """The content digest alone: of a chart it can be had without values, which may be known elsewhere only."""
        root = folder.resolve()
        place = locate(root, request.path)
        if detect(place, request.package, named(root, place)) is not Package.HELM:
            return (await self.render(folder, digest, request)).content_digest
        allow_remote, most = request.allow_remote, self.limits.size
        chart = await asyncio.to_thread(prepare_chart, root, place, most, allow_remote=allow_remote)
        return await asyncio.to_thread(chart_digest, chart)

    async def _command(self, package: Package) -> tuple[str, ...]:
        """How the package's tool is called, found now if it wasn't yet."""
        async with self._finding[package]:
            if package is Package.KUSTOMIZE and not self.tools.kustomize:
                kustomize = await find_kustomize(self.report)
                self.tools = replace(self.tools, kustomize=kustomize)
            if package is Package.HELM and not self.tools.helm:
                helm = await find_helm(self.report)
                self.tools = replace(self.tools, helm=helm)
        if package is Package.PLAIN:
            return ()
        program, *more = self.tools.kustomize if package is Package.KUSTOMIZE else self.tools.helm
        return (shutil.which(program) or program, *more)  # what runs has another PATH

    async def _render(
        self, root: Path, place: Path, package: Package, command: tuple[str, ...], request: Request
    ) -> Rendered:
        if package is Package.PLAIN:
            plain = await asyncio.to_thread(read_plain, root, place, self.limits.size)
            return Rendered(tuple(plain), await asyncio.to_thread(manifests_digest, plain))
        with scratch(self.scratch) as own:
            job = Job(command, root, place, own, self.limits)
            if package is Package.HELM:
                allow_remote, most = request.allow_remote, self.limits.size
                chart = await asyncio.to_thread(prepare_chart, root, place, most, allow_remote=allow_remote)
                made = await template(job, chart, request)
                return Rendered(tuple(made), await asyncio.to_thread(chart_digest, chart))
            made = await build_kustomization(job, allow_remote=request.allow_remote)
            return Rendered(tuple(made), await asyncio.to_thread(manifests_digest, made))


def _check(package: Package, request: Request, called: str) -> None:
    if package is not Package.HELM and (request.values or request.settings):
        what = "a kustomization" if package is Package.KUSTOMIZE else "plain manifests"
        raise RenderError(f"{called} is {what}, which takes no values", hint="values are for charts only")


def _identity(command: tuple[str, ...]) -> str:
    """What tells one version of a program from another, without running it."""
    if not command:
        return ""
    try:
        state = Path(command[0]).stat()
    except OSError:  # running it will say so
        return ""
    return f"{' '.join(command)} {state.st_size} {state.st_mtime_ns}"
