"""A field that one manager takes three times is let go for a while; each time longer, and forgotten at last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.engine import Drift
from starling.engine.contention import Contention
from starling.engine.unit import MOST_PROBLEMS
from starling.objects import ObjectKey

KEY = ObjectKey("apps", "Deployment", "shop", "web")
OTHER = ObjectKey("apps", "Deployment", "shop", "other")
WAIT = 60.0
TIMES = 3
LONGEST = 3600.0
REMEMBERED = 10 * WAIT


def drift(name: str = "spec.replicas", manager: str = "hpa", key: ObjectKey = KEY) -> Drift:
    """One taking of one field."""
    return Drift(key, (name,), manager, "12:03")


def quarrel(times: int = TIMES, taking: Drift | None = None) -> Contention:
    """A contention after so many takings at time 0."""
    contention = Contention(WAIT)
    for _ in range(times):
        contention.taken(taking or drift(), 0.0)
    return contention


def test_twice_is_no_quarrel() -> None:
    """It is put right both times."""
    contention = quarrel(2)
    assert contention.resting(0.0) == frozenset()
    assert contention.contended(0.0) == ()
    assert contention.wakes(0.0) is None


def test_the_third_time_it_rests() -> None:
    """Until the wait is over, and the status says who wants which field."""
    contention = quarrel(3)
    assert contention.resting(WAIT - 1) == {KEY}
    assert contention.wakes(20.0) == WAIT - 20.0
    assert contention.contended(1.0) == (drift(),)
    assert contention.resting(WAIT) == frozenset()
    assert contention.wakes(WAIT) is None


def test_only_one_field_and_one_manager_count_together() -> None:
    """Three managers, or three fields, once each are no quarrel; nor is one manager with three objects."""
    contention = Contention(WAIT)
    for taking in (
        drift(manager="a"), drift(manager="b"), drift(manager="c"), drift("spec.paused"), drift("spec.x"),
        drift(key=OTHER),
    ):  # fmt: skip
        contention.taken(taking, 0.0)
    assert contention.resting(0.0) == frozenset()


def test_of_several_fields_the_contended_one_is_named() -> None:
    """What was taken along with it once isn't accused."""
    contention = Contention(WAIT)
    contention.taken(Drift(KEY, ("spec.replicas", "spec.paused"), "hpa", "12:03"), 0.0)
    contention.taken(drift(), 1.0)
    contention.taken(drift(), 2.0)
    assert [each.fields for each in contention.contended(2.0)] == [("spec.replicas",)]


@pytest.mark.parametrize(
    "removal", [Drift(KEY, ("spec.replicas",)), Drift(KEY, ())], ids=["of a field", "of the object"]
)
def test_removals_that_nobody_signs_may_be_many_peoples(removal: Drift) -> None:
    """They are put right each time, until it is too often for anything but something that won't stop."""
    assert quarrel(9, removal).resting(0.0) == frozenset()
    assert quarrel(10, removal).resting(0.0) == {KEY}
    assert quarrel(10, removal).contended(0.0) == (removal,)


def test_of_several_the_first_to_end_wakes() -> None:
    """The others go on resting."""
    contention = quarrel()
    for _ in range(TIMES):
        contention.taken(drift(key=OTHER), 30.0)
    assert contention.wakes(40.0) == WAIT - 40.0
    assert contention.resting(WAIT) == {OTHER}


def test_of_many_quarrels_the_latest_are_told() -> None:
    """A status has an end; all of them rest."""
    contention = Contention(WAIT)
    names = [f"spec.{number:03}" for number in range(MOST_PROBLEMS + 5)]
    for name in names * TIMES:
        contention.taken(drift(name), 0.0)
    assert [each.fields[0] for each in contention.contended(0.0)] == names[5:]


@given(times=st.integers(TIMES, 40))
def test_waits_double_up_to_a_limit(times: int) -> None:
    """Who takes it as soon as the wait is over meets us ever more seldom, but never later than the limit."""
    contention = quarrel(TIMES)
    now, waits = 0.0, []
    for _ in range(times - TIMES):
        wait = contention.wakes(now)
        assert wait is not None
        waits.append(wait)
        now += wait
        assert contention.resting(now) == frozenset()
        contention.taken(drift(), now)
    expected = [min(LONGEST, WAIT * 2.0**number) for number in range(times - TIMES)]
    assert all(abs(wait - want) < 0.001 for wait, want in zip(waits, expected, strict=True))


@given(gap=st.floats(0.0, 10_000.0))
def test_long_peace_forgets(gap: float) -> None:
    """After ten waits without a taking it is as if nothing had happened; before, one more taking is enough."""
    contention = quarrel(TIMES)
    contention.taken(drift(), gap)
    assert bool(contention.resting(gap)) == (gap <= REMEMBERED)


@given(gap=st.floats(0.0, 10_000.0))
def test_the_status_tells_it_as_long_as_it_is_remembered(gap: float) -> None:
    """Also while nothing rests: it isn't over just because we try again."""
    assert bool(quarrel(TIMES).contended(gap)) == (gap <= REMEMBERED)


@given(now=st.floats(0.0, 100.0), keys=st.lists(st.sampled_from([KEY, OTHER]), max_size=12))
def test_whatever_rests_wakes(now: float, keys: list[ObjectKey]) -> None:
    """There is a time to wake exactly while something rests, and then that is over."""
    contention = Contention(WAIT)
    for second, key in enumerate(keys):
        contention.taken(drift(key=key), float(second))
    wakes = contention.wakes(now)
    assert (wakes is not None) == bool(contention.resting(now))
    if wakes is not None:
        assert len(contention.resting(now + wakes + 0.001)) < len(contention.resting(now))
