"""Programs that we wait for leave nobody behind."""

import asyncio
import os
import signal
import time

import pytest

from starling.programs import Finished, OutputTooLong, child, run
from tests.integration.local.conftest import processes_with
from tests.waiting import until


async def test_what_an_ended_program_started_ends_too() -> None:
    """A program that exits at once leaves another that holds its pipes; the block's end waits for neither."""
    mark = f"STARLING_TEST_CHILD={os.getpid()}"
    environment = {"STARLING_TEST_CHILD": str(os.getpid()), "PATH": os.environ["PATH"]}
    async with asyncio.timeout(20):
        async with child("sh", "-c", "sleep 600 & echo started", environment=environment) as program:
            assert program.stdout
            assert await program.stdout.readline() == b"started\n"
            await until(lambda: program.returncode is not None)
            assert len(processes_with(mark)) == 1
        await until(lambda: not processes_with(mark))


HERE = {"PATH": os.environ["PATH"], "STARLING_TEST_RUN": str(os.getpid())}
MARK = f"STARLING_TEST_RUN={os.getpid()}"


async def test_a_run_gives_what_the_program_wrote() -> None:
    """Its output, its complaints, its exit code; fed or not."""
    assert await run("cat", environment=HERE, within=60, feed=b"x" * 300_000) == Finished(0, b"x" * 300_000, "")
    assert await run("sh", "-c", "echo no >&2; exit 3", environment=HERE, within=60) == Finished(3, b"", "no\n")
    assert (await run("true", environment=HERE, within=60, feed=b"x" * 300_000)).code == 0


@pytest.mark.parametrize("where", ["", " >&2"])
async def test_a_run_has_an_end(where: str) -> None:
    """Too much of an answer, or none in time; whatever it started ends with it. Complaints may be long."""
    endless = f"sleep 600 & while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaa{where}; done"
    with pytest.raises(TimeoutError if where else OutputTooLong):
        await run("sh", "-c", endless, environment=HERE, within=2 if where else 60, longest=100_000)
    await until(lambda: not processes_with(MARK))


@pytest.mark.parametrize("feed", [None, b"x" * 3_000_000])
@pytest.mark.parametrize("ends", ["exit 0", "sleep 600"])
async def test_who_left_the_group_is_not_waited_for(ends: str, feed: bytes | None) -> None:
    """It holds the pipes, and isn't ours to end: the time is up all the same."""
    environment = {**HERE, "STARLING_TEST_RUN": f"{os.getpid()}-left"}
    mark = f"{MARK}-left"
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            # <&0: a shell gives what it runs beside itself nothing to read, unless it is told so.
            await run("sh", "-c", f"setsid sleep 20 <&0 & {ends}", environment=environment, within=1, feed=feed)
        assert time.monotonic() - began < 10
        await until(lambda: len(processes_with(mark)) == 1)  # the others are dying
    finally:
        for pid in processes_with(mark):
            os.kill(pid, signal.SIGKILL)
