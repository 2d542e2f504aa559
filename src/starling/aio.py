"""What asynchronous code stands on: an injected clock, backoff, a queue of work, and connections that weigh little.

Whatever decides by time or waits asks the Clock it was given, so that tests run in virtual time; only `local` and the
command line, which wait for real processes, ask the machine's.
"""

import asyncio
import asyncio.sslproto
import heapq
import math
import random
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

__all__ = [
    "SYSTEM_CLOCK",
    "Backoff",
    "Clock",
    "Slot",
    "Slots",
    "SystemClock",
    "Workqueue",
    "first_of",
    "slim_tls_buffers",
]

TLS_BUFFER = 32 * 1024

MOST_DROPPED = 1000
"""Appointments that were dropped or moved and still lie in a Workqueue, besides as many as are kept."""

K = TypeVar("K", bound=Hashable)


class Clock(Protocol):
    """What time it is, and waiting."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        ...

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds of this clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        return time.monotonic()

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""
        await asyncio.sleep(seconds)


SYSTEM_CLOCK = SystemClock()


async def first_of(*waits: Awaitable[object]) -> int:
    """Return when one of them does, and which; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(number for number, task in enumerate(tasks) if task.done())
    finally:
        for task in tasks:
            task.cancel()


@dataclass
class Backoff:
    """Delays that double up to a limit, each shortened by up to `jitter` of itself so that many clients spread out.

    Mutable: `next()` advances it and `reset()` starts it over.
    """

    initial: float = 0.2
    limit: float = 30.0
    jitter: float = 0.5
    uniform: Callable[[float, float], float] = random.uniform
    failures: int = field(default=0, init=False)

    def next(self) -> float:
        """How long to wait after one more failure."""
        delay = min(self.limit, self.initial * 2.0 ** min(self.failures, 60))
        self.failures += 1
        return delay * (1.0 - self.uniform(0.0, self.jitter))

    def reset(self) -> None:
        """Forget the failures so far."""
        self.failures = 0


class Workqueue(Generic[K]):
    """Keys that want work: each is waiting once at most, and never in two hands at a time.

    A key added while it is in hand comes again once it is done. Mutable; for one event loop.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._ready: dict[K, None] = {}  # a set that keeps its order
        self._in_hand: set[K] = set()
        self._again: set[K] = set()
        self._due: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._scheduled = 0
        self._timer: asyncio.Task[None] | None = None
        self._something = asyncio.Event()

    def __len__(self) -> int:
        """How many wait, those for a later time left out."""
        return len(self._ready)

    def add(self, key: K) -> None:
        """Have the key worked on as soon as someone is free; an appointment for later is dropped."""
        self._due.pop(key, None)
        if key in self._in_hand:
            self._again.add(key)
        else:
            self._ready[key] = None
            self._something.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Have it worked on that much later, unless it is to be sooner anyway."""
        due = self._clock.monotonic() + seconds
        if key in self._ready or key in self._again or self._due.get(key, (math.inf, 0))[0] <= due:
            return
        self._scheduled += 1
        self._due[key] = (due, self._scheduled)
        if len(self._heap) > MOST_DROPPED + 2 * len(self._due):
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[:2]]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (due, self._scheduled, key))
        if self._heap[0][1] == self._scheduled:
            self._set_timer()

    def forget(self, key: K) -> None:
        """Drop what is waiting of it."""
        self._ready.pop(key, None)
        self._again.discard(key)
        self._due.pop(key, None)

    async def get(self) -> K:
        """The next key, in hand until `done`."""
        while not self._ready:
            self._something.clear()
            await self._something.wait()
        key = next(iter(self._ready))
        del self._ready[key]
        self._in_hand.add(key)
        return key

    def done(self, key: K) -> None:
        """Let go of a key."""
        self._in_hand.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """End the timer; nothing that was due later comes."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        self.close()
        self._timer = asyncio.get_running_loop().create_task(self._ring())

    async def _ring(self) -> None:
        while self._heap:
            due, number, key = self._heap[0]
            kept = self._due.get(key) == (due, number)  # else it was dropped or moved since
            if kept and (wait := due - self._clock.monotonic()) > 0:
                await self._clock.sleep(wait)
                continue
            heapq.heappop(self._heap)
            if kept:
                self.add(key)


class Slots:
    """A bound on how many are at work at once, for work that at times only waits for someone else's answer.

    Who shows no progress for `patience` seconds isn't counted any more, so that those who wait for the silent don't
    keep the others from working. Mutable; for one event loop, whose own timer it uses, and that only while someone
    waits for a place: a timer for each piece of work would cost as much as some of the work does.
    """

    def __init__(self, number: int, patience: float) -> None:
        self._free = asyncio.Semaphore(number)
        self._patience = patience
        self._taken: set[Slot] = set()
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    async def take(self) -> "Slot":
        """Wait for a place."""
        if self._free.locked():
            self._waiting += 1
            if self._timer is None:
                self._look()
            try:
                await self._free.acquire()
            finally:
                self._waiting -= 1
        else:
            await self._free.acquire()
        slot = Slot(self._give_back)
        self._taken.add(slot)
        return slot

    def _give_back(self, slot: "Slot") -> None:
        if slot in self._taken:
            self._taken.discard(slot)
            self._free.release()

    def _look(self) -> None:
        """Have those give up who are silent for too long, for as long as someone waits."""
        self._timer = None
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        for slot in [slot for slot in self._taken if slot.last + self._patience <= now]:
            slot.give_up()
        next_end = min((slot.last for slot in self._taken), default=now) + self._patience
        self._timer = loop.call_later(max(next_end - now, 0.01), self._look)


class Slot:
    """A place among those at work, which is given up or lost once. Mutable: when its holder last showed progress."""

    def __init__(self, give_back: Callable[["Slot"], None]) -> None:
        self._give_back = give_back
        self._time = asyncio.get_running_loop().time
        self.last = self._time()

    def progress(self) -> None:
        """Show that the work goes on."""
        self.last = self._time()

    def give_up(self) -> None:
        """Make room for another; again is harmless."""
        self._give_back(self)


def slim_tls_buffers() -> None:
    """Have every TLS connection that this process opens from now on keep 32 KiB instead of asyncio's 256.

    For entry points, not for libraries: it changes asyncio's class. A TLS record is 16 KiB at most, so nothing gets
    slower (docs/decisions/0004), and a process with hundreds of watches is lighter by tens of megabytes.
    """
    asyncio.sslproto.SSLProtocol.max_size = TLS_BUFFER
