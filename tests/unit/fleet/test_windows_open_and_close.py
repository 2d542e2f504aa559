"""Windows open and close by the clocks of their time zones, also in weeks in which those are put forward or back."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.api.v1alpha1 import RolloutWindow
from starling.errors import InputError
from starling.fleet.windows import is_open, next_change

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Each with the first day of a week in which its clocks change: by an hour at night, at midnight, by half an hour, to
# and fro across midnight, by a whole day; and one in which nothing happens.
WEEKS = (
    ("UTC", "2026-11-16"),
    ("Europe/Berlin", "2026-03-26"),
    ("Europe/Berlin", "2026-10-22"),
    ("America/New_York", "2026-03-05"),
    ("America/New_York", "2026-10-29"),
    ("Australia/Lord_Howe", "2026-04-02"),
    ("Australia/Lord_Howe", "2026-10-01"),
    ("America/Havana", "2026-03-05"),
    ("America/Havana", "2026-10-29"),
    ("Asia/Beirut", "2026-03-26"),
    ("America/St_Johns", "2010-11-04"),
    ("Pacific/Apia", "2011-12-28"),
)


def window(*days: str, from_: str = "00:00", until: str = "24:00", timezone: str = "UTC") -> RolloutWindow:
    """A window as the API has it."""
    return msgspec.convert(
        {"days": days, "from": from_, "until": until, "timezone": timezone}, RolloutWindow, strict=True
    )


def at(text: str, zone: str = "UTC") -> datetime:
    """A moment by the clocks of a zone."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


class Oracle:
    """A clock on the wall that is read every minute. When put back it stands still until time has caught up."""

    def __init__(self, windows: Sequence[RolloutWindow], start: datetime, minutes: int) -> None:
        self.opened = [False] * minutes
        for each in windows:
            wall = datetime.min  # noqa: DTZ901 - a reading, not a moment
            for number in range(-1440, minutes):  # begun early: it may stand still at the start
                reading = (start + number * MINUTE).astimezone(ZoneInfo(each.timezone)).replace(tzinfo=None)
                wall = max(wall, reading)
                if number >= 0:
                    self.opened[number] |= _holds(each, wall)


def _holds(window: RolloutWindow, wall: datetime) -> bool:
    """Whether a reading is in the window: since its own day's opening, or the day before's."""
    days = _days(window)
    minute = wall.hour * 60 + wall.minute
    opens, closes = _minutes(window.from_), _minutes(window.until)
    today, yesterday = WEEK[wall.weekday()] in days, WEEK[wall.weekday() - 1] in days
    if opens < closes:
        return today and opens <= minute < closes
    return (today and minute >= opens) or (yesterday and minute < closes)


def _days(window: RolloutWindow) -> set[str]:
    if not window.days:
        return set(WEEK)
    found = set()
    for each in window.days:
        first, last = each.split("-") if "-" in each else (each, each)
        around = (WEEK * 2)[WEEK.index(first) :]
        found |= {*around[: around.index(last) + 1]}
    return found


def _minutes(time: str) -> int:
    return int(time[:2]) * 60 + int(time[3:])


DAYS = st.sampled_from(WEEK) | st.tuples(st.sampled_from(WEEK), st.sampled_from(WEEK)).map("-".join)
# Mostly about the hours at which clocks change.
TIMES = st.builds(
    "{:02}:{:02}".format,
    st.sampled_from([0, 1, 2, 3, 22, 23]) | st.integers(0, 23),
    st.sampled_from([0, 1, 15, 30, 59]),
)


@st.composite
def windows_in_a_week(draw: st.DrawFn) -> tuple[list[RolloutWindow], datetime]:
    """Some windows, most of the zone whose clocks change that week, and when to begin to look."""
    zone, monday = draw(st.sampled_from(WEEKS))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        from_, until = draw(TIMES), draw(TIMES | st.just("24:00"))
        days = draw(st.lists(DAYS, max_size=2, unique=True))
        own = draw(st.just(zone) | st.sampled_from(WEEKS).map(lambda each: each[0]))
        if from_ != until:
            found.append(window(*days, from_=from_, until=until, timezone=own))
    start = at(monday, zone).astimezone(UTC) + draw(st.integers(0, 2 * 1440)) * MINUTE
    return found, start


@given(
    drawn=windows_in_a_week(), zone=st.sampled_from(WEEKS), minutes=st.lists(st.integers(0, 4 * 1440 - 1), max_size=30)
)
def test_as_a_clock_on_the_wall_has_it(
    drawn: tuple[list[RolloutWindow], datetime], zone: tuple[str, str], minutes: list[int]
) -> None:
    """At any minute, told in whatever zone; and the next change is the very minute at which it flips."""
    windows, start = drawn
    opened = Oracle(windows, start, 4 * 1440).opened if windows else [True] * 4 * 1440
    flips = [number for number in range(1, len(opened)) if opened[number] != opened[number - 1]]
    for number in [*minutes, *(flip + beside for flip in flips for beside in (-1, 0))]:
        now = (start + number * MINUTE).astimezone(ZoneInfo(zone[0]))
        assert is_open(windows, now) == opened[number]
        expected = next((flip for flip in flips if flip > number), None)
        found = next_change(windows, now)
        if expected is not None:
            assert found == start + expected * MINUTE
        else:
            assert found is None or found >= start + len(opened) * MINUTE


@given(
    drawn=windows_in_a_week(),
    offset=st.integers(-14 * 60, 14 * 60),
    microseconds=st.integers(0, 3 * 86_400_000_000),
)
def test_it_stays_as_it_is_until_the_next_change(
    drawn: tuple[list[RolloutWindow], datetime], offset: int, microseconds: int
) -> None:
    """Just before that moment it is as now, at that moment it isn't, and only without end is there none."""
    windows, start = drawn
    now = (start + timedelta(microseconds=microseconds)).astimezone(timezone(offset * MINUTE))
    change = next_change(windows, now)
    if change is None:
        assert is_open(windows, now)
        assert all(is_open(windows, now + number * DAY / 4) for number in range(14 * 4))
    else:
        assert change > now
        assert is_open(windows, change - timedelta(microseconds=1)) == is_open(windows, now)
        assert is_open(windows, change) != is_open(windows, now)


@pytest.mark.parametrize(
    ("windows", "now", "opened", "change"),
    [
        pytest.param([], at("2026-11-16T12:00"), True, None, id="none"),
        pytest.param([window()], at("2026-11-16T12:00"), True, None, id="always"),
        pytest.param([window("Mon-Thu"), window("Fri-Sun")], at("2026-11-16T12:00"), True, None, id="always, in parts"),
        pytest.param([window("Wed-Tue")], at("2026-11-16T12:00"), True, None, id="every day, from Wednesday"),
        pytest.param([window("Mon")], at("2026-11-16T00:00"), True, at("2026-11-17T00:00"), id="at its opening"),
        pytest.param([window("Mon")], at("2026-11-17T00:00"), False, at("2026-11-23T00:00"), id="at its closing"),
        pytest.param(
            [window("Fri-Mon", from_="22:00", until="06:00")],
            at("2026-11-17T05:59"),
            True,
            at("2026-11-17T06:00"),
            id="Monday's, on Tuesday",
        ),
        pytest.param(
            [window("Fri-Mon", from_="22:00", until="06:00")],
            at("2026-11-18T05:59"),
            False,
            at("2026-11-20T22:00"),
            id="Tuesday has none",
        ),
        pytest.param(
            [window("Mon-Fri", from_="09:00", until="16:00", timezone="Europe/Berlin")],
            at("2026-03-27T15:30"),
            False,
            at("2026-03-30T07:00"),
            id="summer time over a weekend",
        ),
        pytest.param(
            [window(from_="09:00", until="12:00"), window(from_="11:00", until="14:00")],
            at("2026-11-16T09:30"),
            True,
            at("2026-11-16T14:00"),
            id="two that overlap",
        ),
        pytest.param(
            [window("Sun", from_="02:30", until="03:15", timezone="Europe/Berlin")],
            at("2026-03-29T00:00"),
            False,
            at("2026-03-29T01:00"),
            id="its opening is skipped",
        ),
        pytest.param(
            [window("Sun", from_="02:15", until="02:45", timezone="Europe/Berlin")],
            at("2026-03-23T00:00"),
            False,
            at("2026-04-05T00:15"),
            id="all of it is skipped",
        ),
        pytest.param(
            [window("Sun", from_="02:15", until="02:45", timezone="Europe/Berlin")],
            at("2026-10-25T01:30"),
            False,
            at("2026-11-01T01:15"),
            id="it comes twice and opens once",
        ),
    ],
)
def test_windows_by_example(windows: list[RolloutWindow], now: datetime, opened: bool, change: datetime | None) -> None:
    """Whether they are open, and when that changes."""
    assert (is_open(windows, now), next_change(windows, now)) == (opened, change)


@pytest.mark.parametrize("name", ["Europe/Atlantis", "Europe"])
def test_a_zone_that_is_not_in_the_database(name: str) -> None:
    """What isn't known is told, and nothing is taken for open."""
    with pytest.raises(InputError, match=f"time zone, {name}, isn't in the time zone database"):
        is_open([window(timezone=name)], at("2026-11-16T12:00"))
