"""What Syncs depend on besides themselves: Sources, Assemblages, Clusters; and whom a change there concerns."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from starling.api import Assemblage, Cluster, Source, Sync
from starling.controllers.afresh import afresh
from starling.controllers.credentials import Secret
from starling.controllers.sync_units import Surroundings, cluster_of, controller_of, owner_of
from starling.controllers.terminating import is_terminating
from starling.kube import Client
from starling.runtime import Index, Informer, Key, key_of

__all__ = ["SyncWorld"]


@dataclass(frozen=True, slots=True)
class SyncWorld:
    """Informers of all that matters; `kubeconfigs` are the Secrets labelled as those of clusters.

    `going` has the Syncs by the Cluster that they go to.
    """

    syncs: Informer[Sync]
    sources: Informer[Source]
    assemblages: Informer[Assemblage]
    clusters: Informer[Cluster]
    kubeconfigs: Informer[Secret]
    going: Index[Sync] = field(default_factory=lambda: Index(cluster_of))

    def __post_init__(self) -> None:
        self.syncs.listen(self.going.change)

    def listen(self, concerned: Callable[[Sync], None]) -> None:
        """Have it told which Syncs have to heed a change to something else."""

        def tell(syncs: Iterable[Sync]) -> None:
            for sync in tuple(syncs):
                concerned(sync)

        self.sources.listen(lambda before, after: tell(self._following(before, after)))
        self.assemblages.listen(lambda before, after: tell(self._owned(before, after)))
        self.clusters.listen(lambda before, after: tell(self._going_there(before, after)))

    async def around(self, client: Client, sync: Sync) -> Surroundings:
        """What a Sync's meaning depends on, as it is now."""
        namespace, name = sync.metadata.namespace, sync.spec.source.name
        deleting, owner, now = sync.metadata.deletion_timestamp is not None, owner_of(sync), None
        if deleting and owner is not None:
            now = await afresh(client, Assemblage, Key(namespace, owner.name))
        cluster = None
        if (key := cluster_of(sync)) is not None:
            cluster = await afresh(client, Cluster, key) if deleting else self.clusters.get(key)
        return Surroundings(
            controller=controller_of(sync, (lambda _: now) if deleting else self.assemblages.get),
            source=self.sources.get(Key(namespace, name)) if name is not None else None,
            cluster=cluster,
            terminating=deleting and await is_terminating(client, Sync, namespace),
        )

    def _following(self, before: Source | None, after: Source | None) -> Iterable[Sync]:
        source = after or before
        if source is None or (before is not None and after is not None and _offered(before) == _offered(after)):
            return ()
        return (s for s in self.syncs.items() if (s.metadata.namespace, s.spec.source.name) == key_of(source))

    def _owned(self, before: Assemblage | None, after: Assemblage | None) -> Iterable[Sync]:
        found = after or before
        if found is None or (before is not None and after is not None and _bearing(before) == _bearing(after)):
            return ()
        key = key_of(found)
        return (
            sync
            for sync in self.syncs.items()
            if key in {(sync.metadata.namespace, owner.name) for owner in sync.metadata.owner_references}
        )

    def _going_there(self, before: Cluster | None, after: Cluster | None) -> Iterable[Sync]:
        found = after or before
        if found is None or (before is not None and after is not None and _told(before) == _told(after)):
            return ()
        syncs = (self.syncs.get(key) for key in self.going.of(key_of(found)))
        return (sync for sync in syncs if sync is not None)


def _offered(source: Source) -> tuple[object, ...]:
    artifact = source.status.artifact
    return source.metadata.uid, source.spec, artifact.revision if artifact is not None else None


def _bearing(assemblage: Assemblage) -> tuple[object, ...]:
    """What of an Assemblage its Syncs have to heed."""
    meta, spec = assemblage.metadata, assemblage.spec
    return meta.uid, meta.deletion_timestamp is not None, spec.mode, spec.released


def _told(cluster: Cluster) -> tuple[object, ...]:
    """What of a Cluster its Syncs have to heed: what bindings may mention, too."""
    meta = cluster.metadata
    return meta.uid, meta.deletion_timestamp is not None, meta.labels, meta.annotations, cluster.spec
