"""A relay between a client and a server that breaks on command. It passes bytes, TLS and all, and imitates nothing."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class Relay:
    """Listens on loopback and passes on to `port`. Mutable: whether it lets through is switched from outside."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.loses_answers = False
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
        self._server = None
        for writer in list(self._open):
            writer.transport.abort()

    async def mend(self) -> None:
        """Let through again, on the same port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there_writer}
        self._open |= both
        if self._server is None:  # cut off meanwhile
            self.cut()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, there_writer, both))
                group.create_task(self._pump(there_reader, writer, both, answers=True))
        finally:
            self._open -= both
            await asyncio.gather(*(end.wait_closed() for end in both), return_exceptions=True)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        both: set[asyncio.StreamWriter],
        *,
        answers: bool = False,
    ) -> None:
        with suppress(OSError):
            while (chunk := await source.read(65_536)) and not (answers and self.loses_answers):
                sink.write(chunk)
                await sink.drain()
        for writer in both:
            writer.transport.abort()
