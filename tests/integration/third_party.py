"""Manifests that others publish, taken from their repositories as the Go module proxy carries them.

Go pins, checks and keeps what it downloads: the first run fetches some 20 MB, later ones ask nobody. Charts are
rendered by a Helm that starling.rendering builds, kept under `$XDG_CACHE_HOME/starling`. Call these from fixtures or
plain tests: they block, for a minute or more where Helm has yet to be built. `python -m tests.integration.third_party`
does all of this beforehand.
"""

import asyncio
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starling.local import find_binaries
from starling.local.build import SOURCES, kubernetes_version
from starling.objects import Manifest, load_manifests, refuse_duplicates
from starling.rendering import ToolMissing
from starling.rendering.tools import HELM, KUSTOMIZE, GoProgram, build

__all__ = [
    "BUNDLES",
    "Bundle",
    "Chart",
    "Files",
    "Kustomization",
    "Unavailable",
    "bundle_named",
    "helm",
    "kustomize",
    "manifests",
    "module_folder",
]


class Unavailable(Exception):
    """A bundle that can't be had here; says which and why."""


@dataclass(frozen=True, slots=True)
class Files:
    """Manifests written out: the files of the module that match a pattern."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Kustomization:
    """Manifests that kubectl's kustomize makes of a folder."""

    folder: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Manifests that Helm renders of a chart with these values set; its hooks are among them, as plain objects."""

    folder: str
    release: str
    namespace: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one project publishes at one version.

    `namespace` is where its authors put what names none; "" if everything says where it belongs. A bundle that `needs`
    another holds objects of kinds that the other defines.
    """

    name: str
    module: str
    parts: tuple[Files | Kustomization | Chart, ...]
    namespace: str = ""
    needs: str = ""


PODINFO = "github.com/stefanprodan/podinfo@v1.8.1-0.20250910200901-e86405a8674e"  # its tags are no versions to Go

BUNDLES = (
    Bundle(
        "prometheus-operator",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        (Files("bundle.yaml"),),
    ),
    Bundle(
        "cert-manager",
        "github.com/cert-manager/cert-manager@v1.21.2",
        (
            Files("deploy/manifests/01-namespace.yaml"),
            Chart(
                "deploy/charts/cert-manager",
                release="cert-manager",
                namespace="cert-manager",
                settings=("crds.enabled=true", "startupapicheck.enabled=false"),  # as its static manifests are made
            ),
        ),
    ),
    Bundle(
        "metrics-server",
        "sigs.k8s.io/metrics-server@v0.7.2",
        (Kustomization("manifests/overlays/release"),),
    ),
    Bundle(
        "argo-rollouts",
        "github.com/argoproj/argo-rollouts@v1.9.0",
        (Files("manifests/install.yaml"),),
        namespace="argo-rollouts",
    ),
    Bundle(
        "gateway-api",
        "sigs.k8s.io/gateway-api@v1.6.3",
        (Files("config/crd/standard/*.yaml"),),
    ),
    Bundle("podinfo", PODINFO, (Kustomization("deploy/overlays/production"),)),
    Bundle("podinfo-secure", PODINFO, (Files("deploy/secure/*/*.yaml"),), needs="cert-manager"),
)


def bundle_named(name: str) -> Bundle:
    """The bundle of that name."""
    return next(bundle for bundle in BUNDLES if bundle.name == name)


def manifests(bundle: Bundle) -> list[Manifest]:
    """All objects of a bundle, as published; origins name files within its repository."""
    root = module_folder(bundle.module)
    found = [manifest for part in bundle.parts for manifest in _load(bundle, root, part)]
    refuse_duplicates(found)
    return found


def _load(bundle: Bundle, root: Path, part: Files | Kustomization | Chart) -> Iterator[Manifest]:
    match part:
        case Files(pattern):
            files = sorted(root.glob(pattern))
            if not files:
                raise Unavailable(f"{bundle.name}: {bundle.module} has no {pattern}")
            for file in files:
                yield from load_manifests(file.read_bytes(), str(file.relative_to(root)))
        case Kustomization(folder):
            yield from load_manifests(_output([*_kubectl(), "kustomize", str(root / folder)], bundle.name), folder)
        case Chart(folder, release, namespace, settings):
            values = [argument for setting in settings for argument in ("--set", setting)]
            version = kubernetes_version(SOURCES)  # a Helm built this way takes clusters for Kubernetes 1.20
            options = ["--namespace", namespace, "--kube-version", version, *values]
            command = [str(helm()), "template", release, str(root / folder), *options]
            yield from load_manifests(_output(command, bundle.name), folder)


@functools.cache
def module_folder(module: str) -> Path:
    """Where Go keeps this module@version, fetched now if need be; nobody may write there."""
    done = _go("mod", "download", "-json", module)
    answer = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "Error" in answer:
        raise Unavailable(f"can't fetch {module}: {answer.get('Error') or done.stderr.strip()}")
    return Path(answer["Dir"])


@functools.cache
def helm() -> Path:
    """The Helm of a known version, built now unless an earlier run left it; who comes meanwhile waits."""
    return _built(HELM)


@functools.cache
def kustomize() -> Path:
    """The kustomize of a known version, likewise."""
    return _built(KUSTOMIZE)


def _built(tool: GoProgram) -> Path:
    try:
        return asyncio.run(build(tool, lambda _: None))
    except ToolMissing as error:
        raise Unavailable(error.message) from error


def _go(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    go = shutil.which("go")
    if not go:
        raise Unavailable("there is no Go on this machine, which fetches third-party manifests")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", **variables}
    return subprocess.run([go, *arguments], capture_output=True, text=True, check=False, env=environment)


@functools.cache
def _kubectl() -> tuple[str, ...]:
    return tuple(asyncio.run(find_binaries(["kubectl"], print)).command("kubectl"))


def _output(command: list[str], name: str) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{name}: {' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


if __name__ == "__main__":
    kustomize()
    for wanted in BUNDLES:
        manifests(wanted)
