"""Backoff waits longer after each failure, within its bounds, and never in step with others."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from starling.aio import Backoff

delays = st.floats(min_value=0.001, max_value=100)


@given(initial=delays, limit=delays, failures=st.integers(1, 2_000))
def test_without_jitter_it_doubles_up_to_the_limit(initial: float, limit: float, failures: int) -> None:
    """The n-th delay is initial · 2ⁿ, or the limit; however many failures there were."""
    backoff = Backoff(initial, limit, jitter=0)
    waits = [backoff.next() for _ in range(failures)]
    assert waits[0] == min(initial, limit)
    assert waits == sorted(waits)
    assert max(waits) <= limit
    assert all(later in (earlier * 2, limit) for earlier, later in pairwise(waits))


@given(jitter=st.floats(0, 1), failures=st.integers(1, 50))
def test_jitter_only_shortens(jitter: float, failures: int) -> None:
    """A delay is at most what it would be without jitter, and at least the share that jitter leaves."""
    spread, plain = Backoff(jitter=jitter), Backoff(jitter=0)
    for _ in range(failures):
        full = plain.next()
        assert full * (1 - jitter) <= spread.next() <= full


def test_success_starts_it_over() -> None:
    """After a reset the first delay is the initial one again."""
    backoff = Backoff(initial=1, jitter=0)
    assert [backoff.next(), backoff.next()] == [1, 2]
    backoff.reset()
    assert backoff.next() == 1
