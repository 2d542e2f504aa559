"""What a cluster's Assemblage becomes and what is told of it, the same for push and pull.

Absence never deletes: until the hub knows all that an Assemblage holds (`adopted` names it), nothing in there is
removed or changed, only added to; and it is told what is there. From then on the Assemblage is what the hub says.
"""

import msgspec

from starling.api.v1alpha1 import Assemblage, AssemblageSpec, ProxyAssemblageStatus

__all__ = ["local_spec", "report"]


def local_spec(proxy: AssemblageSpec, local: Assemblage | None) -> AssemblageSpec:
    """What the cluster's Assemblage is to be; `local` is the one there is."""
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

    `generation` is the proxy's now. `taken` are two generations: of the proxy that the local Assemblage was last made
    from, and of the Assemblage when it had been.
    """
    if local is None:
        # Nothing runs there, so there is nothing left to let go; otherwise there is nothing to tell.
        return ProxyAssemblageStatus(observed=generation) if proxy.released else before
    adopted = _adopted(proxy, local)
    return msgspec.structs.replace(
        before,
        assemblage=local.metadata.uid,
        imported=() if adopted else local.spec.syncs,
        observed=_observed(generation, local, taken, before),
        syncs=local.status.syncs,
    )


def _adopted(proxy: AssemblageSpec, local: Assemblage) -> bool:
    return bool(proxy.adopted) and proxy.adopted == local.metadata.uid


def _observed(generation: int, local: Assemblage, taken: tuple[int, int] | None, before: ProxyAssemblageStatus) -> int:
    """The generation of the proxy that the cluster has taken in; nothing new while the Assemblage isn't as made."""
    if taken is None or taken[0] > generation:
        return before.observed
    seen = taken[1] == local.metadata.generation == local.status.observed_generation
    return taken[0] if seen else before.observed
