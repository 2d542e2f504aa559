"""Following a Source: a look every so often, told when something is new or wrong."""

import random
from collections.abc import AsyncGenerator, Callable
from typing import Final

from starling.aio import SYSTEM_CLOCK, Clock
from starling.errors import StarlingError
from starling.sources.git import ANONYMOUS, Credentials, GitSource, GitSources
from starling.sources.store import Artifact

__all__ = ["JITTER", "follow", "wait_for"]

JITTER: Final = 0.1
"""The part of an interval by which waits are spread, so that Sources which were made together aren't looked at so."""


def wait_for(interval: float, chance: Callable[[], float] = random.random) -> float:
    """How long to wait before the next look: the interval, a tenth more or less at most."""
    return interval * (1 - JITTER + 2 * JITTER * chance())


async def follow(
    sources: GitSources,
    source: GitSource,
    credentials: Credentials = ANONYMOUS,
    *,
    interval: float = 60.0,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncGenerator[Artifact | StarlingError, None]:
    """Each new artifact, and each error that is another than before; the first look is at once."""
    told: Artifact | None = None
    wrong = ""
    while True:
        try:
            artifact = await sources.fetch(source, credentials)
        except StarlingError as error:
            if error.message != wrong:
                wrong = error.message
                yield error
        else:
            if artifact != told or wrong:
                told, wrong = artifact, ""
                yield artifact
        await clock.sleep(wait_for(interval))
