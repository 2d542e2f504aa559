"""Module: one versioned unit of configuration, assigned by label and rolled out."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from starling.api.declaration import ATOMIC_MAP, Column, Rule, doc, kind, rules
from starling.api.meta import Fields, ReconciledStatus, Resource
from starling.api.v1alpha1.fields import ObjectName, Selector
from starling.api.v1alpha1.rolloutpolicy import Rollout
from starling.api.v1alpha1.source import Revision
from starling.api.v1alpha1.template import SyncTemplate, TreePath

__all__ = [
    "MOST_ADMITTED",
    "Admitted",
    "Module",
    "ModuleOverride",
    "ModulePhase",
    "ModuleSpec",
    "ModuleStatus",
    "ModuleSummary",
    "PolicyReference",
]

MOST_ADMITTED = 200
"""How many clusters of one Module may be updating at once, whatever its policy says."""

ModulePhase = Literal["Pending", "Progressing", "Waiting", "Degraded", "Succeeded", "Suspended", "Removing"]
Count = Annotated[int, Meta(ge=0)]
Digest = Annotated[str, Meta(max_length=128)]


class ModuleOverride(Fields, frozen=True, kw_only=True):
    """What is different on some clusters."""

    selector: Annotated[Selector, doc("The clusters, by label.")]
    path: Annotated[TreePath | None, doc("The folder in the repository, instead of the Module's.")] = None
    values: Annotated[dict[str, Any], ATOMIC_MAP, doc("Values of the chart, on top of the Module's.")] = field(
        default_factory=dict
    )


class PolicyReference(Fields, frozen=True, kw_only=True):
    """A RolloutPolicy in the same namespace."""

    name: Annotated[ObjectName, doc("Its name.")]


@rules(Rule("!(has(self.policyRef) && has(self.rollout))", "set policyRef or rollout, not both"))
class ModuleSpec(Fields, frozen=True, kw_only=True):
    """What goes to which clusters, and how fast a change may spread."""

    selector: Annotated[Selector, doc("The clusters, by label; an empty selector picks every one.")]
    sync: Annotated[SyncTemplate, doc("What to sync there, and how.")]
    overrides: Annotated[
        tuple[ModuleOverride, ...],
        Meta(max_length=16),
        doc("What is different on some clusters; of several that select one, the first counts."),
    ] = ()
    policy_ref: Annotated[PolicyReference | None, doc("The RolloutPolicy that a change follows.")] = None
    rollout: Annotated[Rollout | None, doc("How fast and how carefully a change may spread, if no policy says.")] = None
    suspend: Annotated[bool, doc("Whether to stop rolling out; what runs stays as it is.")] = False


class Admitted(Fields, frozen=True, kw_only=True):
    """A cluster that may move to the target, or be left, and hasn't told yet that it has."""

    cluster: Annotated[ObjectName, doc("The Cluster's name.")]
    since: Annotated[datetime, doc("When it was admitted.")]
    admission: Annotated[
        Count, doc("The counter at that; what the cluster says of an entry with a lower one is from before.")
    ] = 0
    leave: Annotated[bool, doc("Whether it is to lose its entry, since the Module no longer goes there.")] = False
    restore: Annotated[
        bool, doc("Whether its time is up and it never heard of it: its entry goes back to what it runs.")
    ] = False


class ModuleSummary(Fields, frozen=True, kw_only=True):
    """How many clusters are in which state."""

    total: Annotated[Count, doc("All that the Module goes to.")] = 0
    pending: Annotated[Count, doc("Those whose turn hasn't come.")] = 0
    updating: Annotated[Count, doc("Those on their way to the target.")] = 0
    succeeded: Annotated[Count, doc("Those that are at the target, and well.")] = 0
    failed: Annotated[Count, doc("Those that failed at the target.")] = 0
    unreachable: Annotated[Count, doc("Those that aren't at the target and can't be reached.")] = 0
    held: Annotated[Count, doc("Those not at the target that are cordoned or frozen.")] = 0
    leaving: Annotated[Count, doc("Those that the Module no longer goes to, and still have it.")] = 0
    ready: Annotated[str, Meta(max_length=32), doc("Those that are at the target and well, of all: 3/4.")] = ""


class ModuleStatus(ReconciledStatus, frozen=True, kw_only=True):
    """Where the rollout stands."""

    target: Annotated[Digest, doc("What clusters are moved to: a digest of content and instructions.")] = ""
    revision: Annotated[Revision, doc("The exact version that the target was made from.")] = ""
    source_revision: Annotated[
        Revision, doc("The Source's version last seen; its content is the target's, though it may be another.")
    ] = ""
    last_good: Annotated[Digest, doc("The target that all clusters reached last.")] = ""
    phase: Annotated[ModulePhase, doc("Where the rollout stands, in one word.")] = "Pending"
    admission: Annotated[Count, doc("Counts admissions; an entry with a lower one is older.")] = 0
    admitted: Annotated[
        tuple[Admitted, ...],
        Meta(max_length=MOST_ADMITTED),
        doc("The clusters that may move now. Written before they do."),
    ] = ()
    summary: Annotated[ModuleSummary, doc("How many clusters are in which state.")] = ModuleSummary()


@kind(
    plural="modules",
    short_names=("mod",),
    columns=(
        Column("Clusters", ".status.summary.ready", "Clusters at the target and well, of all."),
        Column("Phase", ".status.phase", "Where the rollout stands."),
        Column("Revision", ".status.revision", "The exact version that is rolled out."),
    ),
)
class Module(Resource, frozen=True, kw_only=True):
    """A Module is one versioned unit of configuration, assigned to clusters by label and rolled out."""

    spec: Annotated[ModuleSpec, doc("What goes to which clusters, and how fast a change may spread.")]
    status: Annotated[ModuleStatus, doc("Where the rollout stands; never written by hand.")] = ModuleStatus()
