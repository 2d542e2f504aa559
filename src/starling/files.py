"""Files that only their owner may read, written whole or not at all, and locks held by processes."""

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

__all__ = ["locked", "private_folder", "write_private"]

LOCK_POLL = 0.05


def private_folder(path: Path) -> Path:
    """Give the folder; one created now is for nobody but its owner to look into, one that was there stays as it is."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_private(path: Path, content: bytes | str) -> None:
    """Replace a file in one step; at no instant can others read it or anyone see half of it."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    partial.replace(path)


@asynccontextmanager
async def locked(path: Path, waiting: Callable[[], None]) -> AsyncIterator[None]:
    """Hold the lock on a file, across processes; `waiting` is called once if someone else has it.

    The kernel lets go of it when the holder dies. The holder may delete the file: whoever waited for it starts over.
    """
    told = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if not told:
                waiting()
                told = True
            await asyncio.sleep(LOCK_POLL)
            continue
        if same_file(descriptor, path):
            break
        os.close(descriptor)
    try:
        yield
    finally:
        os.close(descriptor)


def same_file(descriptor: int, path: Path) -> bool:
    """Tell whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
