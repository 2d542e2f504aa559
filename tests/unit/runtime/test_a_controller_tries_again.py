"""A controller reconciles each key until it succeeds: which errors are tried again, when, and what is said."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from starling.api import SchemaError
from starling.errors import InputError, OutOfTime, StarlingError
from starling.kube import AlreadyExists, Conflict, Forbidden, Invalid, ServerError, TooManyRequests, Unreachable
from starling.objects import ManifestError, Origin
from starling.runtime import Controller, Key, Outcome, Result
from starling.runtime.controller import outcome_of
from tests.unit.test_workqueue import VirtualClock
from tests.waiting import until

A, B = Key("ns", "a"), Key("ns", "b")


class Script:
    """A reconcile that does what is written for the next calls, and then succeeds. Mutable."""

    def __init__(self, clock: VirtualClock, *steps: Exception | Result | None) -> None:
        self.times: list[float] = []
        self._clock = clock
        self._steps = list(steps)

    async def __call__(self, _: Key) -> Result | None:
        self.times.append(self._clock.time)
        step = self._steps.pop(0) if self._steps else None
        if isinstance(step, Exception):
            raise step
        return step


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[None]:
    """The controller at work while the block runs."""
    task = asyncio.create_task(controller.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def passed(clock: VirtualClock, *seconds: float) -> None:
    """Time passes, in steps, and what is to happen by then happens."""
    for step in seconds:
        await clock.advance(step)
        await clock.advance(0)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InputError("bad"), Outcome.INVALID),
        (ManifestError("bad", Origin("x.yaml")), Outcome.INVALID),
        (SchemaError("bad"), Outcome.INVALID),
        (Conflict("patch", "stale"), Outcome.CONFLICT),
        (AlreadyExists("create", "taken"), Outcome.CONFLICT),
        (Forbidden("get", "no"), Outcome.FAILED),
        (Invalid("create", "no"), Outcome.FAILED),
        (Unreachable("get", "away"), Outcome.FAILED),
        (OutOfTime("late"), Outcome.FAILED),
        (StarlingError("hm"), Outcome.FAILED),
        (ValueError("oops"), Outcome.UNEXPECTED),
        (TimeoutError(), Outcome.UNEXPECTED),
    ],
    ids=lambda value: value if isinstance(value, Outcome) else type(value).__name__,
)
def test_errors_are_terminal_or_not_by_type(error: Exception, outcome: Outcome) -> None:
    """What a person must mend is left alone; a conflict, a failure and a mistake of ours differ."""
    assert outcome_of(error) is outcome


async def test_what_failed_is_tried_at_once_when_told_so() -> None:
    """Its waits begin anew; who succeeded has no reason to come again."""
    clock = VirtualClock()
    script = Script(clock, None, *(Unreachable("get x", "away") for _ in range(8)))  # six at most in twenty seconds
    controller = Controller("test", script, first_retry=1, longest_retry=300, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 0.05)
        controller.add(B)
        await passed(clock, *[1.0] * 20)
        failures = len(script.times)
        assert controller.failing == 1
        controller.try_again()
        await passed(clock, 0.05, *[0.5] * 2)
        assert len(script.times) == failures + 2
        await passed(clock, *[1.0] * 20)
        assert controller.failing == 0
        before = len(script.times)
        controller.try_again()
        await passed(clock, 0.05)
        assert len(script.times) == before


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Unreachable("get", "away"), True),
        (ServerError("get", "starting", code=503), True),
        (Forbidden("get", "no"), False),
        (StarlingError("git is away"), False),
        (ValueError("oops"), False),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_only_what_a_server_had_no_answer_for_is_tried_at_once(error: Exception, again: bool) -> None:
    """That the server is back mends nothing else, and no other wait is cut short."""
    clock = VirtualClock()
    script = Script(clock, error)
    controller = Controller("test", script, first_retry=100, longest_retry=100, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 0.05)
        controller.try_again()
        await passed(clock, 0.05)
        assert len(script.times) == 1 + again


async def test_a_failure_is_tried_again_later_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """The waits double up to the longest, each shortened by half at most; a warning each time, without a traceback."""
    clock = VirtualClock()
    script = Script(clock, *(Unreachable("get x", "away") for _ in range(6)))
    controller = Controller("test", script, first_retry=1, longest_retry=8, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, *[0.05] * 800)
        assert controller.failing == 0
    waits = [later - earlier for earlier, later in zip(script.times, script.times[1:], strict=False)]
    assert len(waits) == 6
    for wait, most in zip(waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert most / 2 <= wait <= most + 0.1
    assert controller.outcomes == {Outcome.FAILED: 6, Outcome.SUCCEEDED: 1}
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 6
    assert not any(record.exc_info for record in caplog.records)


async def test_success_starts_the_waits_over() -> None:
    """A key that failed, succeeded and fails again waits as if for the first time; nothing is kept in between."""
    clock = VirtualClock()
    failures = [StarlingError("hm") for _ in range(3)]
    script = Script(clock, *failures, None, StarlingError("hm"))
    controller = Controller("test", script, first_retry=1, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 10)
        assert (len(script.times), controller.failing) == (4, 0)
        controller.add(A)
        await passed(clock, 0)
        assert controller.failing == 1
        await passed(clock, 1)
        assert (len(script.times), controller.failing) == (6, 0)


async def test_bad_input_waits_for_a_change() -> None:
    """However long; adding the key again is what a change does."""
    clock = VirtualClock()
    script = Script(clock, InputError("no such field"))
    controller = Controller("test", script, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 100_000)
        assert len(script.times) == 1
        controller.add(A)
        await passed(clock, 0)
        assert len(script.times) == 2


async def test_a_conflict_is_tried_again_soon_and_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """A stale read is no news; only one that doesn't pass is."""
    caplog.set_level(logging.DEBUG, "starling.runtime")
    clock = VirtualClock()
    script = Script(clock, *(Conflict("patch x", "stale") for _ in range(4)))
    controller = Controller("test", script, first_retry=1, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 0.1)
        assert len(script.times) >= 2
        await passed(clock, 0.2, 0.4, 0.8)
        assert len(script.times) == 5
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] * 3 + [logging.WARNING]


async def test_what_nobody_expected_is_told_in_full(caplog: pytest.LogCaptureFixture) -> None:
    """With its traceback; it is tried again after the longest wait, and other keys are reconciled meanwhile."""
    clock = VirtualClock()
    script = Script(clock, ZeroDivisionError("oops"))
    controller = Controller("test", script, longest_retry=300, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 0)
        controller.add(B)
        await passed(clock, 299)
        assert script.times == [0, 0]
        await passed(clock, 1)
        assert script.times == [0, 0, 300]
    (record,) = caplog.records
    assert "an error that nobody expected" in record.getMessage()
    assert record.exc_info is not None


async def test_a_server_that_asks_for_time_gets_it() -> None:
    """Retry-After is kept where it is longer than our own wait."""
    clock = VirtualClock()
    busy = TooManyRequests("get x", "busy")
    busy.retry_after = 20.0
    script = Script(clock, busy)
    controller = Controller("test", script, first_retry=1, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 19)
        assert len(script.times) == 1
        await passed(clock, 1)
        assert len(script.times) == 2


async def test_a_result_may_ask_to_come_again() -> None:
    """After so many seconds, or sooner if something changes, but then not once more."""
    clock = VirtualClock()
    script = Script(clock, Result(10), Result(10))
    controller = Controller("test", script, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 4)
        controller.add(A)
        await passed(clock, 100)
    assert script.times == [0, 4, 14]


async def test_a_key_is_in_one_hand_at_a_time() -> None:
    """What is added meanwhile comes again, once; another key goes on beside it."""
    clock = VirtualClock()
    go_on = asyncio.Event()
    begun: list[Key] = []

    async def reconcile(key: Key) -> None:
        begun.append(key)
        if len(begun) == 1:
            await go_on.wait()

    controller = Controller("test", reconcile, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 0)
        for key in (A, A, B):
            controller.add(key)
        await passed(clock, 0)
        assert begun == [A, B]
        go_on.set()
        await passed(clock, 0, 0)
        assert begun == [A, B, A]


async def test_so_many_at_once_and_the_silent_hold_up_nobody() -> None:
    """With two places a third key waits; when those two only wait for someone silent, it gets its turn."""
    begun: list[Key] = []

    async def reconcile(key: Key) -> None:
        begun.append(key)
        if key.name != "last":
            await asyncio.Event().wait()

    patient = Controller("test", reconcile, at_once=2, patience=60)
    async with running(patient):
        add_all(patient, "x", "y", "last")
        await until(lambda: len(begun) == 2)
        await passed(VirtualClock(), *[0] * 20)
        assert (len(begun), len(patient)) == (2, 1)
    begun.clear()
    hasty = Controller("test", reconcile, at_once=2, patience=0.1)
    async with running(hasty):
        add_all(hasty, "x", "y", "last")
        await until(lambda: Key("ns", "last") in begun)


async def test_a_place_is_given_back() -> None:
    """One at a time, however it ends, all get their turn."""
    clock = VirtualClock()
    script = Script(clock, StarlingError("hm"), InputError("no"), ValueError("oops"))
    controller = Controller("test", script, at_once=1, patience=60, clock=clock)
    async with running(controller):
        add_all(controller, *"abcdef")
        await passed(clock, *[0] * 6)
        assert script.times == [0] * 6


def add_all(controller: Controller, *names: str) -> None:
    """Have these reconciled."""
    for name in names:
        controller.add(Key("ns", name))


async def test_durations_are_counted_by_bucket() -> None:
    """Time is the controller's clock's."""
    clock = VirtualClock()

    async def reconcile(_: Key) -> None:
        await clock.sleep(1.5)

    controller = Controller("test", reconcile, clock=clock)
    async with running(controller):
        controller.add(A)
        await passed(clock, 3)
    assert controller.durations.total == 1.5
    assert controller.durations.counts == [0, 0, 0, 0, 1, 0, 0, 0]
