"""Slots bound how many are at work, those left out who only wait."""

import asyncio

from starling.aio import Slots
from tests.waiting import until


async def test_no_more_than_there_are_slots_work_at_once() -> None:
    """The next one begins when one is done."""
    slots = Slots(2, patience=60.0)
    at_work: set[int] = set()
    go_on = asyncio.Semaphore(0)
    most = 0

    async def work(number: int) -> None:
        nonlocal most
        place = await slots.take()
        at_work.add(number)
        most = max(most, len(at_work))
        await go_on.acquire()
        at_work.discard(number)
        place.give_up()

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(work(number))
        for _ in range(6):
            await until(lambda: bool(at_work))
            go_on.release()
    assert most == 2


async def test_who_takes_long_is_not_counted_any_more() -> None:
    """One that waits for the silent keeps its work, not its slot; giving it up later gives up nothing twice."""
    slots = Slots(1, patience=1.0)
    silent = await slots.take()
    second = await asyncio.wait_for(slots.take(), 60)
    silent.give_up()
    third = asyncio.ensure_future(slots.take())
    done, _ = await asyncio.wait({third}, timeout=0)
    assert not done
    second.give_up()
    (await asyncio.wait_for(third, 60)).give_up()


async def test_who_shows_progress_keeps_its_slot() -> None:
    """Work that takes long isn't mistaken for work that waits."""
    slots = Slots(1, patience=1.0)
    busy = await slots.take()
    other = asyncio.ensure_future(slots.take())
    for _ in range(30):
        busy.progress()
        done, _ = await asyncio.wait({other}, timeout=0.05)
        assert not done
    busy.give_up()
    busy.progress()
    (await asyncio.wait_for(other, 60)).give_up()
