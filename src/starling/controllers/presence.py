"""Who is there: what this process itself has seen of clusters. Who wasn't watched for a while isn't taken for dead.

`Presence` is where those who speak with clusters (`push`) or hear of them (`LeaseWatch`) say so, and the Cluster
controller asks. It lives in memory: after a restart nobody has been seen yet, and what Cluster.status says stands.
"""

import heapq
import math
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api.enrolment import account_name
from starling.api.meta import Fields
from starling.runtime import Group, Informer, Key

__all__ = ["CLUSTER_LABEL", "MISSES", "ClusterLease", "LeaseWatch", "Presence", "Seen", "Verdict"]

CLUSTER_LABEL: Final = "starling.dev/cluster"
"""On a Lease: the cluster whose heartbeat it is."""

MISSES: Final = 3
"""Heartbeats that may be missed before a cluster counts as lost."""

LOOK_EVERY: Final = 5.0


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What this process knows of a cluster. `reachable` is None as long as it has seen nothing, `why` if it is lost."""

    reachable: bool | None = None
    last_seen: datetime | None = None
    why: str = ""
    uid: str = ""
    kubernetes_version: str = ""
    agent_version: str = ""


class Presence:
    """Clusters by key, as this process has seen them. Mutable, and the only place that keeps it."""

    def __init__(self) -> None:
        self._seen: dict[Key, Seen] = {}
        self._handlers: list[Callable[[Key], None]] = []
        self._forgetters: list[Callable[[Key], None]] = []

    def seen(
        self, key: Key, at: datetime, *, uid: str = "", kubernetes_version: str = "", agent_version: str = ""
    ) -> None:
        """The cluster is there; what it isn't asked about stays as it was."""
        before = self._seen.get(key, Seen())
        after = Seen(
            reachable=True,
            last_seen=at,
            uid=uid or before.uid,
            kubernetes_version=kubernetes_version or before.kubernetes_version,
            agent_version=agent_version or before.agent_version,
        )
        self._keep(key, before, after)

    def lost(self, key: Key, why: str) -> None:
        """The cluster isn't there, or can't be used."""
        before = self._seen.get(key, Seen())
        self._keep(key, before, msgspec.structs.replace(before, reachable=False, why=why))

    def forget(self, key: Key) -> None:
        """Nobody looks for this cluster any more: as if it had never been seen."""
        self._seen.pop(key, None)
        for handler in self._forgetters:
            handler(key)

    def get(self, key: Key) -> Seen | None:
        """What is known of a cluster; None: nothing."""
        return self._seen.get(key)

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Be told of clusters of which something changed other than when they were last seen."""
        self._handlers.append(handler)

    def listen_for_forgotten(self, handler: Callable[[Key], None]) -> None:
        """Be told of clusters that nobody looks for any more."""
        self._forgetters.append(handler)

    def _keep(self, key: Key, before: Seen, after: Seen) -> None:
        self._seen[key] = after
        if msgspec.structs.replace(before, last_seen=after.last_seen) != after:
            for handler in self._handlers:
                handler(key)


class Verdict:
    """What Presence hears of a cluster that is spoken with: what may pass counts once it has lasted.

    Mutable: what is wrong now, part by part, and from when on it counts.
    """

    def __init__(self, presence: Presence, key: Key, *, lost_after: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._presence, self._key = presence, key
        self._lost_after, self._clock = lost_after, clock
        self._wrong: dict[str, tuple[float, float, str]] = {}  # when it began, when it counts, why

    def wrong(self, part: str, why: str, *, at_once: bool = False) -> None:
        """Something doesn't go as it should; `at_once` if that won't pass by itself."""
        now = self._clock.monotonic()
        began = self._wrong.get(part, (now, 0.0, ""))[0]
        self._wrong[part] = (began, now if at_once else began + self._lost_after, why)

    def right(self, part: str) -> None:
        """That goes well."""
        self._wrong.pop(part, None)

    def seen(self, *, uid: str = "", kubernetes_version: str = "", agent_version: str = "") -> None:
        """It has answered, which makes it present unless something counts against it."""
        if self._counting() is None:
            self._presence.seen(
                self._key,
                self._clock.now(),
                uid=uid,
                kubernetes_version=kubernetes_version,
                agent_version=agent_version,
            )

    def look(self) -> float | None:
        """Tell what has lasted; seconds until more will have, None if nothing is about to."""
        if (why := self._counting()) is not None:
            self._presence.lost(self._key, why)
        now = self._clock.monotonic()
        left = min((counts - now for _, counts, _ in self._wrong.values() if counts > now), default=math.inf)
        return left if left < math.inf else None

    def _counting(self) -> str | None:
        now = self._clock.monotonic()
        return next((why for _, counts, why in self._wrong.values() if counts <= now), None)


class _LeaseMeta(Fields, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _LeaseSpec(Fields, frozen=True, kw_only=True):
    renew_time: str | None = None
    lease_duration_seconds: int | None = None


class ClusterLease(Fields, frozen=True, kw_only=True):
    """A Lease that a cluster renews, as far as a watcher needs it."""

    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()

    @property
    def cluster(self) -> Key:
        """Whose it is by its name; nobody's if the label, which its holder may write, says otherwise."""
        named = self.metadata.labels.get(CLUSTER_LABEL, "")
        return Key(self.metadata.namespace, named if self.metadata.name == account_name(named) else "")

    @property
    def patience(self) -> float:
        """For how many seconds no change means nothing."""
        return float(MISSES * (self.spec.lease_duration_seconds or 60))


class _Due(NamedTuple):
    """When a cluster counts as lost, unless it was heard since; `heard` tells."""

    at: float
    key: Key
    heard: int


class LeaseWatch:
    """Tells Presence of clusters that dial in: there when their Lease changes, lost when it hasn't for three periods.

    Time counts only while our own connection lasts, and on our own clock: a hub that was away, or whose clocks are
    wrong, takes nobody for dead. A Lease that was never renewed says nothing. Mutable: one heap of times for all.
    """

    def __init__(self, presence: Presence, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._presence = presence
        self._clock = clock
        self._attended = 0.0
        self._heap: list[_Due] = []
        self._heard: dict[Key, tuple[int, float]] = {}  # of each: the number of what was heard last, its patience
        self._count = 0
        presence.listen_for_forgotten(self._forget)

    def join(self, group: Group, leases: Informer[ClusterLease]) -> None:
        """Run with a group, with an informer of the Leases that have the label."""
        self.listen(leases)
        group.task(lambda: self.run(leases))

    def listen(self, leases: Informer[ClusterLease]) -> None:
        """Hear of changes."""
        leases.listen(self._changed)

    async def run(self, leases: Informer[ClusterLease]) -> None:
        """Notice who isn't heard any more, until cancelled."""
        interruptions = leases.interruptions
        while True:
            began = self._clock.monotonic()
            await self._clock.sleep(LOOK_EVERY)
            if leases.trouble is not None:
                continue
            if leases.interruptions != interruptions:  # clusters that lost us too take a while to be back
                interruptions = leases.interruptions
                for key, (_, patience) in list(self._heard.items()):
                    self._hear(key, patience)
            else:
                # A process that was stopped for a while wasn't listening either.
                self._attended += min(self._clock.monotonic() - began, 2 * LOOK_EVERY)
                self._tell_lost()

    def _changed(self, before: ClusterLease | None, after: ClusterLease | None) -> None:
        if after is None:
            if before is not None and self._heard.pop(before.cluster, None) is not None:
                self._presence.lost(before.cluster, f"its Lease {before.metadata.name} is gone: it was revoked")
            return
        if after.spec.renew_time is None or not after.cluster.name:
            return
        if before is not None and before.spec.renew_time == after.spec.renew_time:
            return
        self._hear(after.cluster, after.patience)
        if before is not None:  # else we don't know when that was
            self._presence.seen(after.cluster, self._clock.now())

    def _forget(self, key: Key) -> None:
        """That the Lease of a cluster which is no more goes, too, is nothing to tell of the next one of its name."""
        self._heard.pop(key, None)

    def _hear(self, key: Key, patience: float) -> None:
        self._count += 1
        self._heard[key] = (self._count, patience)
        heapq.heappush(self._heap, _Due(self._attended + patience, key, self._count))

    def _tell_lost(self) -> None:
        while self._heap and self._heap[0].at <= self._attended:
            due = heapq.heappop(self._heap)
            if self._heard.get(due.key, (0, 0.0))[0] == due.heard:
                self._presence.lost(due.key, f"no heartbeat, {MISSES} times in a row")
