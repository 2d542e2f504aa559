"""A Module's clusters as decisions see them."""

from starling.api import Module
from starling.controllers.world import World
from starling.fleet import Member, selects
from starling.runtime import Key

__all__ = ["members_of"]


def members_of(module: Module, world: World) -> list[Member]:
    """Those that it selects, has an entry on, or names in its record, by name; those being deleted left out."""
    namespace, name = module.metadata.namespace, module.metadata.name
    named = {each.cluster for each in module.status.admitted}
    found = []
    for cluster in world.clusters.items():
        if cluster.metadata.namespace != namespace or cluster.metadata.deletion_timestamp is not None:
            continue
        proxy = world.proxies.get(Key(namespace, cluster.metadata.name))
        selected = selects(module.spec.selector, cluster.metadata.labels)
        entry = proxy.entry(name) if proxy is not None else None
        state = proxy.state(name) if proxy is not None else None
        if not selected and entry is None and state is None and cluster.metadata.name not in named:
            continue
        found.append(
            Member(
                name=cluster.metadata.name,
                selected=selected,
                labels=cluster.metadata.labels,
                entry=entry.target if entry is not None else None,
                admission=entry.admission if entry is not None else 0,
                reported=state.target if state is not None else "",
                state=state.state if state is not None else "",
                acknowledged=proxy.acknowledged if proxy is not None else False,
                listed=state is not None,
                reachable=cluster.status.phase == "Ready",
                adopted=proxy.adopted if proxy is not None else False,
                mode=cluster.spec.mode,
            )
        )
    return sorted(found, key=lambda each: each.name)
