"""List and watch as one endless iterator: every change arrives, once, whatever happens to the connection.

    async with aclosing(watch(client, resource, Deployment)) as events:
        async for event in events:
            match event:
                case Changed(object=deployment): ...
                case Deleted(namespace=namespace, name=name): ...
                case Synced(): ...                # all that existed has arrived
                case Interrupted(error=error): ...  # the server is away; what is known may be out of date
                case Resumed(): ...               # it is back, and what happened meanwhile follows
                case Unread(): ...                # an object can't be decoded; others go on

A listing is compared with what was told before: what has vanished is told as Deleted, what is new or different as
Changed, what is the same isn't told again. A stream that ends is resumed where it ended; one that the server can't
resume (410) begins with a new listing. Bookmarks keep the place to resume from fresh. Who keeps what it is told anyway
lends its Memory, and nothing is kept twice.

An object in a state that can't be decoded, as anyone who may write it can make it, stays for the consumer as it was
last told. That is logged and told as Unread, once a state, and holds up nothing else.
"""

import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

import aiohttp
import msgspec

from starling.aio import Backoff
from starling.kube.client import EVERYTHING, PAGE_SIZE, Client
from starling.kube.errors import (
    BadRequest,
    Closed,
    ConfigError,
    Forbidden,
    Gone,
    KubeError,
    NotServed,
    Unauthorized,
    Unreachable,
    Untrusted,
    api_error,
)
from starling.kube.resources import HasMetadata, Named, Resource, Selection, Unread, decode, decode_object
from starling.kube.waits import Waits

__all__ = [
    "Changed",
    "Deleted",
    "Event",
    "Interrupted",
    "Memory",
    "Resumed",
    "Synced",
    "Unread",
    "WatchOptions",
    "watch",
]

LOG = logging.getLogger(__name__)

T = TypeVar("T", bound=Named)

SHORT_STREAM = 1.0
HOPELESS = (Forbidden, Unauthorized, NotServed, BadRequest, Untrusted, ConfigError)
"""What trying again doesn't mend, as a rule."""


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """An object is there, in a state that wasn't told before."""

    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """An object is gone; its last state is known only if the server told it with the deletion, and it can be read."""

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


Event = Changed[T] | Deleted[T] | Synced | Interrupted | Resumed | Unread


class Memory(Protocol):
    """What the consumer of a watch knows: one that learns by the events themselves need do nothing in the last two."""

    def known(self) -> Iterable[tuple[str, str]]:
        """Namespace and name of every object it takes to be there."""
        ...

    def state(self, namespace: str, name: str) -> tuple[str, str] | None:
        """Uid and resourceVersion of an object as it knows it."""
        ...

    def learn(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        """This state is about to be told."""
        ...

    def forget(self, namespace: str, name: str) -> None:
        """This object's deletion is about to be told."""
        ...


class WatchOptions(msgspec.Struct, frozen=True):
    """In seconds: a stream's life and silence, the waits between tries, a server's start-up. And objects per page."""

    stream_life: float = 300.0
    silence: float = 150.0
    first_wait: float = 0.1
    longest_wait: float = 30.0
    start_up: float = 5.0
    page_size: int = PAGE_SIZE


async def watch(
    client: Client,
    resource: Resource,
    into: type[T],
    selection: Selection = EVERYTHING,
    options: WatchOptions | None = None,
    *,
    memory: Memory | None = None,
) -> AsyncGenerator[Event[T], None]:
    """Tell every object selected and every change to one, until the client is closed.

    What trying again can't mend (Forbidden, NotServed and the like) is raised, unless we were in sync before or the
    time for starting up isn't over: a server that starts refuses for a moment what it will allow.
    """
    state = _Watch(client, resource, into, selection, options or WatchOptions(), memory=memory or _Told())
    while True:
        try:
            if not state.position:
                async with aclosing(state.listing()) as events:
                    async for event in events:
                        yield event
            async with aclosing(state.stream()) as events:
                async for event in events:
                    yield event
        except Closed:
            raise
        except Gone as error:
            state.position = ""
            await state.waits.after(error)
        except KubeError as error:
            if isinstance(error, HOPELESS) and not state.may_recover():
                raise
            if error.history_went_back:
                state.position = ""
            yield state.interrupt(error)
            await state.waits.after(error)


class _Line(msgspec.Struct):
    """One line of a watch stream; the object is decoded only when its type is known."""

    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    class Metadata(msgspec.Struct, rename="camel"):
        resource_version: str

    metadata: Metadata


class _Told:
    """The memory of a watch whose consumer lends none: two plain strings an object, half the weight of tuples."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}

    def known(self) -> Iterable[tuple[str, str]]:
        return (_pair(key) for key in self._states)

    def state(self, namespace: str, name: str) -> tuple[str, str] | None:
        state = self._states.get(f"{namespace}/{name}")
        return None if state is None else _pair(state)

    def learn(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        self._states[f"{namespace}/{name}"] = f"{uid}/{resource_version}"

    def forget(self, namespace: str, name: str) -> None:
        self._states.pop(f"{namespace}/{name}", None)


class _Watch(Generic[T]):
    """Where one watch stands. Mutable: `_memory` is what the consumer knows, `position` where the stream resumes.

    `_unread` has the resourceVersion of each object that can't be read, so that it is told once.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        into: type[T],
        selection: Selection,
        options: WatchOptions,
        *,
        memory: Memory,
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
        self._began = self._clock.monotonic()
        self.waits = Waits(client.transport, Backoff(options.first_wait, options.longest_wait))
        self._decoder = msgspec.json.Decoder(into)
        self._memory = memory
        self._unread: dict[tuple[str, str], str] = {}

    def interrupt(self, error: KubeError) -> Interrupted:
        """Tell that the connection is lost."""
        self._interrupted = True
        return Interrupted(error)

    def may_recover(self) -> bool:
        """Whether a refusal may be that of a server which is only starting."""
        return self.synced or self._clock.monotonic() - self._began < self.options.start_up

    def resume(self) -> list[Event[T]]:
        """Tell that the connection is back, if it was lost."""
        lost, self._interrupted = self._interrupted, False
        return [Resumed()] if lost else []

    async def listing(self) -> AsyncGenerator[Event[T], None]:
        """What differs between all that exists now and what was told."""
        unseen = {*self._memory.known(), *self._unread}
        version = ""
        async for page in self.client.once().pages(
            self.resource, self.into, self.selection, page_size=self.options.page_size
        ):
            version = page.resource_version
            for event in self.resume():
                yield event
            for item in page.items:
                unseen.discard((item.metadata.namespace, item.metadata.name))
                for event in self._changed(item):
                    yield event
            for unread in page.unread:
                unseen.discard((unread.metadata.namespace, unread.metadata.name))
                for event in self._skipped(unread):
                    yield event
        for namespace, name in unseen:
            self._unread.pop((namespace, name), None)
            if state := self._memory.state(namespace, name):
                self._memory.forget(namespace, name)
                yield Deleted(namespace, name, state[0])
        self.position = version
        self.synced = True
        yield Synced(version)

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
        try:
            async with self.client.stream(path, action, query, silence=self.options.silence) as response:
                for event in self.resume():
                    yield event
                async for line in _lines(response.content):
                    for event in self._read(line, action):
                        yield event
        except TimeoutError:
            pass  # a silent server may just have nothing to say: whether it is gone shows when we ask again
        except aiohttp.ClientError as error:
            raise Unreachable(action, str(error) or type(error).__name__) from error
        finally:
            if lasted := self._clock.monotonic() - opened >= SHORT_STREAM:
                self.waits.reset()
        if not lasted:
            await self.waits.after()  # something keeps ending our streams at once: don't ask in a circle

    def _read(self, line: bytes, action: str) -> list[Event[T]]:
        told = decode(_LINE, line, action)
        match told.type:
            case "BOOKMARK":
                self.position = decode(_BOOKMARK, told.object, action).metadata.resource_version
                return []
            case "ERROR":
                raise api_error(action, 0, bytes(told.object))
        item = decode_object(self._decoder, told.object, action)
        self.position = item.metadata.resource_version
        if told.type == "DELETED":
            return self._deleted(item)
        return self._skipped(item) if isinstance(item, Unread) else self._changed(item)

    def _changed(self, item: T) -> list[Event[T]]:
        """Tell a state once; another uid under the same name means that the old object was deleted meanwhile."""
        meta = item.metadata
        if self._unread:
            self._unread.pop((meta.namespace, meta.name), None)
        before = self._memory.state(meta.namespace, meta.name)
        if before == (meta.uid, meta.resource_version):
            return []
        self._memory.learn(meta.namespace, meta.name, meta.uid, meta.resource_version)
        if before is not None and before[0] != meta.uid:
            return [Deleted(meta.namespace, meta.name, before[0]), Changed(item)]
        return [Changed(item)]

    def _skipped(self, unread: Unread) -> list[Event[T]]:
        """Tell once that a state can't be read; the object stays as it was told, unless another has its name."""
        meta = unread.metadata
        if self._unread.get((meta.namespace, meta.name)) == meta.resource_version:
            return []
        self._unread[meta.namespace, meta.name] = meta.resource_version
        LOG.warning("%s %s can't be read, and others go on without it: %s", self.resource, unread, unread.cause)
        before = self._memory.state(meta.namespace, meta.name)
        if before is None or before[0] == meta.uid:
            return [unread]
        self._memory.forget(meta.namespace, meta.name)
        return [Deleted(meta.namespace, meta.name, before[0]), unread]

    def _deleted(self, item: T | Unread) -> list[Event[T]]:
        meta: HasMetadata = item.metadata
        self._unread.pop((meta.namespace, meta.name), None)
        if self._memory.state(meta.namespace, meta.name) is None:
            return []
        self._memory.forget(meta.namespace, meta.name)
        return [Deleted(meta.namespace, meta.name, meta.uid, None if isinstance(item, Unread) else item)]


_LINE = msgspec.json.Decoder(_Line)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


def _pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition("/")
    return first, second


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
