"""Asking a cluster's API server, as its administrator and over verified TLS, whether it does its work."""

import ssl
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from starling.local.cluster import LocalCluster

__all__ = ["Probe"]

NODE = {
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
NODE_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node"
DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


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

    def __init__(self, cluster: LocalCluster) -> None:
        admin = cluster.pki.pair("admin")
        context = ssl.create_default_context(cafile=str(cluster.pki.authority.certificate))
        context.load_cert_chain(admin.certificate, admin.key)
        self._session = aiohttp.ClientSession(
            cluster.server,
            connector=aiohttp.TCPConnector(ssl=context),
            timeout=aiohttp.ClientTimeout(total=5),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def control_plane(self) -> str | None:
        """Say what is missing before the API can be used."""
        return await self._lack("/readyz") or await self._lack("/api/v1/namespaces/default")

    async def workloads(self) -> str | None:
        """Say what is missing before pods can run; creates the node."""
        if await self._request("POST", "/api/v1/nodes", json=NODE) not in (201, 409):
            return "the node can't be created"
        if lack := await self._lack(DEFAULT_ACCOUNT):
            return lack
        return await self._node_lack()

    async def release_node(self) -> None:
        """Have the next kwok take the node over at once, instead of when the dead one's lease is over."""
        await self._request("DELETE", NODE_LEASE)

    async def _lack(self, path: str) -> str | None:
        status = await self._request("GET", path)
        return None if status == 200 else f"{path} answers {status or 'nothing'}"

    async def _node_lack(self) -> str | None:
        try:
            async with self._session.get("/api/v1/nodes/node") as response:
                response.raise_for_status()
                node = msgspec.json.decode(await response.read(), type=Node)
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"the node can't be read: {error}"
        ready = any(found.type == "Ready" and found.status == "True" for found in node.status.conditions)
        return None if ready else "the node isn't ready"

    async def _request(self, method: str, path: str, json: Any = None) -> int | None:
        try:
            async with self._session.request(method, path, json=json) as response:
                return response.status
        except (aiohttp.ClientError, TimeoutError):
            return None
