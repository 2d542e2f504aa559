"""The hub's world, as its controllers share it: one informer for each kind."""

from dataclasses import dataclass

from starling.api import Cluster, Module, RolloutPolicy, Source
from starling.controllers.revisions import Revisions
from starling.controllers.views import Proxy
from starling.runtime import Informer

__all__ = ["World"]


@dataclass(frozen=True, slots=True)
class World:
    """All that is on the hub."""

    sources: Informer[Source]
    clusters: Informer[Cluster]
    modules: Informer[Module]
    policies: Informer[RolloutPolicy]
    proxies: Informer[Proxy]
    revisions: Revisions
