"""The hub's world, as its controllers share it: one informer for each kind."""

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from starling.api import Cluster, Module, ProxyAssemblage, Resource, RolloutPolicy, Source, Sync, SyncGroup
from starling.controllers.group_syncs import GroupSyncs, SyncView
from starling.controllers.revisions import GROUP_LABEL, MODULE_LABEL, REVISIONS, Revision, Revisions
from starling.controllers.views import Proxy
from starling.fleet import GroupRevision, ModuleRevision
from starling.kube import EVERYTHING, Client, Named, Selection
from starling.runtime import Group, Informer

__all__ = ["World"]

T = TypeVar("T", bound=Named)


@dataclass(frozen=True, slots=True)
class World:
    """All that is on the hub."""

    sources: Informer[Source]
    clusters: Informer[Cluster]
    modules: Informer[Module]
    policies: Informer[RolloutPolicy]
    proxies: Informer[Proxy]
    revisions: Revisions[ModuleRevision]
    groups: Informer[SyncGroup]
    group_revisions: Revisions[GroupRevision]
    group_syncs: GroupSyncs

    @classmethod
    def followed(cls, client: Client, group: Group, selection: Selection = EVERYTHING) -> "World":
        """The world as a group of controllers follows it."""

        def informer(kind: type[Resource], into: type[T], within: Selection = selection) -> Informer[T]:
            return group.informer(Informer(client, kind.declaration.resource, into, within))

        def history(label: str) -> Informer[Revision]:
            return group.informer(Informer(client, REVISIONS, Revision, _labelled(selection, label)))

        return cls(
            sources=informer(Source, Source),
            clusters=informer(Cluster, Cluster),
            modules=informer(Module, Module),
            policies=informer(RolloutPolicy, RolloutPolicy),
            proxies=informer(ProxyAssemblage, Proxy),
            revisions=Revisions(client, history(MODULE_LABEL), MODULE_LABEL, ModuleRevision),
            groups=informer(SyncGroup, SyncGroup),
            group_revisions=Revisions(client, history(GROUP_LABEL), GROUP_LABEL, GroupRevision),
            group_syncs=GroupSyncs(client, informer(Sync, SyncView, _labelled(selection, GROUP_LABEL))),
        )


def _labelled(selection: Selection, label: str) -> Selection:
    return msgspec.structs.replace(selection, labels=label)
