"""When a token is to be renewed follows from what it says of itself."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.controllers.tokens import NEVER, TOKEN_LIFE, expires_at, life_of, renew_at, token_in, with_token

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def token(**claims: Any) -> str:
    """A token that makes these claims."""
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


@given(began=st.integers(0, 4_000_000_000), life=st.integers(1, 400 * 86_400))
def test_half_of_the_life_granted(began: int, life: int) -> None:
    """It is renewed half-way between when it was issued and when it expires, whatever was asked for."""
    due = renew_at(token(iat=began, exp=began + life), NOW)
    assert due == datetime.fromtimestamp(began, UTC) + timedelta(seconds=life) / 2


def test_a_token_that_does_not_say_when_it_began() -> None:
    """Half of what is left counts."""
    assert renew_at(token(exp=NOW.timestamp() + 600), NOW) == NOW + timedelta(seconds=300)


@pytest.mark.parametrize(
    "text", ["", "opaque", "a.b.c", "e30.bm90IGpzb24.x", token(iat=5), token(exp="soon"), token(exp=1e30)]
)
def test_a_token_without_an_end_is_never_renewed(text: str) -> None:
    """What doesn't expire, or can't be read, is left alone."""
    assert renew_at(text, NOW) == NEVER
    assert expires_at(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(token(iat=100, exp=100 + 86_400), timedelta(days=1), id="what was granted"),
        pytest.param(token(iat=100, exp=130), timedelta(minutes=10), id="no less than can be had"),
        pytest.param("opaque", TOKEN_LIFE, id="it doesn't say"),
    ],
)
def test_a_renewal_asks_for_what_was_granted(text: str, expected: timedelta) -> None:
    """Who enrolled with a short life meant it."""
    assert life_of(text) == expected


def test_only_the_current_users_token_is_replaced() -> None:
    """Everything else in a kubeconfig stays, and the original isn't changed."""
    config = {
        "clusters": [{"name": "hub", "cluster": {"server": "https://hub.example"}}],
        "users": [{"name": "other", "user": {"token": "a"}}, {"name": "me", "user": {"token": "b"}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "me"}}],
        "current-context": "hub",
    }
    fresh = with_token(config, "c")
    assert token_in(fresh) == "c"
    assert token_in(config) == "b"
    assert fresh["users"][0] == {"name": "other", "user": {"token": "a"}}
    assert fresh["clusters"] == config["clusters"]
