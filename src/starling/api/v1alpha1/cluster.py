"""Cluster: a target, chosen by its labels and reached by push or pull."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from starling.api.declaration import SET, Column, doc, exactly_one_of, kind, rules
from starling.api.meta import Fields, ReconciledStatus, Resource
from starling.api.v1alpha1.fields import LabelKey, LocalSecretReference

__all__ = ["Cluster", "ClusterMode", "ClusterPhase", "ClusterSpec", "ClusterStatus", "Pull", "Push"]

ClusterMode = Literal["Active", "Cordoned", "Frozen"]
ClusterPhase = Literal["Pending", "Ready", "Unreachable", "Leaving"]


class Push(Fields, frozen=True, kw_only=True):
    """The hub connects to the cluster."""

    kubeconfig_secret: Annotated[
        LocalSecretReference,
        doc("The Secret whose entry `kubeconfig` says how; certificates and tokens must be in it, not in files."),
    ]


class Pull(Fields, frozen=True, kw_only=True):
    """The cluster connects to the hub."""

    allowed_labels: Annotated[
        tuple[LabelKey, ...], Meta(max_length=64), SET, doc("Keys of labels that the cluster may choose by itself.")
    ] = ()


@rules(exactly_one_of("push", "pull"))
class ClusterSpec(Fields, frozen=True, kw_only=True):
    """How the cluster is reached, and what may be done there."""

    push: Annotated[Push | None, doc("The hub connects to the cluster.")] = None
    pull: Annotated[Pull | None, doc("The cluster connects to the hub.")] = None
    mode: Annotated[
        ClusterMode,
        doc("Active; Cordoned: nothing new arrives, drift is still corrected; Frozen: nothing is touched."),
    ] = "Active"


class ClusterStatus(ReconciledStatus, frozen=True, kw_only=True):
    """Whether the cluster is there, and what it says of itself."""

    phase: Annotated[
        ClusterPhase,
        doc("Pending: not heard of yet. Ready: it answers, or calls. Unreachable: no longer. Leaving: it is let go."),
    ] = "Pending"
    last_seen: Annotated[datetime | None, doc("When it was last heard of, as of the last change of phase.")] = None
    uid: Annotated[str, Meta(max_length=64), doc("The uid of its namespace kube-system, which tells it apart.")] = ""
    kubernetes_version: Annotated[str, Meta(max_length=64), doc("Its Kubernetes version.")] = ""
    agent_version: Annotated[str, Meta(max_length=64), doc("The version of Starling's agent there.")] = ""
    requested_labels: Annotated[
        dict[str, str], Meta(max_length=64), doc("Labels that it asks for; the hub copies those it may choose.")
    ] = field(default_factory=dict)


@kind(
    plural="clusters",
    short_names=("scl",),
    columns=(
        Column("Phase", ".status.phase", "Whether it is there."),
        Column("Mode", ".spec.mode", "What may be done there."),
        Column("Kubernetes", ".status.kubernetesVersion", "Its Kubernetes version."),
        Column("Agent", ".status.agentVersion", "The version of Starling's agent there.", priority=1),
    ),
)
class Cluster(Resource, frozen=True, kw_only=True):
    """A Cluster is a target: Modules choose it by its labels."""

    spec: Annotated[ClusterSpec, doc("How the cluster is reached, and what may be done there.")]
    status: Annotated[ClusterStatus, doc("Whether the cluster is there; never written by hand.")] = ClusterStatus()
