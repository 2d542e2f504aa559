"""Objects of one kind by key, and which state of one is the newer when two tell of it."""

from typing import Generic, NamedTuple, TypeVar

from starling.kube import Deleted, Named

__all__ = ["Change", "Key", "Store", "key_of"]

T = TypeVar("T", bound=Named)


class Key(NamedTuple):
    """Which object of a kind is meant; an object that is in no namespace has an empty one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


Change = tuple[T | None, T | None]


class Store(Generic[T]):
    """Objects by key, with the rules of which state is the newer. Mutable.

    Two tell it of states: the watch, in order, and our own writes' answers, which may be ahead of the watch or behind.
    `_told` is how far the watch has come, so that an answer for what it knows to be gone is recognised.
    """

    def __init__(self) -> None:
        self.items: dict[Key, T] = {}
        self.vanished: set[Key] = set()  # what the watch is about to tell as deleted
        self._told = 0
        self._doubted: set[Key] = set()

    def state(self, key: Key) -> tuple[str, str] | None:
        """Uid and resourceVersion of an object; a version that is doubted is none."""
        held = self.items.get(key)
        if held is None:
            return None
        return held.metadata.uid, "" if key in self._doubted else held.metadata.resource_version

    def learn(self, item: T) -> list[Change[T]]:
        """Keep the answer to a write of our own, unless the watch has been past it."""
        held = self.items.get(key_of(item))
        if (held is None or held.metadata.uid != item.metadata.uid) and _version(item) <= self._told:
            return []
        return self._keep(item)

    def see(self, item: T) -> list[Change[T]]:
        """Keep what the watch tells, unless we know better."""
        self._told = max(self._told, _version(item))
        return self._keep(item)

    def lose(self, event: Deleted[T]) -> list[Change[T]]:
        """Drop what the watch has forgotten; where it tells that another took the name, `see` follows and knows."""
        key = Key(event.namespace, event.name)
        if event.object is not None:
            self._told = max(self._told, _version(event.object))
        held, vanished = self.items.get(key), key in self.vanished
        self.vanished.discard(key)
        if not vanished or held is None or held.metadata.uid != event.uid:
            return []
        del self.items[key]
        return [(held, None)]

    def doubt(self) -> None:
        """The server's history went back: versions that we hold may come again and mean something else."""
        self._doubted = set(self.items)
        self._told = 0

    def caught_up(self, version: int) -> None:
        """A listing is in, that version's."""
        self._told = max(self._told, version)
        self._doubted.clear()

    def _keep(self, item: T) -> list[Change[T]]:
        key = key_of(item)
        held = self.items.get(key)
        if held is not None and key not in self._doubted and _version(item) <= _version(held):
            return []
        self._doubted.discard(key)
        self.items[key] = item
        if held is not None and held.metadata.uid != item.metadata.uid:
            return [(held, None), (None, item)]
        return [(held, item)]


def key_of(item: Named) -> Key:
    """The key of an object."""
    return Key(item.metadata.namespace, item.metadata.name)


def _version(item: Named) -> int:
    """The resourceVersion as a number: Kubernetes promises an order, and an API server always had one."""
    return int(item.metadata.resource_version)
