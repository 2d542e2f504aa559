"""A way to a cluster that counts what is asked of it, and on command lets answers or events come late, or spoils them.

It speaks plain HTTP to whoever asks and passes everything on to the real API server; it answers nothing itself but, as
gateways do, that it has lost an answer.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
from aiohttp import StreamReader, web

from starling.kube import Access, AccessSource, kubeconfig
from starling.local import LocalCluster

__all__ = ["Asked", "Traffic", "traffic"]

HOP = frozenset({"host", "connection", "transfer-encoding", "content-length"})
WRITES = frozenset({"create", "apply", "patch", "delete"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `verb` is that of the API: get, list, watch, discover, create, apply, patch, delete."""

    verb: str
    path: str

    @property
    def name(self) -> str:
        """The object's name, of one that addresses an object."""
        return self.path.rpartition("/")[2]


@dataclass
class Traffic:
    """What was asked. Mutable.

    `answers` and `events` are cleared to hold back answers to writes, and watch events; `held` narrows the first down
    to objects of these names. `spoilt` says what becomes of answers to writes, on which the server has acted: the
    connection breaks, or a gateway answers in its place. `before` is awaited before a request is passed on. `kept` is
    what watches have brought that is held back; it is passed on in one piece.
    """

    access: AccessSource
    asked: list[Asked] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    events: asyncio.Event = field(default_factory=asyncio.Event)
    held: frozenset[str] = frozenset()
    spoilt: Literal["", "broken", "502"] = ""
    before: Callable[[Asked], Awaitable[object]] | None = None
    kept: list[bytearray] = field(default_factory=list)

    def count(self) -> Counter[str]:
        """How often each verb was asked for."""
        return Counter(each.verb for each in self.asked)

    def writes(self) -> list[Asked]:
        """What would change something."""
        return [each for each in self.asked if each.verb in WRITES]

    def gets(self) -> list[Asked]:
        """Looks at one object."""
        return [each for each in self.asked if each.verb == "get"]

    async def answer(self, request: web.Request, verb: str, there: aiohttp.ClientResponse) -> web.StreamResponse:
        """Pass an answer on, when it may come."""
        if verb in WRITES and self.spoilt == "502":
            return web.Response(status=502, text="no answer from upstream")
        if verb in WRITES and self.spoilt and request.transport is not None:
            request.transport.abort()
        here = web.StreamResponse(status=there.status)
        for name, value in there.headers.items():
            if name.lower() not in HOP:
                here.headers.add(name, value)
        if verb in WRITES and (not self.held or request.path.rpartition("/")[2] in self.held):
            await self.answers.wait()
        await here.prepare(request)
        async for chunk in there.content.iter_any():
            await here.write(chunk if verb != "watch" else await self._in_one_piece(there.content, chunk))
        await here.write_eof()
        return here

    async def _in_one_piece(self, content: StreamReader, chunk: bytes) -> bytes:
        """All that comes while events are held back."""
        self.kept.append(kept := bytearray(chunk))
        released = asyncio.ensure_future(self.events.wait())
        while not self.events.is_set() and not content.at_eof():
            more = asyncio.ensure_future(content.readany())
            await asyncio.wait({more, released}, return_when=asyncio.FIRST_COMPLETED)
            kept += more.result() if more.done() else b""
            more.cancel()
        await released
        self.kept.remove(kept)
        return bytes(kept)


def _verb(request: web.Request) -> str:
    if request.method == "GET":
        return _reading(request)
    if "apply-patch" in request.headers.get("Content-Type", ""):
        return "apply"
    return {"POST": "create", "PATCH": "patch", "DELETE": "delete"}[request.method]


def _reading(request: web.Request) -> str:
    if "watch" in request.query:
        return "watch"
    if "limit" in request.query:
        return "list"
    # /api/v1, /apis/apps/v1 and shorter are discovery; objects lie deeper.
    depth = len(request.path.strip("/").split("/"))
    return "discover" if depth <= (2 if request.path.startswith("/api/") else 3) else "get"


@asynccontextmanager
async def traffic(cluster: LocalCluster) -> AsyncIterator[Traffic]:
    """A counted way to the cluster."""
    real = await kubeconfig(cluster.kubeconfig)()
    server = ""

    async def access() -> Access:
        return Access(server, None)

    counted = Traffic(access)
    counted.answers.set()
    counted.events.set()
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False)

    async def passed_on(request: web.Request) -> web.StreamResponse:
        verb = _verb(request)
        counted.asked.append(asked := Asked(verb, request.path))
        if counted.before is not None:
            await counted.before(asked)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        timeout = aiohttp.ClientTimeout(total=None)
        there = await session.request(
            request.method, real.server + request.raw_path, headers=headers, data=await request.read() or None,
            ssl=real.tls or True, timeout=timeout,
        )  # fmt: skip
        try:
            return await counted.answer(request, verb, there)
        finally:
            # Who stops reading a watch aborts it: closed politely, its socket would stay open for a while.
            if there.connection is not None and there.connection.transport is not None:
                there.connection.transport.abort()
            there.close()

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", passed_on)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield counted
    finally:
        await runner.cleanup()
        await session.close()
        await asyncio.sleep(0)
