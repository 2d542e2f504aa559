"""The loop: units are looked at when something has happened to them, and operated on when there is something to do.

    store.watch, refresh ─┐                 ┌─► status written, if it changed
    cache events ─────────┼─► to look at ───┤
    timers ───────────────┘                 └─► to operate on ─► generate, plan, execute ─► to look at

Status processors look: from records alone, no manifests, no requests. Operation processors do the rest. A unit is in
one pair of hands at a time. Neither ever waits for a cluster: what isn't there yet tells when it is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from starling.aio import SYSTEM_CLOCK, Backoff, Clock, Slot, Slots, Workqueue
from starling.engine.cache import Change
from starling.engine.callbacks import BeforeSync, Callbacks, ResourceEvent, SyncCompleted, UnitSeen, Unsubscribe
from starling.engine.connection import Connection
from starling.engine.contention import Contention
from starling.engine.errors import EngineError
from starling.engine.execute import SyncEvent
from starling.engine.health import Readiness
from starling.engine.neighbours import Neighbours
from starling.engine.operate import Operations
from starling.engine.order import CRD
from starling.engine.prepare import UNKNOWN_KIND
from starling.engine.preview import Preview
from starling.engine.settings import (
    ClusterAccess,
    CredentialsStore,
    Limits,
    ManifestGenerator,
    ReconciliationSettings,
    SyncStore,
)
from starling.engine.state import UnitState, recover, status_of, unknown_status
from starling.engine.unit import Unit, UnitStatus
from starling.errors import StarlingError
from starling.kube import Client

__all__ = ["Engine"]

LOG = logging.getLogger(__name__)


class Engine:
    """Keeps units synchronised. Mutable: it remembers its units and its clusters; all else is in the stores."""

    def __init__(
        self,
        settings: ReconciliationSettings,
        credentials: CredentialsStore,
        generator: ManifestGenerator,
        store: SyncStore,
        *,
        limits: Limits | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._generator = generator
        self._store = store
        self._limits = limits or Limits()
        self._clock = clock
        self._callbacks = Callbacks()
        self._units: dict[str, UnitState] = {}
        self._connections: dict[str, Connection] = {}
        self._to_look_at = Workqueue[str](clock)
        self._to_operate_on = Workqueue[str](clock)
        self._in_all = Slots(self._limits.in_all, self._limits.patience)
        self._closing: set[asyncio.Task[None]] = set()

    def on_before_sync(self, callback: BeforeSync) -> Unsubscribe:
        """Have a say before every sync, at every (re)plan: give a changed list of tasks, or raise to veto."""
        return self._callbacks.add_before_sync(callback)

    def on_sync_completed(self, callback: Callable[[SyncCompleted], object]) -> Unsubscribe:
        """Be told when a unit's operation has come to an end."""
        return self._callbacks.sync_completed.add(callback)

    def on_cluster_cache_initialized(self, callback: Callable[[str], object]) -> Unsubscribe:
        """Be told, with a cluster's name, when all that units wanted of it has been seen for the first time."""
        return self._callbacks.cluster_cache_initialized.add(callback)

    def on_resource_updated(self, callback: Callable[[ResourceEvent], object]) -> Unsubscribe:
        """Be told of every change to an object that a unit owns."""
        return self._callbacks.resource_updated.add(callback)

    def on_resource_removed(self, callback: Callable[[ResourceEvent], object]) -> Unsubscribe:
        """Be told when an object that a unit owns is gone."""
        return self._callbacks.resource_removed.add(callback)

    def on_sync_event(self, callback: Callable[[SyncEvent], object]) -> Unsubscribe:
        """Be told of every task that was done, or failed."""
        return self._callbacks.sync_event.add(callback)

    def on_status(self, callback: Callable[[UnitSeen], object]) -> Unsubscribe:
        """Be told how a unit stands whenever it was looked at, also if that is nothing new and so isn't written."""
        return self._callbacks.status.add(callback)

    def set_reconciliation_settings(self, settings: ReconciliationSettings) -> None:
        """Go on with other settings: every cluster is seen anew, and every unit looked at."""
        self._settings = settings
        for name in list(self._connections):
            self._disconnect(name)

    def client(self, cluster: str) -> Client | None:
        """The client of a cluster that it is connected to now, for whoever makes manifests by what is there."""
        connection = self._connections.get(cluster)
        return connection.client if connection is not None else None

    def refresh(self, unit_id: str) -> None:
        """Have a unit looked at now, its manifests made anew."""
        state = self._state(unit_id)
        state.reread = state.look = state.no_cache = True
        self._to_look_at.add(unit_id)

    async def run(self, *, status_processors: int = 8, operation_processors: int = 8) -> None:
        """Keep all units of the store synchronised, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_store())
                group.create_task(self._follow_clusters())
                group.create_task(self._process(group, self._to_look_at, self._look, status_processors))
                group.create_task(self._process(group, self._to_operate_on, self._operate, operation_processors))
        finally:
            await self.close()

    async def close(self) -> None:
        """End all connections and timers; `run` does so itself."""
        self._to_look_at.close()
        self._to_operate_on.close()
        connections, self._connections = self._connections, {}
        await asyncio.gather(*(connection.close() for connection in connections.values()), *self._closing)

    async def preview(self, unit_id: str) -> Preview:
        """What a sync of the unit would do now, without doing any of it; for an engine that isn't running."""
        state = self._state(unit_id)
        await self._reread(unit_id, state)
        if state.unit is None:
            raise EngineError(f"there is no unit {unit_id}")
        connection = await self._connection(state.unit)
        while True:
            something = connection.something_new()
            if self._recovered(state.unit, state, connection):
                operations = self._operations()
                if (prepared := await operations.prepared(state, connection, no_cache=False)) is not None:
                    made = await operations.plan(state, connection, prepared)
                    return Preview(made, prepared, operations.target(state.unit, connection))
            if (trouble := connection.trouble(state.all_kinds())) is not None:
                raise trouble
            await something.wait()

    async def _follow_store(self) -> None:
        for unit_id in await self._store.list():
            self._to_look_at.add(unit_id)
        async for unit_id in self._store.watch():
            state = self._state(unit_id)
            state.reread = state.look = True
            self._to_look_at.add(unit_id)

    async def _follow_clusters(self) -> None:
        async for name in self._credentials.watch_clusters():
            connection = self._connections.get(name)
            if connection is None:
                self._look_at_units_of(name)
            elif await self._access(name) != connection.access:
                self._disconnect(name)

    async def _access(self, name: str) -> ClusterAccess | None:
        try:
            return await self._credentials.get_cluster(name)
        except StarlingError as error:
            LOG.warning("%s: %s", name, error)  # its units say so too, when they connect
            return None

    async def _process(
        self,
        group: asyncio.TaskGroup,
        queue: Workqueue[str],
        work: Callable[[str, Slot], Awaitable[None]],
        at_once: int,
    ) -> None:
        """Work on what is in a queue, so many at once, those left out who only wait for a silent cluster."""
        slots = Slots(at_once, self._limits.patience)

        async def process(unit_id: str, place: Slot) -> None:
            try:
                await work(unit_id, place)
            except Exception:  # a mistake of ours with one unit mustn't end the work on others
                LOG.exception("%s: an error that nobody expected", unit_id)
                self._to_look_at.add_after(unit_id, self._limits.longest_retry)
            finally:
                place.give_up()
                queue.done(unit_id)

        while True:
            unit_id = await queue.get()
            group.create_task(process(unit_id, await slots.take()))

    async def _look(self, unit_id: str, _: Slot) -> None:
        """Write down how a unit stands, and pass it on if there is something to do."""
        state = self._state(unit_id)
        if state.busy:
            return  # it is looked at again when the operation has ended
        try:
            if state.reread:
                await self._reread(unit_id, state)
            if state.unit is None:
                self._units.pop(unit_id)
                return
            connection = await self._connection(state.unit)
            if self._recovered(state.unit, state, connection):
                await self._judge(unit_id, state, state.unit, connection)
            elif (trouble := connection.trouble(state.all_kinds())) is not None:
                await self._write(state, unknown_status(state, trouble))
        except StarlingError as error:
            LOG.warning("%s: %s", unit_id, error)
            self._to_look_at.add_after(unit_id, state.backoff.next())
            if state.connection is None:  # else it is the store that can't be written to
                with suppress(StarlingError):
                    await self._write(state, unknown_status(state, error))

    async def _judge(self, unit_id: str, state: UnitState, unit: Unit, connection: Connection) -> None:
        owned, now = connection.cache.owned(unit_id), self._clock.monotonic()
        trouble = connection.trouble(state.all_kinds())
        state.observe(owned, now)
        if state.overdue(now):
            self._operations().give_up(state, owned)
        if not unit.held and trouble is None and state.wants_operation(owned, now):
            connection.want(state.kinds)
            if connection.ready(state.kinds):  # else it tells when it is
                state.busy = True
                self._to_operate_on.add(unit_id)
            return
        status = status_of(state, owned, now, trouble)
        try:
            await self._write(state, status)
        except StarlingError as error:
            self._callbacks.status.tell(UnitSeen(unit_id, status, error))
            raise
        self._callbacks.status.tell(UnitSeen(unit_id, status, trouble))
        if (wait := state.next_look(now)) is not None:
            self._to_look_at.add_after(unit_id, wait)

    async def _operate(self, unit_id: str, place: Slot) -> None:
        state = self._state(unit_id)
        connection = self._connections.get(state.unit.cluster) if state.unit is not None else None
        try:
            if connection is not None and state.connection is connection:
                await self._operations().operate(state, connection, place.progress)
            else:
                state.look = True  # it was connected anew meanwhile: whoever looks next compares first
        finally:
            state.busy = False
            self._to_look_at.add(unit_id)

    def _state(self, unit_id: str) -> UnitState:
        state = self._units.get(unit_id)
        if state is None:
            limits = self._limits
            state = self._units[unit_id] = UnitState(
                contention=Contention(limits.contention_wait),
                backoff=Backoff(limits.first_retry, limits.longest_retry),
            )
        return state

    async def _reread(self, unit_id: str, state: UnitState) -> None:
        """Ask the store for a unit. How it stands is asked for once: from then on we know better."""
        state.reread = False
        try:
            stored = await self._store.get(unit_id)
        except BaseException:
            state.reread = True
            raise
        known, state.unit = state.unit, stored.unit if stored is not None else None
        if known is None and stored is not None:
            state.remember(stored.status)
            state.wrote(stored.status)
        if known is not None and known.deleting and state.unit is not None and not state.unit.deleting:
            state.removed = False  # someone thought better of it, or made it anew: all of its way is to come
            state.operation = None
            state.put_off(self._clock.monotonic())
        if known != state.unit:
            state.look = True

    def _recovered(self, unit: Unit, state: UnitState, connection: Connection) -> bool:
        """Whether what the unit had when it was last written down has been compared with what is there."""
        if state.connection is connection:
            return True
        connection.want(state.stored_kinds())
        if not connection.ready(state.stored_kinds()):
            return False
        recover(unit, state, connection.cache, self._clock.monotonic())
        state.connection = connection
        return True

    async def _write(self, state: UnitState, status: UnitStatus) -> None:
        """Write a status down if it says anything new; when only the operation went on, just that."""
        unit = state.unit
        if unit is None or not state.says_anything_new(status):
            return
        operation = status.operation
        before = msgspec.structs.replace(status, operation=state.written.operation)
        if operation is not None and not state.says_anything_new(before):
            await self._store.set_operation(unit.id, operation)
        else:
            await self._store.set_status(unit.id, status)
        state.wrote(status)

    def _operations(self) -> Operations:
        neighbours = Neighbours(self._units, self._store, self._generator, self._settings, self._to_look_at.add)
        return Operations(
            self._settings, self._generator, self._callbacks, self._clock, neighbours, self._write, self._in_all
        )

    async def _connection(self, unit: Unit) -> Connection:
        """The connection to a unit's cluster, made if there is none."""
        if (known := self._connections.get(unit.cluster)) is not None:
            return known
        access = await self._credentials.get_cluster(unit.cluster)
        if access is None:
            raise EngineError(f"{unit.id}: there is no cluster {unit.cluster}")
        if (known := self._connections.get(unit.cluster)) is not None:
            return known  # someone else was quicker
        connection = Connection(unit.cluster, access, self._settings, limits=self._limits, clock=self._clock)
        connection.listen(lambda: self._heard(connection))
        connection.cache.listen(lambda change: self._changed(connection, change))
        self._connections[unit.cluster] = connection
        connection.start()
        return connection

    def _disconnect(self, name: str) -> None:
        """Let go of a cluster; its units connect anew, and compare what is there with what they had."""
        connection = self._connections.pop(name)
        for unit_id, state in self._units.items():
            if state.connection is connection:
                state.remember(status_of(state, connection.cache.owned(unit_id), self._clock.monotonic()))
        closing = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        self._look_at_units_of(name)

    def _heard(self, connection: Connection) -> None:
        """Something came of what was wanted of a cluster, or its connection was lost or is back."""
        if connection.kinds_appeared():
            self._kinds_appeared(connection)
        if not connection.initialized and connection.all_ready():
            connection.initialized = True
            self._callbacks.cluster_cache_initialized.tell(connection.name)
        self._look_at_units_of(connection.name)

    def _look_at_units_of(self, cluster: str) -> None:
        for unit_id, state in self._units.items():
            if state.unit is not None and state.unit.cluster == cluster:
                self._to_look_at.add(unit_id)

    def _changed(self, connection: Connection, change: Change) -> None:
        """An object that a unit owns has changed: tell, and look at the unit unless it is being worked on."""
        event = ResourceEvent(connection.name, change)
        gone = change.readiness is Readiness.MISSING
        (self._callbacks.resource_removed if gone else self._callbacks.resource_updated).tell(event)
        state = self._units.get(change.owner)
        if state is not None and not state.busy:
            self._to_look_at.add(change.owner)
        if (change.key.group, change.key.kind) == CRD and change.readiness is Readiness.CURRENT:
            self._kinds_appeared(connection)

    def _kinds_appeared(self, connection: Connection) -> None:
        """A kind is served that wasn't: units that lacked one needn't wait for their next try."""
        for unit_id, state in self._units.items():
            if state.connection is connection and any(problem.reason == UNKNOWN_KIND for problem in state.problems):
                state.retry_at = self._clock.monotonic()
                self._to_look_at.add(unit_id)
