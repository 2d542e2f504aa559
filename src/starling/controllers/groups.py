"""A SyncGroup's clusters as decisions see them, and what it claims of each."""

from collections.abc import Callable, Iterable, Mapping

from starling.api import Cluster, SyncGroup
from starling.api.v1alpha1 import Entry, LabelSelector
from starling.controllers.views import Proxy
from starling.controllers.world import World
from starling.fleet import Claim, Member, ModuleRevision, Part, held_parts, part_claim, part_name, selects
from starling.runtime import Key

__all__ = ["group_members", "part_claims", "parts_in", "revision_of_entry"]


def group_members(group: SyncGroup, world: World) -> list[Member]:
    """Those that it selects, has something on, or names in its record, by name; those being deleted left out."""
    namespace, named = group.metadata.namespace, {each.cluster for each in group.status.admitted}
    known = world.group_revisions.of(group)

    def names_at(target: str) -> frozenset[str] | None:
        return frozenset(known[target].data.parts) if target in known else None

    found = []
    for cluster in world.clusters.items():
        meta = cluster.metadata
        if meta.namespace != namespace or meta.deletion_timestamp is not None:
            continue
        proxy = world.proxies.get(Key(namespace, meta.name)) if cluster.spec.pull is not None else None
        parts = parts_in(group, world, cluster, proxy)
        selected = group.spec.selector is not None and selects(group.spec.selector, meta.labels)
        if not selected and not parts and meta.name not in named:
            continue
        held = held_parts(parts.values(), names_at)
        found.append(
            Member(
                name=meta.name,
                selected=selected,
                labels=meta.labels,
                entry=held.entry,
                admission=held.admission,
                reported=held.reported,
                state=held.state,
                acknowledged=proxy.acknowledged if proxy is not None else _told_all(group, world, meta.name),
                listed=bool(parts) and bool(held.state),
                reachable=cluster.status.phase == "Ready",
                adopted=proxy.adopted if proxy is not None else cluster.spec.push is not None,
                mode=cluster.spec.mode,
            )
        )
    return sorted(found, key=lambda each: each.name)


def _told_all(group: SyncGroup, world: World, cluster: str) -> bool:
    """Whether all Syncs of a cluster have been looked at as they are now."""
    there = world.group_syncs.of(group).get(cluster, {})
    return all(sync.status.observed_generation == sync.metadata.generation for sync in there.values())


def parts_in(group: SyncGroup, world: World, cluster: Cluster, proxy: Proxy | None) -> dict[str, Part]:
    """What a cluster has of a group, by part: Syncs on the hub, or entries of one that dials in."""
    if proxy is None:
        there = world.group_syncs.of(group).get(cluster.metadata.name, {})
        return {name: sync.part for name, sync in there.items()}
    found, revisions = {}, world.group_revisions.of(group).values()
    names = {each.name for each in group.spec.syncs} | {name for each in revisions for name in each.data.parts}
    for name in names:
        called = part_name(group.metadata.name, name)
        if (entry := proxy.entry(called)) is not None:
            state = proxy.state(called)
            reported, said = (state.target, state.state) if state is not None else ("", "")
            found[name] = Part(name, entry.target, entry.admission, reported, said)
    return found


def part_claims(
    group: SyncGroup,
    world: World,
    cluster: Cluster,
    parts: Mapping[str, Part],
    make: Callable[[str, ModuleRevision], Entry | None],
) -> list[tuple[str, Claim]]:
    """What a group wants of each part on one cluster, with the part's name; nothing where it wants nothing."""
    status, meta = group.status, group.metadata
    deleting = meta.deletion_timestamp is not None
    admitted = next((each for each in status.admitted if each.cluster == cluster.metadata.name), None)
    target = (admitted.target if admitted is not None else "") or status.target
    revision = world.group_revisions.get(group, target)
    wanted = frozenset(revision.parts) if revision is not None and admitted is not None else frozenset[str]()
    found = []
    for name in sorted(wanted | parts.keys()):
        part = parts.get(name)
        claim = Claim(
            module=part_name(meta.name, name),
            target=target,
            admission=status.admission,
            admitted=admitted.admission if admitted is not None and not deleting else None,
            restore=admitted is not None and admitted.restore,
            leave=admitted is not None and admitted.leave,
            reported=part.reported if part is not None else "",
            selected=group.spec.selector is not None and selects(group.spec.selector, cluster.metadata.labels),
            deleting=deleting and status.phase == "Removing",
            kind="SyncGroup",
            make=_maker(group, world, name, make),
        )
        known = revision is not None
        found.append((name, part_claim(claim, wanted=name in wanted or not known or claim.leave)))
    return found


def revision_of_entry(
    world: World, namespace: str, entry: str, target: str
) -> tuple[LabelSelector, ModuleRevision] | None:
    """What an entry of that name was made from, by the history of whoever it is of, and whom that selects."""
    module = world.modules.get(Key(namespace, entry))
    if module is not None and (revision := world.revisions.get(module, target)) is not None:
        return module.spec.selector, revision
    for group in _named(world.groups.items(), namespace, entry):
        history = world.group_revisions.get(group, target)
        part = history.parts.get(entry.removeprefix(f"{group.metadata.name}.")) if history is not None else None
        if part is not None and group.spec.selector is not None:
            return group.spec.selector, part
    return None


def _named(groups: Iterable[SyncGroup], namespace: str, entry: str) -> Iterable[SyncGroup]:
    return (
        each for each in groups if each.metadata.namespace == namespace and entry.startswith(f"{each.metadata.name}.")
    )


def _maker(
    group: SyncGroup, world: World, part: str, make: Callable[[str, ModuleRevision], Entry | None]
) -> Callable[[str], Entry | None]:
    def made(target: str) -> Entry | None:
        revision = world.group_revisions.get(group, target)
        found = revision.parts.get(part) if revision is not None else None
        return make(part, found) if found is not None else None

    return made
