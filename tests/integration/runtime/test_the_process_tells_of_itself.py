"""Whether the process lives, whether it is ready, and its metrics can be asked for over HTTP."""

from dataclasses import dataclass

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from starling.errors import InputError
from starling.runtime import Group, Metrics, serve


@dataclass
class Condition:
    """How the process is. Mutable."""

    alive: bool = True
    ready: bool = False


async def test_health_readiness_and_metrics_are_served() -> None:
    """200 or 503 as it is at the moment; metrics in Prometheus' format; nothing else, and nothing is changed."""
    condition = Condition()
    registry = CollectorRegistry()
    metrics = Metrics()
    registry.register(metrics)
    metrics.observe(Group("hub"))
    async with (
        serve("127.0.0.1", 0, ready=lambda: condition.ready, alive=lambda: condition.alive, registry=registry) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):

        async def status(path: str, method: str = "GET") -> int:
            async with session.request(method, path) as answer:
                return answer.status

        assert (await status("/healthz"), await status("/readyz")) == (200, 503)
        condition.ready, condition.alive = True, False
        assert (await status("/healthz", "HEAD"), await status("/readyz", "HEAD")) == (503, 200)
        async with session.get("/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert "starling_leader 0.0" in await answer.text()
        assert await status("/") == 404
        assert await status("/metrics/x") == 404
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert await status("/metrics", method) == 405


async def test_a_port_in_use_is_said() -> None:
    """With its number, and a way out."""
    registry = CollectorRegistry()
    async with serve("127.0.0.1", 0, ready=bool, alive=bool, registry=registry) as port:
        with pytest.raises(InputError, match=f"127.0.0.1:{port}"):
            async with serve("127.0.0.1", port, ready=bool, alive=bool, registry=registry):
                pass
