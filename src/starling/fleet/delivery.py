"""What a cluster's Assemblage becomes and what is told of it, the same for push and pull.

Absence never deletes: until the hub knows all that an Assemblage holds (`adopted` names it), nothing in there is
removed or changed, only added to; and it is told what is there. From then on the Assemblage is what the hub says.

An Assemblage records whose it is (`Origin`), so that two who take it for theirs don't undo each other's work, and how
far that one was, so that a hub restored from a backup finds that the cluster is ahead of it. `terms` are the rules:

    recorded            the proxy
    nobody, or let go   is recorded with its first write
    itself              goes on
    itself, further     was restored: what runs is told again, and stays until just that is adopted
    another of its name takes it over, unless it had it before: then it has lost it, and stops
    another name        stops: the first one stays
"""

from typing import Final

import msgspec

from starling.api.v1alpha1 import Assemblage, AssemblageSpec, ProxyAssemblage, ProxyAssemblageStatus
from starling.fleet.states import ready_of

__all__ = ["Origin", "Terms", "adopt", "local_spec", "origin_of", "report", "terms"]

_NAME: Final = "starling.dev/proxy"
_UID: Final = "starling.dev/proxy-uid"
_GENERATION: Final = "starling.dev/proxy-generation"


class Origin(msgspec.Struct, frozen=True):
    """The ProxyAssemblage that an Assemblage was last made from, as annotations on it record."""

    name: str
    uid: str
    generation: int

    @property
    def annotations(self) -> dict[str, str]:
        """The record."""
        return {_NAME: self.name, _UID: self.uid, _GENERATION: str(self.generation)}


class Terms(msgspec.Struct, frozen=True):
    """How far a proxy counts for an Assemblage: `spec` is what does of its own, `origin` what is to be recorded.

    `rival` is who has it instead: then nothing is written. `behind` says that the cluster has seen a later state.
    """

    spec: AssemblageSpec
    origin: Origin
    rival: Origin | None = None
    behind: bool = False


def origin_of(local: Assemblage) -> Origin | None:
    """What an Assemblage was last made from; None if nobody has said."""
    noted = local.metadata.annotations
    name, uid, generation = noted.get(_NAME, ""), noted.get(_UID, ""), noted.get(_GENERATION, "")
    if not name or not uid:
        return None
    return Origin(name, uid, int(generation) if generation.isdecimal() else 0)


def terms(proxy: ProxyAssemblage, local: Assemblage | None) -> Terms:
    """On which terms a proxy is delivered to the Assemblage that is there."""
    own = Origin(proxy.metadata.name, proxy.metadata.uid, proxy.metadata.generation)
    there = origin_of(local) if local is not None and not _let_go(local) else None
    if local is None or there is None:
        return Terms(proxy.spec, own)
    if there.uid != own.uid:
        known = (_uid(proxy.spec.adopted), _uid(proxy.status.assemblage))
        stops = there.name != own.name or local.metadata.uid in known
        return Terms(proxy.spec, own, rival=there if stops else None)
    if there.generation > own.generation and proxy.spec.adopted != _state(local):
        # What it would add may have been removed since.
        return Terms(msgspec.structs.replace(proxy.spec, adopted="", syncs=()), there, behind=True)
    return Terms(proxy.spec, own)


def local_spec(proxy: AssemblageSpec, local: Assemblage | None) -> AssemblageSpec:
    """What the cluster's Assemblage is to be; `local` is the one there is, `proxy` what counts for it."""
    if local is None or _adopted(proxy, local):
        return proxy
    there = {entry.name for entry in local.spec.syncs}
    added = (entry for entry in proxy.syncs if entry.name not in there)
    return msgspec.structs.replace(proxy, syncs=(*local.spec.syncs, *added))


def report(
    proxy: AssemblageSpec,
    generation: int,
    local: Assemblage | None,
    taken: tuple[int, int] | None,
    before: ProxyAssemblageStatus,
) -> ProxyAssemblageStatus:
    """What to tell the hub of a cluster, given what it was told before.

    `proxy` is what counts of it, `generation` is the proxy's now. `taken` are two generations: of the proxy that the
    local Assemblage was last made from, and of the Assemblage when it had been.
    """
    if local is None:
        # Nothing runs there, so there is nothing left to let go; otherwise there is nothing to tell.
        return ProxyAssemblageStatus(observed=generation) if proxy.released else before
    adopted, origin = _adopted(proxy, local), origin_of(local)
    behind = origin is not None and origin.generation > generation
    return msgspec.structs.replace(
        before,
        assemblage=proxy.adopted if adopted else _state(local) if behind else local.metadata.uid,
        imported=() if adopted else local.spec.syncs,
        observed=_observed(generation, local, taken, before),
        syncs=local.status.syncs,
        ready=ready_of(local.status.syncs),
    )


def adopt(spec: AssemblageSpec, status: ProxyAssemblageStatus) -> AssemblageSpec:
    """The hub's own spec once it has taken over what a cluster was found to run, of which `status` tells.

    A hub that had adopted it before was restored: what it remembers besides was removed since, or is another version.
    """
    restored = _uid(spec.adopted) == _uid(status.assemblage)
    kept = () if restored else spec.syncs
    known = {each.name for each in kept}
    # What they were called when is another hub's count, and not to be trusted: ours goes on from it.
    found = (msgspec.structs.replace(each, admission=0) for each in status.imported if each.name not in known)
    return msgspec.structs.replace(spec, syncs=(*kept, *found), adopted=status.assemblage)


def _adopted(proxy: AssemblageSpec, local: Assemblage) -> bool:
    return bool(proxy.adopted) and _uid(proxy.adopted) == local.metadata.uid


def _state(local: Assemblage) -> str:
    """One state of an Assemblage, to be adopted once more as it is now."""
    return f"{local.metadata.uid}@{local.metadata.generation}"


def _uid(adopted: str) -> str:
    """Which Assemblage, whatever its state."""
    return adopted.partition("@")[0]


def _let_go(local: Assemblage) -> bool:
    """Whether whoever had it has let go of all that was there."""
    seen = local.metadata.generation == local.status.observed_generation
    return local.spec.released and seen and not local.status.syncs


def _observed(generation: int, local: Assemblage, taken: tuple[int, int] | None, before: ProxyAssemblageStatus) -> int:
    """The generation of the proxy that the cluster has taken in; nothing new while the Assemblage isn't as made."""
    if taken is None or taken[0] > generation:
        return before.observed
    seen = taken[1] == local.metadata.generation == local.status.observed_generation
    return taken[0] if seen else before.observed
