"""A hub, and another cluster that it reaches by Clusters of any name."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import yaml

from starling.api import Cluster, Sync
from starling.controllers.secrets import SECRETS
from starling.kube import Resource
from starling.local import LocalCluster
from tests.integration.controllers.syncing.stage import Stage

__all__ = ["NAMESPACES", "Elsewhere"]

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass(frozen=True)
class Elsewhere:
    """Two stages with one namespace: the hub's, where agents work, and the other cluster's."""

    hub: Stage
    there: Stage
    server: LocalCluster

    @property
    def port(self) -> int:
        """Where the other cluster's API server answers."""
        return int(self._config()["clusters"][0]["cluster"]["server"].rpartition(":")[2])

    async def put_kubeconfig(self, cluster: str, port: int | None = None) -> None:
        """Have the Secret of a Cluster say that it is there, by way of that port."""
        data = self._config()
        data["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port or self.port}"
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{cluster}-kubeconfig", "labels": {"starling.dev/kubeconfig": "cluster"}},
            "data": {"kubeconfig": base64.b64encode(json.dumps(data).encode()).decode()},
        }
        await self.hub.client.apply(SECRETS.ref(f"{cluster}-kubeconfig", self.hub.namespace), body, manager="user")

    async def put_cluster(self, cluster: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
        """Have a Cluster that the hub connects to, unless the spec says otherwise."""
        push = {} if "pull" in spec else {"push": {"kubeconfigSecret": {"name": f"{cluster}-kubeconfig"}}}
        body = {
            "apiVersion": "starling.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": cluster, "labels": labels or {}},
            "spec": push | spec,
        }
        await self.hub.client.apply(Cluster.declaration.resource.ref(cluster, self.hub.namespace), body, manager="user")

    async def add(self, cluster: str, port: int | None = None, **spec: Any) -> None:
        """Have a Cluster and its kubeconfig."""
        await self.put_kubeconfig(cluster, port)
        await self.put_cluster(cluster, **spec)

    async def put_sync(self, name: str, commit: str, cluster: str = "eu-1", **more: Any) -> Sync:
        """Have a Sync of a folder of its name that goes to a Cluster."""
        return await self.hub.put_sync(name, commit, cluster={"name": cluster}, **more)

    def place(self, cluster: str = "eu-1") -> str:
        """What the engine calls a Cluster."""
        return f"{self.hub.namespace}/{cluster}"

    def _config(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.server.kubeconfig.read_text())
        return found
