"""Programs that we run and wait for, ended together with all that they started, whatever happens to us."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

__all__ = ["child"]

Result = TypeVar("Result")


@asynccontextmanager
async def child(
    *command: str, environment: Mapping[str, str], cwd: Path | None = None, stdin: int = DEVNULL
) -> AsyncIterator[Process]:
    """Run a program, its output in pipes, while the block lasts; at its end neither it nor any of its group is left."""
    program = asyncio.create_subprocess_exec(
        *command, env=environment, cwd=cwd, stdin=stdin, stdout=PIPE, stderr=PIPE, start_new_session=True
    )
    starting = asyncio.create_task(program)
    try:
        # Not cancelled half-way: asyncio would then end the program, but not what that had started.
        yield await uninterrupted(starting)
    finally:
        await uninterrupted(asyncio.create_task(end(starting)))


async def end(starting: "asyncio.Task[Process]") -> None:
    """Kill a program's group, and take what is left in its pipes, without which it doesn't count as ended.

    A program that has ended itself may have left others, which hold its pipes.
    """
    process = await starting
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
