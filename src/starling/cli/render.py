"""`starling render`: the exact manifests that a folder or a repository comes to."""

from typing import Annotated

import typer

from starling.cli import console
from starling.cli.materials import Cluster, How, Materials
from starling.cli.options import options
from starling.objects import dump_all

__all__ = ["render"]


@options
def render(
    place: Annotated[str, typer.Argument(metavar="DIR|URL", help="A folder, or a git repository's address.")],
    *,
    how: How,
    api_versions: Annotated[
        list[str] | None,
        typer.Option("--api-versions", metavar="VERSION", help="What else a chart may find. May be repeated."),
    ] = None,
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="What a chart is told.")] = "default",
) -> None:
    """Print the manifests that a kustomization, a chart or a folder of YAML comes to, as they would be applied.

    What is there decides: a kustomization, else a Chart.yaml, else every YAML and JSON file. A kustomization may refer
    to all of its repository or work tree, and to nothing outside of it.

    Exit codes: 0 printed, 2 the files or the call are wrong, 3 something failed.

    starling render ./overlays/eu --substitute CLUSTER=eu-1 --strict

    starling render https://github.com/stefanprodan/podinfo --ref '>=6 <7' --path kustomize

    starling render ./charts/web --values prod.yaml --set replicas=3 -n shop | less
    """
    told = Cluster(api_versions=api_versions or (), namespace=namespace)
    wanted = Materials(places=[place], how=how, cluster=told)
    manifests = console.run(wanted.with_stdin().manifests())
    console.data(dump_all([manifest.content for manifest in manifests]).rstrip("\n"))
