"""How the engine is told what to do: its settings and the three protocols through which it meets its owner's world."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from starling.engine.health import Health, Rules, assess
from starling.engine.ownership import LABEL
from starling.engine.unit import IgnoredDifference, Operation, StoredUnit, Unit, UnitStatus
from starling.kube import AccessSource
from starling.objects import Manifest, ObjectKey

__all__ = [
    "ClusterAccess",
    "CredentialsStore",
    "Limits",
    "ManifestGenerator",
    "ReconciliationSettings",
    "ResourceOverride",
    "ResourcesFilter",
    "SyncStore",
]


class ResourcesFilter(msgspec.Struct, frozen=True):
    """Kinds, as `group/Kind` with `*` for any, that the engine leaves alone as if nobody had written them."""

    excluded: tuple[str, ...] = ()

    def allows(self, key: ObjectKey) -> bool:
        """Whether the engine deals with such objects."""
        names = {f"{key.group}/{key.kind}", f"{key.group}/*", f"*/{key.kind}"}
        return not names.intersection(self.excluded)


class ResourceOverride(msgspec.Struct, frozen=True):
    """What is different for one kind: how its health is read, and fields in which it may differ from git."""

    health: Rules | None = None
    ignored_pointers: tuple[str, ...] = ()


class ReconciliationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all units. `resource_overrides` is by `group/Kind`, the core group being empty."""

    instance_label_key: str = LABEL
    resources_filter: ResourcesFilter = ResourcesFilter()
    resource_overrides: Mapping[str, ResourceOverride] = {}

    def assess(self, obj: Mapping[str, Any], now: datetime) -> Health:
        """An object's health by the rules that hold for its kind."""
        group, _, _ = str(obj.get("apiVersion", "")).rpartition("/")
        override = self.resource_overrides.get(f"{group}/{obj.get('kind', '')}")
        rules = override.health if override is not None and override.health is not None else assess
        return rules(obj, now)

    def ignored(self, unit: Unit, key: ObjectKey) -> tuple[str, ...]:
        """The JSON pointers to fields of an object that may differ from git."""
        override = self.resource_overrides.get(f"{key.group}/{key.kind}", ResourceOverride())
        said: Sequence[IgnoredDifference] = [each for each in unit.ignore_differences if each.matches(key)]
        return (*override.ignored_pointers, *(pointer for each in said for pointer in each.json_pointers))


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds: writes under way per cluster and in all, and, in seconds, the waits between tries of what failed.

    Who hears nothing for longer than `patience` waits for a silent cluster, and doesn't count any more against the
    bounds that are for all.
    """

    per_cluster: int = 16
    in_all: int = 64
    patience: float = 5.0
    first_retry: float = 1.0
    longest_retry: float = 300.0
    contention_wait: float = 60.0


class ClusterAccess(msgspec.Struct, frozen=True):
    """How a cluster is reached; `version` changes whenever `source` would give something else."""

    source: AccessSource
    version: str = ""


class CredentialsStore(Protocol):
    """Which clusters there are, and how to reach them."""

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """Access to a cluster; None if there is no such cluster."""
        ...

    def watch_clusters(self) -> AsyncIterator[str]:
        """The names of clusters whose access has changed, or that came or went, as it happens."""
        ...


class ManifestGenerator(Protocol):
    """From a unit to its manifests. Called often with the same question: who renders keeps what was rendered."""

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """The manifests of a unit at a revision (empty: the latest), and which exact revision that is."""
        ...


class SyncStore(Protocol):
    """Where units are written down, and how they stand."""

    async def list(self) -> Sequence[str]:
        """The ids of all units."""
        ...

    async def get(self, unit_id: str) -> StoredUnit | None:
        """One unit with its last status; None if there is none."""
        ...

    def watch(self) -> AsyncIterator[str]:
        """The ids of units that were added, changed or removed by someone else, as it happens."""
        ...

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        """Write down how a unit stands; its operation too, so that one write does where both change."""
        ...

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        """Write down how far its operation is, when nothing else has changed."""
        ...
