"""What tests of apply, diff, delete and tree share: manifests, and a command that is looked at while it runs."""

import asyncio
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Starling
from tests.integration.engine.traffic import Asked, Traffic

__all__ = ["On", "config_map", "deployment", "run_through", "take_record", "write"]


class On:
    """Commands on one cluster, each in a namespace of the test's own."""

    def __init__(self, starling: Starling, kubectl: Sequence[str], kubeconfig: str, namespace: str) -> None:
        self._starling = starling
        self._kubectl = (*kubectl, "--kubeconfig", kubeconfig)
        self.where = ("--kubeconfig", kubeconfig, "-n", namespace)
        self.namespace = namespace
        self.kubectl("create", "namespace", namespace)

    def run(self, command: str, *arguments: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """One of our commands."""
        return self._starling(command, *self.where, *arguments, stdin=stdin)

    def ok(self, command: str, *arguments: str) -> list[str]:
        """The lines of one that must succeed."""
        done = self.run(command, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    def kubectl(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Kubectl on the cluster."""
        return subprocess.run([*self._kubectl, *arguments], capture_output=True, text=True, check=False)

    def get(self, kind: str, name: str) -> Any:
        """An object; None if it isn't there."""
        found = self.kubectl("get", kind, name, "-n", self.namespace, "-o", "json", "--show-managed-fields")
        return json.loads(found.stdout) if found.returncode == 0 else None


async def run_through(
    traffic: Traffic, environment: dict[str, str], on: On, folder: Path, *arguments: str
) -> tuple[int | None, str]:
    """Run a command by a way that counts requests, or meddles; its exit code, and what it said."""
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "", "namespace": on.namespace}}],
        "clusters": [{"name": "it", "cluster": {"server": (await traffic.access()).server}}],
    }
    (folder / "counted.kubeconfig").write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        *("starling", *arguments, "--kubeconfig", str(folder / "counted.kubeconfig")),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


def take_record(traffic: Traffic, on: On, name: str, key: str = "state", text: str = "{}") -> None:
    """Have someone else write a unit's record when a command has read it once, just before it looks again."""

    async def meddle(asked: Asked) -> None:
        if asked.verb == "get" and [each.name for each in traffic.gets()].count(name) == 2:
            patch = ("-n", on.namespace, "-p", json.dumps({"data": {key: text}}))
            done = await asyncio.to_thread(on.kubectl, "patch", "configmap", name, *patch)
            assert done.returncode == 0, done.stderr

    traffic.before = meddle


def write(folder: Path, files: Mapping[str, str]) -> str:
    """The folder's path, after these files were written to it and all others deleted."""
    for old in folder.rglob("*.yaml"):
        old.unlink()
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return str(folder)


def config_map(name: str, value: str = "one", wave: int = 0) -> str:
    """A ConfigMap's manifest."""
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
        f'  annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}\ndata: {{value: {value}}}\n'
    )


def deployment(name: str) -> str:
    """A Deployment's manifest."""
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: main, image: nginx}}]}}
"""
