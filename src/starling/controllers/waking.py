"""Which of what is rolled out is to be looked at again, when something that it depends on has changed."""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from starling.api import Cluster, Module, RolloutPolicy, Source, SyncGroup
from starling.api.v1alpha1 import SyncTemplate
from starling.controllers.world import World
from starling.runtime import Controller, Informer, key_of

__all__ = ["GATHER", "Waking"]

GATHER: Final = 0.1
"""Seconds for which what clusters report is gathered, so that one look and one write do for many."""

R = TypeVar("R", bound=Module | SyncGroup)


class Waking(Generic[R]):
    """Wakes a controller for objects of one kind; `templates` gives what one of them syncs."""

    def __init__(
        self, controller: Controller, objects: Informer[R], templates: Callable[[R], Iterable[SyncTemplate]]
    ) -> None:
        self._controller = controller
        self._objects = objects
        self._templates = templates

    def listen(self, world: World) -> None:
        """Hear of the objects themselves, and of Sources, policies and clusters."""
        self._objects.listen(lambda _, after: self._controller.add(key_of(after)) if after is not None else None)
        world.sources.listen(self._source_changed)
        world.policies.listen(self._policy_changed)
        world.clusters.listen(self._cluster_changed)

    def of(self, namespace: str) -> list[R]:
        """Those of a namespace."""
        return [each for each in self._objects.items() if each.metadata.namespace == namespace]

    def add(self, objects: Iterable[R], after: float = 0.0) -> None:
        """Have these looked at."""
        for each in objects:
            if after:
                self._controller.add_after(key_of(each), after)
            else:
                self._controller.add(key_of(each))

    def _source_changed(self, before: Source | None, after: Source | None) -> None:
        source = after or before
        assert source is not None
        if before is not None and after is not None and _offer(before) == _offer(after):
            return
        name = source.metadata.name
        objects = self.of(source.metadata.namespace)
        self.add(each for each in objects if any(it.source.name == name for it in self._templates(each)))

    def _policy_changed(self, before: RolloutPolicy | None, after: RolloutPolicy | None) -> None:
        policy = after or before
        assert policy is not None
        name, objects = policy.metadata.name, self.of(policy.metadata.namespace)
        self.add(each for each in objects if each.spec.policy_ref is not None and each.spec.policy_ref.name == name)

    def _cluster_changed(self, before: Cluster | None, after: Cluster | None) -> None:
        cluster = after or before
        assert cluster is not None
        if before is None or after is None or _standing(before) != _standing(after):
            self.add(self.of(cluster.metadata.namespace), GATHER)


def _offer(source: Source) -> tuple[object, ...]:
    """What is taken from a Source."""
    return source.status.artifact, source.spec.git, source.spec.ignore


def _standing(cluster: Cluster) -> tuple[object, ...]:
    meta, spec = cluster.metadata, cluster.spec
    way = spec.push is None
    return meta.labels, meta.annotations, spec.mode, way, cluster.status.phase, meta.deletion_timestamp is None
