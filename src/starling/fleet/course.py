"""How a target goes through the stages, and where that lets each cluster go now.

    a new target ─► first stage ─► free to start ─► clusters move ─► all there ─► baked ─► next stage … ─► ended
                        approved, gate passed,          │ more failed than may
                        window open                     └─► failed ─► (Rollback) clusters return to the last good one

The way is recorded before anything moves by it, and only a new target, or someone's order, has it begun again. It goes
on as far as there is someone to do something: a stage whose clusters can't be reached is passed, once it is approved,
if a later one has something to do, and they catch up when they are back. Which stages are done is recorded by name, so
that one which is added to the policy meanwhile has its turn.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from starling.api import seconds
from starling.api.v1alpha1 import MOST_FAILED, MOST_FAILURES, RolloutFailure, StageApproval
from starling.fleet.facts import Course, Facts, Member
from starling.fleet.stages import Stage, Staged
from starling.fleet.windows import is_open

__all__ = ["Tally", "advanced", "asks", "begun", "destination", "due", "free", "is_stopped"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How the clusters of one stage stand; `holds` counts places that are taken, or will be again."""

    pending: int = 0
    updating: int = 0
    succeeded: int = 0
    failed: int = 0
    unreachable: int = 0
    held: int = 0
    holds: int = 0

    @property
    def there(self) -> int:
        """How many have the target, well or not."""
        return self.updating + self.succeeded + self.failed


def begun(facts: Facts, staged: Staged, now: datetime) -> Course:
    """The way as it was left, from its start for a new target, and with what people and gates have said since."""
    course = facts.course
    if facts.retargeted:
        course = Course(last_good=course.last_good, ended=course.ended, order=course.order, failures=course.failures)
    course = _obeyed(course, facts, staged, now)
    passed = tuple(
        StageApproval(stage=stage.name, by="gate", at=now, gate=True)
        for stage in staged.stages
        if stage.name in facts.passed and stage.gate is not None and not course.approved(stage.name, gate=True)
    )
    return replace(course, approvals=(*course.approvals, *passed)) if passed else course


def _obeyed(course: Course, facts: Facts, staged: Staged, now: datetime) -> Course:
    """What an order comes to; one for another target is only noted."""
    order = facts.asked
    if order is None or order.id == course.order:
        return course
    course = replace(course, order=order.id)
    if order.target != facts.target:
        return course
    again = replace(course, stage="", stages_done=(), stage_started=None, baking_since=None)
    match order.verb:
        case "approve" if order.stage in {stage.name for stage in staged.stages} and not course.approved(order.stage):
            said = StageApproval(stage=order.stage, by=order.by[:256], at=now)
            return replace(course, approvals=(*course.approvals, said))
        case "retry" if course.failed_target == facts.target:
            highest = max((facts.admission, *(member.admission for member in staged.members)))
            done = _done_before(course, facts, staged)
            return replace(again, stages_done=done, failed_target="", rollback_to="", retried_at=highest)
        case "undo" if order.to and order.to != facts.target and order.to not in facts.forgotten:
            undone = RolloutFailure(target=facts.target, at=now, by=order.by[:256] or "someone")
            return replace(
                again,
                failed_target=facts.target,
                rollback_to=order.to,
                last_good=_good_besides(course, facts, order.to),
                ended="",
                failures=_remembered(course, undone),
            )
        case _:
            return course


def _good_besides(course: Course, facts: Facts, chosen: str) -> str:
    """What is good last once a target is undone for another: that one, unless it is known to have failed."""
    failure = course.failure(chosen)
    if failure is None or failure.by:
        return chosen
    return course.last_good if course.last_good != facts.target else ""


def _remembered(course: Course, failure: RolloutFailure) -> tuple[RolloutFailure, ...]:
    """What is known of failures, with one more; a target is in it once, and the oldest are forgotten."""
    others = (each for each in course.failures if each.target != failure.target)
    return (*others, failure)[-MOST_FAILURES:]


def _done_before(course: Course, facts: Facts, staged: Staged) -> tuple[str, ...]:
    """The stages that stay done when a target is tried again: those before the first with a cluster that isn't well.

    Who is away counts as the policy says: with Wait, as one that isn't.
    """
    waited_for = staged.policy.unreachable == "Wait"
    members = (each for each in staged.members if each.selected and (each.able or (waited_for and not each.reachable)))
    unwell = (staged.numbers[member.name] for member in members if not member.reports(facts.target, "succeeded"))
    first = min(unwell, default=len(staged.stages))
    return tuple(name for name in course.stages_done if staged.number(name) < first)


def advanced(facts: Facts, staged: Staged, tallies: Sequence[Tally], failed: Sequence[str], now: datetime) -> Course:
    """How far it is by what the clusters say; `failed` are the names of those that failed."""
    course, policy = facts.course, staged.policy
    if facts.failed:
        back = course.rollback_to if course.rollback_to not in facts.forgotten else ""
        return replace(course, rollback_to=back or (facts.fallback if policy.on_failure == "Rollback" else ""))
    if not facts.target:
        return course
    counted = list(zip(staged.stages, tallies, strict=True))
    if facts.ended:  # perhaps though more failed than may: they may have come round since
        recovered = all(not tally.pending and _well(tally, stage, failing=False) for stage, tally in counted)
        return _made_good(facts, tallies) if recovered else course
    beyond = [stage for stage, tally in counted if tally.failed > stage.budget]
    if beyond and policy.on_failure != "Continue":
        back = facts.fallback if policy.on_failure == "Rollback" else ""
        failures = _remembered(course, _failure(facts.target, staged, beyond[0], failed, now))
        return replace(course, failed_target=facts.target, rollback_to=back, baking_since=None, failures=failures)
    return _through_stages(facts, staged, tallies, now, failing=bool(beyond))


def _failure(target: str, staged: Staged, stage: Stage, failed: Sequence[str], now: datetime) -> RolloutFailure:
    there = [name for name in failed if staged.numbers[name] == stage.number]
    named = stage.name if len(staged.stages) > 1 else ""
    return RolloutFailure(target=target, at=now, stage=named, clusters=tuple(there[:MOST_FAILED]))


def _through_stages(facts: Facts, staged: Staged, tallies: Sequence[Tally], now: datetime, *, failing: bool) -> Course:
    course = facts.course
    for stage in staged.stages:
        if stage.name in course.stages_done:
            continue
        tally, course = tallies[stage.number], _at(course, stage)
        if tally.pending or tally.holds or (staged.policy.unreachable == "Wait" and tally.unreachable):
            ready = free(replace(facts, course=course), staged, stage, now)
            started = course.stage_started or (now if ready and (tally.pending or tally.holds) else None)
            return replace(course, stage_started=started, baking_since=None)
        if asks(course, stage, tally):
            return course
        if course.stage_started is not None or (stage.bake and tally.there):  # who is there may have come just now
            course = replace(course, baking_since=course.baking_since or now)
            if now - (course.baking_since or now) < stage.bake:
                return course
        if not _well(tally, stage, failing=failing):
            return course
        course = replace(course, stages_done=(*course.stages_done, stage.name))
    if not any(tally.succeeded or tally.failed for tally in tallies):
        return facts.course  # nobody has tried it
    course = facts.course if failing else _made_good(facts, tallies)
    return replace(course, ended=facts.target, stage="", stages_done=(), stage_started=None, baking_since=None)


def _made_good(facts: Facts, tallies: Sequence[Tally]) -> Course:
    """The way with its target as the last good one, if anyone is well with it."""
    course = facts.course
    if not any(tally.succeeded for tally in tallies):
        return course
    others = tuple(each for each in course.failures if each.target != facts.target)
    return replace(course, last_good=facts.target, failures=others)


def asks(course: Course, stage: Stage, tally: Tally) -> bool:
    """Whether a stage that hasn't begun must be let through, be it by people or by its gate: also for who is away."""
    absent = tally.pending + tally.unreachable + tally.held
    return course.stage_started is None and absent > 0 and not _let_through(course, stage)


def _at(course: Course, stage: Stage) -> Course:
    """The way at a stage, which has begun only if it was at it before."""
    if course.stage == stage.name:
        return course
    return replace(course, stage=stage.name, stage_started=None, baking_since=None)


def _well(tally: Tally, stage: Stage, *, failing: bool) -> bool:
    """Whether no more clusters are unwell than may fail; where any number may, all must have come to an end."""
    return tally.updating == 0 if failing else tally.updating + tally.failed <= stage.budget


def is_stopped(facts: Facts, staged: Staged) -> bool:
    """Whether someone wants nothing to move at all."""
    return facts.suspended or staged.policy.paused


def free(facts: Facts, staged: Staged, stage: Stage, now: datetime, *, but_for_gate: bool = False) -> bool:
    """Whether nothing keeps a stage from starting; `but_for_gate`, nothing else."""
    let_through = _let_through(facts.course, stage, but_for_gate=but_for_gate)
    return let_through and not is_stopped(facts, staged) and is_open(staged.policy.windows, now)


def _let_through(course: Course, stage: Stage, *, but_for_gate: bool = False) -> bool:
    approved = not stage.manual or course.approved(stage.name)
    return approved and (stage.gate is None or course.approved(stage.name, gate=True) or but_for_gate)


def destination(facts: Facts, staged: Staged, member: Member, now: datetime, *, may_update: bool) -> str | None:
    """Where a cluster may go now; None: nowhere, so that it stays, or gets to where it is on its way to.

    `may_update`: it is no time at which updates may not start. To return to what was good, and to give a new cluster
    that, it always is.
    """
    if not (member.selected and facts.target) or is_stopped(facts, staged):
        return None
    first = (facts.fallback or None) if member.entry is None else None
    if facts.failed:
        return facts.course.rollback_to or first
    stage = staged.of(member.name).name
    if facts.ended or stage in facts.course.stages_done:
        return facts.target if may_update or (facts.ended and member.entry is None) else first
    turn = stage == facts.course.stage and facts.course.stage_started is not None
    started = turn and due(facts, staged, member, now) <= now
    return facts.target if started and may_update and first is None else first


def due(facts: Facts, staged: Staged, member: Member, now: datetime) -> datetime:
    """When a cluster's turn comes within its stage, by the jitter that is wanted."""
    started, jitter = facts.course.stage_started or now, seconds(staged.policy.jitter)
    if not jitter:
        return started
    lot = hashlib.blake2b(f"{member.name}/{facts.target}".encode(), digest_size=8).digest()
    return started + timedelta(seconds=jitter * int.from_bytes(lot) / 2**64)
