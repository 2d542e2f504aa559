"""Conditions from how something went: what people read, and kstatus, which reads ours like any other's.

Ready says whether it is as it should be. Reconciling stands beside it while something is under way or will be tried
again, Stalled when only a change of what people wrote can help; otherwise neither is there.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from starling.api.meta import Condition
from starling.errors import InputError, StarlingError

__all__ = ["failed", "ready", "reconciling", "replaced", "stalled"]

MESSAGE_LIMIT = 2048

Conditions = tuple[Condition, ...]
Truth = Literal["True", "False", "Unknown"]


def ready(
    before: Sequence[Condition], generation: int, now: datetime, message: str, reason: str = "Ready"
) -> Conditions:
    """All is as it should be."""
    return _conditions(before, generation, now, [("Ready", "True", reason, message)])


def reconciling(
    before: Sequence[Condition], generation: int, now: datetime, message: str, reason: str = "Progressing"
) -> Conditions:
    """It is on its way, or will be tried again."""
    said: list[tuple[str, Truth, str, str]] = [
        ("Ready", "False", reason, message),
        ("Reconciling", "True", reason, message),
    ]
    return _conditions(before, generation, now, said)


def stalled(
    before: Sequence[Condition], generation: int, now: datetime, message: str, reason: str = "Stalled"
) -> Conditions:
    """Only a change of what people wrote can help."""
    said: list[tuple[str, Truth, str, str]] = [
        ("Ready", "False", reason, message),
        ("Stalled", "True", reason, message),
    ]
    return _conditions(before, generation, now, said)


def failed(before: Sequence[Condition], generation: int, now: datetime, error: StarlingError) -> Conditions:
    """It went wrong: what people wrote is wrong, or it will be tried again."""
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    say = stalled if isinstance(error, InputError) else reconciling
    return say(before, generation, now, message, error.reason)


def replaced(before: Sequence[Condition], condition: Condition) -> Conditions:
    """Those before with one more, or another in the place of the one of its type; its time stays if its status does."""
    others = tuple(each for each in before if each.type != condition.type)
    return (*others, _kept(before, condition))


def _conditions(
    before: Sequence[Condition], generation: int, now: datetime, said: Sequence[tuple[str, Truth, str, str]]
) -> Conditions:
    return tuple(
        _kept(
            before,
            Condition(
                type=kind,
                status=status,
                reason=reason,
                message=message[:MESSAGE_LIMIT],
                last_transition_time=now.replace(microsecond=0),
                observed_generation=generation,
            ),
        )
        for kind, status, reason, message in said
    )


def _kept(before: Sequence[Condition], condition: Condition) -> Condition:
    for known in before:
        if known.type == condition.type and known.status == condition.status:
            return Condition(
                type=condition.type,
                status=condition.status,
                reason=condition.reason,
                message=condition.message,
                last_transition_time=known.last_transition_time,
                observed_generation=condition.observed_generation,
            )
    return condition
