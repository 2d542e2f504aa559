"""What can go wrong between us and an API server, as types.

    KubeError                     what was being done, to what
    ├── ConfigError               no usable kubeconfig or in-cluster account
    ├── Closed                    our own client was closed
    ├── Unreadable                an answer that isn't what was asked for: a proxy's page, an object of another shape
    ├── Unreachable               no answer: refused, reset, timed out
    │   └── Untrusted             … its certificate isn't one we trust; never retried
    └── ApiError                  an answer that says no, or sends us elsewhere: code, status reason, causes
        ├── BadRequest            400
        ├── Unauthorized          401
        ├── Forbidden             403
        ├── NotFound              404, no such object
        │   └── NotServed         … nor such a kind, by path or by discovery
        ├── Conflict              409, a precondition or another field manager
        │   └── AlreadyExists     409, the name is taken
        ├── Gone                  410, a resourceVersion or continue token has expired
        ├── TooLarge              413
        ├── Invalid               422, with its causes; 500 where a value applied isn't of its field's type
        ├── TooManyRequests       429, retry_after
        └── ServerError           5xx, retry_after

A message reads "<verb> <object>: <what the server said>", cut short.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from starling.errors import StarlingError

__all__ = [
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Cause",
    "Closed",
    "ConfigError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeError",
    "NotFound",
    "NotServed",
    "ServerError",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Unreadable",
    "Untrusted",
    "api_error",
]

MESSAGE_LIMIT = 2_000
# A server-side apply of a value that isn't of its field's type: a 500, as if the server were at fault.
_UNFIT: Final = re.compile(
    r"failed to create typed patch object \([^)]*\): (?!no corresponding type)(?:errors:\n)?"
    r"|failed to convert new object \([^)]*\) to proper version: unable to convert unstructured object to [^:]*: "
)
# The value is printed as Go does. A string may have braces and lines of its own: only another complaint ends it.
_GOT: Final = re.compile(
    r"(?<=got &)([\w.]*\{(?:Value:)?).*?(?:\}(?=\n  \.\S+: (?:expected|field|duplicate|element) )|\Z)", re.DOTALL
)
# A list's elements are told by keys: names and numbers, as a rule. Any others, and a set's members, are values.
_KEY: Final = re.compile(
    r"\[(?=[\w./-]*=)"
    r'(?!(?:[\w./-]+=(?:"[^"\\]*"|-?\d[\w.+]*|true|false|null),?)+\])'
    r".*?(?:\](?=(?:\.\w+|\[\d+\])*(?:: |\n|\Z))|\Z)",
    re.DOTALL,
)
_PARSED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?<=unmarshal number )\S+(?= into)', re.DOTALL)
_COMPLAINT: Final = re.compile(r' *(\.(?:"[^"\\]*"|[^"\n])*?): ([^\n\[]*)')


class Cause(msgspec.Struct, frozen=True):
    """One field the server objects to, and why."""

    field: str = ""
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, frozen=True):
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


class KubeError(StarlingError):
    """An exchange with an API server that failed: its verb and object, and when the server wants to be asked again."""

    reason = "KubernetesError"

    def __init__(self, action: str, cause: str, *, hint: str | None = None) -> None:
        super().__init__(f"{action}: {cause}" if action else cause, hint=hint)
        self.action = action
        self.retry_after: float | None = None
        self.causes: tuple[Cause, ...] = ()

    @property
    def history_went_back(self) -> bool:
        """Whether the server hasn't come as far as what we saw of it before: it was restored from a backup."""
        return any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes)


class ConfigError(KubeError):
    """There is no usable kubeconfig, context or in-cluster account."""

    reason = "InvalidKubeconfig"


class Closed(KubeError):
    """The client was closed; nothing was sent."""

    reason = "Closed"


class Unreadable(KubeError):
    """The answer isn't what was asked for: not JSON, or without the fields it must have."""

    reason = "Unreadable"


class Unreachable(KubeError):
    """The API server gave no answer. Whether it acted on the request is unknown."""

    reason = "Unreachable"


class Untrusted(Unreachable):
    """TLS could not be established: the certificate isn't one we trust, or ours isn't accepted."""

    reason = "Untrusted"


class ApiError(KubeError):
    """The API server said no."""

    reason = "Refused"

    def __init__(
        self, action: str, cause: str, *, code: int = 0, status_reason: str = "", hint: str | None = None
    ) -> None:
        super().__init__(action, cause, hint=hint)
        self.code = code
        self.status_reason = status_reason


class BadRequest(ApiError):
    """The request makes no sense to the server."""

    reason = "BadRequest"


class Unauthorized(ApiError):
    """The server doesn't know who we are."""

    reason = "Unauthorized"


class Forbidden(ApiError):
    """We, or whom we act as, may not do this."""

    reason = "Forbidden"


class NotFound(ApiError):
    """There is no such object."""

    reason = "NotFound"


class NotServed(NotFound):
    """The cluster doesn't serve this kind (yet): its CRD or API service is missing; `down`, or doesn't answer."""

    reason = "NotServed"
    down = False


class Conflict(ApiError):
    """A precondition failed, or another field manager owns a field."""

    reason = "Conflict"


class AlreadyExists(Conflict):
    """An object of that name exists."""

    reason = "AlreadyExists"


class Gone(ApiError):
    """The resourceVersion or continue token is too old to go on from."""

    reason = "Expired"


class TooLarge(ApiError):
    """The body is more than the server takes."""

    reason = "TooLarge"


class Invalid(ApiError):
    """The object fails validation; `causes` or the message says where."""

    reason = "Invalid"


class TooManyRequests(ApiError):
    """The server asks us to slow down; it did nothing."""

    reason = "TooManyRequests"


class ServerError(ApiError):
    """The server failed. Whether it acted on the request is unknown."""

    reason = "ServerError"


_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
}


def api_error(action: str, code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The typed error for an answer that isn't a success; the body need not be a Status."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        status = _Status(message=body[:MESSAGE_LIMIT].decode(errors="replace").strip())
    code = code or status.code
    kind = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    details = status.details or _Details()
    if kind is NotFound and not details.name:
        kind = NotServed  # a missing object is named; only an unknown path is not
    message, causes = _without_values(status.message), tuple(details.causes or ())
    if kind is ServerError and (unfit := _UNFIT.match(message)):
        kind, causes = Invalid, _complaints(message[unfit.end() :])
    error = kind(action, _cut(message or status.reason or f"HTTP {code}"), code=code, status_reason=status.reason)
    error.causes = causes
    error.retry_after = _seconds(retry_after) or float(details.retry_after_seconds) or None
    return error


def _without_values(message: str) -> str:
    """The message with `…` for each value that a server-side apply quotes: it may be a Secret's."""
    message = _GOT.sub(r"\1…}", message)
    if not (unfit := _UNFIT.match(message)):
        return message
    said = message[unfit.end() :]
    return unfit[0] + (_PARSED.sub("…", said) if "to proper version" in unfit[0] else _KEY.sub("[…]", said))


def _complaints(said: str) -> tuple[Cause, ...]:
    """Fields and what is wrong with each, apart from one another: a field's name may be any word."""
    found = [Cause(field[1:], "FieldValueTypeInvalid", text.strip()) for field, text in _COMPLAINT.findall(said)]
    return tuple(found) or (Cause(reason="FieldValueTypeInvalid", message=said),)


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + "…"


def _seconds(header: str | None) -> float | None:
    """Retry-After as seconds; the HTTP-date form isn't used by API servers and counts as absent."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
