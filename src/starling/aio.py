"""What asynchronous code stands on: an injected clock, backoff, and connections that weigh little.

Whatever decides by time or waits asks the Clock it was given, so that tests run in virtual time; only `local` and the
command line, which wait for real processes, ask the machine's.
"""

import asyncio
import asyncio.sslproto
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["SYSTEM_CLOCK", "Backoff", "Clock", "SystemClock", "slim_tls_buffers"]

TLS_BUFFER = 32 * 1024


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


def slim_tls_buffers() -> None:
    """Have every TLS connection that this process opens from now on keep 32 KiB instead of asyncio's 256.

    For entry points, not for libraries: it changes asyncio's class. A TLS record is 16 KiB at most, so nothing gets
    slower (docs/decisions/0004), and a process with hundreds of watches is lighter by tens of megabytes.
    """
    asyncio.sslproto.SSLProtocol.max_size = TLS_BUFFER
