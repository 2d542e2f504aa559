"""A set is as ready as the least ready of its members."""

from hypothesis import given
from hypothesis import strategies as st

from starling.engine.health import Readiness, least


def test_the_order_is_the_one_documented() -> None:
    """From Unknown to Current, as users read it."""
    names = ["Unknown", "Missing", "Failed", "Terminating", "InProgress", "Current"]
    assert [str(each) for each in sorted(Readiness)] == names
    assert least(reversed(Readiness)) is Readiness.UNKNOWN


@given(many=st.lists(st.sampled_from(Readiness)), one=st.sampled_from(Readiness))
def test_one_more_member_makes_a_set_no_readier(many: list[Readiness], one: Readiness) -> None:
    """The least of all is the lesser of a part's and the rest's; nothing at all is Current."""
    assert least([*many, one]) is min(least(many), one)
    assert least([]) is Readiness.CURRENT
