"""When a Source that failed is looked at again, and how Secrets travel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.controllers.secrets import packed, unpacked
from starling.controllers.source import retry_after
from starling.errors import InputError
from starling.sources import Unreachable


@pytest.mark.parametrize(
    ("interval", "failures", "wait"),
    [(60.0, 1, 5.0), (60.0, 2, 10.0), (60.0, 5, 60.0), (60.0, 500, 60.0), (3600.0, 5, 80.0), (1.0, 9, 60.0)],
)
def test_failures_in_a_row_are_retried_more_and_more_slowly(interval: float, failures: int, wait: float) -> None:
    """Twice as long each time, a minute or the interval at most."""
    assert retry_after(Unreachable("it is away"), interval, failures) == wait


def test_what_a_person_must_mend_is_looked_at_with_the_interval() -> None:
    """The mending may be at the other end."""
    assert retry_after(InputError("no such branch"), 30.0, 7) == 30.0


@given(st.dictionaries(st.text(), st.binary()))
def test_a_secret_in_a_secret_is_what_it_was(data: dict[str, bytes]) -> None:
    """Packed and unpacked, whatever is in it; the order of its entries doesn't matter."""
    assert unpacked(packed(data)) == data
    assert packed(dict(reversed(data.items()))) == packed(data)


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"a": "%"}', b'{"a": 1}', b"\xff"])
def test_what_isnt_one_is_refused_without_being_shown(document: bytes) -> None:
    """The error says that it is wrong, not what it is."""
    with pytest.raises(InputError, match="isn't the JSON document that it should be") as caught:
        unpacked(document)
    assert caught.value.__cause__ is None
