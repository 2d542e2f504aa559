"""Which kinds a cluster serves: aggregated discovery (Kubernetes 1.27 and later), two requests for everything.

The answer is kept until someone asks for a kind that isn't in it, then asked for again with its ETag, so that a CRD
which appears later is found and a kind that doesn't exist costs a few empty answers. A group whose API service is down
is there without its resources; it doesn't spoil the others.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from starling.kube.errors import Forbidden, KubeError, NotFound, NotServed
from starling.kube.resources import Resource
from starling.kube.transport import Request, Transport
from starling.objects import GroupVersionKind

__all__ = ["Discovery"]

_AGGREGATED = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """What one root (/api or /apis) said, and the ETag to ask whether it still says so."""

    etag: str = ""
    resources: tuple[Resource, ...] = ()
    stale_groups: tuple[str, ...] = ()


class Discovery:
    """The kinds of one cluster. Mutable: keeps the last answer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._roots = {"/api": _Snapshot(), "/apis": _Snapshot()}
        self._by_kind: dict[GroupVersionKind, Resource] = {}
        self._preferred: dict[tuple[str, str], Resource] = {}
        self._asked = 0
        self._answered = 0
        self._refreshing = asyncio.Lock()

    async def resource(self, kind: GroupVersionKind) -> Resource:
        """The resource that serves this kind; NotServed if there is none even after a fresh look."""
        if (found := await self._find(lambda: self._by_kind.get(kind))) is None:
            raise self._not_served(f"{kind.kind} in {kind.api_version}", kind.group)
        return found

    async def preferred(self, group: str, kind: str) -> Resource:
        """The resource for a kind in the version that the server prefers."""
        if (found := await self._find(lambda: self._preferred.get((group, kind)))) is None:
            raise self._not_served(f"{kind}.{group}" if group else kind, group)
        return found

    async def resources(self) -> Sequence[Resource]:
        """Everything served now."""
        async with self._refreshing:
            await self._refresh()
        return tuple(self._by_kind.values())

    async def stale_groups(self) -> Sequence[str]:
        """The group/versions whose API service doesn't answer, so that their kinds are unknown or out of date."""
        async with self._refreshing:
            await self._refresh()
        return self._stale()

    def forget(self) -> None:
        """Ask again at the next question; for when a resource turned out not to be there."""
        self._by_kind, self._preferred = {}, {}

    def _stale(self) -> tuple[str, ...]:
        return tuple(group for root in self._roots.values() for group in root.stale_groups)

    def _not_served(self, what: str, group: str) -> NotServed:
        down = [stale for stale in self._stale() if stale.partition("/")[0] == group]
        if down:
            silent = NotServed("", f"the API service behind {down[0]} doesn't answer, so {what} is unknown for now")
            silent.down = True
            return silent
        return NotServed("", f"the cluster doesn't serve {what}", hint="is its CustomResourceDefinition installed?")

    async def _find(self, look: Callable[[], Resource | None]) -> Resource | None:
        """What is known, or else what the server says to a question asked from now on.

        One that is just starting leaves out the kinds of its CRDs for a moment, so only one that is ready is believed.
        """
        if (found := look() or await self._looked_again(look)) is not None:
            return found
        with suppress(Forbidden, NotFound):  # some hide it; most let everyone ask
            await self._transport.send(Request("GET", "/readyz", "ask whether the server is ready", idempotent=True))
        return await self._looked_again(look)

    async def _looked_again(self, look: Callable[[], Resource | None]) -> Resource | None:
        """The same after a question asked from now on; many share one question."""
        wanted = self._asked + 1
        async with self._refreshing:
            if self._answered < wanted and look() is None:
                await self._refresh()
        return look()

    async def _refresh(self) -> None:
        self._asked += 1
        answers = await asyncio.gather(*(self._ask(root, known) for root, known in self._roots.items()))
        self._roots = dict(zip(self._roots, answers, strict=True))
        self._answered = self._asked
        self._index()

    async def _ask(self, root: str, known: _Snapshot) -> _Snapshot:
        condition = (("If-None-Match", known.etag),) if known.etag else ()
        request = Request(
            "GET",
            root,
            f"ask which kinds there are ({root})",
            headers=(("Accept", _AGGREGATED), *condition),
            idempotent=True,
        )
        body = await self._transport.send(request)
        if body.not_modified:
            return known
        groups = body.decode(_Groups)
        if groups.kind != "APIGroupDiscoveryList":
            raise KubeError(
                request.action, f"answered with {groups.kind}", hint="Starling needs Kubernetes 1.27 or later"
            )
        stale = tuple(f"{group.metadata.name}/{v.version}" for group in groups.items for v in group.versions if v.stale)
        return _Snapshot(body.etag, tuple(_resources(groups.items)), stale)

    def _index(self) -> None:
        found = [resource for root in self._roots.values() for resource in root.resources]
        self._by_kind = {resource.gvk: resource for resource in found}
        self._preferred = {(r.group, r.kind): r for r in reversed(found)}  # a group's first version is preferred


class _Kind(msgspec.Struct):
    kind: str


class _Subresource(msgspec.Struct):
    subresource: str


class _Served(msgspec.Struct, rename="camel"):
    resource: str
    scope: str
    verbs: list[str]
    response_kind: _Kind | None = None
    short_names: list[str] = []
    categories: list[str] = []
    subresources: list[_Subresource] = []


class _Version(msgspec.Struct):
    version: str
    resources: list[_Served] = []
    freshness: str = "Current"

    @property
    def stale(self) -> bool:
        return self.freshness != "Current"


class _Metadata(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Metadata
    versions: list[_Version] = []


class _Groups(msgspec.Struct):
    kind: str
    items: list[_Group] = []


def _resources(groups: Iterable[_Group]) -> Iterable[Resource]:
    for group in groups:
        for version in group.versions:
            for served in version.resources:
                if served.response_kind is not None and served.response_kind.kind:
                    yield Resource(
                        group.metadata.name,
                        version.version,
                        served.response_kind.kind,
                        served.resource,
                        served.scope == "Namespaced",
                        tuple(served.verbs),
                        tuple(served.short_names),
                        tuple(served.categories),
                        tuple(sub.subresource for sub in served.subresources),
                    )
