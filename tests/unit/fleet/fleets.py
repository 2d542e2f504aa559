"""Clusters, facts and policies that single decisions are tried with."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from starling.api.orders import Order
from starling.api.v1alpha1 import Admitted, LabelSelector, Rollout, RolloutStage
from starling.fleet import Course, Decision, Facts, Member

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NEW, OLD = "t1:new", "t1:old"
WELL = Member(
    name="a",
    selected=True,
    entry=OLD,
    admission=3,
    reported=OLD,
    state="succeeded",
    acknowledged=True,
    listed=True,
    reachable=True,
    adopted=True,
    mode="Active",
)
THERE = replace(WELL, entry=NEW, reported=NEW)
FAILED = replace(THERE, state="failed")
AWAY = replace(WELL, reachable=False)
LEAVING = replace(WELL, selected=False)
WITHOUT = replace(WELL, entry=None, admission=0, reported="", state="", listed=False)
POLICY = Rollout(max_concurrent=2, timeout="10m")
FACTS = Facts(target=NEW, previous=NEW, course=Course(last_good=OLD), admission=5)
CANARY, EU, BOTH = {"ring": "canary"}, {"region": "eu"}, {"ring": "canary", "region": "eu"}


def fleet(member: Member, number: int, start: str = "a", labels: Mapping[str, str] | None = None) -> list[Member]:
    """Several of a kind, named in order."""
    return [replace(member, name=f"{start}{each:03}", labels=labels or {}) for each in range(number)]


def at(stage: str, *, started: bool = True, baking: timedelta | None = None, **fields: Any) -> Facts:
    """Facts of a rollout that is in a stage, those before it done, and perhaps has been baking for a while."""
    before = ("canary", "eu")
    fields = {"stages_done": {"eu": before[:1], "rest": before}.get(stage, ()), **fields}
    since = NOW - timedelta(hours=1) if started else None
    baking_since = NOW - baking if baking is not None else None
    course = replace(FACTS.course, stage=stage, stage_started=since, baking_since=baking_since, **fields)
    return replace(FACTS, course=course)


def staged(*, canary: Mapping[str, Any] | None = None, eu: Mapping[str, Any] | None = None, **fields: Any) -> Rollout:
    """A policy with the stages canary and eu, and what is said of these, and of all."""
    stages = (
        RolloutStage(name="canary", selector=LabelSelector(match_labels=CANARY), **(canary or {})),
        RolloutStage(name="eu", selector=LabelSelector(match_labels=EU), **(eu or {})),
    )
    return Rollout(stages=stages, **{"max_concurrent": 2, "timeout": "10m", **fields})


def told(facts: Facts, verb: str, **fields: Any) -> Facts:
    """Facts with an order for the target, or another."""
    return replace(facts, asked=Order(**{"id": "1", "verb": verb, "target": NEW, "by": "ann", **fields}))


def admitted(
    *names: str,
    minutes: float = 1,
    admission: int = 3,
    restore: bool = False,
    leave: bool = False,
    target: str = NEW,
    facts: Facts = FACTS,
) -> Facts:
    """Facts with these admitted some minutes ago, by default at the counter that entries have."""
    since = NOW - timedelta(minutes=minutes)
    return replace(
        facts,
        admitted=tuple(
            Admitted(cluster=name, since=since, target=target, admission=admission, restore=restore, leave=leave)
            for name in names
        ),
    )


def recorded(facts: Facts, decision: Decision) -> Facts:
    """What is recorded once a decision is."""
    course, places = decision.course, decision.admitted
    return replace(facts, course=course, admitted=places, admission=decision.admission, previous=facts.target)


def names(decision: Decision) -> list[str]:
    """Who is admitted."""
    return [each.cluster for each in decision.admitted]


def ways(decision: Decision) -> dict[str, str]:
    """Where those that are admitted go."""
    return {each.cluster: each.target for each in decision.admitted}


def leaving(decision: Decision) -> list[str]:
    """Who is admitted to lose its entry."""
    return [each.cluster for each in decision.admitted if each.leave]
