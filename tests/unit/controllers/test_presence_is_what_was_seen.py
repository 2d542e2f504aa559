"""Presence keeps what this process has seen of clusters, and tells of changes that matter."""

from datetime import UTC, datetime, timedelta

from starling.controllers.presence import Presence, Seen
from starling.runtime import Key

EDGE = Key("fleet", "edge-7")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_nothing_is_known_at_first() -> None:
    """A process that has just started knows of nobody."""
    assert Presence().get(EDGE) is None


def test_who_is_lost_keeps_what_was_known() -> None:
    """Losing a cluster keeps when it was last seen and what it is; seeing it again drops the reason."""
    presence = Presence()
    presence.seen(EDGE, NOON, uid="u1", kubernetes_version="v1.36.3")
    presence.lost(EDGE, "no route")
    assert presence.get(EDGE) == Seen(
        reachable=False, last_seen=NOON, why="no route", uid="u1", kubernetes_version="v1.36.3"
    )
    presence.seen(EDGE, NOON + timedelta(minutes=1), agent_version="0.1.0")
    assert presence.get(EDGE) == Seen(
        reachable=True,
        last_seen=NOON + timedelta(minutes=1),
        uid="u1",
        kubernetes_version="v1.36.3",
        agent_version="0.1.0",
    )


def test_being_seen_once_more_is_no_news() -> None:
    """Listeners hear of a first sight, a loss, another reason, a return and another version, not of a later time."""
    presence, told = Presence(), list[Key]()
    presence.listen(told.append)
    presence.seen(EDGE, NOON)
    presence.seen(EDGE, NOON + timedelta(minutes=1))
    assert told == [EDGE]
    presence.lost(EDGE, "no route")
    presence.lost(EDGE, "no route")
    presence.lost(EDGE, "its certificate isn't trusted")
    presence.seen(EDGE, NOON, uid="u2")
    presence.seen(EDGE, NOON, uid="u3")
    assert len(told) == 5


def test_forgetting_is_as_if_never_seen() -> None:
    """Who isn't looked for any more isn't known."""
    presence = Presence()
    presence.seen(EDGE, NOON)
    presence.forget(EDGE)
    assert presence.get(EDGE) is None
