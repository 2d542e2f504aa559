"""Talking to API servers: the only code in Starling that does so over HTTP.

    config       where a cluster is and who we are: sources of Access
    transport    connections, retries, errors as types
    client       the verbs: get, list, create, apply, patch, delete, as ourselves or as someone else
    discovery    which kinds a cluster serves
    waits        how long to wait before something is tried again
    watch        list + watch as one iterator that survives whatever happens to the connection
    resources    Resource, Ref, Selection: how things are addressed; Body and Listing: what comes back
    errors       the error types

A Client is made from a source of access, finds a Resource by discovery, and addresses one object with a Ref:

    async with Client(kubeconfig(path)) as client:
        deployments = await client.discovery.resource(GroupVersionKind("apps", "v1", "Deployment"))
        await client.apply(deployments.ref("web", "default"), manifest)     # a dict, or a starling.objects.Manifest

Bodies are bytes until `Body.decode(T)` takes just the fields that T names.
"""

from starling.kube.client import EVERYTHING, FIELD_MANAGER, Client, DeleteOptions
from starling.kube.config import Access, AccessSource, default_access, in_cluster, kubeconfig, kubeconfig_data
from starling.kube.discovery import Discovery
from starling.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Closed,
    ConfigError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    NotServed,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Unreadable,
    Untrusted,
)
from starling.kube.resources import Body, Identity, Listing, Metadata, Named, Ref, Resource, Selection
from starling.kube.transport import Patience
from starling.kube.waits import Waits
from starling.kube.watch import (
    Changed,
    Deleted,
    Event,
    Interrupted,
    Memory,
    Resumed,
    Synced,
    Unread,
    WatchOptions,
    watch,
)

__all__ = [
    "EVERYTHING",
    "FIELD_MANAGER",
    "Access",
    "AccessSource",
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Body",
    "Cause",
    "Changed",
    "Client",
    "Closed",
    "ConfigError",
    "Conflict",
    "DeleteOptions",
    "Deleted",
    "Discovery",
    "Event",
    "Forbidden",
    "Gone",
    "Identity",
    "Interrupted",
    "Invalid",
    "KubeError",
    "Listing",
    "Memory",
    "Metadata",
    "Named",
    "NotFound",
    "NotServed",
    "Patience",
    "Ref",
    "Resource",
    "Resumed",
    "Selection",
    "ServerError",
    "Synced",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
    "Unread",
    "Unreadable",
    "Untrusted",
    "Waits",
    "WatchOptions",
    "default_access",
    "in_cluster",
    "kubeconfig",
    "kubeconfig_data",
    "watch",
]
