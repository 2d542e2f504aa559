"""One API server over HTTP: connections, credentials, retries, and errors as types.

What is repeated, and when:

| what happened | repeated |
|---|---|
| no connection could be made; 429 | always: the server did nothing |
| 401 | once, with access asked for anew: the server did nothing |
| the connection broke; 502, 503, 504, or any 5xx with Retry-After | what is idempotent: reads, apply, dry runs |
| anything else | never |
"""

import asyncio
import os
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import msgspec
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict
from yarl import URL

from starling import __version__
from starling.aio import Backoff, Clock
from starling.kube.config import Access, AccessSource
from starling.kube.errors import (
    ApiError,
    Closed,
    ConfigError,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Untrusted,
    api_error,
)
from starling.kube.resources import Body

__all__ = ["Headers", "Patience", "Request", "Transport"]

Headers = tuple[tuple[str, str], ...]

CONNECT_WITHIN = 10.0
LOADED_WITHIN = 60.0
_TRANSIENT = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is tried, the longest wait between two tries, and for how long the server may be silent.

    A server that asks for a longer wait is left alone: its error goes to the caller, who knows what else to do.
    """

    attempts: int = 5
    longest_wait: float = 10.0
    silence: float = 60.0


class Request(msgspec.Struct, frozen=True):
    """One exchange: `action` names verb and object in errors, `idempotent` says that repeating it is harmless."""

    method: str
    path: str
    action: str
    query: str = ""
    headers: Headers = ()
    body: bytes | None = None
    idempotent: bool = False


class Transport:
    """The connections to one API server. Mutable: the session, the current access, whether the server answers."""

    def __init__(self, source: AccessSource, patience: Patience, clock: Clock) -> None:
        self.clock = clock
        self._source = source
        self._patience = patience
        self._limits = _limits(patience.silence)
        self._access: Access | None = None
        self._loaded_at = 0.0
        self._renewing = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._connected: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._closed = False
        self._answers = asyncio.Event()
        self._answers.set()

    @property
    def away(self) -> bool:
        """Whether the last request had no answer: for all that is known, none would have one."""
        return not self._answers.is_set()

    async def back(self) -> None:
        """Wait until the server has answered someone, if it is away."""
        await self._answers.wait()

    async def close(self) -> None:
        """End every connection, watches included; whatever is sent afterwards is refused."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            for connection in tuple(self._connected):
                connection.close()  # its request was cancelled just as it was connected
            await asyncio.sleep(0)  # aborted TLS connections give up their sockets in the loop's next turn

    async def access(self, stale: Access | None = None) -> Access:
        """The current access; loaded anew when it is `stale` (the server refused it) or has lived its time."""
        current = self._access
        if current is not None and current is not stale and not self._outlived(current):
            return current
        async with self._renewing:
            current = self._access
            if current is None or current is stale or self._outlived(current):
                current = self._access = await self._load()
            return current

    async def _load(self) -> Access:
        """Access from its source, which may run a plugin that hangs: those who wait for it mustn't."""
        try:
            async with asyncio.timeout(LOADED_WITHIN):
                access = await self._source()
        except TimeoutError as error:
            raise ConfigError("load access", f"no credentials after {LOADED_WITHIN:.0f} s") from error
        self._loaded_at = self.clock.monotonic()
        return access

    def _outlived(self, access: Access) -> bool:
        return access.lives_for is not None and self.clock.monotonic() - self._loaded_at > access.lives_for

    async def send(self, request: Request, *, attempts: int | None = None) -> Body:
        """The answer's body, or a KubeError; repeats what is safe to repeat, never sooner than the server asks."""
        backoff = Backoff(limit=self._patience.longest_wait)
        left = attempts or self._patience.attempts
        while True:
            left -= 1
            try:
                response = await self._answer(request, self._limits)
                try:
                    return await _body(response, request.action)
                finally:
                    response.close()
            except (Unreachable, ApiError) as error:
                wait = max(backoff.next(), error.retry_after or 0.0)
                if not left or wait > self._patience.longest_wait or not _worth_repeating(error, request):
                    raise
            await self.clock.sleep(wait)

    @asynccontextmanager
    async def open(self, request: Request, *, silence: float | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """One answer whose body is still to be read; sent once, or twice where only access had to be renewed."""
        response = await self._answer(request, self._limits if silence is None else _limits(silence))
        try:
            yield response
        finally:
            response.close()

    async def _answer(self, request: Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = await self.access()
        try:
            return await self._exchange(request, access, limits)
        except Unauthorized:
            return await self._exchange(request, await self.access(stale=access), limits)

    async def _exchange(
        self, request: Request, access: Access, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = CIMultiDict(request.headers)
        if access.authorization:
            headers["Authorization"] = access.authorization
        if self._closed:
            raise Closed(request.action, "the client was closed")
        url = URL(f"{access.server}{request.path}{'?' if request.query else ''}{request.query}", encoded=True)
        try:
            response = await self._opened_session().request(
                request.method,
                url,
                data=request.body,
                headers=headers,
                ssl=access.tls if access.tls is not None else True,
                server_hostname=access.tls_server_name,
                proxy=access.proxy,
                timeout=limits,
                allow_redirects=False,
            )
            if response.status < 500:  # else it may have been a gateway with nobody behind it
                self._answers.set()
            if response.status < 300 or response.status == 304:
                return response
            async with response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            self._answers.clear()
            raise _unreachable(request.action, access.server, error) from error
        if response.status < 400:
            target = response.headers.get("Location", "nowhere")
            raise ApiError(request.action, f"was sent elsewhere, to {target}, and didn't go", code=response.status)
        refusal = api_error(request.action, response.status, body, response.headers.get("Retry-After"))
        if isinstance(refusal, Unauthorized):
            refusal.hint = (
                f"{access.server} doesn't know these credentials: do the kubeconfig's cluster and user match?"
            )
        raise refusal

    def _opened_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Callers bound how much they ask at once; a watch holds its connection for as long as it lasts.
            connector = aiohttp.TCPConnector(limit=0)
            # Nobody else knows of a connection whose request is cancelled before aiohttp has it.
            connector._factory = self._connection  # type: ignore[assignment]  # noqa: SLF001 - it has no public switch
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"starling/{__version__}", "Accept": "application/json"},
                auto_decompress=True,
            )
            # aiohttp would repeat a DELETE that met a closing connection; what is repeated is decided above.
            self._session._retry_connection = False  # noqa: SLF001 - it has no public switch
        return self._session

    def _connection(self) -> "_Connection":
        connection = _Connection(lambda: self._closed)
        self._connected.add(connection)
        return connection


class _Connection(ResponseHandler):
    """A connection that is gone when it is closed, and at once if its client was closed while it was being made.

    aiohttp says goodbye first, which leaves the socket open until the server, which may be dead, has done so as well.
    """

    def __init__(self, too_late: Callable[[], bool]) -> None:
        super().__init__(asyncio.get_running_loop())
        self._too_late = too_late

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._too_late():
            self.close()

    def close(self) -> None:
        self.abort()


class _NotSent(Unreachable):
    """Unreachable before anything was sent."""


def _unreachable(action: str, server: str, error: Exception) -> Unreachable:
    """The type that says whether the request can have reached the server."""
    cause = f"{server}: {_describe(error)}"
    match error:
        case aiohttp.ClientConnectorSSLError() | aiohttp.ClientConnectorCertificateError():
            hint = "the kubeconfig's certificate-authority-data must be the CA of this API server"
            return Untrusted(action, cause, hint=hint)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return _NotSent(action, cause, hint="is the API server up, and is that its address?")
        case _:
            return Unreachable(action, cause)


def _worth_repeating(error: Unreachable | ApiError, request: Request) -> bool:
    match error:
        case Untrusted():
            return False
        case _NotSent() | TooManyRequests():
            return True
        case Unreachable():
            return request.idempotent
        case ServerError():
            return request.idempotent and (error.code in _TRANSIENT or error.retry_after is not None)
        case _:
            return False


def _describe(error: BaseException) -> str:
    """A short sentence for a connection's failure; aiohttp's own are long or empty."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"certificate not trusted ({error.certificate_error})"
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError() as cause):
            return f"TLS failed ({cause.reason or cause})"
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno
            return os.strerror(number) if number else str(error.os_error) or "the connection was closed at once"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer came"
        case _:
            return str(error) or type(error).__name__


def _limits(silence: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=CONNECT_WITHIN, sock_read=silence)


async def _body(response: aiohttp.ClientResponse, action: str) -> Body:
    try:
        raw = await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable(action, _describe(error)) from error
    headers = response.headers
    warnings = tuple(_warning(text) for text in headers.getall("Warning", ()))
    return Body(raw, action, warnings, headers.get("ETag", ""), response.status)


def _warning(header: str) -> str:
    """The text of `Warning: 299 - "…"`."""
    return header.split('"', 1)[1].rsplit('"', 1)[0] if '"' in header else header
