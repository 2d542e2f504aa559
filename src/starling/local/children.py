"""Programs that we run and wait for, ended together with all that they started, whatever happens to us."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

__all__ = ["child"]

Result = TypeVar("Result")


@asynccontextmanager
async def child(*command: str, **options: Any) -> AsyncIterator[Process]:
    """Run a program while the block lasts; at its end neither it nor any process of its session is left."""
    starting = asyncio.create_task(asyncio.create_subprocess_exec(*command, start_new_session=True, **options))
    try:
        # Not cancelled half-way: asyncio would then end the program, but not what that had started.
        yield await uninterrupted(starting)
    finally:
        await uninterrupted(asyncio.create_task(end(starting)))


async def end(starting: "asyncio.Task[Process]") -> None:
    """Kill a program if it still runs, and take what is left in its pipes, without which it doesn't count as ended."""
    process = await starting
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.communicate()


async def uninterrupted(task: "asyncio.Task[Result]") -> Result:
    """Wait for a task to its end even if cancelled meanwhile; being cancelled comes after that."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    return task.result()
