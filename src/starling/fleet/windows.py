"""When updates may start: the times of the week that a policy's windows leave open."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from starling.api.v1alpha1 import RolloutWindow
from starling.errors import InputError

__all__ = ["is_open", "next_change"]

# The longest that an opening can be away: one that the clock skips, as it does with 02:15-02:45, is back after a week.
AHEAD: Final = 15
_WEEK: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY: Final = timedelta(days=1)

Span = tuple[datetime, datetime]
"""From the first moment, up to but without the second; both in UTC."""


def is_open(windows: Sequence[RolloutWindow], now: datetime) -> bool:
    """Whether updates may start: in any of the windows, or if there are none.

    A time of day that the clock skips is the moment at which it jumps; of one that comes twice, the first counts.
    """
    return not windows or any(start <= now < end for window in windows for start, end in _spans(window, now, 1))


def next_change(windows: Sequence[RolloutWindow], now: datetime) -> datetime | None:
    """The next moment at which `is_open` changes, in UTC; None if it stays as it is for the 15 days to come."""
    spans = sorted(span for window in windows for span in _spans(window, now, AHEAD + 1) if span[1] > now)
    if not spans:
        return None
    open_until = now = now.astimezone(UTC)
    for start, end in spans:
        if start > open_until:
            break
        open_until = max(open_until, end)
    change = open_until if open_until > now else spans[0][0]
    return change if change - now <= AHEAD * _DAY else None


def _spans(window: RolloutWindow, now: datetime, days: int) -> Iterator[Span]:
    """When it is open, from the day before `now` in its own time zone, whose opening may last until today, on."""
    zone = _zone(window.timezone)
    opens, closes = _since_midnight(window.from_), _since_midnight(window.until)
    if closes <= opens:
        closes += _DAY
    weekdays = _weekdays(window.days)
    today = now.astimezone(zone).date()
    for day in (today + number * _DAY for number in range(-1, days + 1)):
        if day.weekday() in weekdays:
            start, end = _moment(day, opens, zone), _moment(day, closes, zone)
            if start < end:  # else the clock skips all of it
                yield start, end


def _moment(day: date, after_midnight: timedelta, zone: ZoneInfo) -> datetime:
    """The first moment at which the clocks of a zone show that time or a later one, in UTC."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone) + after_midnight
    moment = local.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return moment
    # No clock shows it. Read with the offset of after the jump it is before that, and the other way round.
    before, offset = local.replace(fold=1).astimezone(UTC), moment.astimezone(zone).utcoffset()
    between = range(int((moment - before).total_seconds()))

    def has_jumped(number: int) -> bool:
        return (before + timedelta(seconds=number)).astimezone(zone).utcoffset() == offset

    return before + timedelta(seconds=bisect_right(between, False, key=has_jumped))


def _weekdays(days: Sequence[str]) -> frozenset[int]:
    """The days of the week, Monday is 0; Fri-Mon goes over the weekend."""
    if not days:
        return frozenset(range(7))
    found: set[int] = set()
    for each in days:
        first, _, last = each.partition("-")
        start = _WEEK.index(first)
        length = (_WEEK.index(last or first) - start) % 7
        found |= {(start + number) % 7 for number in range(length + 1)}
    return frozenset(found)


def _since_midnight(time: str) -> timedelta:
    hours, _, minutes = time.partition(":")
    return timedelta(hours=int(hours), minutes=int(minutes))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # a folder of zones, such as Europe, is an OSError
        raise InputError(
            f"a window's time zone, {name}, isn't in the time zone database here",
            hint="name another, such as UTC or Europe/Berlin, or install a newer tzdata",
        ) from error
