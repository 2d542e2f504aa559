"""What all that is rolled out has in common: policy, facts, record, Events, and the gates that are asked.

A controller finds out where its clusters are to go, an `Aim`; `Rollouts.decide` has the pure decision made that is in
`fleet.rollout`, and `recorded` puts it into the status, which is written before anything moves.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import PLATFORM_NAMESPACE, Condition, Module, RolloutPolicy, SyncGroup, conditions
from starling.api.orders import ORDER, Order, parse_order
from starling.api.v1alpha1 import Rollout, RolloutStatus
from starling.controllers.gates import Answer, Gates, Question
from starling.controllers.revisions import Known, Revisions
from starling.controllers.writing import CONFIRM
from starling.errors import InputError, StarlingError
from starling.fleet import Course, Decision, Facts, Member, decide, superseded
from starling.runtime import Informer, Key, ObjectReference, Recorder, key_of

__all__ = ["Aim", "Rolled", "Rollouts", "explained", "order_of", "recorded", "tell", "troubled"]

TOLD: Final = ("Succeeded", "Degraded", "Waiting", "Baking", "Failed", "RollingBack", "RolledBack")
"""Phases that an Event tells of."""

LONGEST_CAUSE: Final = 512

Rolled = Module | SyncGroup
R = TypeVar("R", bound=Known)
S = TypeVar("S", bound=RolloutStatus)


@dataclass(frozen=True, slots=True)
class Aim:
    """Where clusters are to go, and how, if that is known; `problem` is what someone should see to.

    `source_revision` is the version last seen; one that comes to the same, or has to wait, is no target of its own.
    """

    target: str
    revision: str
    source_revision: str
    policy: Rollout | None
    problem: StarlingError | None = None


class Rollouts:
    """Decides for objects of one kind. Mutable: what gates have answered."""

    def __init__(self, gates: Gates, policies: Informer[RolloutPolicy], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._gates = gates
        self._policies = policies
        self._clock = clock

    def policy_of(self, obj: Rolled) -> Rollout:
        """The policy that an object names, or has itself, or the default."""
        namespace, named = obj.metadata.namespace, obj.spec.policy_ref
        if named is None:
            return obj.spec.rollout or Rollout()
        found = self._policies.get(Key(namespace, named.name))
        if found is None:
            raise InputError(
                f"there is no RolloutPolicy {namespace}/{named.name}; nothing moves",
                hint="create it, or name another in policyRef",
            )
        return found.spec

    async def aim(
        self, obj: Rolled, members: Sequence[Member], history: Revisions[R], wanted: Callable[[], Awaitable[R]]
    ) -> Aim:
        """Where clusters are to go; if that can't be found out, where they were to go before, and nobody moves."""
        status, policy = obj.status, None
        try:
            policy = self.policy_of(obj)
            made = await wanted()
            if made.target == status.target:
                await history.ensure(obj, made)
                return Aim(status.target, status.revision, made.revision, policy)
            if not superseded(policy, _facts(obj, status.target, frozenset(), members), members):
                return Aim(status.target, status.revision, status.source_revision, policy)
            await history.ensure(obj, made)
        except StarlingError as error:
            paused = msgspec.structs.replace(policy, paused=True) if policy is not None else None
            return Aim(status.target, status.revision, status.source_revision, paused, error)
        known = history.get(obj, made.target) or made
        return Aim(made.target, known.revision, made.revision, policy)

    def decide(
        self,
        obj: Rolled,
        aim: Aim,
        members: Sequence[Member],
        *,
        policy: Rollout,
        known: Iterable[str],
        unmakeable: Callable[[Decision], dict[str, InputError]],
        again: Callable[[], None],
    ) -> tuple[Aim, Decision]:
        """What may be done; clusters whose entry can't be made are left as they are, and told of.

        `known` are the targets of which is known what they stand for; `again` is called when a gate has answered.
        """
        held: dict[str, InputError] = {}
        facts = _facts(obj, aim.target, frozenset(known), members)
        while True:
            able = [replace(each, mode="Cordoned") if each.name in held else each for each in members]
            decision = decide(policy, facts, able, self._clock.now())
            wrong = unmakeable(decision)
            if wrong.keys() - held.keys():
                held |= wrong
                continue
            answer = self._answer(obj, aim, policy, decision.gate, again) if decision.gate else None
            if answer is not None and answer.passed and decision.gate not in facts.passed:
                facts = replace(facts, passed=facts.passed | {decision.gate})
                continue
            if answer is not None:
                waits = min(answer.retry_after, decision.recheck_after or answer.retry_after)
                decision = replace(decision, message=f"{decision.message}: {answer.message}", recheck_after=waits)
            problem = aim.problem or next(iter(held.values()), None)
            return replace(aim, problem=problem), decision

    def forget(self, key: Key) -> None:
        """Drop what was asked for an object that is gone."""
        self._gates.forget(key)

    def _answer(self, obj: Rolled, aim: Aim, policy: Rollout, stage: str, again: Callable[[], None]) -> Answer | None:
        gate = next((each.gate for each in policy.stages if each.name == stage), None)
        if gate is None:
            return None
        meta, kind = obj.metadata, type(obj).declaration.kind
        question = Question(kind, meta.namespace, meta.name, stage, aim.target, aim.revision)
        return self._gates.ask(key_of(obj), question, gate, again)


def called(obj: Rolled) -> str:
    """What commands call it."""
    meta = obj.metadata
    name = meta.name if isinstance(obj, Module) else f"{type(obj).declaration.singular}/{meta.name}"
    return name if meta.namespace == PLATFORM_NAMESPACE else f"{name} -n {meta.namespace}"


def order_of(obj: Rolled) -> Order | None:
    """What someone told it to do; what can't be read was never told."""
    try:
        return parse_order(obj.metadata.annotations.get(ORDER, ""))
    except InputError:
        return None


def _facts(obj: Rolled, target: str, known: frozenset[str], members: Sequence[Member]) -> Facts:
    status, meta, order = obj.status, obj.metadata, order_of(obj)
    named = {status.last_good, status.rollback_to, order.to if order is not None else ""}
    return Facts(
        target=target,
        called=called(obj),
        previous=status.target,
        course=Course(**{each.name: getattr(status, each.name) for each in fields(Course)}),
        admission=status.admission,
        admitted=status.admitted,
        confirmed=meta.annotations.get(CONFIRM, ""),
        salt=f"{meta.uid}/{meta.generation}",
        suspended=obj.spec.suspend,
        asked=order,
        forgotten=frozenset(named | {each.entry or "" for each in members}) - known,
    )


def recorded(before: S, aim: Aim, decision: Decision, generation: int, now: datetime) -> S:
    """The status with what was decided."""
    told: tuple[Condition, ...]
    if aim.problem is not None:
        told = conditions.failed(before.conditions, generation, now, aim.problem)
    elif decision.phase in ("Failed", "RolledBack"):
        told = conditions.stalled(before.conditions, generation, now, decision.message, decision.phase)
    elif decision.phase == "Succeeded":
        told = conditions.ready(before.conditions, generation, now, decision.message, decision.phase)
    else:
        told = conditions.reconciling(before.conditions, generation, now, decision.message, decision.phase)
    course = {each.name: getattr(decision.course, each.name) for each in fields(Course)}
    return msgspec.structs.replace(
        before,
        observed_generation=generation,
        conditions=told,
        target=aim.target,
        revision=aim.revision,
        source_revision=aim.source_revision,
        target_since=now.replace(microsecond=0) if aim.target != before.target else before.target_since,
        phase=decision.phase,
        admission=decision.admission,
        admitted=decision.admitted,
        summary=decision.summary,
        **course,
    )


async def explained(before: RolloutStatus, after: S, cause: Callable[[str], Awaitable[str]]) -> S:
    """The status with why its target failed, if that is news; `cause` gives what a cluster says of it."""
    failure = after.failures[-1] if after.failures else None
    if failure is None or failure in before.failures or not failure.clusters:
        return after
    said = " ".join((await cause(failure.clusters[0])).split())[:LONGEST_CAUSE]
    return msgspec.structs.replace(
        after, failures=(*after.failures[:-1], msgspec.structs.replace(failure, message=said))
    )


def troubled(before: S, problem: StarlingError, generation: int, now: datetime) -> S:
    """All as it was, with what is wrong: without a policy nothing can be decided."""
    told = conditions.failed(before.conditions, generation, now, problem)
    return msgspec.structs.replace(before, observed_generation=generation, conditions=told)


def tell(recorder: Recorder, obj: Rolled, before: RolloutStatus, after: RolloutStatus) -> None:
    """Events for each step that a rollout has made."""
    about = ObjectReference.of(obj)
    for reason, message, warning in (*_of_the_way(obj, before, after), *_of_clusters(before, after)):
        recorder.event(about, reason, message, warning=warning)
    told = {each.message for each in before.conditions}
    for each in after.conditions:
        if each.type == "Stalled" and each.reason not in ("Failed", "RolledBack") and each.message not in told:
            recorder.event(about, each.reason, each.message, warning=True)
    if after.phase != before.phase and after.phase in TOLD:
        message = next((each.message for each in after.conditions if each.type == "Ready"), after.phase)
        recorder.event(about, after.phase, message, warning=after.phase in ("Degraded", "Failed", "RollingBack"))


def _of_the_way(obj: Rolled, before: RolloutStatus, after: RolloutStatus) -> Iterator[tuple[str, str, bool]]:
    if after.target != before.target:
        skipped = before.target not in ("", before.ended, before.failed_target)
        instead = f", in place of {before.revision}, which wasn't through" if skipped else ""
        yield "NewTarget", f"{after.revision} is to be rolled out{instead}", False
    if after.order != before.order and (order := order_of(obj)) is not None:
        yield _of_an_order(order, before, after)
    for each in after.approvals:
        if each not in before.approvals and each.gate:
            yield "GatePassed", f"the gate of stage {each.stage} let {after.revision} pass", False
    same = after.target == before.target
    if same and after.stage != before.stage and before.stage and before.stage_started is not None:
        yield "StageDone", f"stage {before.stage} is done with {after.revision}", False
    if after.stage_started is not None and after.stage_started != before.stage_started:
        yield "StageStarted", f"stage {after.stage} starts with {after.revision}", False


def _of_an_order(order: Order, before: RolloutStatus, after: RolloutStatus) -> tuple[str, str, bool]:
    who = order.by or "someone"
    match order.verb:
        case "approve" if len(after.approvals) > len(before.approvals) or after.target != before.target:
            return "Approved", f"{who} approved stage {order.stage} for {after.revision}", False
        case "retry" if after.retried_at != before.retried_at:
            return "Retried", f"{who} had {after.revision} tried again", False
        case "undo" if after.rollback_to == order.to and after.failed_target == order.target:
            return "Undone", f"{who} had {after.revision} undone", False
        case _:
            return "OrderRefused", f"{who} told it to {order.verb}, which makes no sense now", True


def _of_clusters(before: RolloutStatus, after: RolloutStatus) -> Iterator[tuple[str, str, bool]]:
    known = {(each.cluster, each.target) for each in before.admitted}
    new = [each for each in after.admitted if (each.cluster, each.target) not in known and not each.restore]
    for what, some in (
        (f"may move to {after.revision}", [each for each in new if each.target == after.target]),
        ("get what was good last", [each for each in new if each.target != after.target and not each.leave]),
        ("are left", [each for each in new if each.leave]),
    ):
        if names := [each.cluster for each in some]:
            more = f" and {len(names) - 10} more" if len(names) > 10 else ""
            yield "Admitted", f"{', '.join(sorted(names)[:10])}{more} {what}", False
