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
        ├── Invalid               422, with its causes
        ├── TooManyRequests       429, retry_after
        └── ServerError           5xx, retry_after

A message reads "<verb> <object>: <what the server said>", cut short.
"""

from collections.abc import Mapping

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
    """The object fails validation; `causes` says where."""

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
    message = status.message or status.reason or f"HTTP {code}"
    error = kind(action, _cut(message), code=code, status_reason=status.reason)
    error.causes = tuple(details.causes or ())
    error.retry_after = _seconds(retry_after) or float(details.retry_after_seconds) or None
    return error


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + "…"


def _seconds(header: str | None) -> float | None:
    """Retry-After as seconds; the HTTP-date form isn't used by API servers and counts as absent."""
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
