"""One kind as this process knows it: listed, watched, decoded, and kept by key."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from contextlib import aclosing
from typing import Generic, TypeVar

from starling.kube import (
    EVERYTHING,
    Changed,
    Client,
    Deleted,
    Event,
    Interrupted,
    KubeError,
    Named,
    Resource,
    Resumed,
    Selection,
    Synced,
    Unread,
    WatchOptions,
    watch,
)
from starling.runtime.store import Change, Key, Store

__all__ = ["Informer"]

LOG = logging.getLogger(__name__)

T = TypeVar("T", bound=Named)


class Informer(Generic[T]):
    """What exists of one kind, up to date as long as `run` does. Mutable: it is the only place that keeps it.

    Objects are the fields that `into` names. Runs once; who starts over makes a new one. `unreadable` counts the states
    of objects that couldn't be decoded: those stay as they were last known.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        into: type[T],
        selection: Selection = EVERYTHING,
        options: WatchOptions | None = None,
    ) -> None:
        self.resource = resource
        self.interruptions = 0
        self.unreadable = 0
        self._client = client
        self._into = into
        self._selection = selection
        self._options = options
        self._store = Store[T]()
        self._handlers: list[Callable[[T | None, T | None], None]] = []
        self._when_back: list[Callable[[], None]] = []
        self._synced = asyncio.Event()
        self._trouble: KubeError | None = None

    def get(self, key: Key) -> T | None:
        """One object, if it is there."""
        return self._store.items.get(key)

    def items(self) -> Collection[T]:
        """All of them, in no particular order: a live view, so take a copy to await something on the way."""
        return self._store.items.values()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._store.items)

    def listen(self, handler: Callable[[T | None, T | None], None]) -> None:
        """Have each change told as (before, after), None where it isn't there; begins with what is known already.

        An object that was deleted and made anew meanwhile is told as both.
        """
        self._handlers.append(handler)
        for item in tuple(self.items()):
            self._tell_one(handler, None, item)

    def when_back(self, handler: Callable[[], None]) -> None:
        """Have it told whenever the connection was lost and is back."""
        self._when_back.append(handler)

    async def synced(self) -> None:
        """Wait until all that existed at the start is in."""
        await self._synced.wait()

    @property
    def ready(self) -> bool:
        """Whether all that existed at the start is in."""
        return self._synced.is_set()

    @property
    def trouble(self) -> KubeError | None:
        """Why the connection is lost right now, so that what is known may be out of date; None when it is well."""
        return self._trouble

    def learn(self, item: T) -> None:
        """See the answer to a write of our own at once, instead of when the watch tells it.

        What the watch has been past already, be it changed again or deleted, is ignored.
        """
        self._tell(self._store.learn(item))

    async def run(self) -> None:
        """Follow the kind until cancelled; raises what trying again can't mend, if that is so from the start."""
        lent = _Lent(self._store)
        following = watch(self._client, self.resource, self._into, self._selection, self._options, memory=lent)
        async with aclosing(following) as events:
            async for event in events:
                self._hear(event)

    def _hear(self, event: Event[T]) -> None:
        match event:
            case Changed():
                self._tell(self._store.see(event.object))
            case Deleted():
                self._tell(self._store.lose(event))
            case Unread():
                self.unreadable += 1
            case Interrupted(error=error):
                self.interruptions += 1
                if error.history_went_back:
                    self._store.doubt()
                if self._trouble is None:
                    LOG.warning("%s: what is known may be out of date: %s", self.resource, error)
                self._trouble = error
            case Synced() | Resumed():
                self._well()
                if isinstance(event, Synced):
                    self._store.caught_up(int(event.resource_version))
                    self._synced.set()

    def _well(self) -> None:
        if self._trouble is None:
            return
        LOG.info("%s: followed again", self.resource)
        self._trouble = None
        for handler in self._when_back:
            handler()

    def _tell(self, changes: list[Change[T]]) -> None:
        for before, after in changes:
            for handler in self._handlers:
                self._tell_one(handler, before, after)

    def _tell_one(self, handler: Callable[[T | None, T | None], None], before: T | None, after: T | None) -> None:
        try:
            handler(before, after)
        except Exception:  # a mistake with one object mustn't end the knowledge of all
            LOG.exception("%s: telling of a change, an error that nobody expected", self.resource)


class _Lent(Generic[T]):
    """The store as the watch's memory: nothing is kept twice."""

    def __init__(self, store: Store[T]) -> None:
        self._store = store

    def known(self) -> Iterable[tuple[str, str]]:
        return self._store.items

    def state(self, namespace: str, name: str) -> tuple[str, str] | None:
        return self._store.state(Key(namespace, name))

    def learn(self, namespace: str, name: str, uid: str, resource_version: str) -> None:
        """The event itself teaches."""

    def forget(self, namespace: str, name: str) -> None:
        self._store.vanished.add(Key(namespace, name))
