"""Whether a candidate takes, renews or waits follows from the lease's record and how long it has stayed the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.errors import InputError
from starling.runtime import LeaseSettings
from starling.runtime.leading import LeaseRecord, Move, Observation, decide

THEIRS = LeaseRecord("them", 15, renew_time="2026-01-01T00:00:00.000000Z", lease_transitions=3)


@pytest.mark.parametrize(
    ("record", "seconds", "move"),
    [
        (None, 0, Move.CREATE),
        (LeaseRecord(""), 0, Move.TAKE),
        (LeaseRecord(None), 0, Move.TAKE),
        (LeaseRecord("us", 15), 0, Move.RENEW),
        (LeaseRecord("us", 15), 100, Move.RENEW),
        (THEIRS, 0, Move.WAIT),
        (THEIRS, 15, Move.WAIT),
        (THEIRS, 15.1, Move.TAKE),
        (LeaseRecord("them"), 0.1, Move.TAKE),
    ],
    ids=["none", "given up", "never held", "ours", "ours for long", "fresh", "just in time", "run out", "no duration"],
)
def test_the_move_follows_from_what_was_observed(record: LeaseRecord | None, seconds: float, move: Move) -> None:
    """Seconds count since we saw this record first, whatever times are written in it."""
    assert decide(Observation(record, 1000.0), 1000.0 + seconds, "us") is move


@given(gaps=st.lists(st.floats(0, 15), max_size=30))
def test_who_renews_in_time_keeps_the_lease(gaps: list[float]) -> None:
    """However long it goes on, and whatever the holder's clock says."""
    observed, now = Observation(None, 0.0), 0.0
    for number, gap in enumerate(gaps):
        observed = observed.renewed(LeaseRecord("them", 15, renew_time=f"{number}"), now)
        now += gap
        assert decide(observed, now, "us") is Move.WAIT


@given(looks=st.lists(st.floats(0, 5), min_size=1, max_size=30))
def test_looking_does_not_renew(looks: list[float]) -> None:
    """A record that stays the same runs out, however often it is looked at."""
    observed, now = Observation(None, 0.0), 0.0
    for look in looks:
        observed = observed.renewed(THEIRS, now)
        now += look
    assert decide(observed, now, "us") is (Move.TAKE if sum(looks) > 15 else Move.WAIT)


@pytest.mark.parametrize("times", [(10, 10, 2), (15, 2, 2), (15, 10, 0)], ids=["deadline", "retry", "none"])
def test_times_that_can_not_work_are_refused(times: tuple[float, float, float]) -> None:
    """A lease must outlast its renewals."""
    with pytest.raises(InputError):
        LeaseSettings(*times)
