"""How a rollout goes, for people and as JSON: its stages, those of its clusters that matter, what it was at before."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from starling.api import Cluster, seconds
from starling.api.v1alpha1 import LabelSelector, Rollout, RolloutStage, RolloutStatus
from starling.cli.orders import short_target, waiting_stage
from starling.cli.rollouts import Past, Which, line_of, message_of
from starling.cli.standings import Rolled, Standing, aligned, counted, in_text, since, version_of_revision
from starling.cli.status import MOST_TOLD, conditions_in_text, fact_lines, one_line, some_lines
from starling.fleet import selects
from starling.fleet.stages import REST

__all__ = [
    "Seen",
    "StageSeen",
    "course_document",
    "course_lines",
    "history_documents",
    "history_lines",
    "stages_of",
    "trouble_lines",
    "watch_line",
]

Standings = Sequence[tuple[str, Standing]]


class StageSeen(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A stage, and how far it is by what is recorded."""

    name: str
    state: str
    until: datetime | None = None
    clusters: int = 0
    ok: int = 0
    approved_by: str = ""
    approved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is told of a rollout."""

    which: Which
    rolled: Rolled
    policy: Rollout
    standings: Standings
    history: Sequence[Past]
    clusters: Mapping[str, Cluster]

    @property
    def updating(self) -> list[str]:
        """The clusters that are on their way, or may be."""
        admitted = {each.cluster for each in self.rolled.status.admitted if not (each.leave or each.restore)}
        return sorted(admitted | {name for name, each in self.standings if each.state == "updating"})

    @property
    def failed(self) -> list[tuple[str, Standing]]:
        """The clusters that failed."""
        return [(name, each) for name, each in self.standings if each.state == "failed"]

    def called(self, target: str) -> str:
        """A target, with the version that it was made from if that is known."""
        revision = next((each.revision for each in self.history if each.target == target), "")
        return f"{target} ({version_of_revision(revision)})" if revision else target


def stages_of(seen: Seen) -> list[StageSeen]:
    """The stages in their order, with those clusters last that no stage selects, if there are any."""
    status, policy = seen.rolled.status, seen.policy
    if not policy.stages:
        return []
    where = {name: _stage_of(policy, each.metadata.labels) for name, each in seen.clusters.items()}
    there = [(where[name], each.state) for name, each in seen.standings if name in where]
    stages = list(policy.stages)
    if status.stage == REST or any(name == REST for name, _ in there):
        stages.append(RolloutStage(name=REST, selector=LabelSelector()))
    found = []
    for stage in stages:
        elsewhere = "done" if stage.name in status.stages_done else "to come"
        state = _turn(status, policy, stage) if stage.name == status.stage else elsewhere
        states = [each for name, each in there if name == stage.name]
        found.append(_stage_seen(status, stage, "done" if is_ended(status) else state, states))
    return found


def is_ended(status: RolloutStatus) -> bool:
    """Whether the target has been through all stages."""
    return bool(status.target) and status.ended == status.target


def _stage_of(policy: Rollout, labels: Mapping[str, str]) -> str:
    return next((stage.name for stage in policy.stages if selects(stage.selector, labels)), REST)


def _stage_seen(status: RolloutStatus, stage: RolloutStage, state: str, states: Sequence[str]) -> StageSeen:
    said = next((each for each in status.approvals if each.stage == stage.name and not each.gate), None)
    baked = status.baking_since + timedelta(seconds=seconds(stage.bake)) if status.baking_since is not None else None
    return StageSeen(
        name=stage.name,
        state=state,
        until=baked if state == "baking" else None,
        clusters=len(states),
        ok=states.count("ok"),
        approved_by=said.by if said is not None else "",
        approved_at=said.at if said is not None else None,
    )


def _turn(status: RolloutStatus, policy: Rollout, stage: RolloutStage) -> str:
    """How far the stage is whose turn it is."""
    if status.failed_target == status.target:
        return "stopped"
    if status.baking_since is not None:
        return "baking"
    if status.stage_started is not None:
        return "its turn"
    if waiting_stage(status, policy):
        return "waits for approval"
    passed = any(each.stage == stage.name and each.gate for each in status.approvals)
    return "waits" if stage.gate is None or passed else "waits for its gate"


def course_lines(seen: Seen, now: datetime) -> Iterator[str]:
    """Where a rollout stands, line by line."""
    rolled, status = seen.rolled, seen.rolled.status
    ago = f", for {since(status.target_since, now)}" if status.target_since is not None else ""
    same = " (the same as target)" if status.last_good and status.last_good == status.target else ""
    failed = "target" if status.failed_target == status.target else seen.called(status.failed_target)
    yield str(seen.which)
    yield from fact_lines(
        [
            ("phase", status.phase),
            *conditions_in_text(rolled),
            ("version", version_of_revision(status.revision)),
            ("revision", status.revision),
            ("target", f"{status.target}{ago}" if status.target else ""),
            ("last good", (seen.called(status.last_good) if not same else status.last_good) + same),
            ("failed", failed if status.failed_target else ""),
            ("returns to", seen.called(status.rollback_to)),
            ("paused", " and ".join(_paused(seen))),
            (
                "clusters",
                f"{len(seen.standings)}: {counted(each for _, each in seen.standings)}" * bool(seen.standings),
            ),
        ]
    )
    yield from _stage_lines(stages_of(seen), now, counts="BACK" if status.rollback_to else "OK")
    yield from trouble_lines(seen)


def _paused(seen: Seen) -> Iterator[str]:
    if seen.rolled.spec.suspend:
        yield "by spec.suspend"
    if seen.policy.paused:
        yield "by its policy"


def _stage_lines(stages: Sequence[StageSeen], now: datetime, *, counts: str) -> Iterator[str]:
    """The stages as a table; `counts`: what the clusters are that are counted."""
    if not stages:
        return
    rows = [("STAGE", "STATE", counts, "APPROVED")]
    for each in stages:
        until = f" until {each.until:%Y-%m-%d %H:%M:%S} UTC" if each.until is not None else ""
        approved = f"by {each.approved_by}, {since(each.approved_at, now)} ago" if each.approved_by else ""
        rows.append((each.name, each.state + until, f"{each.ok}/{each.clusters}", approved))
    yield ""
    yield from aligned(rows).splitlines()


def trouble_lines(seen: Seen) -> Iterator[str]:
    """The clusters that are on their way, and those that failed with what they say."""
    if names := seen.updating:
        yield ""
        yield from some_lines(["updating: " + ", ".join(names[:MOST_TOLD])], len(names) - MOST_TOLD)
    if failed := seen.failed:
        rows = [(name, in_text(each), one_line(each.message)) for name, each in failed]
        yield ""
        yield from some_lines(aligned(rows[:MOST_TOLD]).splitlines(), len(rows) - MOST_TOLD)


def course_document(seen: Seen) -> dict[str, Any]:
    """Where a rollout stands, as JSON."""
    rolled, status = seen.rolled, seen.rolled.status
    return {
        "kind": type(rolled).declaration.kind,
        "namespace": rolled.metadata.namespace,
        "name": rolled.metadata.name,
        "phase": status.phase,
        "message": message_of(rolled),
        "current": status.observed_generation == rolled.metadata.generation,
        "version": version_of_revision(status.revision),
        "revision": status.revision,
        "target": status.target,
        "targetSince": status.target_since,
        "lastGood": status.last_good,
        "failedTarget": status.failed_target,
        "rollbackTo": status.rollback_to,
        "ended": status.ended,
        "paused": list(_paused(seen)),
        "stage": status.stage,
        "stages": stages_of(seen),
        "waitsForApproval": waiting_stage(status, seen.policy),
        "updating": seen.updating,
        "failed": [{"cluster": name, "message": each.message} for name, each in seen.failed],
        "failures": status.failures,
        "summary": {name: getattr(status.summary, name) for name in status.summary.__struct_fields__},
    }


def history_lines(rolled: Rolled, history: Sequence[Past], now: datetime) -> Iterator[str]:
    """The targets that it had, in a table."""
    rows = [("NUMBER", "VERSION", "TARGET", "AGE", "IS")]
    for each in history:
        marks = ", ".join(_marks(rolled.status, each.target))
        version = version_of_revision(each.revision)
        rows.append((str(each.number), version, short_target(each.target), since(each.created, now), marks))
    yield from aligned(rows).splitlines()


def history_documents(rolled: Rolled, history: Sequence[Past]) -> list[dict[str, Any]]:
    """The targets that it had, as JSON."""
    return [
        {
            "number": each.number,
            "version": version_of_revision(each.revision),
            "revision": each.revision,
            "target": each.target,
            "created": each.created,
            "is": list(_marks(rolled.status, each.target)),
        }
        for each in history
    ]


MARKS: Final = (
    ("target", "target"),
    ("last good", "last_good"),
    ("failed", "failed_target"),
    ("goes back to", "rollback_to"),
)


def _marks(status: RolloutStatus, target: str) -> Iterator[str]:
    """What a target is now."""
    yield from (word for word, field in MARKS if getattr(status, field) == target)
    failure = next((each for each in status.failures if each.target == target), None)
    if failure is not None and (failure.by or target != status.failed_target):
        yield f"undone by {failure.by}" if failure.by else "failed"


def watch_line(rolled: Rolled, at: datetime) -> str:
    """Where it stands at a time, for a list of such lines."""
    version = version_of_revision(rolled.status.revision) or "-"
    return f"{at:%H:%M:%S}  {version}  {line_of(rolled)}"
