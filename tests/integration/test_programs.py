"""Programs that we wait for leave nobody behind."""

import asyncio
import os

from starling.local.children import child
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
