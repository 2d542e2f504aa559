"""Programs that we wait for leave nobody behind."""

import asyncio
import os

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
