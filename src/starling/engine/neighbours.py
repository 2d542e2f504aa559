"""The other units of a cluster: what they render, so that objects can move between units without being deleted."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from starling.engine.connection import Connection
from starling.engine.errors import EngineError
from starling.engine.order import CRD
from starling.engine.prepare import prepare
from starling.engine.removals import holders
from starling.engine.settings import ManifestGenerator, ReconciliationSettings, SyncStore
from starling.engine.state import UnitState
from starling.engine.unit import Unit, namespace_of
from starling.errors import StarlingError
from starling.objects import ObjectKey

__all__ = ["Neighbours", "Wanted"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Objects that other units render by now, and namespaces and CRDs of which they render what is in them."""

    rendered: frozenset[ObjectKey] = frozenset()
    occupied: frozenset[ObjectKey] = frozenset()


def _is_crd_of(key: ObjectKey, groups: Container[str]) -> bool:
    return (key.group, key.kind) == CRD and key.name.partition(".")[2] in groups


@dataclass(frozen=True, slots=True)
class Neighbours:
    """All units of this engine, asked on behalf of one of them."""

    units: Mapping[str, UnitState]
    store: SyncStore
    generator: ManifestGenerator
    settings: ReconciliationSettings
    look_at: Callable[[str], None]

    async def renders(self, owner: str, key: ObjectKey, connection: Connection) -> bool:
        """Whether the unit that owns an object still wants it: one that is unknown here wants nothing."""
        state = self.units.get(owner)
        if state is not None and state.connection is connection:
            record = connection.cache.get(key)
            return record is not None and bool(record.manifest)
        stored = await self.store.get(owner)
        return stored is not None and bool(stored.status.inventory.get(key))

    async def wanted(self, unit: Unit, keys: frozenset[ObjectKey], connection: Connection) -> "Wanted":
        """What others of the unit's namespace want of these objects; EngineError if one can't be asked."""
        if not keys:
            return Wanted()
        rendered: set[ObjectKey] = set()
        occupied: set[ObjectKey] = set()
        definitions = connection.definitions()
        for unit_id in await self.store.list():
            if unit_id == unit.id or namespace_of(unit_id) != namespace_of(unit.id):
                continue
            other = await self._unit(unit_id)
            if other is not None and other.cluster == unit.cluster and not other.deleting:
                theirs = await self._keys(other, connection)
                rendered |= keys & theirs
                occupied |= keys & {holder for key in theirs for holder in holders(key, definitions)}
                unknown = {key.group for key in theirs if (key.group, key.kind) not in definitions}
                occupied |= {key for key in keys if _is_crd_of(key, unknown)}  # it isn't known which is which
        return Wanted(frozenset(rendered), frozenset(occupied - rendered))

    async def _unit(self, unit_id: str) -> Unit | None:
        state = self.units.get(unit_id)
        if state is not None and state.unit is not None:
            return state.unit
        stored = await self.store.get(unit_id)
        return stored.unit if stored is not None else None

    async def _keys(self, unit: Unit, connection: Connection) -> frozenset[ObjectKey]:
        try:
            manifests, _ = await self.generator.generate(unit, unit.revision, no_cache=False)
            prepared = prepare(manifests, unit, connection.served(), self.settings.instance_label_key)
        except StarlingError as error:
            raise EngineError(f"it can't be told what has moved to {unit.id}: {error.message}") from error
        return prepared.withheld.union(desired.key for desired in prepared.desired)

    def released(self, keys: frozenset[ObjectKey]) -> None:
        """Have those look again who were refused one of these objects."""
        if not keys:
            return
        for unit_id, state in self.units.items():
            if any(problem.key in keys for problem in state.problems):
                state.look = True
                self.look_at(unit_id)
