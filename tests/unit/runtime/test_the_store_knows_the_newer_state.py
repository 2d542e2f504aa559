"""A Store holds what the watch and our own writes tell, in whichever order, and ends at the truth."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.kube import EVERYTHING, Access, Changed, Client, Deleted, Metadata, Resource, WatchOptions
from starling.kube.watch import _Watch
from starling.runtime.informer import _Lent
from starling.runtime.store import Change, Key, Store

THINGS = Resource("example.dev", "v1", "Thing", "things", namespaced=True)


class Thing(msgspec.Struct, frozen=True):
    metadata: Metadata


def thing(name: str, uid: str, version: int) -> Thing:
    """One state of one object."""
    return Thing(Metadata(name, "ns", uid, str(version)))


async def nowhere() -> Access:
    """Nothing here is sent."""
    raise AssertionError


class Told:
    """A store, the watch's own rules before it, and what a listener was told. Mutable."""

    def __init__(self) -> None:
        self.store = Store[Thing]()
        self.heard: dict[Key, Thing] = {}
        self._newest: dict[Key, int] = {}
        self._watch = _Watch[Thing](
            Client(nowhere), THINGS, Thing, EVERYTHING, WatchOptions(), memory=_Lent(self.store)
        )

    def watch(self, item: Thing, *, deleted: bool = False) -> None:
        """A line of the stream arrives."""
        for event in self._watch._deleted(item) if deleted else self._watch._changed(item):
            match event:
                case Changed(object=seen):
                    self.listen(self.store.see(seen))
                case Deleted():
                    self.listen(self.store.lose(event))

    def learn(self, item: Thing) -> None:
        """A write is answered."""
        self.listen(self.store.learn(item))

    def go_back(self) -> None:
        """The server is restored from a backup."""
        self.store.doubt()
        self._newest.clear()

    def listen(self, changes: list[Change[Thing]]) -> None:
        for before, after in changes:
            either = after or before
            assert either is not None
            key = Key(either.metadata.namespace, either.metadata.name)
            assert self.heard.get(key) == before
            if after is None:
                del self.heard[key]
                continue
            assert before is None or before.metadata.uid == after.metadata.uid
            version = int(after.metadata.resource_version)
            assert version > self._newest.get(key, 0)
            self._newest[key], self.heard[key] = version, after


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Thing, bool]]:
    """What truly happened, in order: states, and deletions with the state that they ended at."""
    alive: dict[str, str] = {}
    history = []
    for version in range(1, draw(st.integers(1, 14)) + 1):
        name = draw(st.sampled_from("ab"))
        deleted = name in alive and draw(st.booleans())
        uid = alive.setdefault(name, f"uid-{version}")
        if deleted:
            del alive[name]
        history.append((thing(name, uid, version), deleted))
    return history


@given(history=histories(), data=st.data())
def test_whatever_the_order_it_ends_at_the_truth(history: list[tuple[Thing, bool]], data: st.DataObject) -> None:
    """Answers to our writes come before the watch tells the same or after, some twice; what was told is what is held.

    No state is told twice or after a newer one, and one object taking another's name is told as two.
    """
    told = Told()
    answers = [item for item, deleted in history for _ in range(0 if deleted else data.draw(st.integers(0, 2)))]
    left = list(history)
    while left or answers:
        if left and (not answers or data.draw(st.booleans())):
            item, deleted = left.pop(0)
            told.watch(item, deleted=deleted)
        else:
            told.learn(answers.pop(data.draw(st.integers(0, len(answers) - 1))))
        assert told.heard == told.store.items
    assert told.store.items == dict(truth(history))


def truth(history: list[tuple[Thing, bool]]) -> Iterator[tuple[Key, Thing]]:
    """What is there in the end."""
    last = {item.metadata.name: (item, deleted) for item, deleted in history}
    return ((Key("ns", name), item) for name, (item, deleted) in last.items() if not deleted)


@given(history=histories())
def test_an_answer_is_known_at_once(history: list[tuple[Thing, bool]]) -> None:
    """Before the watch says anything; and when it does, nobody is told again."""
    told = Told()
    last = history[-1][0]
    told.learn(last)
    assert told.store.items == {Key("ns", last.metadata.name): last}
    before = told.heard.copy()
    told.watch(last)
    assert told.heard == before


def test_a_history_that_went_back_is_believed() -> None:
    """After a restore, an older version is what there is now; the same version may mean another state."""
    told = Told()
    told.watch(thing("a", "uid", 20))
    told.watch(thing("b", "uid", 21))
    told.go_back()
    told.watch(thing("a", "uid", 7))
    same = thing("b", "uid", 21)
    told.watch(same)
    told.store.caught_up(22)
    assert told.store.items[Key("ns", "a")].metadata.resource_version == "7"
    assert told.store.items[Key("ns", "b")] is same
    told.learn(thing("a", "uid", 6))
    assert told.store.items[Key("ns", "a")].metadata.resource_version == "7"


@pytest.mark.parametrize(("key", "text"), [(Key("ns", "a"), "ns/a"), (Key("", "a"), "a")], ids=["namespaced", "not"])
def test_a_key_reads_as_kubernetes_writes_it(key: Key, text: str) -> None:
    """Namespace and name, or the name alone."""
    assert str(key) == text
