"""SyncGroup: several things for the clusters that a selector picks, synced directly from here and rolled out."""

from typing import Annotated

from msgspec import Meta

from starling.api.declaration import Column, Rule, checked, doc, kind, matching, rules
from starling.api.meta import Fields, Resource
from starling.api.v1alpha1.fields import Selector
from starling.api.v1alpha1.module import PolicyReference
from starling.api.v1alpha1.rolloutpolicy import Rollout
from starling.api.v1alpha1.rolloutstatus import RolloutStatus
from starling.api.v1alpha1.template import SyncTemplate

__all__ = ["GroupSync", "SyncGroup", "SyncGroupSpec", "SyncGroupStatus"]

PartName = Annotated[
    str,
    Meta(min_length=1, max_length=63),
    matching("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be lower-case letters, digits and dashes, such as base"),
]
_NAMES_DIFFER = checked(
    Rule(
        "self.all(sync, self.exists_one(other, other.name == sync.name))",
        "no two syncs may have the same name",
    )
)


class GroupSync(SyncTemplate, frozen=True, kw_only=True):
    """One of the things that a group syncs to each cluster."""

    name: Annotated[PartName, doc("Its name in the group.")]


@rules(
    Rule("!(has(self.policyRef) && has(self.rollout))", "set policyRef or rollout, not both"),
    Rule(
        "has(self.selector) || !(has(self.policyRef) || has(self.rollout))",
        "without a selector it is for this cluster alone, all at once: leave out policyRef and rollout",
    ),
    Rule("has(self.selector) == has(oldSelf.selector)", "selector can't be added or removed: make another SyncGroup"),
)
class SyncGroupSpec(Fields, frozen=True, kw_only=True):
    """What goes to which clusters, and how fast a change may spread."""

    selector: Annotated[
        Selector | None, doc("The clusters, by label; an empty selector picks every one, an absent one this cluster.")
    ] = None
    syncs: Annotated[
        tuple[GroupSync, ...],
        Meta(min_length=1, max_length=16),
        _NAMES_DIFFER,
        doc("What to sync to each of them, and how."),
    ]
    policy_ref: Annotated[PolicyReference | None, doc("The RolloutPolicy that a change follows.")] = None
    rollout: Annotated[Rollout | None, doc("How fast and how carefully a change may spread, if no policy says.")] = None
    suspend: Annotated[bool, doc("Whether to stop rolling out; what runs stays as it is.")] = False


class SyncGroupStatus(RolloutStatus, frozen=True, kw_only=True):
    """Where the rollout stands."""


@kind(
    plural="syncgroups",
    short_names=("sg",),
    columns=(
        Column("Clusters", ".status.summary.ready", "Clusters at the target and well, of all."),
        Column("Phase", ".status.phase", "Where the rollout stands."),
        Column("Stage", ".status.stage", "The stage whose turn it is."),
        Column("Revision", ".status.revision", "The exact version that is rolled out."),
    ),
)
class SyncGroup(Resource, frozen=True, kw_only=True):
    """A SyncGroup syncs several things directly from here to the clusters that a selector picks."""

    spec: Annotated[SyncGroupSpec, doc("What goes to which clusters, and how fast a change may spread.")]
    status: Annotated[SyncGroupStatus, doc("Where the rollout stands; never written by hand.")] = SyncGroupStatus()
