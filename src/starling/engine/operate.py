"""One unit's operation: generate, prepare, plan, execute, and write down what came of it.

The record (§6.1) is written before a revision's first apply, with the ids of what will be there, and after the last.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from starling.aio import Clock, Slots
from starling.engine.cache import Record
from starling.engine.callbacks import Callbacks, SyncCompleted
from starling.engine.connection import Connection
from starling.engine.errors import EngineError
from starling.engine.execute import Outcome, SyncEvent, execute
from starling.engine.fields import attribute
from starling.engine.ignoring import left_out
from starling.engine.inventory import baseline
from starling.engine.neighbours import Neighbours
from starling.engine.plan import plan
from starling.engine.prepare import UNKNOWN_KIND, Prepared, kinds_needed, prepare
from starling.engine.removals import dropped, plan_removal
from starling.engine.settings import ManifestGenerator, ReconciliationSettings
from starling.engine.state import UnitState, status_of
from starling.engine.target import Target
from starling.engine.tasks import Action, Plan, Snapshot, Task
from starling.engine.unit import MOST_PROBLEMS, Drift, Operation, Phase, Problem, Unit, UnitStatus
from starling.errors import StarlingError
from starling.objects import ObjectKey

__all__ = ["Operations"]

LOG = logging.getLogger(__name__)
Tell = Callable[[SyncEvent], None]


@dataclass(frozen=True, slots=True)
class Operations:
    """Carries them out. What it changes is in the UnitState and the connection it is given, and the cluster."""

    settings: ReconciliationSettings
    generator: ManifestGenerator
    callbacks: Callbacks
    clock: Clock
    neighbours: Neighbours
    write: Callable[[UnitState, UnitStatus], Awaitable[None]]
    in_all: Slots

    async def operate(self, state: UnitState, connection: Connection, progress: Callable[[], None]) -> None:
        """Do what there is to do for a unit, as far as it can be done now."""
        unit = _unit(state)
        no_cache, state.look, state.no_cache, state.waiting = state.no_cache, False, False, None
        amiss = state.amiss(connection.cache.owned(unit.id), self.clock.monotonic())
        worked_on: set[ObjectKey | None] = set()

        def tell(event: SyncEvent) -> None:
            progress()
            worked_on.add(event.task.key)
            self.callbacks.sync_event.tell(event)

        if any(problem.reason == UNKNOWN_KIND for problem in state.problems):
            state.problems = ()
            connection.ask_again(state.kinds)
        try:
            if unit.deleting:
                await self._remove(state, connection, tell)
            elif (prepared := await self.prepared(state, connection, no_cache=no_cache)) is None:
                state.look = True
            else:
                await self._sync(state, connection, prepared, tell)
        except StarlingError as error:
            if state.connection is connection:
                self._fail(state, (Problem(error.reason, error.message, hint=error.hint or ""),))
        except Exception as error:
            LOG.exception("%s: an error that nobody expected", unit.id)
            self._fail(state, (Problem("Unexpected", f"{type(error).__name__}: {error}", hint="please report it"),))
        if state.connection is not connection:  # let go of meanwhile: that is no failure, and what was done is compared
            state.look = True
            return
        state.renewed(worked_on, self.clock.monotonic())
        still = state.amiss(connection.cache.owned(unit.id), self.clock.monotonic())
        # What was put right and is amiss again was taken again, though its entry may read just as before.
        state.left = {key: entry for key, entry in amiss.items() if still.get(key) == entry and key not in worked_on}

    async def prepared(self, state: UnitState, connection: Connection, *, no_cache: bool) -> Prepared | None:
        """What the unit wants of its cluster; None while it isn't known which of the kinds the cluster serves."""
        unit = _unit(state)
        manifests, state.revision = await self.generator.generate(unit, unit.revision, no_cache=no_cache)
        manifests = [each for each in manifests if self.settings.resources_filter.allows(each.key)]
        state.kinds = frozenset(kinds_needed(manifests))
        connection.want(state.kinds)
        if not connection.ready(state.kinds):
            return None
        label_key = self.settings.instance_label_key
        return prepare(manifests, unit, connection.served(), label_key, connection.unserved())

    async def plan(self, state: UnitState, connection: Connection, prepared: Prepared) -> Plan:
        """What there is to do; objects that would be pruned are left to other units that render them by now."""
        unit, now = _unit(state), self.clock.monotonic()
        snapshot = Snapshot(
            owned=self._owned(unit, connection),
            others=await self._owners(unit, connection, prepared),
            resting=state.contention.resting(now),
            unseen=connection.unseen(),
            definitions=connection.definitions(),
            operation=state.operation,
            everything=now >= state.due,
        )
        gone = dropped(prepared, snapshot) if unit.prune else frozenset()
        try:
            wanted = await self.neighbours.wanted(unit, gone, connection)
        except StarlingError as error:
            return _unpruned(plan(prepared, snapshot, unit), error)
        return plan(prepared, replace(snapshot, wanted=wanted.rendered, occupied=wanted.occupied), unit)

    def _owned(self, unit: Unit, connection: Connection) -> dict[ObjectKey, Record]:
        """The unit's objects, those left out that the settings leave alone."""
        allows = self.settings.resources_filter.allows
        return {key: record for key, record in connection.cache.owned(unit.id).items() if allows(key)}

    async def _owners(
        self, unit: Unit, connection: Connection, prepared: Prepared
    ) -> dict[ObjectKey, tuple[str, bool]]:
        found = {}
        for desired in prepared.desired:
            record = connection.cache.get(desired.key)
            if record is not None and record.owner != unit.id:
                found[desired.key] = (
                    record.owner,
                    await self.neighbours.renders(record.owner, desired.key, connection),
                )
        return found

    async def _sync(self, state: UnitState, connection: Connection, prepared: Prepared, tell: Tell) -> None:
        unit = _unit(state)
        everything = self.clock.monotonic() >= state.due
        todo = await self.plan(state, connection, prepared)
        if todo.refusal is not None:
            self._fail(state, (todo.refusal,))
            return
        todo = await self._allowed(unit, todo)
        taken = self._taken(state, connection, todo)
        await self._begin(state, connection, prepared, todo)
        outcome = await execute(todo, self.target(unit, connection), tell)
        if state.connection is not connection:
            return
        self._note_drift(state, taken, outcome)
        for desired in prepared.desired:
            if desired.create_only:
                connection.cache.made_once(desired.key)
        if any(desired.resource is None for desired in prepared.desired):
            connection.ask_again(state.kinds)  # the CRDs that came along may have brought them
        self._end(state, connection, outcome, todo.problems)
        if everything:  # also at a wait: what it has was applied again before that
            state.put_off(self.clock.monotonic())
            connection.cache.doubt(problem.key for problem in outcome.problems)
        self.neighbours.released(_keys(todo, Action.RELEASE))

    async def _allowed(self, unit: Unit, todo: Plan) -> Plan:
        """The plan as those leave it who have a say."""
        return replace(todo, tasks=await self.callbacks.before_sync(unit, todo.tasks)) if todo.work else todo

    def target(self, unit: Unit, connection: Connection) -> Target:
        """Where the unit's tasks are done, and as whom."""
        client = connection.client
        writer = client.impersonating(unit.identity) if unit.identity is not None else client
        return Target(
            unit, client, writer, connection.cache, self.settings, connection.slots, self.in_all, connection.at_once
        )

    async def _begin(self, state: UnitState, connection: Connection, prepared: Prepared, todo: Plan) -> None:
        """Write down what will be there before any of it is; not again until something else comes in.

        Also where nothing new will be: who shares the record finds out by it that this is no longer theirs to do.
        """
        unit, operation = _unit(state), state.operation
        comes_in = operation is None or operation.digest != prepared.digest
        if comes_in:
            state.in_progress_since = None
            operation = Operation(digest=prepared.digest, revision=state.revision, started_at=self.clock.now())
        elif operation is not None and operation.phase is Phase.FAILED:
            operation = msgspec.structs.replace(operation, phase=Phase.RUNNING, message="", finished_at=None)
        state.operation, state.problems, state.waiting = operation, (), None
        renewed = [task.key for task in todo.work if task.renews and task.key is not None]
        owned = connection.cache.owned(unit.id)
        new = {key: "" for key in renewed if key not in owned}  # of these, some are another unit's until they are ours
        state.excuse(renewed, owned)
        connection.cache.expect(unit.id, new, as_left=False)
        if new or (renewed and state.baseline) or (comes_in and todo.work):
            state.baseline = "" if renewed else state.baseline
            status = status_of(state, connection.cache.owned(unit.id), self.clock.monotonic())
            await self.write(state, msgspec.structs.replace(status, inventory={**new, **status.inventory}))

    def _end(
        self, state: UnitState, connection: Connection, outcome: Outcome, problems: Sequence[Problem] = ()
    ) -> None:
        """Take in what came of it. It is written down by whoever looks at the unit next, which is at once."""
        unit, operation = _unit(state), state.operation
        if operation is not None and outcome.wave is not None:
            state.operation = msgspec.structs.replace(operation, wave=outcome.wave)
        met = {drift.key for drift in outcome.shared}
        owned = connection.cache.owned(unit.id)
        known = (drift for drift in state.shared if drift.key in owned and drift.key not in met)
        state.shared = (*known, *outcome.shared)[-MOST_PROBLEMS:]
        state.waiting = outcome.waiting
        if problems := (*problems, *outcome.problems):
            self._fail(state, problems)
            return
        state.problems, state.retry_at = (), None
        state.backoff.reset()
        if outcome.waiting is not None:
            return
        owned = connection.cache.owned(unit.id)
        rendered = ((key, record) for key, record in owned.items() if record.manifest)
        state.baseline = baseline((key, record.manifest, record.expected) for key, record in rendered)
        state.applied_revision = state.revision
        self._finish(state, Phase.SUCCEEDED, "")

    def _fail(self, state: UnitState, problems: Sequence[Problem]) -> None:
        """Note what is wrong, and when to try again."""
        state.problems = tuple(problems)
        state.retry_at = self.clock.monotonic() + state.backoff.next()
        self._finish(state, Phase.FAILED, problems[0].message)

    def give_up(self, state: UnitState, owned: Mapping[ObjectKey, Record]) -> None:
        """End an operation that takes too long; should what it waits for come yet, it goes on."""
        self._finish(state, Phase.FAILED, status_of(state, owned, self.clock.monotonic()).message)

    def _finish(self, state: UnitState, phase: Phase, message: str) -> None:
        """End the operation that is under way, if one is: a repair that fails doesn't undo what had succeeded."""
        if state.operation is None or state.operation.phase is not Phase.RUNNING:
            return
        state.operation = msgspec.structs.replace(
            state.operation, phase=phase, message=message, finished_at=self.clock.now()
        )
        self.callbacks.sync_completed.tell(SyncCompleted(_unit(state), state.operation))

    def _taken(self, state: UnitState, connection: Connection, todo: Plan) -> list[Drift]:
        """What was taken from us, and by whom, of all that is about to be put right."""
        unit = _unit(state)
        found: list[Drift] = []
        for task in todo.tasks:
            if task.desired is None or task.record is None or not task.record.drifted or task.renews:
                continue
            key = task.desired.key
            if evidence := connection.cache.evidence(key):
                content = left_out(task.desired.manifest.content, self.settings.ignored(unit, key))
                found += attribute(key, content, evidence)
            else:
                found.append(Drift(key, ()))
        return found

    def _note_drift(self, state: UnitState, taken: Sequence[Drift], outcome: Outcome) -> None:
        """Remember what was put right; what couldn't be will be seen again at the next try."""
        now = self.clock.monotonic()
        failed = {problem.key for problem in outcome.problems}
        for drift in taken:
            if drift.key not in failed:
                state.drift.append(drift)
                state.contention.taken(drift, now)

    async def _remove(self, state: UnitState, connection: Connection, tell: Tell) -> None:
        """Take the unit's objects away, or our marks off them, or leave them to another; done when none is left."""
        unit = _unit(state)
        state.due = math.inf
        owned = self._owned(unit, connection)
        live = frozenset(key for key, record in owned.items() if record.live)
        wanted = await self.neighbours.wanted(unit, live, connection)
        definitions = connection.definitions()
        snapshot = Snapshot(owned, wanted=wanted.rendered, occupied=wanted.occupied, definitions=definitions)
        todo = await self._allowed(unit, plan_removal(snapshot, unit))
        outcome = await execute(todo, self.target(unit, connection), tell)
        if state.connection is not connection:
            return
        self.neighbours.released(_keys(todo, Action.RELEASE))
        state.waiting = outcome.waiting
        if outcome.problems:
            self._fail(state, outcome.problems)
            return
        state.problems, state.retry_at = (), None
        owned = {key: record for key, record in self._owned(unit, connection).items() if key not in wanted.rendered}
        if unseen := [key for key in owned if (key.group, key.kind) in connection.unseen()]:
            raise EngineError(f"{unseen[0]} can't be seen: the API service behind its kind doesn't answer")
        left = [record for record in owned.values() if record.live]
        if outcome.waiting is None and left:
            state.waiting = Task(Action.WAIT, "is being deleted", 0, key=left[0].key, awaited=(left[0].key,))
        state.removed = not left
        for key in owned if state.removed else ():  # what never came into being
            connection.cache.drop(key)


def _unit(state: UnitState) -> Unit:
    if state.unit is None:
        raise AssertionError  # only units that were read are operated on
    return state.unit


def _unpruned(made: Plan, error: StarlingError) -> Plan:
    """The plan without its prunes: it can't be told what has moved to other units.

    Nor can it be told whether what would delete everything is a wrong path: nothing of that may come in.
    """
    kept = tuple(task for task in made.tasks if task.action is not Action.PRUNE)
    if made.refusal is None and len(kept) == len(made.tasks):
        return made
    problem = Problem(error.reason, f"nothing is pruned: {error.message}", hint=error.hint or "")
    if made.refusal is not None:
        return replace(made, refusal=problem)
    return replace(made, tasks=kept, problems=(*made.problems, problem))


def _keys(todo: Plan, action: Action) -> frozenset[ObjectKey]:
    return frozenset(task.key for task in todo.tasks if task.action is action and task.key is not None)
