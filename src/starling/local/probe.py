"""Asking a cluster's API server, as its administrator, whether it does its work."""

from contextlib import suppress
from typing import Final

import msgspec

from starling.kube import AlreadyExists, ApiError, Client, Resource, Unreachable

__all__ = ["Probe"]

NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
NODES: Final = Resource("", "v1", "Node", "nodes", namespaced=False)
LEASES: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "node",
        "labels": {
            "kubernetes.io/hostname": "node",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        },
    },
}


class Condition(msgspec.Struct):
    """A condition of a node."""

    type: str
    status: str


class NodeStatus(msgspec.Struct):
    """Of a node's status, what tells whether it is ready."""

    conditions: list[Condition] = []


class Node(msgspec.Struct):
    """A node, as far as we look."""

    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Probe:
    """Says what a cluster still lacks; None once it lacks nothing."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def control_plane(self) -> str | None:
        """Say what is missing before the API can be used."""
        try:
            await self._client.raw("GET", "/readyz")
            await self._client.get(NAMESPACES.ref("default"))
        except (ApiError, Unreachable) as error:
            return error.message
        return None

    async def workloads(self) -> str | None:
        """Say what is missing before pods can run; creates the node."""
        try:
            with suppress(AlreadyExists):
                await self._client.create(NODES, NODE)
            await self._client.get(ACCOUNTS.ref("default", "default"))
            node = (await self._client.get(NODES.ref("node"))).decode(Node)
        except (ApiError, Unreachable) as error:
            return error.message
        ready = any(found.type == "Ready" and found.status == "True" for found in node.status.conditions)
        return None if ready else "the node isn't ready"

    async def release_node(self) -> None:
        """Have the next kwok take the node over at once, instead of when the dead one's lease is over."""
        with suppress(ApiError, Unreachable):
            await self._client.delete(LEASES.ref("node", "kube-node-lease"))
