"""A Step works when woken, again after an error, and sooner where what was wrong may be no more."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starling.controllers.following import Step, Troubles, said
from starling.errors import StarlingError
from starling.kube import Conflict
from tests.unit.test_workqueue import VirtualClock


@asynccontextmanager
async def stepping(
    clock: VirtualClock, outcomes: list[Exception | float | None]
) -> AsyncIterator[tuple[Step, Callable[[], int]]]:
    """A step whose work ends in these ways, then well; and how often it was done."""
    done = 0

    async def work() -> float | None:
        nonlocal done
        done += 1
        outcome = outcomes.pop(0) if outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    step = Step("test", work, first=8.0, longest=60.0, clock=clock)
    task = asyncio.create_task(step.run())
    yield step, lambda: done
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_it_works_when_woken_and_not_before() -> None:
    """Nothing is done unasked; being asked twice before it is done is being asked once."""
    clock = VirtualClock()
    async with stepping(clock, []) as (step, done):
        await clock.advance(100)
        assert done() == 0
        step.wake()
        step.wake()
        await clock.advance(0)
        assert done() == 1


async def test_after_an_error_it_waits_whatever_wakes_it() -> None:
    """A failing write isn't repeated by every event; but at once when the server is back."""
    clock = VirtualClock()
    async with stepping(clock, [StarlingError("no"), StarlingError("no")]) as (step, done):
        step.wake()
        await clock.advance(1)
        step.wake()
        await clock.advance(1)
        assert done() == 1
        step.wake(at_once=True)
        await clock.advance(1)
        assert done() == 2
        await clock.advance(20)
        assert done() == 3
        await clock.advance(1000)
        assert done() == 3


async def test_work_may_ask_to_come_again() -> None:
    """After so many seconds, or sooner if woken."""
    clock = VirtualClock()
    async with stepping(clock, [5.0, 5.0]) as (step, done):
        step.wake()
        await clock.advance(4)
        assert done() == 1
        await clock.advance(2)
        assert done() == 2
        step.wake()
        await clock.advance(0)
        assert done() == 3
        await clock.advance(100)
        assert done() == 3


async def test_a_mistake_of_ours_ends_nothing() -> None:
    """What nobody expected is tried again too, later."""
    clock = VirtualClock()
    async with stepping(clock, [ZeroDivisionError()]) as (step, done):
        step.wake()
        await clock.advance(59)
        assert done() == 1
        await clock.advance(2)
        assert done() == 2


def test_troubles_tell_the_one_that_stands_longest() -> None:
    """They are told when the first changes, and all is well when each part has said so."""
    told = list[str]()
    troubles = Troubles(lambda: told.append(said(troubles.first)))
    troubles.set("read", StarlingError("no answer"))
    troubles.set("write", StarlingError("forbidden", hint="ask"))
    troubles.set("read", StarlingError("no answer"))
    troubles.set("read", None)
    troubles.set("write", None)
    assert told == ["no answer", "forbidden; ask", ""]


def test_a_conflict_is_no_trouble() -> None:
    """Someone else was faster: that is no news for people."""
    troubles = Troubles(lambda: None)
    with suppress(Conflict), troubles.of("write"):
        raise Conflict("apply x", "changed")
    assert troubles.first is None
