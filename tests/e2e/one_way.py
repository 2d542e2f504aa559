"""A way out of a network namespace, and none in: TCP there → a Unix socket → TCP here.

python -m tests.e2e.one_way inside|outside FOLDER PORT…    (what listens `inside` leads to the same port `outside`)
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on until one side has had enough."""
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


def passing_on(connect: Callable[[], Any]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """What is done with a connection: another one, and everything passed on both ways."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there: Streams = await connect()
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    return serve


async def main(side: str, folder: Path, ports: list[int]) -> None:
    """Listen until ended."""
    servers = []
    for port in ports:
        socket = str(folder / f"{port}.sock")
        if side == "inside":
            connect = passing_on(lambda socket=socket: asyncio.open_unix_connection(socket))  # type: ignore[misc]
            servers.append(await asyncio.start_server(connect, "127.0.0.1", port))
        else:
            connect = passing_on(lambda port=port: asyncio.open_connection("127.0.0.1", port))  # type: ignore[misc]
            servers.append(await asyncio.start_unix_server(connect, socket))
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), [int(port) for port in sys.argv[3:]]))
