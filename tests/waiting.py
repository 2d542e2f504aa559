"""Waiting for a condition that only asking again can show."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

SHORTEST, LONGEST = 0.05, 0.2
"""Seconds between two questions: what takes long is asked for less often, as asking takes its time from others."""


@overload
async def until(ask: Callable[[], Awaitable[T]], *, within: float = 60.0) -> T: ...
@overload
async def until(ask: Callable[[], bool], *, within: float = 60.0) -> bool: ...
async def until(ask: Callable[[], Any], *, within: float = 60.0) -> Any:
    """The first true answer, awaited if need be; TimeoutError if there is none in time."""
    pause = SHORTEST
    async with asyncio.timeout(within):
        while True:
            answer = ask()
            if found := (await answer if inspect.isawaitable(answer) else answer):
                return found
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, LONGEST)
