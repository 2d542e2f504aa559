"""`starling.dev/v1alpha1`: one file per kind, and `fields` for the types that kinds share.

    Source            what to sync, and which version of it
    Cluster           a target, by push or pull
    Module            one thing for the clusters that a selector picks, rolled out; its SyncTemplate says how to sync it
    SyncGroup         several things for such clusters, synced directly from the hub where it can connect to them
    RolloutPolicy     how fast and how carefully a change may spread; its spec, Rollout, also stands inline elsewhere
    ProxyAssemblage   all that one cluster runs, as the hub wants it: an Entry for each Module
    Assemblage        the same on the cluster itself, where each Entry becomes a
    Sync              one thing on one cluster, kept the same as in git
    Upstream          the hub that a cluster dials in to

A kind is a Resource with a `spec` and a `status`, declared by `@kind`. To add a field, add it to its struct with a
`doc`; to add a kind, write its file and name it in `starling.api.crds.KINDS`. The CRD, the roles and the field
reference follow, and the API server holds users' objects to what is declared here.
"""

from starling.api.v1alpha1.assemblage import (
    Assemblage,
    AssemblageSpec,
    AssemblageStatus,
    Entry,
    EntryState,
    EntryStatus,
    ProxyAssemblage,
    ProxyAssemblageStatus,
    Value,
)
from starling.api.v1alpha1.cluster import Cluster, ClusterMode, ClusterPhase, ClusterSpec, ClusterStatus, Pull, Push
from starling.api.v1alpha1.fields import LabelSelector, LabelSelectorRequirement, LocalSecretReference
from starling.api.v1alpha1.module import Module, ModuleOverride, ModuleSpec, ModuleStatus, PolicyReference
from starling.api.v1alpha1.rolloutpolicy import (
    Rollout,
    RolloutGate,
    RolloutPolicy,
    RolloutStage,
    RolloutWindow,
)
from starling.api.v1alpha1.rolloutstatus import (
    MOST_ADMITTED,
    MOST_FAILED,
    MOST_FAILURES,
    Admitted,
    RolloutFailure,
    RolloutPhase,
    RolloutStatus,
    RolloutSummary,
    StageApproval,
)
from starling.api.v1alpha1.source import (
    GitRef,
    GitSource,
    GitVerification,
    Source,
    SourceArtifact,
    SourceSpec,
    SourceStatus,
)
from starling.api.v1alpha1.sync import (
    ClusterReference,
    Sync,
    SyncDrift,
    SyncObjects,
    SyncOperation,
    SyncProblem,
    SyncSpec,
    SyncStatus,
)
from starling.api.v1alpha1.syncgroup import GroupSync, SyncGroup, SyncGroupSpec, SyncGroupStatus
from starling.api.v1alpha1.template import (
    MOST_PATCHES,
    Binding,
    CredentialsReference,
    ExactGit,
    HelmPackage,
    IgnoredDifferences,
    KustomizePackage,
    ObjectFieldReference,
    Package,
    Patch,
    PatchTarget,
    PlainPackage,
    SourceReference,
    SyncTemplate,
    ValuesReference,
)
from starling.api.v1alpha1.upstream import Upstream, UpstreamCluster, UpstreamSpec, UpstreamStatus

__all__ = [
    "MOST_ADMITTED",
    "MOST_FAILED",
    "MOST_FAILURES",
    "MOST_PATCHES",
    "Admitted",
    "Assemblage",
    "AssemblageSpec",
    "AssemblageStatus",
    "Binding",
    "Cluster",
    "ClusterMode",
    "ClusterPhase",
    "ClusterReference",
    "ClusterSpec",
    "ClusterStatus",
    "CredentialsReference",
    "Entry",
    "EntryState",
    "EntryStatus",
    "ExactGit",
    "GitRef",
    "GitSource",
    "GitVerification",
    "GroupSync",
    "HelmPackage",
    "IgnoredDifferences",
    "KustomizePackage",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LocalSecretReference",
    "Module",
    "ModuleOverride",
    "ModuleSpec",
    "ModuleStatus",
    "ObjectFieldReference",
    "Package",
    "Patch",
    "PatchTarget",
    "PlainPackage",
    "PolicyReference",
    "ProxyAssemblage",
    "ProxyAssemblageStatus",
    "Pull",
    "Push",
    "Rollout",
    "RolloutFailure",
    "RolloutGate",
    "RolloutPhase",
    "RolloutPolicy",
    "RolloutStage",
    "RolloutStatus",
    "RolloutSummary",
    "RolloutWindow",
    "Source",
    "SourceArtifact",
    "SourceReference",
    "SourceSpec",
    "SourceStatus",
    "StageApproval",
    "Sync",
    "SyncDrift",
    "SyncGroup",
    "SyncGroupSpec",
    "SyncGroupStatus",
    "SyncObjects",
    "SyncOperation",
    "SyncProblem",
    "SyncSpec",
    "SyncStatus",
    "SyncTemplate",
    "Upstream",
    "UpstreamCluster",
    "UpstreamSpec",
    "UpstreamStatus",
    "Value",
    "ValuesReference",
]
