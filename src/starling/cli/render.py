"""`starling render`: the exact manifests that a folder or a repository comes to."""

import asyncio
from typing import Annotated

import typer

from starling.cli import console
from starling.cli.materials import (
    CredentialsFolder,
    How,
    KeyFiles,
    KubeVersion,
    Materials,
    PathOption,
    RefOption,
    Settings,
    Strict,
    Submodules,
    ValueFiles,
    Variables,
)
from starling.objects import dump_all
from starling.rendering import KUBE_VERSION, Package

__all__ = ["render"]


def render(
    place: Annotated[str, typer.Argument(metavar="DIR|URL", help="A folder, or a git repository's address.")],
    *,
    ref: RefOption = "",
    path: PathOption = ".",
    values: ValueFiles = None,
    settings: Settings = None,
    variables: Variables = None,
    strict: Strict = False,
    kube_version: KubeVersion = KUBE_VERSION,
    api_versions: Annotated[
        list[str] | None,
        typer.Option("--api-versions", metavar="VERSION", help="What else a chart may find. May be repeated."),
    ] = None,
    release: Annotated[
        str, typer.Option("--release", metavar="NAME", help="The release; else the folder's name.")
    ] = "",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="What a chart is told.")] = "default",
    package: Annotated[Package | None, typer.Option("--package", help="What it is; else what is found there.")] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="It may fetch bases and charts from elsewhere.")
    ] = False,
    credentials: CredentialsFolder = None,
    keys: KeyFiles = None,
    submodules: Submodules = False,
) -> None:
    """Print the manifests that a kustomization, a chart or a folder of YAML comes to, as they would be applied.

    What is there decides: a kustomization, else a Chart.yaml, else every YAML and JSON file. A kustomization may refer
    to all of its repository or work tree, and to nothing outside of it.

    Exit codes: 0 printed, 2 the files or the call are wrong, 3 something failed.

    starling render ./overlays/eu --substitute CLUSTER=eu-1 --strict

    starling render https://github.com/stefanprodan/podinfo --ref '>=6 <7' --path kustomize

    starling render ./charts/web --values prod.yaml --set replicas=3 -n shop | less
    """
    how = How(
        path=path, values=values or (), settings=settings or (), variables=variables or (), strict=strict,
        kube_version=kube_version, api_versions=api_versions or (), release=release, namespace=namespace,
        package=package, allow_remote=allow_remote,
    )  # fmt: skip
    wanted = Materials.of([place], how, ref=ref, credentials=credentials, keys=keys, submodules=submodules)
    manifests = asyncio.run(wanted.manifests())
    console.data(dump_all([manifest.content for manifest in manifests]).rstrip("\n"))
