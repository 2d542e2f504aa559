"""A uid comes back from its packed form as it went in, whatever it is."""

import sys
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from starling.engine.uids import packed, text


@given(st.uuids().map(str) | st.uuids().map(lambda uid: str(uid).upper()) | st.text())
def test_a_uid_comes_back_as_it_went_in(uid: str) -> None:
    """UUIDs, UUIDs that are written otherwise, and what is none."""
    assert text(packed(uid)) == uid
    assert packed(packed(uid)) == packed(uid)
    assert bool(packed(uid)) == bool(uid)


@given(st.uuids().filter(lambda uid: uid.int > 0))
def test_a_uuid_weighs_half(uid: UUID) -> None:
    """What the API server makes is kept as a number."""
    assert sys.getsizeof(packed(str(uid))) * 2 <= sys.getsizeof(str(uid)) + 3


def test_no_uuid_is_taken_for_no_object() -> None:
    """The UUID of nothing but zeros is still one: a record without a uid isn't there."""
    assert packed(str(UUID(int=0))) == "00000000-0000-0000-0000-000000000000"
