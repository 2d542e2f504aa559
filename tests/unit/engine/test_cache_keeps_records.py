"""What a cluster's cache makes of events and answers, in whichever order they come."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from starling.engine import Change, Readiness, Record
from starling.engine.cache import ClusterCache, KindMemory, Seen
from starling.engine.health import Health
from starling.engine.ownership import LABEL, mark
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS

UNIT, OTHER = "home/shop/Sync.web@edge", "home/shop/Sync.other@edge"
KEY = ObjectKey("", "ConfigMap", "shop", "web")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def cache(told: list[Change] | None = None) -> ClusterCache:
    """An empty one, in which everything is Current."""
    made = ClusterCache(LABEL, lambda _object, _now: Health(Readiness.CURRENT, ""), lambda: NOW)
    if told is not None:
        made.listen(told.append)
    return made


def state(
    version: int, fields: Sequence[str] = ("x",), *, owner: str = UNIT, uid: str = "1", time: str = "t", by: str = ""
) -> Seen:
    """A state of the object: which fields are in our entry, and whose the object is (empty: nobody's)."""
    content: dict[str, Any] = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}}
    metadata = (mark(content, owner, KEY) if owner else content)["metadata"]
    entries = [_entry("starling", "Apply", fields, time)] if fields else []
    if by:
        entries.append(_entry(by, "Update", ("x",), time))
    document = {**metadata, "uid": uid, "resourceVersion": str(version), "managedFields": entries}
    return msgspec.json.decode(msgspec.json.encode({"metadata": document}), type=Seen)


def _entry(manager: str, operation: str, fields: Sequence[str], time: str) -> dict[str, Any]:
    owned: dict[str, Any] = {"f:data": {f"f:{name}": {} for name in fields}}
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, "fieldsV1": owned}


def applied(held: ClusterCache, seen: Seen, unit: str = UNIT, manifest: str = "m1") -> Record:
    """An apply of ours with its answer."""
    held.writing(KEY)
    record = held.applied(CONFIG_MAPS, seen, unit, manifest)
    held.written(KEY)
    return record


def see(held: ClusterCache, seen: Seen) -> Record | None:
    """An event of a watch."""
    return held.see(CONFIG_MAPS, seen)


def only(held: ClusterCache) -> Record:
    """The one record."""
    record = held.get(KEY)
    assert record is not None
    return record


def snapshot(record: Record) -> tuple[Any, ...]:
    """All of a record, for comparing later."""
    return msgspec.structs.astuple(record)


# Stale events


@given(versions=st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_the_newest_state_stays(versions: list[int]) -> None:
    """In whichever order states of an object are told, the newest is what is known."""
    held = cache()
    for version in versions:
        see(held, state(version, [f"v{version}"]))
    newest = cache()
    see(newest, state(max(versions), [f"v{max(versions)}"]))
    assert snapshot(only(held)) == snapshot(only(newest))


def test_an_object_made_anew_is_another() -> None:
    """Its versions aren't compared with the old one's, and a late word of the old one's end doesn't touch it."""
    held = cache()
    applied(held, state(9, uid="1"))
    applied(held, state(10, uid="2"))
    held.gone(KEY, "1")
    assert only(held).uid == "2"
    held.gone(KEY, "2")
    assert not only(held).live


def test_a_late_word_of_an_object_that_went() -> None:
    """States from before its end don't bring it back; an object that was made since does."""
    held = cache()
    applied(held, state(10))
    held.gone(KEY, "1", 12)
    see(held, state(11))
    assert not only(held).live
    see(held, state(13, uid="2"))
    assert only(held).uid == "2"


def test_a_restored_cluster_counts_anew() -> None:
    """Of the kind that was listed again, whatever comes next is news."""
    held = cache()
    applied(held, state(100))
    held.forget_versions("apps", "Deployment")
    see(held, state(7, ["z"]))
    assert not only(held).drifted
    held.forget_versions("", "ConfigMap")
    see(held, state(7, ["z"]))
    assert (only(held).version, only(held).drifted) == (7, True)


# Our own writes


class _Story:
    """Applies of ours, each with other fields, as (version, fields); told by events and by answers."""

    def __init__(self, applies: int) -> None:
        self.states = [state(10 + number, ["x", f"y{number}"], time=f"t{number}") for number in range(applies)]


@given(data=st.data(), applies=st.integers(1, 5))
def test_our_own_writes_never_look_like_drift(data: st.DataObject, applies: int) -> None:
    """Events of our applies come before, between and after their answers: none is told as drift."""
    told: list[Change] = []
    held, story = cache(told), _Story(applies)
    events = list(story.states)
    for number, answer in enumerate(story.states):
        held.writing(KEY)
        ready = [event for event in events if event in story.states[: number + 1]]
        for event in ready[: data.draw(st.integers(0, len(ready)), label="events before the answer")]:
            see(held, event)
            events.remove(event)
        held.applied(CONFIG_MAPS, answer, UNIT, f"m{number}")
        held.written(KEY)
        assert not only(held).drifted
    for event in events:
        see(held, event)
        assert not only(held).drifted
    assert not any(change.drifted for change in told)
    assert only(held).manifest == f"m{applies - 1}"
    assert held.evidence(KEY) == ()


@given(first=st.booleans())
def test_what_others_take_is_drift_in_either_order(first: bool) -> None:
    """Also where their write is seen before the answer to ours; and who it was is known."""
    told: list[Change] = []
    held = cache(told)
    ours, theirs = state(10), state(11, ["z"], by="someone")
    held.writing(KEY)
    if first:
        see(held, theirs)
    held.applied(CONFIG_MAPS, ours, UNIT, "m1")
    held.written(KEY)
    if not first:
        see(held, theirs)
    assert only(held).drifted
    assert told[-1].drifted
    assert [entry.manager for entry in held.evidence(KEY)] == ["starling", "someone"]


def test_a_write_that_failed_hides_no_drift() -> None:
    """What was told while it was under way is told again."""
    told: list[Change] = []
    held = cache(told)
    applied(held, state(10))
    held.writing(KEY)
    see(held, state(11, ["z"], by="someone"))
    assert not told[-1].drifted
    held.written(KEY)
    assert told[-1].drifted
    assert held.evidence(KEY)


# Evidence


def test_evidence_goes_when_all_is_well_again() -> None:
    """After a repair, by us or told by an event, or when the object is gone."""
    held = cache()
    applied(held, state(8))
    assert held.evidence(KEY) == ()
    see(held, state(9, ["z"], by="someone"))
    assert held.evidence(KEY)
    see(held, state(10))
    assert held.evidence(KEY) == ()
    see(held, state(11, ["z"], by="someone"))
    assert held.evidence(KEY)
    applied(held, state(12, time="t2"))
    assert held.evidence(KEY) == ()
    see(held, state(13, ["z"], by="someone"))
    held.gone(KEY, "1")
    assert held.evidence(KEY) == ()
    assert only(held).drifted
    see(held, state(14, ["z"], by="someone"))
    assert held.evidence(KEY)
    held.drop(KEY)
    assert held.evidence(KEY) == ()


def test_an_entry_that_is_gone_is_drift() -> None:
    """Another manager's beside it doesn't stand for ours."""
    held = cache()
    applied(held, state(10))
    see(held, state(11, (), by="someone"))
    assert only(held).drifted
    assert [entry.manager for entry in held.evidence(KEY)] == ["someone"]


def test_what_is_doubted_is_not_known_to_be_right() -> None:
    """Which isn't drift: nobody is to be accused."""
    held = cache()
    applied(held, state(10))
    held.doubt([None, KEY])
    assert (only(held).expected, only(held).drifted) == (0, False)


# Owners


@given(owners=st.lists(st.sampled_from([UNIT, OTHER]), min_size=1, max_size=8))
def test_an_object_has_one_owner(owners: list[str]) -> None:
    """Whoever applied it last; the one before is told that it has it no longer."""
    told: list[Change] = []
    held = cache(told)
    for version, owner in enumerate(owners, 1):
        before = held.get(KEY).owner if held.get(KEY) is not None else owner  # type: ignore[union-attr] # just asked
        told.clear()
        applied(held, state(version, owner=owner), owner)
        assert {change.owner for change in told} == {before, owner}
    last = owners[-1]
    assert set(held.owned(last)) == {KEY}
    assert held.owned(OTHER if last == UNIT else UNIT) == {}
    assert len(held) == 1


def test_another_owner_by_an_event() -> None:
    """Where another process moved it, we learn by the watch; of its manifest nothing is known."""
    held = cache()
    applied(held, state(10))
    see(held, state(11, owner=OTHER))
    assert (only(held).owner, only(held).manifest, only(held).drifted) == (OTHER, "", False)
    assert held.owned(UNIT) == {}


def test_lost_marks_are_drift_and_no_change_of_owner() -> None:
    """Whoever takes our marks off an object that is known doesn't make it nobody's."""
    held = cache()
    applied(held, state(10, ["x", "label"]))
    see(held, state(11, ["x"], owner=""))
    assert only(held).owner == UNIT
    assert only(held).drifted


def test_marks_come_and_go() -> None:
    """An apply of ours brings them back, and so may an event; what has none when its unit lets go is forgotten."""
    held = cache()
    applied(held, state(10))
    see(held, state(11, owner=""))
    assert not only(held).marked
    applied(held, state(12))
    assert only(held).marked
    see(held, state(13, owner=""))
    see(held, state(14))
    assert only(held).marked
    see(held, state(15, owner=""))
    held.disown(KEY)
    assert held.get(KEY) is None


def test_a_strangers_object_in_its_place_is_not_ours() -> None:
    """Ours is gone, whatever bears its name."""
    held = cache()
    applied(held, state(10))
    assert see(held, state(11, owner="", uid="2")) is None
    assert (only(held).live, only(held).drifted) == (False, True)


def test_what_nobody_owns_is_not_kept() -> None:
    """Neither label nor annotation is enough; not even for an object that is wanted and missing."""
    held = cache()
    assert see(held, state(1, owner="")) is None
    held.expect(UNIT, {KEY: "m1"}, as_left=False)
    assert see(held, state(1, owner="")) is None
    assert not only(held).live


# What was written down


def test_as_left_trusts_what_is_there() -> None:
    """With the baseline right every entry is as it should be; without it nothing is known, which isn't drift."""
    for left in (True, False):
        held = cache()
        see(held, state(10))
        held.expect(UNIT, {KEY: "m1"}, as_left=left)
        assert only(held).manifest == "m1"
        assert bool(only(held).expected) == left
        assert not only(held).drifted
        see(held, state(11, ["z"]))
        assert only(held).drifted == left


def test_what_another_has_by_now_is_left_to_it() -> None:
    """A record that still names it says nothing of how the other left it."""
    held = cache()
    see(held, state(10, owner=OTHER))
    held.expect(UNIT, {KEY: "m1"}, as_left=True)
    assert (only(held).owner, only(held).manifest, only(held).expected) == (OTHER, "", 0)


def test_what_is_wanted_and_missing_has_a_record() -> None:
    """It is the unit's, and isn't there."""
    held = cache()
    held.expect(UNIT, {KEY: "m1"}, as_left=False)
    assert (only(held).live, only(held).readiness) == (False, Readiness.MISSING)
    assert list(KindMemory(held, CONFIG_MAPS).known()) == []


# Going


def test_an_object_that_is_gone_stays_wanted() -> None:
    """It is missing, which is drift; one that nobody wants is forgotten."""
    told: list[Change] = []
    held = cache(told)
    applied(held, state(10))
    held.gone(KEY, "1")
    assert (only(held).readiness, only(held).drifted, told[-1].drifted) == (Readiness.MISSING, True, True)
    held.disown(KEY)
    assert held.get(KEY) is None
    assert held.owned(UNIT) == {}

    applied(held, state(11))
    held.disown(KEY)
    assert only(held).live
    see(held, state(12, ["z"]))
    assert not only(held).drifted
    held.gone(KEY, "1")
    assert len(held) == 0


def test_the_watchs_memory_is_the_cache() -> None:
    """It knows just what is there, in the state that was told or answered last."""
    held = cache()
    memory = KindMemory(held, CONFIG_MAPS)
    assert memory.state("shop", "web") is None
    applied(held, state(10))
    assert memory.state("shop", "web") == ("1", "10")
    assert list(memory.known()) == [("shop", "web")]
    held.gone(KEY, "1")
    assert memory.state("shop", "web") is None
