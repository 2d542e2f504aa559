"""Upstream: the hub that a cluster dials in to."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, field

from starling.api.declaration import Column, doc, kind
from starling.api.meta import Fields, ReconciledStatus, Resource
from starling.api.v1alpha1.fields import LocalSecretReference, ObjectName

__all__ = ["Upstream", "UpstreamCluster", "UpstreamSpec", "UpstreamStatus"]


class UpstreamCluster(Fields, frozen=True, kw_only=True):
    """What this cluster is to the hub."""

    name: Annotated[ObjectName, doc("Its name there.")]
    labels: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(max_length=64),
        doc("Labels that it asks for; it gets those that the hub lets it choose."),
    ] = field(default_factory=dict)


class UpstreamSpec(Fields, frozen=True, kw_only=True):
    """Where the hub is, and what this cluster is to it."""

    kubeconfig_secret: Annotated[
        LocalSecretReference, doc("The Secret whose entry `kubeconfig` says how; `starling enrol` makes it.")
    ]
    cluster: Annotated[UpstreamCluster, doc("What this cluster is to the hub.")]


class UpstreamStatus(ReconciledStatus, frozen=True, kw_only=True):
    """Whether the hub answers."""

    last_contact: Annotated[datetime | None, doc("When the hub last answered, as of the last change.")] = None
    token_expires: Annotated[datetime | None, doc("When the token expires; it is renewed at half of its life.")] = None


@kind(
    plural="upstreams",
    short_names=("up",),
    columns=(Column("Cluster", ".spec.cluster.name", "What this cluster is to the hub."),),
)
class Upstream(Resource, frozen=True, kw_only=True):
    """An Upstream is the hub that this cluster dials in to."""

    spec: Annotated[UpstreamSpec, doc("Where the hub is, and what this cluster is to it.")]
    status: Annotated[UpstreamStatus, doc("Whether the hub answers; never written by hand.")] = UpstreamStatus()
