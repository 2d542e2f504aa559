"""Orders to a rollout: what may be ordered, by whom it is, and what came of it."""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

import msgspec

from starling.api.orders import ORDER, Order, parse_order
from starling.api.v1alpha1 import Rollout, RolloutFailure, RolloutStatus
from starling.cli import console
from starling.cli.fleet import MANAGER
from starling.cli.rollouts import SHORTEST_PREFIX, Past, Which, is_revision, states
from starling.cli.standings import Rolled, plural, version_of_revision
from starling.errors import InputError, OutOfTime, StarlingError
from starling.kube import Client, Conflict, Interrupted

__all__ = ["approval", "give", "is_obeyed", "retrial", "short_target", "undoing", "waiting_stage"]

REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
SHORT_TARGET: Final = 12


def short_target(target: str) -> str:
    """A target, as long as it takes to tell it from others."""
    scheme, colon, digest = target.rpartition(":")
    return f"{scheme}{colon}{digest[:SHORT_TARGET]}"


def waiting_stage(status: RolloutStatus, policy: Rollout) -> str:
    """The stage that only waits for someone to approve it; empty: none does."""
    over = status.target in ("", status.ended, status.failed_target)
    stage = next((each for each in policy.stages if each.name == status.stage), None)
    if over or stage is None or stage.approval != "Manual" or status.stage_started is not None:
        return ""
    return "" if is_approved(status, stage.name) else stage.name


def is_approved(status: RolloutStatus, stage: str) -> bool:
    """Whether someone has approved a stage."""
    return any(each.stage == stage and not each.gate for each in status.approvals)


def approval(which: Which, rolled: Rolled, policy: Rollout, stage: str) -> Order:
    """The order that a stage may start; with none named, the one that waits for that."""
    status = rolled.status
    look = f"starling rollout status {which.argument} says where it stands"
    if status.target in ("", status.ended, status.failed_target):
        raise InputError(f"nothing of {which} waits for approval: it is {status.phase}", hint=look)
    manual = [each.name for each in policy.stages if each.approval == "Manual"]
    chosen = stage or waiting_stage(status, policy)
    if not chosen:
        more = f"; a stage can be approved before its turn, by name: {', '.join(manual)}" if manual else ""
        raise InputError(f"nothing of {which} waits for approval", hint=look + more)
    if chosen not in manual:
        there = f"those that are: {', '.join(manual)}" if manual else "its policy has none"
        raise InputError(f"{which} has no stage {chosen} that is to be approved", hint=there)
    if said := next((each for each in status.approvals if each.stage == chosen and not each.gate), None):
        raise InputError(f"stage {chosen} of {which} is approved already, by {said.by}", hint=look)
    return Order(id="", verb="approve", target=status.target, stage=chosen)


def retrial(which: Which, rolled: Rolled) -> Order:
    """The order to try a target again that failed."""
    status = rolled.status
    if status.target and status.failed_target == status.target:
        return Order(id="", verb="retry", target=status.target)
    look = f"starling rollout status {which.argument} says where it stands"
    if failed := status.summary.failed:
        raise InputError(
            f"{which} didn't stop, though {plural(failed, 'cluster')} failed",
            hint=f"a cluster goes on trying by itself; {look}",
        )
    raise InputError(f"nothing of {which} has failed", hint=look)


def undoing(
    which: Which, rolled: Rolled, history: Sequence[Past], to: str = "", *, force: bool = False
) -> tuple[Order, Past]:
    """The order to go back from the target, and to what: the last good one, or the one before that didn't fail.

    All clusters go there at once, past stages and approvals: what is known to have failed is refused, unless forced.
    """
    status = rolled.status
    shows = f"starling rollout history {which.argument} shows what there is"
    if not status.target:
        raise InputError(f"{which} has no target to go back from", hint=shows)
    past = _chosen(which, status, history, to, shows) if to else _before(which, status, history, shows)
    if status.failed_target == status.target and status.rollback_to == past.target:
        raise InputError(f"{which} went back to {described(past)} already", hint="--to goes to another one; " + shows)
    if (failure := _failure(status, past)) is not None and not force:
        where = f" in stage {failure.stage}" * bool(failure.stage)
        why = f": {failure.message}" * bool(failure.message)
        raise InputError(
            f"{which}: {described(past)} failed{where} when it was rolled out{why}",
            hint=f"--force goes back to it all the same, on all clusters; {shows}",
        )
    return Order(id="", verb="undo", target=status.target, to=past.target), past


def _failure(status: RolloutStatus, past: Past) -> RolloutFailure | None:
    """That it failed, by itself, the last time it was tried."""
    return next((each for each in status.failures if each.target == past.target and not each.by), None)


def _before(which: Which, status: RolloutStatus, history: Sequence[Past], shows: str) -> Past:
    by_target = {each.target: each for each in history}
    if status.last_good and status.last_good != status.target:
        if (good := by_target.get(status.last_good)) is not None:
            return good
        raise InputError(
            f"what the last good target of {which} stood for isn't known any more",
            hint=f"--to NUMBER picks another one; {shows}",
        )
    now = by_target.get(status.target)
    before = [each for each in history if now is not None and each.number < now.number]
    earlier = [each for each in before if _failure(status, each) is None]
    if not earlier:
        raise InputError(f"{which} has no revision before this one", hint=f"--to NUMBER picks another one; {shows}")
    return earlier[0]  # history begins with the newest


def _chosen(which: Which, status: RolloutStatus, history: Sequence[Past], to: str, shows: str) -> Past:
    named = [each for each in history if to == str(each.number)] or [each for each in history if _is(each, to)]
    others = [each for each in named if each.target != status.target]
    match others:
        case [one]:
            return one
        case []:
            what = "is what it is to be at now" if named else "isn't in its history"
            raise InputError(f"{which}: {to} {what}", hint=shows)
        case _:
            numbers = ", ".join(str(each.number) for each in others)
            raise InputError(f"{which}: {to} may be any of {numbers}", hint=f"say which by its number; {shows}")


def _is(past: Past, wanted: str) -> bool:
    digest = past.target.rpartition(":")[2]
    begins = len(wanted) >= SHORTEST_PREFIX and (past.target.startswith(wanted) or digest.startswith(wanted))
    return begins or is_revision(past.revision, wanted)


def described(past: Past) -> str:
    """A target that was one, for people."""
    return f"{version_of_revision(past.revision)} (number {past.number}, {short_target(past.target)})"


def is_obeyed(order: Order, status: RolloutStatus) -> bool:
    """Whether a status that names the order shows what it asked for: one that can't be carried out is only noted."""
    match order.verb:
        case "approve":
            return is_approved(status, order.stage)
        case "retry":
            return status.failed_target != order.target
        case "undo":
            return status.failed_target == order.target and order.to in (status.rollback_to, status.last_good)


async def give(client: Client, which: Which, rolled: Rolled, order: Order, within: float) -> Rolled | None:
    """Give an order as who we are, and the state in which it is carried out; None if that isn't waited for."""
    order = msgspec.structs.replace(order, id=str(uuid.uuid4()), by=await whoami(client))
    meta = rolled.metadata
    waiting = _order_on(rolled)
    if waiting is not None and waiting.id != rolled.status.order and waiting.target == rolled.status.target:
        console.note(f"in place of an order that nobody has carried out: {waiting.verb}, of {waiting.by}")
    ref = type(rolled).declaration.resource.ref(meta.name, meta.namespace)
    patch = {"metadata": {"uid": meta.uid, "annotations": {ORDER: order.encode()}}}
    try:
        await client.merge_patch(ref, patch, manager=MANAGER)
    except Conflict as error:
        raise StarlingError(f"{which} isn't what it was: {error.message}", hint="the same command again") from error
    if not within:
        return None
    try:
        async with asyncio.timeout(within):
            return await _carried_out(client, which, order)
    except TimeoutError:
        raise OutOfTime(
            f"nobody carried out the order to {order.verb} {which} within {within:g} s",
            hint="is `starling controller` running? The order stands, and will be carried out once it is",
        ) from None


async def _carried_out(client: Client, which: Which, order: Order) -> Rolled:
    """The state in which it is; StarlingError if the target is another, or if another order came in its way."""
    look = f"starling rollout status {which.argument} says where it stands"
    async with aclosing(states(client, which)) as seen:
        async for state in seen:
            if isinstance(state, Interrupted):
                continue
            if state.status.target != order.target:
                raise StarlingError(
                    f"{which} has another target meanwhile, {version_of_revision(state.status.revision)} "
                    f"({short_target(state.status.target)}), for which nothing was ordered",
                    hint=f"{look}; the same command again is about that one",
                )
            if state.status.order == order.id:
                return state
            there = _order_on(state)
            if there is None or there.id != order.id:
                what = f"another one took its place: {there.verb}, of {there.by}" if there else "someone took it away"
                raise StarlingError(f"the order to {order.verb} {which} may not have been seen: {what}", hint=look)
    raise AssertionError("a watch doesn't end")


def _order_on(rolled: Rolled) -> Order | None:
    """The order that someone gave last; None if there is none that can be read."""
    try:
        return parse_order(rolled.metadata.annotations.get(ORDER, ""))
    except InputError:
        return None


class _User(msgspec.Struct):
    username: str


class _UserStatus(msgspec.Struct):
    user_info: _User = msgspec.field(name="userInfo")


class _Review(msgspec.Struct):
    status: _UserStatus


async def whoami(client: Client) -> str:
    """Who we are, by the name that the API server has for us."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return (await client.raw("POST", REVIEWS, body=body)).decode(_Review).status.user_info.username
