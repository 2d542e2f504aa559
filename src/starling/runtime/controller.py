"""One kind's controller: keys in, one reconcile per key at a time, and what becomes of errors."""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum

import msgspec

from starling.aio import SYSTEM_CLOCK, Backoff, Clock, Slot, Slots, Workqueue
from starling.api import SchemaError
from starling.errors import InputError, StarlingError
from starling.kube import Conflict, KubeError, ServerError, Unreachable
from starling.runtime.store import Key

__all__ = ["BUCKETS", "Controller", "Durations", "Outcome", "Result", "outcome_of"]

LOG = logging.getLogger(__name__)

BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
"""Upper bounds, in seconds, by which durations are counted."""

CONFLICT_SHARE = 0.1
"""Of the wait after another failure: a conflict is a stale read, as a rule, and the watch is about to tell."""

QUIET_FAILURES = 3
"""In a row; a key that still meets conflicts then has another problem than a stale read."""


class Result(msgspec.Struct, frozen=True):
    """What a reconcile asks for: to come again in so many seconds, or only when something changes."""

    requeue_after: float | None = None


class Outcome(StrEnum):
    """How a reconcile ended."""

    SUCCEEDED = "succeeded"
    INVALID = "invalid"  # only another input helps: not tried again until something changes
    CONFLICT = "conflict"  # someone else wrote meanwhile: again soon
    FAILED = "failed"  # may well succeed later
    UNEXPECTED = "unexpected"  # a mistake of ours


def outcome_of(error: Exception) -> Outcome:
    """Which of them an error is."""
    match error:
        case InputError() | SchemaError():
            return Outcome.INVALID
        case Conflict():
            return Outcome.CONFLICT
        case StarlingError():
            return Outcome.FAILED
        case _:
            return Outcome.UNEXPECTED


class Durations:
    """How long things took: how many, by bucket, and in all. Mutable."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Controller:
    """Has `reconcile` called for each key that is added: with one key never twice at a time, with `at_once` keys.

    A reconcile that takes longer than `patience` while others wait isn't counted among these, so that one silent
    cluster holds up nobody. Mutable: the queue, each failing key's backoff and whether it failed for want of a server,
    counters. Runs once.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[Result | None]],
        *,
        at_once: int = 8,
        patience: float = 5.0,
        first_retry: float = 1.0,
        longest_retry: float = 300.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.name = name
        self.outcomes = Counter[Outcome]()
        self.durations = Durations()
        self._reconcile = reconcile
        self._at_once = at_once
        self._patience = patience
        self._first_retry = first_retry
        self._longest_retry = longest_retry
        self._clock = clock
        self._queue = Workqueue[Key](clock)
        self._backoffs: dict[Key, Backoff] = {}
        self._cut_off: set[Key] = set()

    def __len__(self) -> int:
        """How many keys wait, those for a later time left out."""
        return len(self._queue)

    @property
    def failing(self) -> int:
        """How many keys failed the last time and will be tried again."""
        return len(self._backoffs)

    def add(self, key: Key) -> None:
        """Have a key reconciled as soon as there is room, and again if it is being reconciled now."""
        self._queue.add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Have it reconciled that much later, unless it is to be sooner anyway."""
        self._queue.add_after(key, seconds)

    def try_again(self) -> None:
        """Have the keys that a server had no answer for reconciled as soon as there is room: it may be back."""
        for key in self._cut_off:
            self._backoffs[key].reset()
            self._queue.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        slots = Slots(self._at_once, self._patience)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    place = await slots.take()
                    key = await self._queue.get()
                    place.progress()
                    group.create_task(self._process(key, place))
        finally:
            self._queue.close()

    async def _process(self, key: Key, place: Slot) -> None:
        began = self._clock.monotonic()
        try:
            wait = self._succeeded(key, await self._reconcile(key))
        except Exception as error:  # noqa: BLE001 - whatever it is, the work on other keys goes on
            wait = self._failed(key, error)
        finally:
            place.give_up()
            self._queue.done(key)
        self.durations.add(self._clock.monotonic() - began)
        if wait is not None:
            self._queue.add_after(key, wait)

    def _succeeded(self, key: Key, result: Result | None) -> float | None:
        self.outcomes[Outcome.SUCCEEDED] += 1
        self._forget(key)
        return result.requeue_after if result is not None else None

    def _failed(self, key: Key, error: Exception) -> float | None:
        """How long to wait before the next try; None: until someone adds the key again."""
        outcome = outcome_of(error)
        self.outcomes[outcome] += 1
        if outcome is Outcome.INVALID:
            self._forget(key)
            self._log(logging.WARNING, key, error, "not tried again until something changes")
            return None
        backoff = self._backoffs.setdefault(key, Backoff(self._first_retry, self._longest_retry))
        wait = backoff.next()
        (self._cut_off.add if isinstance(error, Unreachable | ServerError) else self._cut_off.discard)(key)
        if outcome is Outcome.UNEXPECTED:
            LOG.error("%s %s: an error that nobody expected", self.name, key, exc_info=error, extra=self._extra(key))
            return self._longest_retry
        if isinstance(error, KubeError) and error.retry_after is not None:
            wait = max(wait, error.retry_after)
        quiet = outcome is Outcome.CONFLICT and backoff.failures <= QUIET_FAILURES
        wait *= CONFLICT_SHARE if outcome is Outcome.CONFLICT else 1.0
        self._log(logging.DEBUG if quiet else logging.WARNING, key, error, f"tried again in {wait:.1f} s")
        return wait

    def _forget(self, key: Key) -> None:
        self._backoffs.pop(key, None)
        self._cut_off.discard(key)

    def _log(self, level: int, key: Key, error: Exception, outlook: str) -> None:
        reason = error.reason if isinstance(error, StarlingError) else type(error).__name__
        LOG.log(level, "%s %s: %s; %s", self.name, key, error, outlook, extra={**self._extra(key), "reason": reason})

    def _extra(self, key: Key) -> dict[str, str]:
        return {"controller": self.name, "key": str(key)}
