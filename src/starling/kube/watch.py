"""List and watch as one endless iterator: every change arrives, once, whatever happens to the connection.

    async with aclosing(watch(client, resource, Deployment)) as events:
        async for event in events:
            match event:
                case Changed(object=deployment): ...
                case Deleted(namespace=namespace, name=name): ...
                case Synced(): ...                # all that existed has arrived
                case Interrupted(error=error): ...  # the server is away; what is known may be out of date
                case Resumed(): ...               # it is back, and what happened meanwhile follows

A listing is compared with what was told before: what has vanished is told as Deleted, what is new or different as
Changed, what is the same isn't told again. A stream that ends is resumed where it ended; one that the server can't
resume (410) begins with a new listing. Bookmarks keep the place to resume from fresh.
"""

import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Generic, TypeVar

import aiohttp
import msgspec

from starling.aio import Backoff
from starling.kube.client import Client
from starling.kube.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    KubeError,
    NotServed,
    Unauthorized,
    Unreachable,
    Untrusted,
    api_error,
)
from starling.kube.resources import Listing, Named, Resource, Selection

__all__ = ["Changed", "Deleted", "Event", "Interrupted", "Resumed", "Synced", "WatchOptions", "watch"]

T = TypeVar("T", bound=Named)

SHORT_STREAM = 1.0
_EVERYTHING = Selection()


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """An object is there, in a state that wasn't told before."""

    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """An object is gone; its last state is known only if the server told the deletion as it happened."""

    namespace: str
    name: str
    uid: str
    object: T | None = None


class Synced(msgspec.Struct, frozen=True):
    """Everything that existed when the listing was made has been told."""

    resource_version: str


class Interrupted(msgspec.Struct, frozen=True):
    """The connection is lost and will be tried again; what is known may be out of date."""

    error: KubeError


class Resumed(msgspec.Struct, frozen=True):
    """The connection is back; what happened meanwhile follows, after a new listing if the server needs one."""


Event = Changed[T] | Deleted[T] | Synced | Interrupted | Resumed


class WatchOptions(msgspec.Struct, frozen=True):
    """In seconds: how long one stream lasts and may be silent, and the waits between tries. And objects per page."""

    stream_life: float = 300.0
    silence: float = 150.0
    first_wait: float = 0.1
    longest_wait: float = 30.0
    page_size: int = 500


async def watch(
    client: Client,
    resource: Resource,
    into: type[T],
    selection: Selection = _EVERYTHING,
    options: WatchOptions | None = None,
) -> AsyncGenerator[Event[T], None]:
    """Tell every object selected and every change to one, for ever.

    Before the first listing it raises what trying again can't mend: Forbidden, Unauthorized, NotServed, BadRequest,
    Untrusted. Once in sync these too are told as Interrupted: a restarting server gives some of them for a moment.
    """
    state = _Watch(client, resource, into, selection, options or WatchOptions())
    while True:
        try:
            if not state.position:
                async with aclosing(state.listing()) as events:
                    async for event in events:
                        yield event
            async with aclosing(state.stream()) as events:
                async for event in events:
                    yield event
        except Gone:
            state.position = ""
            await state.wait()
        except (Forbidden, Unauthorized, NotServed, BadRequest, Untrusted) as error:
            if not state.synced:
                raise
            yield state.interrupt(error)
            await state.wait()
        except (Unreachable, ApiError) as error:
            if _too_large_version(error):
                state.position = ""
            yield state.interrupt(error)
            await state.wait()


class _Line(msgspec.Struct):
    """One line of a watch stream; the object is decoded only when its type is known."""

    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    class Metadata(msgspec.Struct, rename="camel"):
        resource_version: str

    metadata: Metadata


class _Watch(Generic[T]):
    """Where one watch stands. Mutable: `_told` is what the consumer knows, `position` where the stream resumes."""

    def __init__(
        self, client: Client, resource: Resource, into: type[T], selection: Selection, options: WatchOptions
    ) -> None:
        self.client = client
        self.resource = resource
        self.into = into
        self.selection = selection
        self.options = options
        self.position = ""
        self.synced = False
        self._interrupted = False
        self._clock = client.transport.clock
        self._backoff = Backoff(options.first_wait, options.longest_wait)
        self._decoder = msgspec.json.Decoder(into)
        self._told: dict[tuple[str, str], tuple[str, str]] = {}

    def interrupt(self, error: KubeError) -> Interrupted:
        """Tell that the connection is lost."""
        self._interrupted = True
        return Interrupted(error)

    async def wait(self) -> None:
        """Wait before the next try, longer each time until a stream has lasted."""
        await self._clock.sleep(self._backoff.next())

    async def listing(self) -> AsyncGenerator[Event[T], None]:
        """What differs between all that exists now and what was told."""
        unseen = dict(self._told)
        page: Listing[T] | None = None
        async for page in self.client.pages(
            self.resource, self.into, self.selection, page_size=self.options.page_size, attempts=1
        ):
            for item in page.items:
                meta = item.metadata
                unseen.pop((meta.namespace, meta.name), None)
                for event in self._changed(item):
                    yield event
        for (namespace, name), (uid, _) in unseen.items():
            del self._told[namespace, name]
            yield Deleted(namespace, name, uid)
        assert page is not None, "a listing has at least one page"
        self.position = page.resource_version
        self.synced, self._interrupted = True, False
        yield Synced(self.position)

    async def stream(self) -> AsyncGenerator[Event[T], None]:
        """Changes from `position` on, until the server ends the stream."""
        life = self.options.stream_life * random.uniform(0.8, 1.2)  # noqa: S311 - spreads watches, hides nothing
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.position,
            "timeoutSeconds": str(max(1, round(life))),
            **self.selection.query(),
        }
        action = f"watch {self.resource}"
        path = self.resource.path(self.selection.namespace)
        opened = self._clock.monotonic()
        async with self.client.stream(path, action, query, silence=self.options.silence) as response:
            if self._interrupted:
                self._interrupted = False
                yield Resumed()
            try:
                async for line in _lines(response.content):
                    for event in self._read(line, action):
                        yield event
            except TimeoutError:
                pass  # a silent server may just have nothing to say: whether it is gone shows when we ask again
            except aiohttp.ClientError as error:
                raise Unreachable(action, str(error) or type(error).__name__) from error
        if self._clock.monotonic() - opened < SHORT_STREAM:
            await self.wait()  # something keeps ending our streams at once: don't ask in a circle
        else:
            self._backoff.reset()

    def _read(self, line: bytes, action: str) -> list[Event[T]]:
        told = msgspec.json.decode(line, type=_Line)
        match told.type:
            case "BOOKMARK":
                self.position = msgspec.json.decode(told.object, type=_Bookmark).metadata.resource_version
                return []
            case "ERROR":
                raise api_error(action, 0, bytes(told.object))
        item = self._decoder.decode(told.object)
        self.position = item.metadata.resource_version
        return self._deleted(item) if told.type == "DELETED" else self._changed(item)

    def _changed(self, item: T) -> list[Event[T]]:
        """Tell a state once; another uid under the same name means that the old object was deleted meanwhile."""
        meta = item.metadata
        key, state = (meta.namespace, meta.name), (meta.uid, meta.resource_version)
        before = self._told.get(key)
        if before == state:
            return []
        self._told[key] = state
        if before is not None and before[0] != meta.uid:
            return [Deleted(meta.namespace, meta.name, before[0]), Changed(item)]
        return [Changed(item)]

    def _deleted(self, item: T) -> list[Event[T]]:
        meta = item.metadata
        known = self._told.pop((meta.namespace, meta.name), None)
        return [Deleted(meta.namespace, meta.name, meta.uid, item)] if known is not None else []


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length, which aiohttp's own reader doesn't give."""
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            parts.append(line)
            complete = b"".join(parts)
            parts.clear()
            if complete:
                yield complete
        if rest:
            parts.append(rest)


def _too_large_version(error: KubeError) -> bool:
    """Whether the server's history is shorter than what we saw: it was restored from a backup."""
    return isinstance(error, ApiError) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
