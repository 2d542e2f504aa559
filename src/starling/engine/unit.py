"""The engine's nouns: a Unit, how it stands, and the Operation that brings it to a revision."""

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from starling.engine.health import Readiness
from starling.errors import InputError
from starling.kube import Identity
from starling.objects import ObjectKey, digest, short_digest

__all__ = [
    "MOST_PROBLEMS",
    "Drift",
    "IgnoredDifference",
    "Operation",
    "Phase",
    "Problem",
    "StoredUnit",
    "Unit",
    "UnitStatus",
    "instance_of",
    "namespace_of",
    "unit_hash",
]

MOST_PROBLEMS = 20


class IgnoredDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Fields, by JSON pointer, in which objects may differ from git; what is left empty matches any object."""

    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    json_pointers: tuple[str, ...] = ()

    def matches(self, key: ObjectKey) -> bool:
        """Whether it speaks of this object. An empty group is any group: no kind is in two that people use."""
        wanted = (self.group, self.kind, self.namespace, self.name)
        there = (key.group, key.kind, key.namespace, key.name)
        return all(not want or want == value for want, value in zip(wanted, there, strict=True))


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing synced to one cluster, and how.

    `id` is `<instance>/<hub namespace>/<kind>.<name>@<cluster>`. `target_namespace` is where everything namespaced
    goes, `default_namespace` where only what names none goes. `held` says why nothing may be done now; `deleting` that
    the unit itself is being removed. `confirm` is the digest of a refused plan that someone has confirmed.
    """

    id: str
    cluster: str
    revision: str = ""
    target_namespace: str = ""
    default_namespace: str = "default"
    identity: Identity | None = None
    prune: bool = True
    allow_empty: bool = False
    confirm: str = ""
    force: bool = False
    deletion_policy: Literal["Prune", "Orphan"] = "Prune"
    interval: float = 3600.0
    timeout: float = 300.0
    ignore_differences: tuple[IgnoredDifference, ...] = ()
    held: str = ""
    deleting: bool = False

    def __post_init__(self) -> None:
        if ":" in self.id or self.id.count("/") < 2:
            raise InputError(f"{self.id!r} is no unit's id", hint="<instance>/<namespace>/<kind>.<name>@<cluster>")


class Phase(enum.StrEnum):
    """How far an operation is."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bringing a unit to what `digest` names: everything rendered, as applied. Waves up to `wave` are done."""

    digest: str
    revision: str = ""
    phase: Phase = Phase.RUNNING
    wave: int | None = None
    started_at: datetime
    finished_at: datetime | None = None
    hooks_done: tuple[str, ...] = ()
    message: str = ""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wrong with one object, or with the unit; `hint` says the way out."""

    reason: str
    message: str
    key: ObjectKey | None = None
    hint: str = ""


class Drift(msgspec.Struct, frozen=True, omit_defaults=True):
    """Fields of an object that someone took from us. A plain removal has no culprit: no manager, no time."""

    key: ObjectKey
    fields: tuple[str, ...]
    manager: str = ""
    time: str = ""

    def __str__(self) -> str:
        fields = ", ".join(self.fields) or "the object"
        return f"{self.key}: {fields}, {f'by {self.manager}, {self.time}' if self.manager else 'removed'}"


class UnitStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a unit stands. `inventory` is all it owns, with the short digest of the manifest applied (§6.1: the record).

    `baseline` is one digest over every object's key, manifest and managed fields as we left them; empty while an
    operation is under way.
    """

    revision: str = ""
    applied_revision: str = ""
    readiness: Readiness = Readiness.UNKNOWN
    message: str = ""
    objects: Mapping[Readiness, int] = {}
    problems: tuple[Problem, ...] = ()
    inventory: Mapping[ObjectKey, str] = {}
    baseline: str = ""
    operation: Operation | None = None
    drift: tuple[Drift, ...] = ()
    contended: tuple[Drift, ...] = ()
    shared: tuple[Drift, ...] = ()
    removed: bool = False


class StoredUnit(msgspec.Struct, frozen=True):
    """A unit and its last known status, as a SyncStore keeps them."""

    unit: Unit
    status: UnitStatus = UnitStatus()


def instance_of(unit_id: str) -> str:
    """The installation that a unit belongs to."""
    return unit_id.partition("/")[0]


def namespace_of(unit_id: str) -> str:
    """The hub namespace of a unit: the boundary between tenants."""
    return unit_id.split("/", 2)[1]


def unit_hash(unit_id: str) -> str:
    """The value of our label on the unit's objects."""
    return short_digest(digest(unit_id))
