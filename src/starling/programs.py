"""Programs that we run and wait for, ended together with their whole group, whatever happens to us."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

__all__ = ["Finished", "OutputTooLong", "child", "run"]

Result = TypeVar("Result")

CHUNK = 1 << 16
MOST_COMPLAINTS = 1 << 20


class Finished(msgspec.Struct, frozen=True):
    """How a program ended: its exit code (negative for a signal), what it wrote, what it complained about."""

    code: int
    output: bytes
    complaints: str


class OutputTooLong(Exception):
    """A program wrote more than it may; it was ended."""


async def run(
    *command: str,
    environment: Mapping[str, str],
    within: float,
    cwd: Path | None = None,
    feed: bytes | None = None,
    longest: int = 1 << 30,
) -> Finished:
    """Run a program to its end. TimeoutError `within` so many seconds, OutputTooLong beyond `longest` bytes.

    Of its complaints the last megabyte is kept. Whatever happens, nothing of its group outlives the call.
    """
    async with (
        asyncio.timeout(within),
        child(*command, environment=environment, cwd=cwd, stdin=DEVNULL if feed is None else PIPE) as process,
    ):
        reading = asyncio.create_task(_read(process, longest))
        hearing = asyncio.create_task(_complaints(process))
        feeding = asyncio.create_task(_feed(process, feed))
        try:
            await asyncio.gather(reading, hearing, feeding)
            return Finished(await process.wait(), reading.result(), hearing.result())
        finally:  # nobody else may read when the program is ended
            for task in (reading, hearing, feeding):
                task.cancel()
            await asyncio.gather(reading, hearing, feeding, return_exceptions=True)


async def _read(process: Process, longest: int) -> bytes:
    assert process.stdout is not None
    parts: list[bytes] = []
    left = longest
    while part := await process.stdout.read(CHUNK):
        left -= len(part)
        if left < 0:
            raise OutputTooLong
        parts.append(part)
    return b"".join(parts)


async def _complaints(process: Process) -> str:
    assert process.stderr is not None
    kept = b""
    while part := await process.stderr.read(CHUNK):
        kept = (kept + part)[-MOST_COMPLAINTS:]
    return kept.decode(errors="replace")


async def _feed(process: Process, content: bytes | None) -> None:
    if content is None or process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended without reading all; its exit code tells
        process.stdin.write(content)
        await process.stdin.drain()
    process.stdin.close()


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
    """Kill a program's group, and let go of its pipes, without which it doesn't count as ended.

    Others may hold them: who has left the group, as a daemon does, is nobody that we know, and isn't waited for.
    """
    process = await starting
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        feed = process.stdin.transport
        if not feed.is_closing() or feed.get_write_buffer_size():  # else it is closed, or just about to be
            feed.abort()
    for number in (1, 2):
        # Not the whole transport's close(): that may take the exit code away from who waits for it.
        if pipe := process._transport.get_pipe_transport(number):  # type: ignore[attr-defined]  # noqa: SLF001
            pipe.close()
    await process.wait()


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
