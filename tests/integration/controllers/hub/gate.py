"""A gate that listens, and a rollout that asks it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from starling.api.v1alpha1 import RolloutGate
from starling.controllers.gates import Answer, Gates, Question
from starling.runtime import Key
from tests.integration.controllers.hub.stage import Hub
from tests.unit.test_workqueue import VirtualClock
from tests.waiting import until

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Patient(VirtualClock):
    """Time that passes when it is told to, by a calendar that is the machine's."""

    def now(self) -> datetime:
        """The wall clock."""
        return datetime.now(UTC)


def saying(status: int, text: str = "", **headers: str) -> Handler:
    """A gate that always says the same."""

    async def say(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers=headers)

    return say


@dataclass
class Gate:
    """A gate at work. Mutable: what it says, what it was asked, and how many have hung up."""

    says: Handler = field(default_factory=lambda: saying(204))
    asked: list[tuple[web.BaseRequest, bytes]] = field(default_factory=list)
    left: int = 0
    url: str = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer."""
        self.asked.append((request, await request.read()))
        try:
            return await self.says(request)
        except asyncio.CancelledError:
            self.left += 1
            raise

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator["Gate"]:
        """Listen."""
        runner = web.ServerRunner(web.Server(self.handle, handler_cancellation=True), shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, host, 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"{'https' if tls else 'http'}://{host}:{port}"
        try:
            yield self
        finally:
            await runner.cleanup()


@dataclass
class Asking:
    """A rollout that asks. Mutable: how often it was told that there is an answer."""

    hub: Hub
    gates: Gates
    clock: Patient
    told: int = 0

    def question(self, **changes: str) -> Question:
        """What it asks unless told otherwise."""
        usual = Question("Module", self.hub.namespace, "web", "eu", "t1:a", "v1@sha1:a")
        return msgspec.structs.replace(usual, **changes)

    def ask(self, gate: RolloutGate, question: Question | None = None) -> Answer | None:
        """As a controller does."""
        question = question or self.question()
        return self.gates.ask(Key(question.namespace, question.name), question, gate, self._tell)

    async def answer(self, gate: RolloutGate, question: Question | None = None) -> Answer:
        """What it comes to when it is asked now."""
        told = self.told
        self.ask(gate, question)
        await until(lambda: self.told > told)
        answer = self.ask(gate, question)
        assert answer is not None
        return answer

    def forget(self) -> None:
        """As a controller does whose object is gone."""
        self.gates.forget(Key(self.hub.namespace, "web"))

    def _tell(self) -> None:
        self.told += 1


def at(url: str, **fields: Any) -> RolloutGate:
    """A gate as a policy has it."""
    return msgspec.convert({"url": url, **fields}, RolloutGate)
