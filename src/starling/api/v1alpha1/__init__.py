"""`starling.dev/v1alpha1`: one file per kind, and `fields` for the types that kinds share.

    Source          what to sync, and which version of it
    RolloutPolicy   how fast and how carefully a change may spread; its spec, Rollout, also stands inline elsewhere

A kind is a Resource with a `spec` and a `status`, declared by `@kind`. To add a field, add it to its struct with a
`doc`; to add a kind, write its file and name it in `starling.api.crds.KINDS`. The CRD, the roles and the field
reference follow, and the API server holds users' objects to what is declared here.
"""

from starling.api.v1alpha1.fields import LabelSelector, LabelSelectorRequirement, LocalSecretReference
from starling.api.v1alpha1.rolloutpolicy import (
    Rollout,
    RolloutGate,
    RolloutPolicy,
    RolloutStage,
    RolloutWindow,
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

__all__ = [
    "GitRef",
    "GitSource",
    "GitVerification",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LocalSecretReference",
    "Rollout",
    "RolloutGate",
    "RolloutPolicy",
    "RolloutStage",
    "RolloutWindow",
    "Source",
    "SourceArtifact",
    "SourceSpec",
    "SourceStatus",
]
