"""Waiting for a condition that only asking again can show."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(ask: Callable[[], Awaitable[T]], *, within: float = 60.0) -> T:
    """The first true answer; TimeoutError if there is none in time."""
    async with asyncio.timeout(within):
        while not (answer := await ask()):  # noqa: ASYNC110 - there is nothing to be woken by
            await asyncio.sleep(0.05)
        return answer
