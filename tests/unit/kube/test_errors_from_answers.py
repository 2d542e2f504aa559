"""An answer of 400 and up becomes the error type that says what it means."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.kube import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)
from starling.kube.errors import api_error


def status(reason: str = "", **more: object) -> bytes:
    """A Status as API servers send it."""
    return json.dumps({"kind": "Status", "message": "because", "reason": reason, **more}).encode()


ANSWERS = {
    "bad request": (400, status("BadRequest"), BadRequest),
    "unauthorized": (401, status("Unauthorized"), Unauthorized),
    "forbidden": (403, status("Forbidden"), Forbidden),
    "no such object": (404, status("NotFound", details={"name": "a"}), NotFound),
    "no such path": (404, status("NotFound", details={}), NotServed),
    "not even a Status": (404, b"404 page not found\n", NotServed),
    "conflict": (409, status("Conflict"), Conflict),
    "name taken": (409, status("AlreadyExists"), AlreadyExists),
    "expired": (410, status("Expired"), Gone),
    "too large": (413, status("RequestEntityTooLarge"), TooLarge),
    "invalid": (422, status("Invalid"), Invalid),
    "slow down": (429, status("TooManyRequests"), TooManyRequests),
    "broken": (500, b"", ServerError),
    "a proxy's page": (502, b"<html>Bad Gateway</html>", ServerError),
    "a teapot": (418, b"", ApiError),
}


@pytest.mark.parametrize(("code", "body", "kind"), ANSWERS.values(), ids=ANSWERS)
def test_each_code_has_its_type(code: int, body: bytes, kind: type[ApiError]) -> None:
    """The type is exact, and the message begins with verb and object."""
    error = api_error("get ConfigMap a/b", code, body)
    assert type(error) is kind
    assert (error.code, error.action) == (code, "get ConfigMap a/b")
    assert str(error).startswith("get ConfigMap a/b: ")


def test_a_watch_error_carries_its_own_code() -> None:
    """Inside a stream that began with 200 the code is the Status's."""
    assert type(api_error("watch Pod", 0, status("Expired", code=410))) is Gone


def test_causes_name_the_fields() -> None:
    """Causes come through as they are."""
    causes = [{"field": "spec.replicas", "reason": "FieldValueInvalid", "message": "must be positive"}]
    error = api_error("apply", 422, status("Invalid", details={"name": "a", "causes": causes}))
    assert error.causes == (Cause("spec.replicas", "FieldValueInvalid", "must be positive"),)


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [("3", {}, 3.0), (None, {"retryAfterSeconds": 2}, 2.0), ("soon", {}, None), (None, {}, None), ("-1", {}, None)],
)
def test_retry_after(header: str | None, details: dict[str, int], seconds: float | None) -> None:
    """The header goes before the Status's details; what is neither is no wish at all."""
    assert api_error("x", 429, status(details=details), header).retry_after == seconds


@given(code=st.integers(400, 599), body=st.binary(max_size=10_000))
def test_any_answer_gives_a_short_error(code: int, body: bytes) -> None:
    """Whatever a server or something in between sends, the error is typed and its message bounded."""
    error = api_error("get Pod", code, body)
    assert error.code == code
    assert len(str(error)) < 2_100
