"""A unit is one Sync's: who has it keeps it, and the oldest of those who want it comes next."""

from starling.controllers.sync_claims import Claims
from starling.errors import InputError
from starling.runtime import Key

A, B, C = Key("n", "a"), Key("n", "b"), Key("n", "c")
AGES = {A: 3, B: 1, C: 2}


def test_the_oldest_has_it_and_keeps_it() -> None:
    """Nobody takes a unit from its holder, and when it goes the oldest that is left has it."""
    claims = Claims()
    assert claims.holder("u", AGES.__getitem__) is None
    assert claims.put(A, "u") == ["u"]
    assert claims.put(A, "u") == []
    assert claims.holder("u", AGES.__getitem__) == A
    claims.put(B, "u")
    claims.put(C, "u")
    assert claims.holder("u", AGES.__getitem__) == A
    assert claims.drop(A) == ["u"]
    assert claims.holder("u", AGES.__getitem__) == B
    assert claims.claimants("u") == {B, C}


def test_another_claim_frees_the_one_before() -> None:
    """Both units are told as changed, and one that nobody claims is none any more."""
    claims = Claims()
    claims.put(A, "u")
    claims.holder("u", AGES.__getitem__)
    assert claims.put(A, "v") == ["u", "v"]
    assert claims.units() == ["v"]
    assert claims.holder("u", AGES.__getitem__) is None
    refused = InputError("no unit")
    assert claims.put(A, refused) == ["v"]
    assert claims.claimed(A) is refused
    assert claims.units() == []
    assert claims.drop(A) == []
