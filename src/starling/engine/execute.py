"""Doing what a plan says: concurrently, bounded, up to the first wait that isn't met.

`execute` never waits for a cluster to become ready: it returns what is waited for, and whoever called it plans anew
when something has happened.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import msgspec

from starling.engine.apply import apply_object, create_object, explained
from starling.engine.order import Tier
from starling.engine.prune import SPARED, orphan_object, prune_object
from starling.engine.target import Target
from starling.engine.tasks import Action, Plan, Task, met
from starling.engine.unit import Drift, Problem
from starling.errors import StarlingError
from starling.kube import ApiError

__all__ = ["Outcome", "SyncEvent", "execute"]

LOG = logging.getLogger(__name__)
REMOVALS = frozenset({Action.PRUNE, Action.ORPHAN, Action.RELEASE})


class SyncEvent(msgspec.Struct, frozen=True):
    """One task is done, or failed for a reason."""

    unit_id: str
    task: Task
    outcome: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a plan was carried out. `waiting` is the wait that stopped it; `wave` the last that was waited for."""

    problems: tuple[Problem, ...] = ()
    waiting: Task | None = None
    wave: int | None = None
    shared: tuple[Drift, ...] = ()


@dataclass
class _Run:
    """One carrying out of a plan. Mutable: what has happened so far.

    `spared`: something wasn't pruned after all. It may be in a namespace, or of a CRD, that is to be pruned yet,
    so these are left, too.
    """

    target: Target
    tell: Callable[[SyncEvent], None]
    problems: list[Problem] = field(default_factory=list)
    shared: list[Drift] = field(default_factory=list)
    going: list[Task] = field(default_factory=list)
    spared: bool = False

    async def do_all(self, step: Sequence[Task]) -> None:
        """As many at once as may be; what goes wrong is noted in order, so that a retry that ends the same reads so."""
        failures: dict[int, Problem] = {}
        left = iter(enumerate(step))

        async def work() -> None:
            for number, task in left:
                if (problem := await self._do(task)) is not None:
                    failures[number] = problem

        await asyncio.gather(*(work() for _ in step[: self.target.at_once]))
        self.problems += [failures[number] for number in sorted(failures)]

    async def _do(self, task: Task) -> Problem | None:
        """One task; what goes wrong with it stops no other task of its tier."""
        try:
            outcome = await self._act(task)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
            problem = _problem(error, task)
            self.tell(SyncEvent(self.target.unit.id, task, "failed", problem))
            return problem
        self.tell(SyncEvent(self.target.unit.id, task, outcome))
        return None

    async def _act(self, task: Task) -> str:
        match task.action:
            case Action.APPLY:
                result = await apply_object(self.target, task)
                self.shared += result.shared
                if result.going:
                    self.going.append(_until_gone(task))
                return result.outcome
            case Action.CREATE:
                return await create_object(self.target, task)
            case Action.PRUNE if self.spared and task.tier <= Tier.DEFINITION:
                return await orphan_object(self.target, task)
            case Action.PRUNE:
                outcome = await prune_object(self.target, task)
                self.spared = self.spared or outcome in SPARED
                return outcome
            case Action.ORPHAN:
                return await orphan_object(self.target, task)
            case Action.RELEASE:
                assert task.key is not None
                self.target.cache.disown(task.key)
                return "left"
            case Action.WAIT:
                raise AssertionError(task)

    def failed_to_renew(self, step: Sequence[Task]) -> bool:
        """Whether one of these brings something new, and failed."""
        broken = {problem.key for problem in self.problems}
        return any(task.renews and task.key in broken for task in step)

    def outcome(self, waiting: Task | None, wave: int | None) -> Outcome:
        """What came of it."""
        return Outcome(tuple(self.problems), waiting, wave, tuple(self.shared))


def _problem(error: Exception, task: Task) -> Problem:
    """What is told of a failure."""
    if isinstance(error, ApiError) and task.desired is not None:
        error = explained(error, task.desired)
    if isinstance(error, StarlingError):
        return Problem(error.reason, error.message, task.key, error.hint or "")
    LOG.error("%s: an error that nobody expected", task, exc_info=error)
    return Problem("Unexpected", f"{task.key}: {type(error).__name__}: {error}", task.key, "please report it")


async def execute(plan: Plan, target: Target, tell: Callable[[SyncEvent], None]) -> Outcome:
    """Do the tasks in order, those of one tier at once; stop at an unmet wait, or after a wave in which one failed.

    A repair that fails holds up no wave. Nothing is removed after a failure.
    """
    run = _Run(target, tell)
    passed: int | None = None
    failed: int | None = None
    for step in _steps(plan.tasks):
        first = step[0]
        if first.action in REMOVALS and (run.problems or run.going):
            break
        if failed is not None and (first.wave != failed or first.ends_wave):
            break
        if first.action is Action.WAIT:
            if unmet := next((task for task in step if not met(task, target.cache.records)), None):
                return run.outcome(unmet, passed)
            passed = first.wave if first.ends_wave else passed
            continue
        await run.do_all(step)
        if plan.gated and failed is None and run.failed_to_renew(step):
            failed = first.wave
    return run.outcome(next(iter(run.going), None), passed)


def _until_gone(task: Task) -> Task:
    """The wait for an object to go that is to be made anew."""
    assert task.key is not None
    return replace(task, action=Action.WAIT, reason="is being deleted, and will be made anew", awaited=(task.key,))


def _steps(tasks: Sequence[Task]) -> list[list[Task]]:
    """Runs of tasks that may be done at the same time."""
    return [list(step) for _, step in groupby(tasks, key=_at_once)]


def _at_once(task: Task) -> tuple[bool, bool, int, int]:
    return task.action in REMOVALS, task.action is Action.WAIT, task.wave, task.tier
