"""Git repositories over smart HTTP, by git's own http-backend."""

import asyncio
import base64
import hmac
import logging
import os
import shutil
import ssl
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import hdrs, web

from starling.local.errors import LocalError, ToolMissingError
from starling.programs import child

__all__ = ["GitServer"]

logger = logging.getLogger(__name__)

CHUNK = 1 << 16
HOST = "127.0.0.1"
SHUTDOWN_LIMIT = 1.0


class GitServer:
    """Serves every repository below a folder while the `async with` block lasts.

    Everyone who knows the user name and password, if there are any, may fetch. Whether pushing is allowed is up to each
    repository, by git's own rule: `http.receivepack` in its configuration, or else only with a password.
    """

    def __init__(
        self,
        root: Path,
        username: str | None = None,
        password: str | None = None,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.root = root.resolve()
        self.port = port
        self._tls = tls
        self._username = username or ""
        secret = f"{username or ''}:{password or ''}"
        self._expected = base64.b64encode(secret.encode()) if username or password else None
        self._handlers: set[asyncio.Task[web.StreamResponse]] = set()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        # A pack that came compressed is for the backend to inflate; a client that went away ends its backend.
        self._runner = web.AppRunner(
            application,
            auto_decompress=False,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=SHUTDOWN_LIMIT,
        )

    @property
    def url(self) -> str:
        """Where the server listens; a repository's URL is this, a slash, and its path below the root."""
        return f"{'https' if self._tls else 'http'}://{HOST}:{self.port}"

    async def __aenter__(self) -> Self:
        if not shutil.which("git"):
            raise ToolMissingError("there is no git on this machine, which serves the repositories")
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self.port, ssl_context=self._tls).start()
        except OSError as error:
            await self._runner.cleanup()
            raise LocalError(f"the git server can't listen on {HOST}:{self.port}: {error.strerror}") from error
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        # Those whose client hung up are no longer aiohttp's business, but may still be ending their backend.
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        handler = asyncio.create_task(self._serve(request))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)
        return await handler

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if not self._knows(request):
            headers = {hdrs.WWW_AUTHENTICATE: 'Basic realm="git", charset="UTF-8"'}
            return web.Response(status=401, headers=headers, text="user name and password, please\n")
        if not self._is_inside(request.path):
            return web.Response(status=404, text="no such repository\n")
        async with child("git", "http-backend", environment=self._environment(request), stdin=PIPE) as backend:
            tasks = [asyncio.create_task(feed(request, backend)), asyncio.create_task(log_errors(backend))]
            try:
                return await answer(request, backend)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def _knows(self, request: web.Request) -> bool:
        if not self._expected:
            return True
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        return scheme.lower() == "basic" and hmac.compare_digest(given.strip().encode(), self._expected)

    def _is_inside(self, path: str) -> bool:
        if "\0" in path or ".." in path.split("/"):
            return False
        return (self.root / path.lstrip("/")).resolve().is_relative_to(self.root)

    def _environment(self, request: web.Request) -> dict[str, str]:
        variables = {
            "PATH": os.environ.get("PATH"),
            "HOME": os.environ.get("HOME"),
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol"),
            "REQUEST_METHOD": request.method,
            "PATH_INFO": request.path,
            "QUERY_STRING": request.rel_url.raw_query_string,
            "CONTENT_TYPE": request.headers.get(hdrs.CONTENT_TYPE),
            "CONTENT_LENGTH": request.headers.get(hdrs.CONTENT_LENGTH),
            "HTTP_CONTENT_ENCODING": request.headers.get(hdrs.CONTENT_ENCODING),
            "REMOTE_ADDR": request.remote,
            "REMOTE_USER": self._username if self._expected else None,
        }
        return {name: value for name, value in variables.items() if value is not None}


async def feed(request: web.Request, backend: Process) -> None:
    """Hand the request's body on as it arrives."""
    assert backend.stdin
    with suppress(BrokenPipeError, ConnectionResetError):
        async for chunk in request.content.iter_chunked(CHUNK):
            backend.stdin.write(chunk)
            await backend.stdin.drain()
    backend.stdin.close()


async def log_errors(backend: Process) -> None:
    """Log what the backend complains about; it isn't for the client's eyes."""
    assert backend.stderr
    async for line in backend.stderr:
        logger.warning("git http-backend: %s", line.decode(errors="replace").rstrip())


async def answer(request: web.Request, backend: Process) -> web.StreamResponse:
    """Hand the backend's answer on as it is made: CGI headers, then the body."""
    assert backend.stdout
    response = web.StreamResponse()
    lines = 0
    while line := (await backend.stdout.readline()).strip():
        lines += 1
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "status":
            response.set_status(int(value.split()[0]))
        else:
            response.headers[name] = value.strip()
    if not lines:
        return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text="git http-backend gave no answer\n")
    await response.prepare(request)
    while chunk := await backend.stdout.read(CHUNK):
        await response.write(chunk)
    await response.write_eof()
    return response
