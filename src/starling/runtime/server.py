"""What the process tells of itself over HTTP: whether it lives, whether it is ready, its metrics."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from starling.errors import InputError

__all__ = ["serve"]


@asynccontextmanager
async def serve(
    address: str,
    port: int,
    *,
    ready: Callable[[], bool],
    alive: Callable[[], bool],
    registry: CollectorRegistry,
) -> AsyncIterator[int]:
    """Answer GET and HEAD of /healthz, /readyz and /metrics inside the block; yields the port, chosen if it was 0."""
    app = web.Application()
    app.router.add_get("/healthz", _asking(alive))
    app.router.add_get("/readyz", _asking(ready))

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port)
        try:
            await site.start()
        except OSError as error:
            raise InputError(
                f"can't listen on {address}:{port}: {error.strerror or error}", hint="choose another port"
            ) from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _asking(question: Callable[[], bool]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok\n") if question() else web.Response(status=503, text="no\n")

    return answer
