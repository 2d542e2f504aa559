"""A Workqueue gives each key to one worker at a time, loses none, and keeps appointments."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from starling.aio import Workqueue

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def monotonic(self) -> float:
        return self.time

    def now(self) -> datetime:
        return START + timedelta(seconds=self.time)

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self.time + seconds, woken))
        await woken.wait()

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking each sleeper at its time."""
        end = self.time + seconds
        await _settled()
        while due := [sleeper for sleeper in self._sleepers if sleeper[0] <= end]:
            first = min(due, key=lambda sleeper: sleeper[0])
            self._sleepers.remove(first)
            self.time = max(self.time, first[0])
            first[1].set()
            await _settled()
        self.time = end


async def _settled() -> None:
    """Let everything run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def taken(queue: Workqueue[str]) -> list[str]:
    """All that is ready, each worked on and done."""
    found = []
    while len(queue):
        key = await queue.get()
        queue.done(key)
        found.append(key)
    return found


@given(keys=st.lists(st.sampled_from("abc"), max_size=12))
async def test_a_key_waits_once_and_in_order(keys: list[str]) -> None:
    """However often it was added; first come, first served."""
    queue = Workqueue[str](VirtualClock())
    for key in keys:
        queue.add(key)
    assert await taken(queue) == list(dict.fromkeys(keys))


async def test_a_key_in_hand_comes_again_when_done() -> None:
    """Nobody else gets it meanwhile; and it comes once more, however often it was added."""
    queue = Workqueue[str](VirtualClock())
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await taken(queue) == ["a"]


async def test_who_waits_is_woken() -> None:
    """Several wait; each key wakes one of them, and the others wait on."""
    queue = Workqueue[str](VirtualClock())
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await _settled()
    queue.add("a")
    queue.add("b")
    await _settled()
    assert sorted(worker.result() for worker in workers if worker.done()) == ["a", "b"]
    queue.add("c")
    assert set(await asyncio.gather(*workers)) == {"a", "b", "c"}


async def test_who_gives_up_takes_no_key_along() -> None:
    """A worker that is cancelled while it waits leaves the key to the next."""
    queue = Workqueue[str](VirtualClock())
    worker = asyncio.create_task(queue.get())
    await _settled()
    queue.add("a")
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert await taken(queue) == ["a"]


async def test_later_means_later() -> None:
    """An appointment is kept to the second, in whichever order they were made."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    for key, seconds in (("b", 20), ("a", 10), ("c", 30)):
        queue.add_after(key, seconds)
        await clock.advance(0)
    await clock.advance(9.9)
    assert await taken(queue) == []
    await clock.advance(0.1)
    assert await taken(queue) == ["a"]
    await clock.advance(10)
    assert await taken(queue) == ["b"]
    await clock.advance(1000)
    assert await taken(queue) == ["c"]
    queue.close()


async def test_the_sooner_appointment_holds() -> None:
    """A later one changes nothing, a sooner one replaces it: the key comes once."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    for seconds in (10, 5, 20):
        queue.add_after("a", seconds)
    await clock.advance(5)
    assert await taken(queue) == ["a"]
    await clock.advance(100)
    assert await taken(queue) == []
    queue.close()


async def test_work_now_cancels_the_appointment() -> None:
    """And a key that waits already needs none."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    queue.add_after("a", 10)
    queue.add("a")
    queue.add_after("a", 5)
    assert await taken(queue) == ["a"]
    await clock.advance(100)
    assert await taken(queue) == []


async def test_an_appointment_that_falls_due_in_hand_comes_after() -> None:
    """Never in two hands."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add_after("a", 5)
    await clock.advance(10)
    assert len(queue) == 0
    queue.done("a")
    assert await taken(queue) == ["a"]


async def test_what_is_forgotten_does_not_come() -> None:
    """Neither from the line, nor after being in hand, nor by appointment."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add_after("c", 5)
    for key in "abc":
        queue.forget(key)
    queue.done("a")
    await clock.advance(10)
    assert await taken(queue) == []


async def test_nothing_comes_after_closing() -> None:
    """The timer has ended."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    queue.add_after("a", 5)
    await clock.advance(1)
    queue.close()
    await clock.advance(10)
    assert await taken(queue) == []


Step = tuple[str, str, float]
STEPS = st.tuples(
    st.sampled_from(["add", "after", "done", "get", "advance"]), st.sampled_from("abc"), st.integers(0, 8).map(float)
)


@given(steps=st.lists(STEPS, max_size=40))
async def test_no_key_is_lost_and_none_is_in_two_hands(steps: list[Step]) -> None:
    """Whatever is added is handed out after that, at the latest when its time has come and its worker is done."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    hands: Counter[str] = Counter()
    owed: dict[str, float] = {}
    for step, key, seconds in steps:
        match step:
            case "add":
                queue.add(key)
                owed[key] = clock.time
            case "after":
                queue.add_after(key, seconds)
                owed[key] = min(owed.get(key, float("inf")), clock.time + seconds)
            case "advance":
                await clock.advance(seconds)
            case "get" if len(queue):
                got = await queue.get()
                assert not hands[got]
                assert owed.pop(got) <= clock.time
                hands[got] += 1
            case "done" if hands[key]:
                hands[key] -= 1
                queue.done(key)
        await clock.advance(0)
        assert len(queue) == sum(due <= clock.time and not hands[each] for each, due in owed.items())
    for key in hands:
        if hands[key]:
            queue.done(key)
    await clock.advance(10)
    assert set(await taken(queue)) == set(owed)
    queue.close()


async def test_appointments_that_are_dropped_again_and_again_weigh_nothing() -> None:
    """A busy key that is put off at every turn leaves no heap of old appointments, and the others are kept."""
    clock = VirtualClock()
    queue = Workqueue[str](clock)
    queue.add_after("patient", 5.0)
    for _ in range(5_000):
        queue.add_after("busy", 10.0)
        queue.add("busy")
        queue.done(await queue.get())
    assert tracked(queue) < 2_000
    await clock.advance(5.0)
    assert await taken(queue) == ["patient"]
    queue.close()


def tracked(queue: Workqueue[str]) -> int:
    """How many appointments a queue remembers, dropped ones among them."""
    return len(queue._heap)
