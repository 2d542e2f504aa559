"""One of several processes leads: leader election by a Lease, by the rules of Kubernetes' own components.

Times written by others are never compared with our clock: a lease has run out when its record hasn't changed, as *we*
observed it, for as long as it says. Its holder gives up its work before that, when it couldn't renew it. This keeps two
from leading at once as long as clocks run at nearly the same pace; writes that must not come from an old leader carry
preconditions of their own.
"""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import Enum

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.errors import InputError
from starling.kube import Client, Conflict, KubeError, Metadata, NotFound, NotServed, Resource

__all__ = ["LeaseRecord", "LeaseSettings", "Move", "Observation", "decide", "lead"]

LOG = logging.getLogger(__name__)

LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
JITTER = 0.2
"""By this share waits are lengthened, so that candidates don't ask in step."""


class LeaseSettings(msgspec.Struct, frozen=True):
    """In seconds: how long a lease holds, within which time it must be renewed, and how often that is tried."""

    duration: float = 15.0
    renew_within: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_within > self.retry > 0:
            raise InputError(
                f"a lease for {self.duration:g} s, to be renewed within {self.renew_within:g} s by trying each "
                f"{self.retry:g} s, can't be kept",
                hint="each time must be shorter than the one before",
            )


class LeaseRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What a Lease says: who holds it, for how long, since when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Observation(msgspec.Struct, frozen=True):
    """A record, and when on our own clock we first saw it as it is; no record: there is no Lease."""

    record: LeaseRecord | None
    since: float

    def renewed(self, record: LeaseRecord | None, now: float) -> "Observation":
        """What is known after another look."""
        return self if record == self.record else Observation(record, now)


class Move(Enum):
    """What a candidate does next."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def decide(observed: Observation, now: float, identity: str) -> Move:
    """The move of the candidate who observed this."""
    record = observed.record
    if record is None:
        return Move.CREATE
    if record.holder_identity == identity:
        return Move.RENEW
    if not record.holder_identity or now > observed.since + (record.lease_duration_seconds or 0):
        return Move.TAKE
    return Move.WAIT


async def lead(  # noqa: PLR0917 - settings come last, and nearly never
    client: Client,
    ref_name: str,
    namespace: str,
    identity: str,
    work: Callable[[], Awaitable[None]],
    settings: LeaseSettings | None = None,
    *,
    clock: Clock = SYSTEM_CLOCK,
    told: Callable[[bool], None] = lambda _: None,
) -> None:
    """Run `work` while we hold the Lease, from the start each time we get it; end as it ends, and raise what it raises.

    A lease that is lost cancels the work. One that we hold when this ends or is cancelled is given up, for the next to
    take at once. `identity` is this process's alone; `told` hears whether we lead whenever that changes.
    """
    candidate = _Candidate(client, ref_name, namespace, identity, settings or LeaseSettings(), clock=clock)
    while True:
        await candidate.acquire()
        LOG.info("%s leads (%s)", identity, candidate.ref)
        told(True)
        try:
            done = await candidate.hold(work)
        except BaseException:
            await candidate.release()
            raise
        finally:
            told(False)
        if done:
            await candidate.release()
            return
        LOG.warning("%s leads no more: the lease (%s) couldn't be renewed", identity, candidate.ref)


class _Lease(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: LeaseRecord = LeaseRecord()


class _Candidate:
    """One who wants the lease or has it. Mutable: what it observed last, and when it last renewed."""

    def __init__(
        self, client: Client, name: str, namespace: str, identity: str, settings: LeaseSettings, *, clock: Clock
    ) -> None:
        self.ref = LEASES.ref(name, namespace)
        self._client = client.once()
        self._identity = identity
        self._settings = settings
        self._clock = clock
        self._observed = Observation(None, clock.monotonic())
        self._version = ""
        self._renewed_at = clock.monotonic()
        self._complaint = ""

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        while not await self._tried({Move.CREATE, Move.TAKE, Move.RENEW}):
            spread = random.uniform(0.0, JITTER)  # noqa: S311 - spreads candidates, hides nothing
            await self._clock.sleep(self._settings.retry * (1.0 + spread))

    async def hold(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do the work while the lease is renewed; False: it was lost, and the work cancelled."""
        working = asyncio.ensure_future(work())
        watching = [asyncio.ensure_future(self._renewals()), asyncio.ensure_future(self._expiry())]
        try:
            await asyncio.wait({working, *watching}, return_when=asyncio.FIRST_COMPLETED)
            done = working.done()
        finally:
            for task in (working, *watching):
                task.cancel()
            await asyncio.gather(working, *watching, return_exceptions=True)
        for task in (working, *watching):  # work may fail while it is being cancelled, too, and we by mistake
            if not task.cancelled():
                task.result()
        return done

    async def release(self) -> None:
        """Give the lease up, if it is still ours; who can't be told waits until it has run out."""
        record = self._observed.record
        if record is None or record.holder_identity != self._identity:
            return
        free = LeaseRecord("", 1, self._now(), self._now(), record.lease_transitions)
        try:
            async with asyncio.timeout(self._settings.renew_within / 2):
                await self._write(free)
        except (KubeError, TimeoutError) as error:
            LOG.debug("%s: not given up: %s", self.ref, error)

    async def _renewals(self) -> None:
        """Renew until someone else is seen to have the lease."""
        while True:
            await self._clock.sleep(self._settings.retry)
            await self._tried({Move.RENEW})
            record = self._observed.record
            if record is None or record.holder_identity != self._identity:
                return

    async def _expiry(self) -> None:
        """Wait until the last renewal is too long ago."""
        while (left := self._renewed_at + self._settings.renew_within - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)

    async def _tried(self, moves: set[Move]) -> bool:
        """Look, and make the move if it is among these; whether the lease is ours by that."""
        began = self._clock.monotonic()  # the lease counts from before the request, however long the answer takes
        try:
            async with asyncio.timeout(self._settings.renew_within / 2):
                await self._look()
                move = decide(self._observed, self._clock.monotonic(), self._identity)
                if move not in moves:
                    return False
                await self._write(self._claim(move))
        except Conflict:
            return False  # another was faster
        except (KubeError, TimeoutError) as error:
            self._complain(str(error) or "no answer in time")
            return False
        self._renewed_at, self._complaint = began, ""
        return True

    async def _look(self) -> None:
        try:
            lease = (await self._client.get(self.ref)).decode(_Lease)
        except NotServed:
            raise
        except NotFound:
            lease = None
        self._see(lease)

    def _see(self, lease: _Lease | None) -> None:
        self._version = lease.metadata.resource_version if lease else ""
        self._observed = self._observed.renewed(lease.spec if lease else None, self._clock.monotonic())

    def _claim(self, move: Move) -> LeaseRecord:
        """The record that says it is ours; a renewal keeps since when."""
        now, record = self._now(), self._observed.record or LeaseRecord()
        transitions = record.lease_transitions or 0
        seconds = max(1, math.ceil(self._settings.duration))
        if move is Move.RENEW:
            return LeaseRecord(self._identity, seconds, record.acquire_time or now, now, transitions)
        return LeaseRecord(self._identity, seconds, now, now, transitions + (move is Move.TAKE))

    async def _write(self, record: LeaseRecord) -> None:
        """Write onto the state that we saw and no other."""
        if self._version:
            patch = {"metadata": {"resourceVersion": self._version}, "spec": record}
            body = await self._client.merge_patch(self.ref, patch)
        else:
            metadata = {"name": self.ref.name, "namespace": self.ref.namespace}
            lease = {"apiVersion": LEASES.gvk.api_version, "kind": "Lease", "metadata": metadata, "spec": record}
            body = await self._client.create(LEASES, lease, namespace=self.ref.namespace)
        self._see(body.decode(_Lease))

    def _now(self) -> str:
        return micro_time(self._clock.now())

    def _complain(self, text: str) -> None:
        """Once for each thing that is wrong."""
        LOG.log(logging.DEBUG if text == self._complaint else logging.WARNING, "%s", text)
        self._complaint = text


def micro_time(time: datetime) -> str:
    """As Kubernetes writes a MicroTime."""
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"
