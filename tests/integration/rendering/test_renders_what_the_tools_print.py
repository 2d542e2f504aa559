"""Public examples render to exactly what `kustomize build` and `helm template` print: same objects, same order."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from starling.local import find_binaries
from starling.objects import dump, load_manifests
from starling.rendering import KUBE_VERSION, Cache, Renderer, Request, Tools
from tests.integration.third_party import PODINFO, module_folder

CERT_MANAGER = "github.com/cert-manager/cert-manager@v1.21.2"
METRICS_SERVER = "sigs.k8s.io/metrics-server@v0.7.2"


def printed(*command: str) -> list[Any]:
    """The objects that a command prints."""
    done = subprocess.run(command, capture_output=True, check=True)
    return [manifest.content for manifest in load_manifests(done.stdout)]


@pytest.mark.parametrize(
    ("module", "path"),
    [
        (PODINFO, "kustomize"),
        (PODINFO, "deploy/overlays/production"),
        (PODINFO, "deploy/bases/backend"),
        (METRICS_SERVER, "manifests/overlays/release"),
        (METRICS_SERVER, "manifests/overlays/release-ha"),
    ],
)
async def test_kustomizations(renderer: Renderer, module: str, path: str) -> None:
    """A kustomization is what kustomize builds."""
    root = module_folder(module)
    rendered = await renderer.render(root, None, Request(path=path))
    assert len(rendered.manifests) > 1
    assert [manifest.content for manifest in rendered.manifests] == printed(*renderer.tools.kustomize, str(root / path))
    assert {str(manifest.origin) for manifest in rendered.manifests} == {f"{path}/kustomization.yaml"}


async def test_kubectl_renders_the_same(tools: Tools) -> None:
    """The kustomize within kubectl does as well."""
    root = module_folder(PODINFO)
    kubectl = (await find_binaries(["kubectl"], print)).command("kubectl")
    request = Request(path="deploy/overlays/production")
    by_kubectl = await Renderer(Tools((*kubectl, "kustomize"))).render(root, None, request)
    assert by_kubectl == await Renderer(tools).render(root, None, request)


VALUES: list[dict[str, Any]] = [
    {"replicaCount": 3, "ingress": {"enabled": True}, "hpa": {"enabled": True}, "redis": {"enabled": True}},
    {"replicaCount": 5, "ui": {"message": "übers: {{ x }}"}},
]


@pytest.mark.parametrize(
    ("module", "path", "given", "objects"),
    [
        (PODINFO, "charts/podinfo", ([], []), 2),
        (PODINFO, "charts/podinfo", (VALUES, ["ui.color=#123456", "service.httpPort=80"]), 5),
        (CERT_MANAGER, "deploy/charts/cert-manager", ([], []), 30),
        (
            CERT_MANAGER,
            "deploy/charts/cert-manager",
            ([{"crds": {"enabled": True}}], ["startupapicheck.enabled=false"]),
            40,
        ),
    ],
    ids=["podinfo", "podinfo with values", "cert-manager", "cert-manager with CRDs"],
)
async def test_charts(  # noqa: PLR0917
    renderer: Renderer, tmp_path: Path, module: str, path: str, given: tuple[list[Any], list[str]], objects: int
) -> None:
    """A chart is what Helm prints, hooks and CRDs among it, tests left out."""
    root = module_folder(module)
    values, settings = given
    request = Request(path=path, release_name="web", namespace="apps", values=values, settings=settings)
    rendered = await renderer.render(root, None, request)
    assert len(rendered.manifests) >= objects
    options = ["--namespace", "apps", "--include-crds", "--skip-tests", "--kube-version", KUBE_VERSION]
    for number, each in enumerate(values):
        file = tmp_path / f"{number}.yaml"
        file.write_text(dump(each))
        options += ["--values", str(file)]
    options += [argument for setting in settings for argument in ("--set", setting)]
    command = (*renderer.tools.helm, "template", "web", str(root / path), *options)
    assert [manifest.content for manifest in rendered.manifests] == printed(*command)
    for manifest in rendered.manifests:
        assert (root / manifest.origin.file).is_file(), manifest.origin


async def test_two_hundred_at_once_are_rendered_once(tools: Tools, tmp_path: Path) -> None:
    """One run of kustomize serves all who ask for the same thing, in this process and in those after it."""
    counted = tmp_path / "counted"
    program = tmp_path / "kustomize"
    program.write_text(f'#!/bin/sh\necho run >> {counted}\nexec {tools.kustomize[0]} "$@"\n')
    program.chmod(0o755)
    root = module_folder(PODINFO)
    for _ in range(2):
        renderer = Renderer(Tools((str(program), "build")), cache=Cache(tmp_path / "cache"))
        asked = [
            renderer.render(root, "sha256:1", Request(path="kustomize", namespace=f"cluster-{number}"))
            for number in range(200)
        ]
        found = await asyncio.gather(*asked)
        assert all(each is found[0] for each in found)
        assert len(found[0].manifests) == 3
    assert counted.read_text().splitlines() == ["run"]
    await renderer.render(root, "sha256:1", Request(path="kustomize"), no_cache=True)
    await renderer.render(root, "sha256:2", Request(path="kustomize"))
    await renderer.render(root, None, Request(path="kustomize"))
    assert counted.read_text().splitlines() == ["run"] * 4
