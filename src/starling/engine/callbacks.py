"""Who wants to know, or to have a say: the engine's callbacks."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from starling.engine.cache import Change
from starling.engine.errors import Vetoed
from starling.engine.execute import SyncEvent
from starling.engine.tasks import Task
from starling.engine.unit import Operation, Unit, UnitStatus
from starling.errors import StarlingError

__all__ = ["BeforeSync", "Callbacks", "ResourceEvent", "SyncCompleted", "UnitSeen", "Unsubscribe"]

LOG = logging.getLogger(__name__)
T = TypeVar("T")
Unsubscribe = Callable[[], None]
BeforeSync = Callable[[Unit, Sequence[Task]], Sequence[Task] | Awaitable[Sequence[Task] | None] | None]
"""May give a changed list of tasks, or None to leave it as it is; raises to veto. It may be a coroutine function."""


class ResourceEvent(msgspec.Struct, frozen=True):
    """An object that a unit owns on a cluster was updated, or removed."""

    cluster: str
    change: Change


@dataclass(frozen=True, slots=True)
class SyncCompleted:
    """A unit's operation has come to an end, good or bad."""

    unit: Unit
    operation: Operation


@dataclass(frozen=True, slots=True)
class UnitSeen:
    """A unit was looked at, and nothing is to be done for it now. `trouble`: it couldn't be seen, or written down."""

    unit_id: str
    status: UnitStatus
    trouble: StarlingError | None = None


class _Subscribers(Generic[T]):
    """Functions called with one value; one that raises is logged and harms nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._all: list[Callable[[T], Any]] = []

    def add(self, callback: Callable[[T], Any]) -> Unsubscribe:
        """Have it called from now on, until the function given back is."""
        return subscribe(self._all, callback)

    def tell(self, value: T) -> None:
        """Call them all, in the order in which they came."""
        for callback in tuple(self._all):
            try:
                callback(value)
            except Exception:
                LOG.exception("a callback of %s raised", self._name)


class Callbacks:
    """All who have subscribed. Mutable."""

    def __init__(self) -> None:
        self._before_sync: list[BeforeSync] = []
        self.sync_completed = _Subscribers[SyncCompleted]("on_sync_completed")
        self.cluster_cache_initialized = _Subscribers[str]("on_cluster_cache_initialized")
        self.resource_updated = _Subscribers[ResourceEvent]("on_resource_updated")
        self.resource_removed = _Subscribers[ResourceEvent]("on_resource_removed")
        self.sync_event = _Subscribers[SyncEvent]("on_sync_event")
        self.status = _Subscribers[UnitSeen]("on_status")

    def add_before_sync(self, callback: BeforeSync) -> Unsubscribe:
        """Have a say before every sync."""
        return subscribe(self._before_sync, callback)

    async def before_sync(self, unit: Unit, tasks: Sequence[Task]) -> tuple[Task, ...]:
        """The tasks as those who have a say leave them; Vetoed if one of them raises."""
        for callback in tuple(self._before_sync):
            try:
                answer = callback(unit, tasks)
                answer = await answer if inspect.isawaitable(answer) else answer
            except Exception as error:
                hint = error.hint if isinstance(error, StarlingError) else None
                said = str(error) or type(error).__name__
                raise Vetoed(f"the sync of {unit.id} was vetoed: {said}", hint=hint) from error
            tasks = tasks if answer is None else answer
        return tuple(tasks)


def subscribe(to: list[Any], callback: Any) -> Unsubscribe:
    """Add a callback, and give the function that takes it away again; calling that twice is harmless."""
    place = [callback]  # one callback may be there twice: this very subscription is what goes
    to.append(callback)

    def unsubscribe() -> None:
        if place:
            to.remove(place.pop())

    return unsubscribe
