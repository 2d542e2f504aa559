"""What runs together: informers first, and once these know the world, controllers and other tasks."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starling.errors import StarlingError
from starling.kube import Named
from starling.runtime.controller import Controller
from starling.runtime.informer import Informer

__all__ = ["Group"]

T = TypeVar("T", bound=Named)


class Group:
    """Informers, controllers and tasks with one life. Mutable until it runs, which it does once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.informers: list[Informer[Any]] = []
        self.controllers: list[Controller] = []
        self._tasks: list[Callable[[], Awaitable[None]]] = []

    def informer(self, informer: Informer[T]) -> Informer[T]:
        """Have it run with the others; all of them are in sync before anything else begins."""
        self.informers.append(informer)
        return informer

    def controller(self, controller: Controller) -> Controller:
        """Have it run once the informers are in sync."""
        self.controllers.append(controller)
        return controller

    def task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have it run once the informers are in sync; it may come to an end by itself."""
        self._tasks.append(work)

    @property
    def ready(self) -> bool:
        """Whether all informers are in sync."""
        return all(informer.ready for informer in self.informers)

    def _try_again(self) -> None:
        """What failed for want of the API server needn't wait any longer."""
        for controller in self.controllers:
            controller.try_again()

    async def run(self) -> None:
        """Run until cancelled, or until one of them raises: then all end, and the error is raised."""
        try:
            async with asyncio.TaskGroup() as group:
                for informer in self.informers:
                    informer.when_back(self._try_again)
                    group.create_task(informer.run())
                for informer in self.informers:
                    await informer.synced()
                for controller in self.controllers:
                    group.create_task(controller.run())
                for work in self._tasks:
                    group.create_task(_awaited(work))
        except BaseExceptionGroup as errors:
            if (error := _only(errors)) is not None:
                raise error from error.__cause__
            raise


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()


def _only(error: BaseException) -> StarlingError | None:
    """The one StarlingError that a group of errors comes down to, if it does."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, StarlingError) else None
