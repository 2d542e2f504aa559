"""A unit's status becomes its Sync's and is read back the same; conditions say what people need to know."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.api.v1alpha1 import SyncStatus
from starling.controllers.sync_status import About, bare_revision, marked_revision, sync_status, unit_status
from starling.controllers.writing import says_the_same
from starling.engine import Drift, Operation, Phase, Problem, Readiness, UnitStatus
from starling.errors import InputError
from starling.objects import ObjectKey

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
KEY = ObjectKey("apps", "Deployment", "web", "front")
ABOUT = About(generation=3, target="t1:a")

words = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=20)
names = st.text(min_size=1, max_size=20).filter(lambda text: "\x00" not in text and _is_utf8(text))
keys = st.builds(ObjectKey, words, words, words, names)
reasons = st.sampled_from(["Unreachable", "Invalid", "Complains", "InvalidManifest"])
moments = st.datetimes(timezones=st.just(UTC))
drifts = st.lists(
    st.builds(Drift, keys, st.lists(words, max_size=3).map(tuple), words, words), max_size=5
).map(tuple)  # fmt: skip
operations = st.builds(
    Operation,
    digest=words,
    revision=words,
    phase=st.sampled_from(Phase),
    wave=st.none() | st.integers(-9, 9),
    started_at=moments,
    finished_at=st.none() | moments,
    hooks_done=st.lists(words, max_size=3).map(tuple),
    message=words,
)
statuses = st.builds(
    UnitStatus,
    revision=words,
    applied_revision=words,
    readiness=st.sampled_from(Readiness),
    objects=st.dictionaries(st.sampled_from(Readiness), st.integers(1, 99)),
    problems=st.lists(st.builds(Problem, reasons, words, st.none() | keys, words), max_size=5).map(tuple),
    inventory=st.dictionaries(keys, words),
    baseline=words,
    operation=st.none() | operations,
    drift=drifts,
    contended=drifts,
    shared=drifts,
)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@given(statuses)
def test_what_is_written_is_read_back(status: UnitStatus) -> None:
    """All that an engine needs to carry on comes back from the bytes of the status; only its message is made anew."""
    written = sync_status(status, SyncStatus(), ABOUT, NOW)
    read = msgspec.json.decode(msgspec.json.encode(written), type=SyncStatus)
    assert unit_status(read) == status
    assert says_the_same(sync_status(unit_status(read), read, ABOUT, NOW + timedelta(days=1)), read)


def operated(phase: Phase = Phase.SUCCEEDED) -> Operation:
    """An operation that has come so far."""
    return Operation(digest="d", revision="main@sha1:a key", phase=phase, started_at=NOW)


def unit(readiness: Readiness, *problems: Problem, phase: Phase = Phase.SUCCEEDED, message: str = "") -> UnitStatus:
    """A unit that stands so."""
    said = message or (problems[0].message if problems else "")
    return UnitStatus(
        applied_revision="main@sha1:a key", readiness=readiness, problems=problems, operation=operated(phase),
        message=said,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "conditions"),
    [
        pytest.param(unit(Readiness.CURRENT), {"Ready": ("True", "applied main@sha1:a")}, id="well"),
        pytest.param(unit(Readiness.CURRENT, message="suspended"), {"Ready": ("True", "suspended")}, id="held"),
        pytest.param(
            unit(Readiness.IN_PROGRESS, phase=Phase.RUNNING, message="waits"),
            {"Ready": ("False", "waits"), "Reconciling": ("True", "waits")},
            id="on its way",
        ),
        pytest.param(
            unit(Readiness.FAILED, Problem("Unreachable", "git is silent")),
            {"Ready": ("False", "git is silent"), "Reconciling": ("True", "git is silent")},
            id="what may pass",
        ),
        pytest.param(
            unit(Readiness.FAILED, Problem("InvalidManifest", "no kind", hint="add it")),
            {"Ready": ("False", "no kind; add it"), "Stalled": ("True", "no kind; add it")},
            id="what may not",
        ),
        pytest.param(
            unit(Readiness.FAILED, Problem("Unreachable", "silent"), Problem("Invalid", "no")),
            {"Ready": ("False", "silent"), "Stalled": ("True", "silent")},
            id="both",
        ),
        pytest.param(
            unit(Readiness.FAILED, message="not ready after 300 s"),
            {"Ready": ("False", "not ready after 300 s"), "Stalled": ("True", "not ready after 300 s")},
            id="too late",
        ),
    ],
)
def test_conditions_say_how_it_stands(status: UnitStatus, conditions: dict[str, tuple[str, str]]) -> None:
    """Ready, with Reconciling for what may pass and Stalled for what only a change can mend."""
    told = sync_status(status, SyncStatus(), ABOUT, NOW).conditions
    assert {each.type: (each.status, each.message) for each in told} == conditions
    assert {each.observed_generation for each in told} == {3}


def test_contention_is_a_condition_while_it_lasts() -> None:
    """Contended names who takes what, keeps its time, and goes when it is over."""
    fought = msgspec.structs.replace(unit(Readiness.CURRENT), contended=(Drift(KEY, ("spec.replicas",), "hpa", "t"),))
    first = sync_status(fought, SyncStatus(), ABOUT, NOW)
    later = sync_status(fought, first, ABOUT, NOW + timedelta(hours=1))
    contended = {each.type: each for each in later.conditions}["Contended"]
    assert "spec.replicas, by hpa" in contended.message
    assert contended.last_transition_time == NOW.replace(microsecond=0)
    over = sync_status(unit(Readiness.CURRENT), later, ABOUT, NOW)
    assert [each.type for each in over.conditions] == ["Ready"]


def test_what_the_engine_does_not_know_stands_first() -> None:
    """A version that can't be had makes it not ready, though all objects are."""
    problem = Problem("Unreachable", "v1 stays")
    about = About(generation=-1, target="t1:old", problem=problem)
    told = sync_status(unit(Readiness.CURRENT), SyncStatus(), about, NOW)
    assert told.problems[0].message == "v1 stays"
    assert [(each.type, each.status) for each in told.conditions] == [("Ready", "False"), ("Reconciling", "True")]
    assert told.conditions[0].observed_generation == 0
    assert told.observed_generation == -1


def test_what_is_too_long_is_cut() -> None:
    """Texts and lists stay within what the kind's schema takes."""
    drift = Drift(KEY, tuple("f" * 600 for _ in range(99)), "m" * 200, "t")
    status = UnitStatus(
        problems=(Problem("R" * 200, "m" * 9999, KEY, "h" * 9999),) * 40,
        drift=(drift,) * 40,
        operation=msgspec.structs.replace(operated(), message="m" * 9999),
    )
    told = sync_status(status, SyncStatus(), ABOUT, NOW)
    assert (len(told.problems), len(told.drift), len(told.drift[0].fields)) == (20, 20, 64)
    assert len(told.problems[0].message) == len(told.problems[0].hint) == 2048
    assert told.operation is not None
    assert len(told.operation.message) == 2048
    assert max(map(len, told.drift[0].fields)) == 512


def test_a_record_that_someone_changed_is_refused() -> None:
    """Lines that name no object are an error that says so."""
    with pytest.raises(InputError, match="names no object"):
        unit_status(SyncStatus(inventory=("what is this",)))


@given(words, words)
def test_revisions_are_marked_and_bare_again(revision: str, key: str) -> None:
    """People read the revision without the mark, and two renders of one revision are told apart."""
    assert bare_revision(marked_revision(revision, key)) == revision == bare_revision(revision)
    assert marked_revision(revision, key) != marked_revision(revision, key + "x")
