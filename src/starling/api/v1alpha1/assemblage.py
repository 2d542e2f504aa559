"""ProxyAssemblage and Assemblage: all that one cluster runs, on the hub and on the cluster itself."""

from typing import Annotated, Literal

from msgspec import Meta

from starling.api.declaration import OPAQUE, Column, doc, kind
from starling.api.meta import Fields, ReconciledStatus, Resource, Status
from starling.api.v1alpha1.cluster import ClusterMode
from starling.api.v1alpha1.fields import ObjectName
from starling.api.v1alpha1.rolloutstatus import Digest
from starling.api.v1alpha1.source import Revision
from starling.api.v1alpha1.template import SyncTemplate

__all__ = [
    "Assemblage",
    "AssemblageSpec",
    "AssemblageStatus",
    "Entry",
    "EntryState",
    "EntryStatus",
    "ProxyAssemblage",
    "ProxyAssemblageStatus",
    "Value",
]

EntryState = Literal["updating", "succeeded", "failed"]
MOST_ENTRIES = 1000


class Value(Fields, frozen=True, kw_only=True):
    """A binding that has been resolved."""

    name: Annotated[str, Meta(max_length=128), doc("The binding's name.")]
    value: Annotated[str, Meta(max_length=4096), doc("Its value on this cluster.")]


class Entry(SyncTemplate, frozen=True, kw_only=True):
    """One thing that the cluster runs: a SyncTemplate with an exact source and bindings resolved."""

    name: Annotated[ObjectName, doc("Its name, which is the Module's.")]
    unit: Annotated[
        str, Meta(max_length=1024), doc("The unit's id: <instance>/<hub namespace>/<kind>.<name>@<cluster>.")
    ]
    target: Annotated[Digest, doc("What a rollout moved it to.")]
    admission: Annotated[int, Meta(ge=0), doc("The Module's admission counter when it was.")] = 0
    values: Annotated[tuple[Value, ...], doc("The bindings, resolved for this cluster.")] = ()


class AssemblageSpec(Fields, frozen=True, kw_only=True):
    """All that one cluster runs."""

    instance: Annotated[str, Meta(max_length=63), doc("The installation of Starling that this comes from.")]
    mode: Annotated[ClusterMode, doc("What may be done: Active, Cordoned or Frozen.")] = "Active"
    adopted: Annotated[
        str,
        Meta(max_length=64),
        doc("The uid of the Assemblage whose entries are all known here; on any other, absence means nothing."),
    ] = ""
    released: Annotated[bool, doc("Whether the cluster is let go: everything stays there, without our marks.")] = False
    syncs: Annotated[tuple[Entry, ...], Meta(max_length=MOST_ENTRIES), OPAQUE, doc("What it runs.")] = ()


class EntryStatus(Fields, frozen=True, kw_only=True):
    """How one thing stands on the cluster."""

    name: Annotated[str, Meta(max_length=253), doc("The entry's name.")]
    target: Annotated[Digest, doc("What this is about: the target it is at, or on its way to.")] = ""
    revision: Annotated[Revision, doc("The exact version applied last.")] = ""
    state: Annotated[EntryState, doc("How far it is: updating, succeeded or failed.")] = "updating"
    readiness: Annotated[str, Meta(max_length=32), doc("How ready its objects are: the least of all.")] = "Unknown"
    message: Annotated[str, Meta(max_length=1024), doc("Why it isn't, for people.")] = ""


class AssemblageStatus(ReconciledStatus, frozen=True, kw_only=True):
    """How what the cluster runs stands."""

    agent_version: Annotated[str, Meta(max_length=64), doc("The version of Starling's agent.")] = ""
    syncs: Annotated[tuple[EntryStatus, ...], Meta(max_length=MOST_ENTRIES), doc("How each thing stands.")] = ()
    ready: Annotated[str, Meta(max_length=32), doc("How many of them have succeeded, of all: 3/4.")] = ""


class ProxyAssemblageStatus(Status, frozen=True, kw_only=True):
    """What the cluster says."""

    assemblage: Annotated[
        str, Meta(max_length=64), doc("The uid of the cluster's Assemblage, once its entries have been told.")
    ] = ""
    imported: Annotated[
        tuple[Entry, ...],
        Meta(max_length=MOST_ENTRIES),
        OPAQUE,
        doc("What it ran when it was found, until that is in spec."),
    ] = ()
    observed: Annotated[int, doc("The metadata.generation of this object that the cluster has taken in.")] = 0
    syncs: Annotated[tuple[EntryStatus, ...], Meta(max_length=MOST_ENTRIES), doc("How each thing stands.")] = ()
    ready: Annotated[str, Meta(max_length=32), doc("How many of them have succeeded, of all: 3/4.")] = ""


_COLUMNS = (
    Column("Mode", ".spec.mode", "What may be done there."),
    Column("Syncs", ".status.ready", "How many of its things have succeeded, of all."),
)


@kind(plural="proxyassemblages", short_names=("pasm",), columns=_COLUMNS)
class ProxyAssemblage(Resource, frozen=True, kw_only=True):
    """A ProxyAssemblage is all that one cluster runs, on the hub; written by Starling."""

    spec: Annotated[AssemblageSpec, doc("All that the cluster runs.")]
    status: Annotated[ProxyAssemblageStatus, doc("What the cluster says; never written by hand.")] = (
        ProxyAssemblageStatus()
    )


@kind(plural="assemblages", short_names=("asm",), columns=_COLUMNS)
class Assemblage(Resource, frozen=True, kw_only=True):
    """An Assemblage is all that this cluster runs, as its hub says; written by Starling."""

    spec: Annotated[AssemblageSpec, doc("All that the cluster runs.")]
    status: Annotated[AssemblageStatus, doc("How it stands; never written by hand.")] = AssemblageStatus()
