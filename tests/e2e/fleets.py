"""A fleet on this machine: a hub, clusters, git repositories, and Starling's own processes as people run them."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from starling.errors import StarlingError
from starling.kube import Client, NotFound, NotServed, kubeconfig
from starling.local import LocalCluster, LocalClusters
from starling.objects import GroupVersionKind
from tests.e2e.parts import Repository, Service
from tests.waiting import until

__all__ = [
    "HEARTBEAT",
    "PLATFORM",
    "Fleet",
    "Repository",
    "Service",
    "audit",
    "config_map",
    "environ",
    "fleet_of",
    "in_motion",
    "module",
    "ours",
    "source",
]

PLATFORM = "starling-system"
HEARTBEAT = "4s"
WITHIN = 120.0
"""Seconds for what takes a few on a machine that has time."""

_KINDS = {
    "ConfigMap": GroupVersionKind("", "v1", "ConfigMap"),
    "Secret": GroupVersionKind("", "v1", "Secret"),
    "Namespace": GroupVersionKind("", "v1", "Namespace"),
    "CronJob": GroupVersionKind("batch", "v1", "CronJob"),
    "Deployment": GroupVersionKind("apps", "v1", "Deployment"),
    "Lease": GroupVersionKind("coordination.k8s.io", "v1", "Lease"),
}


_OURS = ("Source", "Cluster", "Module", "SyncGroup", "ProxyAssemblage", "Upstream")


class Fleet:
    """All of it. Mutable: what has been started."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = {**environment, "STARLING_LOCAL_DIR": str(folder / "clusters")}
        self.environment.pop("KUBECONFIG", None)
        self.clusters: dict[str, LocalCluster] = {}
        self.services: dict[str, Service] = {}
        self._clients: dict[str, Client] = {}
        self.logs = folder / "logs"
        self.repositories = folder / "repositories"
        for each in (self.logs, self.repositories, folder / "data"):
            each.mkdir(parents=True)

    # Starting and ending

    def up(self, *names: str, workloads: bool = False, audit: bool = False) -> None:
        """Have clusters run."""
        found = asyncio.run(LocalClusters(self.folder / "clusters").up(*names, workloads=workloads, audit=audit))
        self.clusters |= {each.name: each for each in found}

    def lose(self, *names: str) -> None:
        """Have clusters be gone, with all that they held."""
        asyncio.run(LocalClusters(self.folder / "clusters").down(*names))

    def start(self, name: str, *command: str) -> Service:
        """Have a process run."""
        service = Service(name, command, self.environment, self.logs / f"{name}.log")
        self.services[name] = service
        return service

    def git_server(self, username: str = "", password: str = "", port: int = 0) -> str:
        """Have repositories served, and give the server's address."""
        address = self.git_server_in_background(username, password, port)
        asyncio.run(until(lambda: bool(address()), within=WITHIN))
        return address()

    def git_server_in_background(self, username: str = "", password: str = "", port: int = 0) -> Callable[[], str]:
        """Have repositories served, and give what tells the server's address once it is known."""
        extra: list[str] = []
        root = self.repositories
        if username:
            root = self.folder / "private"
            root.mkdir(exist_ok=True)
            (self.folder / "password").write_text(password)
            extra = ["--username", username, "--password-file", str(self.folder / "password")]
        name = "private-git" if username else "git"
        service = self.start(name, "starling", "local", "git-server", str(root), "--port", str(port), *extra)
        return lambda: next((line for line in reversed(service.said.splitlines()) if line.startswith("http")), "")

    def controller(self, *options: str, name: str = "controller") -> Service:
        """Have the hub's controller run, or run again, with the rights that `starling install` gives it.

        Several of them need names, controller-…, and `--leader-election`.
        """
        return self._service(name, self._account("hub", "starling-controller"), *options)

    def agent(self, cluster: str, *options: str) -> Service:
        """Have a cluster's agent run, or run again."""
        return self._service(f"agent-{cluster}", self.config(cluster), "--heartbeat", HEARTBEAT, *options)

    def _account(self, cluster: str, name: str) -> str:
        """A kubeconfig of one of our own accounts."""
        with ThreadPoolExecutor(1) as pool:  # whoever starts a process may have an event loop already
            token = pool.submit(lambda: asyncio.run(self._token(cluster, name))).result()
        config = yaml.safe_load(self.clusters[cluster].kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.folder / f"{cluster}-{name}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return str(path)

    async def _token(self, cluster: str, name: str) -> str:
        path = f"/api/v1/namespaces/{PLATFORM}/serviceaccounts/{name}/token"
        async with Client(kubeconfig(self.clusters[cluster].kubeconfig)) as client:
            return str((await client.raw("POST", path, body={})).json()["status"]["token"])

    def _service(self, name: str, config: str, *options: str) -> Service:
        what = name.partition("-")[0]
        where = ("--kubeconfig", config, "--data", str(self.folder / "data" / name))
        # A process that is killed can't give its Lease back; whoever starts it again here knows that it is gone.
        return self.start(name, "starling", what, *where, "--no-leader-election", "--log-format", "text", *options)

    def end(self) -> None:
        """End everything."""
        for service in self.services.values():
            if service.process.poll() is None:
                service.process.terminate()
        for service in self.services.values():
            service.stop()
        asyncio.run(LocalClusters(self.folder / "clusters").down())

    # Commands

    def starling(self, *arguments: str) -> str:
        """What one of our commands prints, which must succeed."""
        code, output, errors = self.run(*arguments)
        assert code == 0, f"{arguments}: {output}{errors}"
        return output

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """What becomes of one of our commands: its exit code, stdout and stderr."""
        done = subprocess.run(
            ["starling", *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def config(self, cluster: str) -> str:
        """A cluster's kubeconfig."""
        return str(self.clusters[cluster].kubeconfig)

    def add(self, name: str, labels: str) -> None:
        """Add a cluster that the hub connects to."""
        hub = ("--hub", self.config("hub"))
        self.starling("cluster", "add", name, "--kubeconfig", self.config(name), "--labels", labels, *hub)

    def enrol(self, name: str, labels: str, *options: str) -> None:
        """Enrol a cluster that connects to the hub."""
        hub = ("--kubeconfig", self.config("hub"))
        self.starling("enrol", name, "--labels", labels, "--into", self.config(name), *hub, *options)

    # Objects

    def client(self, cluster: str) -> Client:
        """A client of a cluster's administrator, for one event loop; `closed` ends it."""
        if cluster not in self._clients:
            self._clients[cluster] = Client(kubeconfig(self.clusters[cluster].kubeconfig))
        return self._clients[cluster]

    async def closed(self) -> None:
        """End all clients."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def get(self, cluster: str, kind: str, name: str, namespace: str = PLATFORM) -> Any:
        """An object, None if there is none."""
        client = self.client(cluster)
        gvk = _KINDS.get(kind) or GroupVersionKind("starling.dev", "v1alpha1", kind)
        with suppress(NotFound, NotServed):
            resource = await client.discovery.resource(gvk)
            return (await client.get(resource.ref(name, namespace if resource.namespaced else ""))).json()
        return None

    async def apply(self, cluster: str, *documents: Mapping[str, Any]) -> None:
        """Have objects so, as someone else than Starling."""
        client = self.client(cluster)
        for each in documents:
            resource = await client.discovery.resource(
                GroupVersionKind.from_api_version(each["apiVersion"], each["kind"])
            )
            metadata = each["metadata"]
            ref = resource.ref(metadata["name"], metadata.get("namespace", "") if resource.namespaced else "")
            await client.apply(ref, each, manager="someone")

    async def patch(self, cluster: str, kind: str, name: str, patch: Any, namespace: str = PLATFORM) -> None:
        """Change an object, as someone else than Starling."""
        client = self.client(cluster)
        gvk = _KINDS.get(kind) or GroupVersionKind("starling.dev", "v1alpha1", kind)
        resource = await client.discovery.resource(gvk)
        await client.merge_patch(resource.ref(name, namespace), patch, manager="someone")

    async def delete(self, cluster: str, kind: str, name: str, namespace: str = PLATFORM) -> None:
        """Delete an object."""
        client = self.client(cluster)
        gvk = _KINDS.get(kind) or GroupVersionKind("starling.dev", "v1alpha1", kind)
        resource = await client.discovery.resource(gvk)
        await client.delete(resource.ref(name, namespace))

    async def data(self, cluster: str, name: str, namespace: str = "default") -> dict[str, str] | None:
        """What a ConfigMap holds; None if there is none."""
        found = await self.get(cluster, "ConfigMap", name, namespace)
        return None if found is None else found.get("data", {})

    async def has(self, name: str, wanted: Mapping[str, Mapping[str, str]], namespace: str = "default") -> bool:
        """Whether ConfigMaps of a name hold this, by cluster."""
        found = await asyncio.gather(*(self.data(cluster, name, namespace) for cluster in wanted))
        return list(found) == [dict(each) for each in wanted.values()]

    async def rolled_out(self, module: str) -> Any:
        """The Module, once all its clusters are at its newest target; else None."""
        found = await self.get("hub", "Module", module)
        status = found["status"]
        whole = status.get("summary", {}).get("succeeded") == status.get("summary", {}).get("total")
        return found if whole and status.get("phase") == "Succeeded" and not status.get("admitted") else None

    async def eventually(self, question: Callable[[], Any], what: str = "") -> Any:
        """The first true answer; if none comes, what all processes said last."""
        try:
            return await until(question, within=WITHIN)
        except TimeoutError:
            stand = await self.standing()
            raise AssertionError(f"{what or 'it'} never came true\n{stand}\n{self.last_words()}") from None

    async def standing(self) -> str:
        """How everything of ours stands, on all clusters."""
        found = []
        for cluster in self.clusters:
            for kind in (*_OURS, "Assemblage", "Sync"):
                path = f"/apis/starling.dev/v1alpha1/{kind.lower().removesuffix('y')}s"
                with suppress(StarlingError):
                    listing = (await self.client(cluster).once().raw("GET", path)).json()
                    found += [
                        f"{cluster} {kind} {each['metadata']['name']} generation {each['metadata'].get('generation')}: "
                        f"{json.dumps(each.get('status'))[:1500]}"
                        for each in listing["items"]
                    ]
        return "\n".join(found)

    def last_words(self) -> str:
        """The end of every process' log."""
        return "\n".join(f"--- {name}\n{service.said[-4000:]}" for name, service in self.services.items())


@contextmanager
def fleet_of(folder: Path, environment: Mapping[str, str]) -> Iterator[Fleet]:
    """A fleet that is ended with the block; nobody in it may have written the same thing again and again."""
    fleet = Fleet(folder, environment)
    try:
        yield fleet
    finally:
        fleet.end()
    vain = [name for name, each in fleet.services.items() if each.has_said("isn't kept as it was written")]
    assert not vain, f"what {', '.join(vain)} wrote wasn't kept"


def config_map(name: str, namespace: str = "default", **data: str) -> str:
    """A manifest."""
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}
    )


def source(name: str, url: str, **more: Any) -> dict[str, Any]:
    """A Source that follows main, and looks often."""
    return ours("Source", name, {"git": {"url": url, "ref": {"branch": "main"}, **more}, "interval": "1s"})


def module(
    name: str, path: str, *, selector: Mapping[str, str] | None = None, of: str = "fleet", **more: Any
) -> dict[str, Any]:
    """A Module of one path for the clusters with some labels."""
    sync = {"source": {"name": of}, "path": path, **more.pop("sync", {})}
    return ours("Module", name, {"selector": {"matchLabels": dict(selector or {})}, "sync": sync, **more})


def ours(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object of one of our kinds."""
    metadata = {"name": name, "namespace": PLATFORM}
    return {"apiVersion": "starling.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def audit(cluster: LocalCluster) -> list[dict[str, Any]]:
    """What was asked of a cluster's API server, in order."""
    with cluster.audit_log.open() as lines:
        return [json.loads(line) for line in lines]


def in_motion(events: Sequence[Mapping[str, Any]], name: str) -> int:
    """The most clusters that were at once between being given another target and having reported it, by the log.

    An entry is in motion from the write that gives it a target which the cluster doesn't run, until the cluster, having
    taken in all that was written, says that it got there or failed.
    """
    moving: set[str] = set()
    most = 0
    for event in events:
        about, written = event.get("objectRef", {}), event.get("responseObject") or {}
        if about.get("resource") != "proxyassemblages" or event["verb"] != "patch" or "spec" not in written:
            continue
        status = written.get("status", {})
        given = next((each["target"] for each in written["spec"].get("syncs", []) if each["name"] == name), None)
        told: Mapping[str, Any] = next((each for each in status.get("syncs", []) if each["name"] == name), {})
        observed = status.get("observed", 0) >= written["metadata"]["generation"]
        arrived = observed and told.get("target") == given and told.get("state") in ("succeeded", "failed")
        if arrived or given is None:
            moving.discard(about["name"])
        elif told.get("target") != given:
            moving.add(about["name"])
        most = max(most, len(moving))
    return most


def environ() -> dict[str, str]:
    """The environment of this process, without what is a user's own."""
    return {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
