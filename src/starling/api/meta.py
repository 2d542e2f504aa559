"""What every object has: metadata, conditions, and the base of kinds."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct, field

from starling.api.declaration import Declaration, doc, keyed_by

__all__ = ["Condition", "Fields", "ObjectMeta", "OwnerReference", "ReconciledStatus", "Resource", "Status"]


class Fields(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of every struct of the API: camelCase on the wire, defaults left out, unknown fields ignored."""


class OwnerReference(Fields, frozen=True, kw_only=True):
    """An object that this one belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Fields, frozen=True, kw_only=True):
    """What Kubernetes keeps about every object, as far as Starling reads it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


Generation = Annotated[int, Meta(ge=0)]
ConditionType = Annotated[
    str, Meta(max_length=316, pattern=r"^([A-Za-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
]
ConditionReason = Annotated[
    str, Meta(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
]


class Condition(Fields, frozen=True, kw_only=True):
    """One aspect of an object's state, in the form Kubernetes gives conditions."""

    type: Annotated[ConditionType, doc("What it is about: Ready, Reconciling, Stalled or another.")]
    status: Annotated[Literal["True", "False", "Unknown"], doc("Whether it holds.")]
    reason: Annotated[ConditionReason, doc("Why, in one CamelCase word.")]
    message: Annotated[str, Meta(max_length=32768), doc("Why, for people.")]
    last_transition_time: Annotated[datetime, doc("When status last changed.")]
    observed_generation: Annotated[Generation | None, doc("The metadata.generation that this was said about.")] = None


class Status(Fields, frozen=True, kw_only=True):
    """What the controllers found out."""

    observed_generation: Annotated[
        Annotated[int, Meta(ge=-1)] | None, doc("The metadata.generation that this status is about.")
    ] = None
    conditions: Annotated[
        tuple[Condition, ...],
        Meta(max_length=16),
        keyed_by("type"),
        doc("Ready, with Reconciling while at work and Stalled when only a change of spec can help."),
    ] = ()


class ReconciledStatus(Status, frozen=True, kw_only=True):
    """The status of a kind that a controller acts on."""

    # -1 until it has, so that kstatus calls a new object InProgress. A kind that is only read is Current as it is.
    observed_generation: Annotated[
        Annotated[int, Meta(ge=-1)] | None, doc("The metadata.generation that this status is about; -1: none yet.")
    ] = -1


def _api_version() -> Literal["starling.dev/v1alpha1"]:
    return "starling.dev/v1alpha1"


class Resource(Fields, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """The base of every kind, whose class name is its `kind`; a subclass says what `spec` and `status` hold."""

    declaration: ClassVar[Declaration]

    # From a factory, because a plain default would be left out when encoding.
    api_version: Literal["starling.dev/v1alpha1"] = field(default_factory=_api_version)
    metadata: ObjectMeta
    spec: Annotated[Fields, doc("What is wanted.")]
    status: Annotated[Status, doc("What the controllers found out; never written by hand.")] = Status()
