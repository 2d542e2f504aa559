"""The engine's CredentialsStore: the cluster where we are, and each Cluster that a Sync names.

The engine has one connection to a cluster, however many Syncs go there, for as long as there is access to it: so a
cluster that no Sync names any more is no longer given. What of it has changed is announced, by informers of Clusters
and of the Secrets with their kubeconfigs.
"""

from collections.abc import AsyncIterator

from starling.aio import SYSTEM_CLOCK, Clock, Workqueue
from starling.api import Cluster, Sync
from starling.controllers.credentials import KUBECONFIG, Secret, kubeconfig_in
from starling.controllers.push import kubeconfig_of
from starling.controllers.sync_units import HERE, cluster_of, kept_from, place_of
from starling.controllers.sync_world import SyncWorld
from starling.engine import ClusterAccess
from starling.errors import InputError
from starling.kube import AccessSource, kubeconfig_data
from starling.objects import digest
from starling.runtime import Index, Key, key_of

__all__ = ["SyncClusters"]


class SyncClusters:
    """Access to clusters. Mutable: the access that was given last."""

    def __init__(self, access: AccessSource, world: SyncWorld, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._here = ClusterAccess(access)
        self._world = world
        self._given: dict[Key, ClusterAccess] = {}
        self._users = Index(kubeconfig_of)
        self._changed = Workqueue[str](clock)
        world.syncs.listen(self._sync_changed)
        world.clusters.listen(self._cluster_changed)
        world.kubeconfigs.listen(self._kubeconfig_changed)

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """Access to a cluster, the same while its kubeconfig is; InputError where there is none to be had."""
        if name == HERE:
            return self._here
        key = Key(*name.split("/", 1))
        if not self._world.going.of(key):
            return None
        cluster = self._world.clusters.get(key)
        if cluster is None or cluster.spec.push is None or kept_from(key, cluster):
            raise InputError(kept_from(key, cluster))
        place = Key(key.namespace, cluster.spec.push.kubeconfig_secret.name)
        return self._access(key, place, self._world.kubeconfigs.get(place))

    def _access(self, key: Key, place: Key, secret: Secret | None) -> ClusterAccess:
        content = kubeconfig_in(secret, place)
        version = digest(secret.entries[KUBECONFIG] if secret is not None else "")
        known = self._given.get(key)
        if known is None or known.version != version:
            known = self._given[key] = ClusterAccess(kubeconfig_data(content, origin=f"Secret {place}"), version)
        return known

    async def watch_clusters(self) -> AsyncIterator[str]:
        """Those that came, went, or are reached otherwise."""
        try:
            while True:
                name = await self._changed.get()
                self._changed.done(name)
                yield name
        finally:
            self._changed.close()

    def _sync_changed(self, before: Sync | None, after: Sync | None) -> None:
        was, now = (cluster_of(each) if each is not None else None for each in (before, after))
        if was is not None and was != now and not self._world.going.of(was):
            self._given.pop(was, None)
            self._changed.add(place_of(was))

    def _cluster_changed(self, before: Cluster | None, after: Cluster | None) -> None:
        self._users.change(before, after)
        if (cluster := after or before) is not None:
            self._announce(key_of(cluster))

    def _kubeconfig_changed(self, before: Secret | None, after: Secret | None) -> None:
        if (secret := after or before) is not None:
            for key in self._users.of(key_of(secret)):
                self._announce(key)

    def _announce(self, key: Key) -> None:
        if self._world.going.of(key):
            self._changed.add(place_of(key))
