"""A Group's members live and end together, and an error of one is the group's."""

import asyncio

import pytest

from starling.errors import InputError, StarlingError
from starling.runtime import Controller, Group, Key


async def test_one_error_is_raised_as_it_is_and_ends_all() -> None:
    """Not wrapped, however deep it was; the others are cancelled."""
    ended: list[str] = []

    async def lasting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("lasting")

    async def failing() -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(refuse())

    async def refuse() -> None:
        raise InputError("no")

    group = Group("test")
    group.task(lasting)
    group.task(failing)
    with pytest.raises(InputError, match="no"):
        await group.run()
    assert ended == ["lasting"]


@pytest.mark.parametrize("errors", [[ValueError("x")], [StarlingError("x"), StarlingError("y")]], ids=["other", "two"])
async def test_anything_else_stays_a_group(errors: list[Exception]) -> None:
    """Two errors, or one that is a mistake: nothing of them is lost."""
    together = asyncio.Event()
    arrived = 0

    async def fail(error: Exception) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == len(errors):
            together.set()
        await together.wait()
        raise error

    group = Group("test")
    for error in errors:
        group.task(lambda error=error: fail(error))  # type: ignore[misc] # mypy can't infer a lambda's default
    with pytest.raises(ExceptionGroup) as raised:
        await group.run()
    assert set(raised.value.exceptions) == set(errors)


async def test_a_group_ends_by_cancellation() -> None:
    """A task that is done doesn't end it; controllers work until then."""
    seen: asyncio.Queue[Key] = asyncio.Queue()
    group = Group("test")
    controller = group.controller(Controller("test", seen.put))
    assert group.ready

    async def add() -> None:
        controller.add(Key("", "a"))

    group.task(add)
    running = asyncio.create_task(group.run())
    assert await asyncio.wait_for(seen.get(), 60) == Key("", "a")
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
