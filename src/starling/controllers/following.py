"""What a lasting exchange with another server is made of: an object followed, steps tried until they work, troubles."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Generic, TypeVar

import msgspec

from starling.aio import Backoff, Clock, first_of
from starling.api import ObjectMeta
from starling.errors import StarlingError
from starling.kube import (
    Client,
    Conflict,
    Event,
    Forbidden,
    Interrupted,
    KubeError,
    Named,
    NotFound,
    Resource,
    Resumed,
    Selection,
    Synced,
)
from starling.runtime import Informer, Key

__all__ = ["About", "Followed", "Step", "Troubles", "identify", "said"]

LOG = logging.getLogger(__name__)

T = TypeVar("T", bound=Named)

_NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


class Troubles:
    """What is wrong with one side right now, by what was tried. Mutable; `changed` is called when `first` changes."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._errors: dict[str, StarlingError] = {}

    @property
    def first(self) -> StarlingError | None:
        """What has been wrong for longest; None: all is well."""
        return next(iter(self._errors.values()), None)

    def set(self, part: str, error: StarlingError | None) -> None:
        """Say how one part went."""
        before = said(self.first)
        if error is None:
            self._errors.pop(part, None)
        else:
            self._errors[part] = error
        if said(self.first) != before:
            self._changed()

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Say how the block goes; a Conflict is only someone else having been faster."""
        try:
            yield
        except Conflict:
            raise
        except StarlingError as error:
            self.set(part, error)
            raise
        self.set(part, None)


def said(error: StarlingError | None) -> str:
    """An error in one line, with the way out."""
    if error is None:
        return ""
    return f"{error.message}; {error.hint}" if error.hint else error.message


class Step:
    """Work that is done when woken, and again after an error. Mutable: whether it is wanted, and how often it failed.

    The work may return seconds after which it wants to be done again anyway.
    """

    def __init__(
        self, name: str, work: Callable[[], Awaitable[float | None]], *, first: float, longest: float, clock: Clock
    ) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._longest = longest
        self._backoff = Backoff(first, longest)
        self._complained = ""
        self._wanted = asyncio.Event()
        self._at_once = asyncio.Event()

    def wake(self, *, at_once: bool = False) -> None:
        """Have it done; after an error when its time has come, or `at_once` where what was wrong may be no more."""
        self._wanted.set()
        if at_once:
            self._at_once.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._at_once.clear()
            try:
                again = await self._work()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                await first_of(self._clock.sleep(self._after(error)), self._at_once.wait())
                self._wanted.set()
            else:
                self._backoff.reset()
                self._complained = ""
                if again is not None:
                    await first_of(self._clock.sleep(again), self._wanted.wait())
                    self._wanted.set()

    def _after(self, error: Exception) -> float:
        wait = self._backoff.next()
        if not isinstance(error, StarlingError):
            LOG.error("%s: an error that nobody expected", self._name, exc_info=error)
            return self._longest
        again, self._complained = said(error) == self._complained, said(error)
        level = logging.DEBUG if again or isinstance(error, Conflict) else logging.WARNING  # once, not every minute
        LOG.log(level, "%s: %s; tried again in %.1f s", self._name, error, wait)
        return max(wait, error.retry_after or 0.0) if isinstance(error, KubeError) else wait


class Followed(Generic[T]):
    """One object on a server, up to date as long as `run` does. Mutable: the informer that follows it.

    `changed` is called with False when it changes, with True when its server is back or first told whether it is there.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        into: type[T],
        key: Key,
        *,
        troubles: Troubles,
        changed: Callable[[bool], None],
        clock: Clock,
        explain: Callable[[StarlingError], StarlingError] = lambda error: error,
    ) -> None:
        self.key = key
        self._client, self._resource, self._into = client, resource, into
        self._troubles, self._changed, self._explain = troubles, changed, explain
        self._clock = clock
        self._informer = self._new()

    @property
    def ready(self) -> bool:
        """Whether it is known if the object is there."""
        return self._informer.ready

    @property
    def object(self) -> T | None:
        """The object as it is known; None if there is none."""
        return self._informer.get(self.key)

    def learn(self, item: T) -> None:
        """See the answer to a write of our own at once."""
        self._informer.learn(item)

    async def read(self) -> None:
        """Ask for it now, without waiting for the watch; that it is gone only the watch can tell."""
        with suppress(NotFound):
            answer = await self._client.once().get(self._resource.ref(self.key.name, self.key.namespace))
            self.learn(answer.decode(self._into))

    async def run(self) -> None:
        """Follow it until cancelled, whatever the server says."""
        backoff = Backoff(1.0, 60.0)
        while True:
            try:
                await self._informer.run()
            except StarlingError as error:
                self._troubles.set(self._part, self._explain(error))
                await self._clock.sleep(backoff.next())
            self._informer = self._new()

    @property
    def _part(self) -> str:
        return f"follow {self._resource}"

    def _new(self) -> Informer[T]:
        selection = Selection(self.key.namespace, fields=f"metadata.name={self.key.name}")
        informer = _Telling(self._client, self._resource, self._into, selection)
        informer.hear = self._hear
        informer.listen(lambda _before, _after: self._changed(False))
        return informer

    def _hear(self, event: Event[T]) -> None:
        match event:
            case Interrupted(error=error):
                self._troubles.set(self._part, self._explain(error))
            case Synced() | Resumed():
                self._troubles.set(self._part, None)
                self._changed(True)


class _Telling(Informer[T]):
    """An informer that tells at once when its connection is lost and back, not only when it is asked."""

    hear: Callable[[Event[T]], None]

    def _hear(self, event: Event[T]) -> None:
        super()._hear(event)
        self.hear(event)


class About(msgspec.Struct, frozen=True):
    """What tells one cluster from another, and what it runs."""

    uid: str = ""
    kubernetes_version: str = ""


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Object(msgspec.Struct):
    metadata: ObjectMeta


async def identify(client: Client) -> About:
    """Which cluster this is; without a uid if we may not know."""
    version = (await client.raw("GET", "/version")).decode(_Version)
    try:
        namespace = (await client.get(_NAMESPACES.ref("kube-system"))).decode(_Object)
    except (Forbidden, NotFound):
        return About("", version.git_version)
    return About(namespace.metadata.uid, version.git_version)
