"""What was rendered before, by a key of all that went into it: in memory, and on disk for the next process.

Everything on disk is written whole, checked against its own digest when read, and forgotten if it is wrong; any number
of processes may share a folder. Both are bounded by bytes: what wasn't wanted for longest goes first. `once` has those
who want the same thing at the same time wait for one of them.
"""

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from starling.files import private_folder, write_private
from starling.objects import Manifest, Origin
from starling.rendering.request import Rendered

__all__ = ["Cache", "decode", "encode"]

_DIGEST_LENGTH: Final = 64
_SWEEPS: Final = 16
"""The disk is looked over again when this share of what it may hold was written."""


class _Entry(msgspec.Struct, array_like=True):
    content: dict[str, Any]
    origin: Origin


class _Stored(msgspec.Struct, array_like=True):
    content_digest: str
    manifests: list[_Entry]


def encode(rendered: Rendered) -> bytes:
    """A text that `decode` makes the same of."""
    entries = [_Entry(manifest.content, manifest.origin) for manifest in rendered.manifests]
    return msgspec.json.encode(_Stored(rendered.content_digest, entries))


def decode(text: bytes) -> Rendered:
    """What was encoded; msgspec.DecodeError if that is something else."""
    stored = msgspec.json.decode(text, type=_Stored)
    manifests = tuple(Manifest(entry.content, entry.origin) for entry in stored.manifests)
    return Rendered(manifests, stored.content_digest)


@dataclass
class _Flight:
    task: "asyncio.Task[Rendered]"
    waiting: int = 0


@dataclass
class Cache:
    """Rendered things by key. Mutable; for one event loop. Without a folder nothing outlives the process."""

    folder: Path | None = None
    in_memory: int = 64 << 20
    on_disk: int = 1 << 30
    _kept: "OrderedDict[str, tuple[Rendered, int]]" = field(default_factory=OrderedDict, init=False)
    _weight: int = field(default=0, init=False)
    _flights: dict[str, _Flight] = field(default_factory=dict, init=False)
    _written: int | None = field(default=None, init=False)

    async def once(self, key: str, work: Callable[[], Awaitable[Rendered]], *, no_cache: bool = False) -> Rendered:
        """What is kept under a key, or else what the work gives, which is kept then.

        Who comes while it is worked on waits for the same work; it goes on as long as anyone waits. With `no_cache`
        what was kept isn't looked at.
        """
        if not no_cache and (found := self._recall(key)) is not None:
            return found
        flight_key = f"{key} anew" if no_cache else key
        flight = self._flights.get(flight_key)
        if flight is None:
            flight = self._flights[flight_key] = _Flight(asyncio.create_task(self._work(key, work, no_cache=no_cache)))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                if self._flights.get(flight_key) is flight:
                    del self._flights[flight_key]
                flight.task.cancel()

    async def _work(self, key: str, work: Callable[[], Awaitable[Rendered]], *, no_cache: bool) -> Rendered:
        if not no_cache and (text := await asyncio.to_thread(self._load, key)) is not None:
            with suppress(msgspec.MsgspecError):
                found = await asyncio.to_thread(decode, text)
                self._keep(key, found, len(text))
                return found
        rendered = await work()
        text = await asyncio.to_thread(encode, rendered)
        self._keep(key, rendered, len(text))
        await asyncio.to_thread(self._store, key, text)
        return rendered

    def _recall(self, key: str) -> Rendered | None:
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def _keep(self, key: str, rendered: Rendered, weight: int) -> None:
        _, before = self._kept.pop(key, (None, 0))
        self._kept[key] = (rendered, weight)
        self._weight += weight - before
        while self._weight > self.in_memory and self._kept:
            _, (_, gone) = self._kept.popitem(last=False)
            self._weight -= gone

    def _place(self, key: str) -> Path | None:
        name = hashlib.sha256(key.encode()).hexdigest()
        return None if self.folder is None else self.folder / name[:2] / name

    def _load(self, key: str) -> bytes | None:
        place = self._place(key)
        if place is None:
            return None
        try:
            content = place.read_bytes()
        except OSError:
            return None
        text = content[_DIGEST_LENGTH:]
        if content[:_DIGEST_LENGTH] != _checksum(key, text):
            place.unlink(missing_ok=True)
            return None
        with suppress(OSError):
            os.utime(place)  # wanted just now
        return text

    def _store(self, key: str, text: bytes) -> None:
        place = self._place(key)
        if place is None or self.folder is None or len(text) > self.on_disk:
            return
        with suppress(OSError):  # a full disk or a folder that others tidy up costs a cache, not the result
            private_folder(place.parent)
            write_private(place, _checksum(key, text) + text)
            self._written = None if self._written is None else self._written + len(text)
            if self._written is None or self._written > self.on_disk // _SWEEPS:
                self._written = 0
                _sweep(self.folder, self.on_disk)


def _checksum(key: str, text: bytes) -> bytes:
    """Of the text and of what it is kept for, so that a file under another name isn't taken for it."""
    return hashlib.sha256(key.encode() + b"\0" + text).hexdigest().encode()


def _sweep(folder: Path, most: int) -> None:
    """Remove what wasn't wanted for longest, until the rest is within bounds."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob("*/*"):
        with suppress(OSError):
            state = path.stat()
            found.append((state.st_mtime, state.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            break
        with suppress(OSError):
            path.unlink()
        total -= size
