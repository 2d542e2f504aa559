"""One control plane: its folder, what is written there, and what of it runs."""

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from starling.files import private_folder, write_private
from starling.local.commands import AUDIT_POLICY, CLIENTS, CONTROL_PLANE, WORKLOADS
from starling.local.pki import Pki
from starling.local.processes import find

__all__ = ["LocalCluster", "State", "read_cluster"]

STATE = "cluster.json"
AUDIT = "audit.yaml"
STAGES = Path(__file__).with_name("stages.yaml")


class State(msgspec.Struct, frozen=True):
    """What has to survive a restart and isn't a file of its own. Its presence marks a folder as a cluster's.

    `made_by` is what nobody else's file of that name says: a marked folder is deleted by `down`.
    """

    made_by: Literal["starling local"]
    port: int
    workloads: bool


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A control plane on this machine, running or not."""

    name: str
    folder: Path
    port: int
    workloads: bool

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; certificate, key and authority are inside it."""
        return self.folder / "kubeconfig"

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def pki(self) -> Pki:
        """The cluster's certificates."""
        return Pki(self.folder / "pki")

    @property
    def components(self) -> tuple[str, ...]:
        """What ought to run, in the order in which it is started."""
        return CONTROL_PLANE + (WORKLOADS if self.workloads else ())

    @property
    def audit_log(self) -> Path:
        """Where the API server writes down who asked for what, if it was to."""
        return self.folder / "logs" / "audit.log"

    @property
    def audited(self) -> bool:
        """Whether it is to."""
        return (self.folder / AUDIT).exists()

    def audit(self) -> None:
        """Have it do so from its next start on."""
        private_folder(self.folder)
        write_private(self.folder / AUDIT, AUDIT_POLICY)

    def log(self, component: str) -> Path:
        """Where a component's output is kept, over all its restarts."""
        return self.folder / "logs" / f"{component}.log"

    def pids(self) -> dict[str, int]:
        """Give the process id of every component that runs right now."""
        running = {process.component: process.pid for process in find(self.folder)}
        return {component: running[component] for component in self.components if component in running}

    def save(self) -> None:
        """Write all the files that the components read at their start."""
        private_folder(self.folder).chmod(0o700)
        write_private(self.folder / STATE, msgspec.json.encode(State("starling local", self.port, self.workloads)))
        private_folder(self.folder / "logs")
        write_private(self.folder / "kwok.yaml", STAGES.read_bytes())
        self.pki.ensure(CLIENTS)
        for client in CLIENTS:
            path = self.kubeconfig if client == "admin" else self.pki.folder / f"{client}.kubeconfig"
            write_private(path, self._kubeconfig(client))

    def _kubeconfig(self, client: str) -> str:
        pair = self.pki.pair(client)
        cluster = {"server": self.server, "certificate-authority-data": encoded(self.pki.authority.certificate)}
        user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": client, "user": user}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": client}}],
            "current-context": self.name,
        }
        return yaml.safe_dump(document, sort_keys=False)


def encoded(path: Path) -> str:
    """Give a file as kubeconfigs carry it."""
    return base64.b64encode(path.read_bytes()).decode()


def read_cluster(folder: Path) -> LocalCluster | None:
    """Give the cluster whose folder this is; None if it is nobody's, another user's, or can't be read."""
    try:
        owner = folder.stat().st_uid
        state = msgspec.json.decode((folder / STATE).read_bytes(), type=State)
    except (OSError, ValueError):
        return None
    if owner != os.geteuid():  # nor are another user's processes seen, and files don't go from under those
        return None
    return LocalCluster(folder.name, folder, state.port, state.workloads)
