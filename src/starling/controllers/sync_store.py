"""The engine's SyncStore: Syncs are its units, and their status is where it writes down how these stand.

    world: informers ─► claims: which Sync has which unit ─► watch, list, get
    set_status, seen ─► one status ─► records: written if it differs from what the informer shows

Status is read once, when a unit is first asked for; from then on the engine knows better.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock, Workqueue
from starling.api import Sync
from starling.controllers.sync_claims import Claims
from starling.controllers.sync_records import Records
from starling.controllers.sync_removal import Absences, abandoned, left_there
from starling.controllers.sync_status import About, sync_status, unit_status
from starling.controllers.sync_units import (
    FINALIZER,
    Surroundings,
    SyncSettings,
    cluster_of,
    controller_of,
    unit_id,
    unit_of,
)
from starling.controllers.sync_world import SyncWorld
from starling.controllers.writing import CONFIRM
from starling.engine import EngineError, Operation, Problem, Readiness, StoredUnit, Unit, UnitSeen, UnitStatus
from starling.errors import InputError, StarlingError
from starling.kube import Client, Unreachable
from starling.runtime import Key, key_of

__all__ = ["Given", "Note", "SyncStore", "was_tried"]

LOG = logging.getLogger(__name__)

REMOVAL_LOOK: Final = 30.0
"""Seconds between looks at a Sync that is being deleted: its namespace may go too, or its cluster for good."""

SOONEST_LOOK: Final = 0.5
RETRY: Final = 5.0


@dataclass(frozen=True, slots=True)
class Given:
    """What the engine was last told of a unit, and what that was made from."""

    sync: Sync
    around: Surroundings
    unit: Unit


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator says of a unit: the marked revision of what is wanted, or whether that can't be made at all.

    `problem` is why it is another that stays in force.
    """

    wanted: str = ""
    hopeless: bool = False
    problem: Problem | None = None


class SyncStore:
    """Syncs as units. Mutable: who has which unit, what the engine was told, and what it said last.

    `let_go` is told of each Sync that goes without its objects, with why and what is left.
    """

    def __init__(
        self,
        client: Client,
        world: SyncWorld,
        records: Records,
        settings: SyncSettings,
        *,
        let_go: Callable[[Sync, str], object],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._world = world
        self._syncs = world.syncs
        self._records = records
        self._settings = settings
        self._let_go = let_go
        self._clock = clock
        self._claims = Claims()
        self._absences = Absences(settings.give_up_after, clock)
        self._given: dict[str, Given] = {}
        self._notes: dict[str, Note] = {}
        self._last: dict[str, UnitStatus] = {}  # without inventories: those are in the Syncs
        self._said: dict[str, About] = {}
        self._unsaid: dict[str, UnitStatus] = {}
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._changed = Workqueue[str](clock)
        self._to_write = Workqueue[Key](clock)
        world.syncs.listen(self._sync_changed)
        world.listen(self._concerned)

    # What the engine asks

    async def list(self) -> Sequence[str]:
        """The ids of all units."""
        return self._claims.units()

    async def get(self, unit_id: str) -> StoredUnit | None:
        """One unit with what its Sync's status says; by then the Sync has our finalizer, if anything may be done."""
        sync = self._sync(unit_id)
        if sync is None:
            return None
        if sync.metadata.deletion_timestamp is not None and FINALIZER not in sync.metadata.finalizers:
            return None  # whatever else it waits for, it isn't us
        try:
            around = await self._world.around(self._client, sync)
            if await self._abandon(unit_id, sync, around):
                return None
            stored = StoredUnit(unit_of(sync, unit_id, around), unit_status(sync.status))
        except InputError as error:
            await self._records.refuse(sync, error)
            raise
        if not stored.unit.deleting and not stored.unit.held:
            sync = await self._records.hold(sync)
        self._given[unit_id] = Given(sync, around, stored.unit)
        if stored.unit.deleting:
            self._look_again(unit_id, sync)
        return stored

    async def watch(self) -> AsyncIterator[str]:
        """The ids of units of which others changed something that matters, never of those only we wrote to."""
        try:
            while True:
                identity = await self._changed.get()
                self._changed.done(identity)
                yield identity
        finally:
            self._changed.close()

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        """Write down how a unit stands; the Sync of one that is removed is let go."""
        self._unsaid.pop(unit_id, None)
        await self._write(unit_id, status)

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        """Write down how far its operation is."""
        sync = self._sync(unit_id)
        if sync is None:
            return
        written = unit_status(sync.status)
        last = self._last.get(unit_id, written)
        await self.set_status(unit_id, msgspec.structs.replace(last, inventory=written.inventory, operation=operation))

    # What the generator and the controller ask

    def given(self, unit_id: str) -> Given:
        """What the engine was told of a unit last."""
        if unit_id not in self._given:
            raise EngineError(f"there is no unit {unit_id} any more")
        return self._given[unit_id]

    def note(self, unit_id: str, note: Note, *, again_after: float | None = None) -> None:
        """Take down what the generator says, and have the unit looked at again in so many seconds."""
        self._notes[unit_id] = note
        if again_after is not None:
            self._changed.add_after(unit_id, again_after)

    def sync_of(self, unit_id: str) -> Sync | None:
        """The Sync that has a unit, as it is now."""
        return self._sync(unit_id)

    def seen(self, seen: UnitSeen) -> None:
        """Hear how a unit stands, though the engine has nothing new to say: it may be about another spec by now."""
        identity, status = seen.unit_id, seen.status
        sync, given = self._sync(identity), self._given.get(identity)
        if seen.trouble is not None or sync is None or given is None:
            return
        if self._about(identity, sync, given, status) != self._said.get(identity):
            self._unsaid[identity] = status
            self._to_write.add(key_of(sync))

    async def run(self) -> None:
        """Write what is to be said besides what the engine has us write, until cancelled."""
        try:
            while True:
                key = await self._to_write.get()
                try:
                    await self._say(key)
                except StarlingError as error:
                    LOG.warning("Sync %s: its status can't be written: %s", key, error)
                    self._to_write.add_after(key, RETRY)
                finally:
                    self._to_write.done(key)
        finally:
            self._to_write.close()

    # Writing

    async def _say(self, key: Key) -> None:
        sync = self._syncs.get(key)
        if sync is None:
            return
        claimed = self._claims.claimed(key)
        if isinstance(claimed, str):
            if (holder := self._claims.holder(claimed, self._created)) == key:
                await self._write(claimed, None)
                return
            claimed = InputError(
                f"Sync {key} says that it is the unit {claimed}, which Sync {holder} is already", hint="delete one"
            )
        if sync.metadata.deletion_timestamp is not None:
            await self._records.let_go(sync)  # it has nothing, or nobody knows what
        else:
            await self._records.refuse(sync, claimed)

    async def _write(self, unit_id: str, status: UnitStatus | None) -> None:
        """Have the Sync say how its unit stands; None: what is still unsaid, unless newer was said meanwhile."""
        async with self._locks[unit_id]:
            sync, given = self._sync(unit_id), self._given.get(unit_id)
            status = status or self._unsaid.get(unit_id)
            if sync is None or given is None or status is None or sync.metadata.uid != given.sync.metadata.uid:
                return  # another has its name by now, and the engine will hear of it
            if status.removed:
                await self._records.let_go(sync)
                return
            if (cluster := cluster_of(sync)) is not None:
                self._absences.saw(unit_id, out_of_sight=status.readiness is Readiness.UNKNOWN)
            about = self._about(unit_id, sync, given, status)
            told = sync_status(status, sync.status, about, self._clock.now(), cluster)
            await self._records.put(sync, told)
            self._said[unit_id] = about
            self._last[unit_id] = msgspec.structs.replace(status, inventory={})
            if self._unsaid.get(unit_id) is status:  # else there is more to say by now
                del self._unsaid[unit_id]

    def _about(self, unit_id: str, sync: Sync, given: Given, status: UnitStatus) -> About:
        """Which spec a status is about: the one last given, or still the one that it was about before."""
        note = self._notes.get(unit_id, Note())
        if was_tried(note, given.unit, status):
            generation, target = given.sync.metadata.generation, given.sync.spec.target
        else:
            known = sync.status.observed_generation
            generation, target = -1 if known is None else known, sync.status.target
        problem = note.problem if not given.unit.held else None  # what is held isn't tried
        return About(generation=generation, target=target, problem=self._waits(unit_id, sync, status) or problem)

    def _waits(self, unit_id: str, sync: Sync, status: UnitStatus) -> Problem | None:
        """That a deletion waits for a cluster, if it does."""
        if status.readiness is not Readiness.UNKNOWN or (until := self._absences.until(unit_id, sync)) is None:
            return None
        message = f"it is being deleted, and waits for Cluster {cluster_of(sync)} until {until:%H:%M:%S} UTC"
        return Problem(Unreachable.reason, f"{message}: {status.message}")

    def _look_again(self, unit_id: str, sync: Sync) -> None:
        """Have a deletion looked at before long, and said that it waits: the engine may have nothing new to say."""
        self._changed.add_after(unit_id, max(SOONEST_LOOK, min(REMOVAL_LOOK, self._settings.give_up_after)))
        last = self._last.get(unit_id)
        if last is not None and self._absences.until(unit_id, sync) is not None:
            inventory = unit_status(sync.status).inventory
            self._unsaid.setdefault(unit_id, msgspec.structs.replace(last, inventory=inventory))
            self._to_write.add(key_of(sync))

    async def _abandon(self, unit_id: str, sync: Sync, around: Surroundings) -> bool:
        """Let go of a Sync whose objects on another cluster nobody will take away any more; whether it was."""
        if cluster_of(sync) is None or sync.metadata.deletion_timestamp is None:
            return False
        why = abandoned(sync, around.cluster, self._absences.until(unit_id, sync), self._clock.now())
        if sync.status.inventory and not why:
            return False
        await self._records.let_go(sync)
        if sync.status.inventory:
            self._let_go(sync, f"{why}, and these may be left there: {left_there(sync)}")
        return True

    # Knowing

    def _sync(self, unit_id: str) -> Sync | None:
        key = self._claims.holder(unit_id, self._created)
        return self._syncs.get(key) if key is not None else None

    def _created(self, key: Key) -> Any:
        """What orders Syncs by age; all that claim something are known."""
        sync = self._syncs.get(key)
        return (sync.metadata.creation_timestamp, key) if sync is not None else (self._clock.now(), key)

    def _sync_changed(self, before: Sync | None, after: Sync | None) -> None:
        if after is None:
            if before is not None:
                self._tell(self._claims.drop(key_of(before)))
            return
        self._claim(after)
        if before is None or _wanted(before) != _wanted(after):
            claimed = self._claims.claimed(key_of(after))
            if isinstance(claimed, str):
                self._changed.add(claimed)
            self._to_write.add(key_of(after))

    def _concerned(self, sync: Sync) -> None:
        self._claim(sync)
        self._announce(sync)

    def _announce(self, sync: Sync) -> None:
        claimed = self._claims.claimed(key_of(sync))
        if isinstance(claimed, str):
            self._changed.add(claimed)

    def _claim(self, sync: Sync) -> None:
        try:
            claimed: str | InputError = unit_id(sync, controller_of(sync, self._world.assemblages.get), self._settings)
        except InputError as error:
            claimed = error
        self._tell(self._claims.put(key_of(sync), claimed))

    def _tell(self, affected: Sequence[str]) -> None:
        """Have units looked at whose Sync isn't the same any more, and those told who have none."""
        for identity in affected:
            self._changed.add(identity)
            claimants = self._claims.claimants(identity)
            for key in claimants:
                self._to_write.add(key)
            if not claimants:
                self._absences.forget(identity)
                for kept in (self._given, self._notes, self._last, self._said, self._unsaid, self._locks):
                    kept.pop(identity, None)


def was_tried(note: Note, unit: Unit, status: UnitStatus) -> bool:
    """Whether a status tells what came of trying what is wanted: no rollout may take an older success for a new one.

    Its revision tells, since it has the mark of what was rendered; or that nothing could be. What is held, or can't
    be seen, wasn't tried.
    """
    if unit.held or status.readiness is Readiness.UNKNOWN:
        return False
    return bool(status.problems) if note.hopeless else bool(note.wanted) and status.revision == note.wanted


def _wanted(sync: Sync) -> tuple[object, ...]:
    """What others say with a Sync; the rest is our own."""
    meta = sync.metadata
    return (
        meta.uid,
        meta.generation,
        meta.deletion_timestamp is not None,
        meta.annotations.get(CONFIRM),
        meta.owner_references,
    )
