"""Heartbeat: a cluster tells its hub that it is there, by renewing a Lease. It finds out so if another does, too."""

import math
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import ObjectMeta
from starling.api.enrolment import account_name
from starling.api.meta import Fields
from starling.controllers.following import Step, Troubles
from starling.controllers.presence import MISSES
from starling.errors import StarlingError
from starling.kube import Client, Conflict, NotFound, NotServed, Ref, Unreachable
from starling.runtime import Key
from starling.runtime.leading import LEASES

__all__ = ["LEASES", "Contested", "Heartbeat", "NotEnrolled", "lease_of"]


JITTER: Final = 0.1
_BETWEEN: Final = "_"


class NotEnrolled(StarlingError):
    """The hub answers, and doesn't know this cluster."""

    reason = "NotEnrolled"


class Contested(StarlingError):
    """Another cluster dials in as this one."""

    reason = "Contested"


class _LeaseSpec(Fields, frozen=True, kw_only=True):
    holder_identity: str | None = None
    renew_time: datetime | None = None
    lease_duration_seconds: int | None = None


class _Lease(Fields, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: _LeaseSpec = _LeaseSpec()


class _Other(NamedTuple):
    """Another holder's last sign of life, and when we saw it first, on our own clock."""

    spec: _LeaseSpec
    since: float


def lease_of(cluster: Key) -> Ref:
    """The Lease on the hub that a cluster renews."""
    return LEASES.ref(account_name(cluster.name), cluster.namespace)


async def _unknown() -> str:
    return ""


class Heartbeat:
    """Renews one cluster's Lease, every `period` seconds give or take a tenth: many clusters don't march in step.

    The holder's name ends with the cluster's `uid`. Each renewal is written onto the one before: that fails if anyone
    else wrote, and only then is the Lease read. Another cluster that holds it is left alone until it was silent for
    three periods. Mutable: the version written last, the other, and `contested`: None until it is known.
    """

    def __init__(
        self,
        hub: Client,
        cluster: Key,
        *,
        identity: str,
        uid: Callable[[], Awaitable[str]] = _unknown,
        period: float,
        troubles: Troubles,
        changed: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.contested: bool | None = None
        self._hub = hub.once()
        self._cluster = cluster
        self._identity, self._uid = identity, uid
        self._period = period
        self._troubles, self._changed = troubles, changed
        self._clock = clock
        self._uniform = uniform
        self._version = ""
        self._other: _Other | None = None
        self._step = Step(f"heartbeat {cluster}", self._beaten, first=min(1.0, period), longest=period, clock=clock)

    async def run(self) -> None:
        """Beat until cancelled; sooner again after one that failed."""
        self._step.wake()
        await self._step.run()

    def wake(self) -> None:
        """The hub is back: find out at once what has had to wait."""
        if self.contested is None:
            self._step.wake(at_once=True)

    async def _beaten(self) -> float:
        with self._troubles.of("heartbeat"):
            await self.beat()
        return self._period * self._uniform(1 - JITTER, 1 + JITTER)

    async def beat(self) -> None:
        """Renew it once."""
        try:
            await self._renew_or_see_why_not()
        except Contested:
            self._now_contested(True)
            raise
        except (Unreachable, Conflict):
            raise
        except StarlingError as error:
            self._now_contested(bool(self.contested))  # there is no Lease that anyone could hold
            if not isinstance(error, NotFound) or isinstance(error, NotServed):
                raise
            raise NotEnrolled(
                f"the hub has no Lease for cluster {self._cluster}: it was revoked, or never enrolled",
                hint=f"on the hub: starling enrol {self._cluster.name} --namespace {self._cluster.namespace}",
            ) from error
        self._now_contested(False)

    async def _renew_or_see_why_not(self) -> None:
        uid = await self._uid()
        if not self._version:
            await self._look(uid, writes=False)
        try:
            await self._renew(uid)
        except Conflict:  # another cluster, or someone who enrols this one again
            await self._look(uid, writes=True)
            await self._renew(uid)

    async def _renew(self, uid: str) -> None:
        onto, self._version = self._version, ""
        spec = {
            "renewTime": self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "holderIdentity": f"{self._identity}{_BETWEEN}{uid}" if uid else self._identity,
            "leaseDurationSeconds": math.ceil(self._period),
        }
        patch: dict[str, Any] = {"metadata": {"resourceVersion": onto}, "spec": spec}
        answer = await self._hub.merge_patch(lease_of(self._cluster), patch, manager="starling-agent")
        self._version, self._other = answer.decode(_Lease).metadata.resource_version, None

    async def _look(self, uid: str, *, writes: bool) -> None:
        """Find out who holds it; Contested if that is another cluster that lives, as one does that `writes`."""
        lease = (await self._hub.get(lease_of(self._cluster))).decode(_Lease)
        holder = (lease.spec.holder_identity or "").partition(_BETWEEN)[2]
        if uid and holder and holder != uid and not self._is_silent(lease.spec, writes=writes):
            raise Contested(
                f"another cluster, whose kube-system has uid {holder}, dials in to the hub as {self._cluster}; "
                "nothing is delivered here",
                hint=f"delete the Upstream on one of both, and enrol it by another name than {self._cluster.name}",
            )
        self._version = lease.metadata.resource_version

    def _is_silent(self, spec: _LeaseSpec, *, writes: bool) -> bool:
        now, patience = self._clock.monotonic(), float(MISSES * (spec.lease_duration_seconds or 60))
        before, self._other = self._other, self._other or _Other(spec, now)
        if before is None:  # by the wall clock, for want of a better one
            renewed = spec.renew_time
            return not writes and (renewed is None or (self._clock.now() - renewed).total_seconds() > patience)
        if before.spec != spec:
            self._other = _Other(spec, now)
        return now - self._other.since >= patience

    def _now_contested(self, contested: bool) -> None:
        if contested != self.contested:
            self.contested = contested
            self._changed()
