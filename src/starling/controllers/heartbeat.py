"""Heartbeat: a cluster tells its hub that it is there, by renewing a Lease."""

import math
import random
from collections.abc import Callable
from typing import Any, Final

from starling.aio import SYSTEM_CLOCK, Backoff, Clock
from starling.api.enrolment import account_name
from starling.controllers.following import Troubles
from starling.errors import StarlingError
from starling.kube import Client, NotFound, NotServed, Ref, Resource
from starling.runtime import Key

__all__ = ["LEASES", "Heartbeat", "NotEnrolled", "lease_of"]

LEASES: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)

JITTER: Final = 0.1


class NotEnrolled(StarlingError):
    """The hub answers, and doesn't know this cluster."""

    reason = "NotEnrolled"


def lease_of(cluster: Key) -> Ref:
    """The Lease on the hub that a cluster renews."""
    return LEASES.ref(account_name(cluster.name), cluster.namespace)


class Heartbeat:
    """Renews one cluster's Lease, every `period` seconds give or take a tenth: many clusters don't march in step."""

    def __init__(
        self,
        hub: Client,
        cluster: Key,
        *,
        identity: str,
        period: float,
        troubles: Troubles,
        clock: Clock = SYSTEM_CLOCK,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._hub = hub.once()
        self._cluster = cluster
        self._identity = identity
        self._period = period
        self._troubles = troubles
        self._clock = clock
        self._uniform = uniform

    async def run(self) -> None:
        """Beat until cancelled; sooner again after one that failed."""
        backoff = Backoff(min(1.0, self._period), self._period)
        while True:
            try:
                with self._troubles.of("heartbeat"):
                    await self.beat()
            except StarlingError:  # told as trouble
                await self._clock.sleep(backoff.next())
            else:
                backoff.reset()
                await self._clock.sleep(self._period * self._uniform(1 - JITTER, 1 + JITTER))

    async def beat(self) -> None:
        """Renew it once. Nothing is read first: nobody else has reason to write it."""
        try:
            await self._hub.merge_patch(lease_of(self._cluster), self._renewal(), manager="starling-agent")
        except NotServed:
            raise
        except NotFound as error:
            raise NotEnrolled(
                f"the hub has no Lease for cluster {self._cluster}: it was revoked, or never enrolled",
                hint=f"on the hub: starling enrol {self._cluster.name} --namespace {self._cluster.namespace}",
            ) from error

    def _renewal(self) -> dict[str, Any]:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "renewTime": now,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._period),
        }
        return {"spec": spec}
