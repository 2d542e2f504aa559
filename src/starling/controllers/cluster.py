"""Cluster: who is there, which labels they may choose, and letting them go."""

import re
from datetime import datetime
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Cluster, conditions
from starling.api.v1alpha1 import ClusterPhase, ClusterStatus
from starling.controllers.presence import Presence, Seen
from starling.controllers.terminating import is_terminating
from starling.controllers.views import Proxy
from starling.controllers.world import World
from starling.controllers.writing import key_ref, says_the_same, set_finalizer, write_status
from starling.kube import Client
from starling.runtime import Controller, Group, Key, ObjectReference, Recorder, Result

__all__ = ["FINALIZER", "ClusterController", "chosen_labels", "status_of"]

FINALIZER: Final = "starling.dev/cluster"
LONGEST_LEAVING: Final = 600.0
"""Seconds after which a cluster that is deleted is waited for no longer."""
_LABEL: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class ClusterController:
    """Writes down whether clusters are there, and lets go of those that are deleted."""

    def __init__(self, client: Client, presence: Presence, recorder: Recorder, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._client = client
        self._presence = presence
        self._recorder = recorder
        self._clock = clock

    def join(self, group: Group, world: World) -> None:
        """Run with a group."""
        self._world = world
        controller = group.controller(Controller("cluster", self.reconcile, at_once=16, clock=self._clock))
        world.clusters.listen(lambda before, after: self._heard(controller, before, after))
        world.proxies.listen(lambda before, after: self._changed(controller, before, after))
        self._presence.listen(controller.add)

    def _heard(self, controller: Controller, before: Cluster | None, after: Cluster | None) -> None:
        if after is not None:
            controller.add(key_of(after))
        elif before is not None:
            self._presence.forget(key_of(before))  # another of this name hasn't been heard of

    def _changed(self, controller: Controller, before: Proxy | None, after: Proxy | None) -> None:
        if (proxy := after or before) is not None and proxy.spec.released:
            controller.add(proxy.key)

    async def reconcile(self, key: Key) -> Result | None:
        """Have one cluster's status and labels as they should be."""
        cluster = self._world.clusters.get(key)
        if cluster is None:
            return None
        if cluster.metadata.deletion_timestamp is not None:
            return await self._let_go(key, cluster)
        if FINALIZER not in cluster.metadata.finalizers:
            cluster = await set_finalizer(self._client, cluster, FINALIZER, present=True)
            self._world.clusters.learn(cluster)
        if labels := chosen_labels(cluster):
            cluster = (
                await self._client.merge_patch(
                    key_ref(cluster),
                    {"metadata": {"resourceVersion": cluster.metadata.resource_version, "labels": labels}},
                )
            ).decode(Cluster)
            self._world.clusters.learn(cluster)
        await self._write(key, cluster)
        return None

    async def _write(self, key: Key, cluster: Cluster) -> None:
        before, seen = cluster.status, self._presence.get(key)
        after = status_of(cluster, seen, self._clock.now())
        if says_the_same(_ours(cluster), after):
            return
        if before.phase != after.phase:
            reason, why = after.phase, seen.why if seen is not None else ""
            self._recorder.event(
                ObjectReference.of(cluster), reason, why or f"the cluster is {reason}", warning=reason == "Unreachable"
            )
        self._world.clusters.learn(await write_status(self._client, cluster, after))

    async def _let_go(self, key: Key, cluster: Cluster) -> Result | None:
        """Drop our finalizer once everything there is without our marks, or nobody is there to tell.

        That it is to be so is written down first, and the assembler then says it in the proxy. If the kind or the
        namespace is going away, nobody meant to let go of the cluster: it goes on by itself, as when the hub is lost.
        """
        if FINALIZER not in cluster.metadata.finalizers:
            return None
        left = self._patience_left(cluster)
        if left > 0 and self._is_there(key, cluster):
            if cluster.status.phase == "Leaving":
                return Result(left)
            if not await is_terminating(self._client, Cluster, key.namespace):
                await self._leave(cluster)
                return Result(left)
        self._world.clusters.learn(await set_finalizer(self._client, cluster, FINALIZER, present=False))
        return None

    def _is_there(self, key: Key, cluster: Cluster) -> bool:
        """Whether there is a cluster that hasn't been let go, as far as is known."""
        proxy, seen = self._world.proxies.get(key), self._presence.get(key)
        if proxy is None or (proxy.spec.released and proxy.acknowledged and not proxy.status.syncs):
            return False
        if seen is not None and seen.reachable is not None:
            return seen.reachable
        return cluster.status.phase in ("Ready", "Leaving")

    def _patience_left(self, cluster: Cluster) -> float:
        since = cluster.metadata.deletion_timestamp or self._clock.now()
        return LONGEST_LEAVING - (self._clock.now() - since).total_seconds()

    async def _leave(self, cluster: Cluster) -> None:
        before, generation, now = _ours(cluster), cluster.metadata.generation, self._clock.now()
        message = "what runs there stays, without our marks"
        told = conditions.reconciling(before.conditions, generation, now, message, "Leaving")
        status = msgspec.structs.replace(before, observed_generation=generation, phase="Leaving", conditions=told)
        self._world.clusters.learn(await write_status(self._client, cluster, status))


def chosen_labels(cluster: Cluster) -> dict[str, str]:
    """Labels that the cluster asks for, may choose and doesn't have; what no label can be, nobody gets."""
    allowed = cluster.spec.pull.allowed_labels if cluster.spec.pull is not None else ()
    asked, has = cluster.status.requested_labels, cluster.metadata.labels
    return {key: asked[key] for key in allowed if _LABEL.fullmatch(asked.get(key, "-")) and has.get(key) != asked[key]}


def status_of(cluster: Cluster, seen: Seen | None, now: datetime) -> ClusterStatus:
    """What the hub says of a cluster: another phase, or what it found out itself; else as it was.

    The fields by which a pull cluster tells of itself are its own and left out.
    """
    before, generation = _ours(cluster), cluster.metadata.generation
    reachable = seen.reachable if seen is not None else None
    phase: ClusterPhase = before.phase if reachable is None else ("Ready" if reachable else "Unreachable")
    after = before
    if seen is not None and cluster.spec.push is not None:
        after = msgspec.structs.replace(
            after,
            uid=seen.uid or before.uid,
            kubernetes_version=seen.kubernetes_version or before.kubernetes_version,
            agent_version=seen.agent_version or before.agent_version,
        )
    if phase == before.phase and before.observed_generation == generation:
        return after
    if phase == "Ready":
        told = conditions.ready(before.conditions, generation, now, "the cluster is there")
    else:
        why = (seen.why if seen is not None else "") or "the cluster hasn't been heard of yet"
        told = conditions.reconciling(before.conditions, generation, now, why, phase)
    at = seen.last_seen.replace(microsecond=0) if seen is not None and seen.last_seen is not None else before.last_seen
    return msgspec.structs.replace(after, observed_generation=generation, phase=phase, last_seen=at, conditions=told)


def _ours(cluster: Cluster) -> ClusterStatus:
    """The part of a status that the hub writes."""
    status = cluster.status
    if cluster.spec.pull is None:
        return msgspec.structs.replace(status, requested_labels={})
    return msgspec.structs.replace(status, requested_labels={}, uid="", kubernetes_version="", agent_version="")


def key_of(cluster: Cluster) -> Key:
    """Which cluster."""
    return Key(cluster.metadata.namespace, cluster.metadata.name)
