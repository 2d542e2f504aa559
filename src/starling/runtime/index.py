"""Which objects of a kind belong to which other object: asked for each of these, so never by a walk through all."""

from collections.abc import Callable
from typing import Generic, TypeVar

from starling.kube import Named
from starling.runtime.store import Key, key_of

__all__ = ["Index"]

T = TypeVar("T", bound=Named)


class Index(Generic[T]):
    """Objects by what `belongs` says they belong to, if to anything. Mutable: `change` listens to their informer."""

    def __init__(self, belongs: Callable[[T], Key | None]) -> None:
        self._belongs = belongs
        self._found: dict[Key, set[Key]] = {}

    def of(self, other: Key) -> frozenset[Key]:
        """Those that belong to one."""
        return frozenset(self._found.get(other, ()))

    def change(self, before: T | None, after: T | None) -> None:
        """Hear of an object's change."""
        if before is not None and (was := self._belongs(before)) is not None:
            left = self._found.get(was, set())
            left.discard(key_of(before))
            if not left:
                self._found.pop(was, None)
        if after is not None and (now := self._belongs(after)) is not None:
            self._found.setdefault(now, set()).add(key_of(after))
