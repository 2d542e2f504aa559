"""What happens again within ten minutes isn't written again, but counted, and that once a minute at most."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.kube import Access, Client
from starling.runtime import ObjectReference, Recorder
from starling.runtime.events import Happening, Ledger, _cut

START = datetime(2026, 1, 1, tzinfo=UTC)
MODULE = ObjectReference("starling.dev/v1alpha1", "Module", "ns", "web", "uid-1", "7")


def happening(reason: str = "Failed", note: str = "why", about: ObjectReference = MODULE) -> Happening:
    """Something that happens in these tests."""
    return Happening(about, reason, note, warning=True, action="Reconcile")


def hear(ledger: Ledger, at: float, what: Happening | None = None) -> float | None:
    """It happens; when it is due, it is written at once."""
    what = what or happening()
    wait = ledger.hear(what, START + timedelta(seconds=at), at)
    record = ledger.get(what.identity)
    if wait == 0 and record is not None:
        ledger.wrote(record, at)
    return wait


def test_the_first_is_written_at_once_and_repetitions_in_their_minute() -> None:
    """A minute after the last write, whenever in between it happened."""
    ledger = Ledger(100)
    assert [hear(ledger, at) for at in (0, 1, 30, 59)] == [0, 59, 30, 1]
    assert hear(ledger, 61) == 0
    assert hear(ledger, 62) == 59
    record = ledger.get(happening().identity)
    assert record is not None
    assert (record.count, record.written_count) == (6, 5)
    assert (record.first, record.last) == (START, START + timedelta(seconds=62))


def test_what_is_still_to_be_written_counts_along() -> None:
    """Nothing more is due until the first write was made."""
    ledger = Ledger(100)
    assert ledger.hear(happening(), START, 0) == 0
    assert ledger.hear(happening(), START, 1) is None


@pytest.mark.parametrize(
    "other",
    [
        happening(reason="Other"),
        happening(note="other"),
        happening(about=ObjectReference("v1", "Pod", "ns", "web", "uid-1")),
        happening(about=ObjectReference("starling.dev/v1alpha1", "Module", "ns", "web", "uid-2")),
    ],
    ids=["reason", "message", "kind", "made anew"],
)
def test_something_else_is_an_event_of_its_own(other: Happening) -> None:
    """Another reason, message or object."""
    ledger = Ledger(100)
    assert hear(ledger, 0) == 0
    assert hear(ledger, 1, other) == 0


def test_another_state_of_the_object_is_the_same_event() -> None:
    """Its resourceVersion changes all the time."""
    ledger = Ledger(100)
    hear(ledger, 0)
    later = ObjectReference("starling.dev/v1alpha1", "Module", "ns", "web", "uid-1", "8")
    assert hear(ledger, 1, happening(about=later)) == 59


def test_after_ten_minutes_it_is_news_again() -> None:
    """Counted from when it last happened; under another name."""
    ledger = Ledger(100)
    hear(ledger, 0)
    hear(ledger, 590)
    first = ledger.get(happening().identity)
    hear(ledger, 1189)
    assert ledger.get(happening().identity) is first
    assert hear(ledger, 1189 + 600) == 0
    assert ledger.get(happening().identity) is not first


@given(limit=st.integers(1, 5), notes=st.lists(st.sampled_from("abcdefgh"), max_size=40))
def test_memory_is_bounded(limit: int, notes: list[str]) -> None:
    """Whatever happens; who was heard longest ago is forgotten first."""
    ledger = Ledger(limit)
    for at, note in enumerate(notes):
        hear(ledger, at, happening(note=note))
        assert len(ledger) <= limit
        assert ledger.get(happening(note=note).identity) is not None


async def nowhere() -> Access:
    """Nothing here is sent."""
    raise AssertionError


def test_too_many_are_dropped_and_counted() -> None:
    """Nobody waits, nothing is raised, and what waits is bounded."""
    recorder = Recorder(Client(nowhere), "starling.dev/test", "me", limit=3)
    for number in range(5):
        recorder.event(MODULE, "Reason", f"message {number}")
    assert (recorder.dropped, recorder.written) == (2, 0)


@given(part=st.text(min_size=1, max_size=8), times=st.integers(1, 400), limit=st.sampled_from([128, 1024]))
def test_texts_fit(part: str, times: int, limit: int) -> None:
    """Bytes are counted, no character is cut in two, and what fits stays as it is."""
    text = part * times
    cut = _cut(text, limit)
    assert len(cut.encode()) <= limit
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1])) or "?" in cut
