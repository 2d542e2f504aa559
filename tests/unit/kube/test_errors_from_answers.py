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


PATCH = "failed to create typed patch object (ns/a; /v1, Kind=Secret): "
CONVERT = (
    "failed to convert new object (ns/a; apps/v1, Kind=Deployment) to proper version: "
    "unable to convert unstructured object to apps/v1, Kind=Deployment: "
)
UNFIT = {
    "a number": (".data.k: expected string, got &value.valueUnstructured{Value:1234}",
                 ".data.k: expected string, got &value.valueUnstructured{Value:…}"),
    "a map": ('.data.k: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a}":"1234"}}',
              ".data.k: expected string, got &value.valueUnstructured{Value:…}"),
    "text with braces": (".data: expected map, got &{12}34\n}\n  .b {1234}}", ".data: expected map, got &{…}"),
    "several": ('errors:\n  .a: expected map, got &{12\n}34}\n  .b[name="c"].d: expected list, got &{1234}',
                'errors:\n  .a: expected map, got &{…}\n  .b[name="c"].d: expected list, got &{…}'),
    "a set's member": ('.a: duplicate entries for key [="1234"]', ".a: duplicate entries for key […]"),
    "a key that is a map": ('.a[k=b="1234"].k: expected string, got &{1234}', ".a[…].k: expected string, got &{…}"),
    "keys as they should be": ('.p[port=80,protocol="TCP"].x: field not declared in schema',) * 2,
}  # fmt: skip


@pytest.mark.parametrize(("said", "told"), UNFIT.values(), ids=UNFIT)
def test_a_value_of_another_type_is_invalid(said: str, told: str) -> None:
    """A server-side apply calls it an error of the server, and quotes the value."""
    error = api_error("apply Secret ns/a", 500, json.dumps({"message": PATCH + said}).encode())
    assert (type(error), error.code) == (Invalid, 500)
    assert str(error) == f"apply Secret ns/a: {PATCH}{told}"
    assert "1234" not in repr(error.causes)
    assert len(error.causes) == max(1, told.count("\n"))


def test_what_a_field_is_called_is_apart_from_what_is_wrong_with_it() -> None:
    """Who looks for words in causes doesn't find those of the user's own names."""
    said = 'errors:\n  .immutable: expected boolean, got &{no}\n  .l: duplicate entries for key [name="immutable: a"]'
    error = api_error("apply", 500, json.dumps({"message": PATCH + said}).encode())
    assert [(cause.field, cause.message) for cause in error.causes] == [
        ("immutable", "expected boolean, got &{…}"),
        ("l", "duplicate entries for key"),
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('parsing time "12\\"34" as "2006": cannot parse "1234" as "2006"', "parsing time … as …: cannot parse … as …"),
        ("json: cannot unmarshal number 12.34 into Go value", "json: cannot unmarshal number … into Go value"),
        ("cannot convert float64 to int32", "cannot convert float64 to int32"),
    ],
    ids=["a time", "a number", "nothing quoted"],
)
def test_a_value_that_can_not_be_converted_is_invalid(said: str, told: str) -> None:
    """The types fit as far as the schema says, and the server's own type refuses."""
    error = api_error("apply", 500, json.dumps({"message": CONVERT + said}).encode())
    assert type(error) is Invalid
    assert error.causes == (Cause("", "FieldValueTypeInvalid", told),)


def test_other_errors_of_the_server_stay_its_own() -> None:
    """With the values masked all the same."""
    error = api_error("apply", 500, json.dumps({"message": "failed to create typed live object: got &{1}"}).encode())
    assert type(error) is ServerError
    assert str(error).endswith("got &{…}")


@given(text=st.text(max_size=200))
def test_no_text_gets_out(text: str) -> None:
    """Whatever stands where a map should, none of it is told."""
    error = api_error("apply", 500, json.dumps({"message": f"{PATCH}.data: expected map, got &{{{text}}}"}).encode())
    assert str(error) == f"apply: {PATCH}.data: expected map, got &{{…}}"


@given(code=st.integers(400, 599), body=st.binary(max_size=10_000))
def test_any_answer_gives_a_short_error(code: int, body: bytes) -> None:
    """Whatever a server or something in between sends, the error is typed and its message bounded."""
    error = api_error("get Pod", code, body)
    assert error.code == code
    assert len(str(error)) < 2_100
