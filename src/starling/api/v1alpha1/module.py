"""Module: one versioned unit of configuration, assigned by label and rolled out."""

from typing import Annotated, Any

from msgspec import Meta, field

from starling.api.declaration import ATOMIC_MAP, Column, Rule, doc, kind, rules
from starling.api.meta import Fields, Resource
from starling.api.v1alpha1.fields import ObjectName, Selector
from starling.api.v1alpha1.rolloutpolicy import Rollout
from starling.api.v1alpha1.rolloutstatus import RolloutStatus
from starling.api.v1alpha1.template import MOST_PATCHES, Patch, SyncTemplate, TreePath

__all__ = [
    "Module",
    "ModuleOverride",
    "ModuleSpec",
    "ModuleStatus",
    "PolicyReference",
]


class ModuleOverride(Fields, frozen=True, kw_only=True):
    """What is different on some clusters."""

    selector: Annotated[Selector, doc("The clusters, by label.")]
    path: Annotated[TreePath | None, doc("The folder in the repository, instead of the Module's.")] = None
    values: Annotated[dict[str, Any], ATOMIC_MAP, doc("Values of the chart, on top of the Module's.")] = field(
        default_factory=dict
    )
    patches: Annotated[
        tuple[Patch, ...], Meta(max_length=MOST_PATCHES), doc("Changes to what was rendered, after the Module's own.")
    ] = ()


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


class ModuleStatus(RolloutStatus, frozen=True, kw_only=True):
    """Where the rollout stands."""


@kind(
    plural="modules",
    short_names=("mod",),
    columns=(
        Column("Clusters", ".status.summary.ready", "Clusters at the target and well, of all."),
        Column("Phase", ".status.phase", "Where the rollout stands."),
        Column("Stage", ".status.stage", "The stage whose turn it is."),
        Column("Revision", ".status.revision", "The exact version that is rolled out."),
    ),
)
class Module(Resource, frozen=True, kw_only=True):
    """A Module is one versioned unit of configuration, assigned to clusters by label and rolled out."""

    spec: Annotated[ModuleSpec, doc("What goes to which clusters, and how fast a change may spread.")]
    status: Annotated[ModuleStatus, doc("Where the rollout stands; never written by hand.")] = ModuleStatus()
