"""`starling local`: real Kubernetes control planes on this machine, and a git server."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from starling.cli import console
from starling.cli.options import Output, OutputOption
from starling.cli.progress import counting
from starling.errors import InputError
from starling.local import GitServer, LocalCluster, LocalClusters, find_binaries

__all__ = ["app"]

app = typer.Typer(
    help="Run real Kubernetes control planes on this machine, without a container engine.", no_args_is_help=True
)

PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
FOLLOW_SECONDS = 0.2


Name = Annotated[str, typer.Argument(help="The cluster's name.", show_default=False)]


@app.command()
def up(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The clusters to have.", show_default=False)],
    workloads: Annotated[
        bool,
        typer.Option(
            "--workloads",
            help="Pods run too: controllers, a scheduler, a simulated node. Without, nobody acts on objects.",
        ),
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="The API server writes down who asked for what, in logs/audit.log.")
    ] = False,
) -> None:
    """Have these clusters run, and print their kubeconfigs' paths; what runs already is left alone.

    starling local up hub edge-1 edge-2

    starling local up demo --workloads
    """
    with counting() as report:
        clusters = console.run(LocalClusters(report=report).up(*names, workloads=workloads, audit=audit))
    for cluster in clusters:
        console.data(str(cluster.kubeconfig))


@app.command()
def down(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="The clusters to end; none: all.", show_default=False)
    ] = None,
) -> None:
    """End clusters and delete all that they kept.

    starling local down edge-1
    """
    with counting() as report:
        ended = console.run(LocalClusters(report=report).down(*(names or ())))
    if not ended:
        console.note("there are no clusters")


@app.command("list")
def list_clusters(output: OutputOption = Output.TEXT) -> None:
    """List the clusters on this machine, and what of them runs.

    starling local list -o json
    """
    clusters = LocalClusters().list()
    if output is Output.JSON:
        described = msgspec.json.encode([describe(cluster) for cluster in clusters])
        console.data(msgspec.json.format(described).decode())
        return
    if not clusters:
        console.note("there are no clusters")
        return
    rows = [("NAME", "STATUS", "WORKLOADS", "SERVER", "KUBECONFIG")]
    rows += [
        (each.name, status(each), "yes" if each.workloads else "no", each.server, str(each.kubeconfig))
        for each in clusters
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        console.data("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def describe(cluster: LocalCluster) -> dict[str, Any]:
    """Give a cluster as `list -o json` shows it."""
    return {
        "name": cluster.name,
        "status": status(cluster),
        "server": cluster.server,
        "kubeconfig": str(cluster.kubeconfig),
        "workloads": cluster.workloads,
        "pids": cluster.pids(),
    }


def status(cluster: LocalCluster) -> str:
    """Say how much of a cluster runs."""
    running = cluster.pids()
    missing = [component for component in cluster.components if component not in running]
    if not missing:
        return "running"
    return f"down: {', '.join(missing)}" if running else "stopped"


@app.command()
def kubeconfig(name: Name) -> None:
    """Print the path of a cluster's kubeconfig.

    export KUBECONFIG=$(starling local kubeconfig hub)
    """
    console.data(str(LocalClusters().get(name).kubeconfig))


@app.command("build")
def build_binaries() -> None:
    """Build Kubernetes' components with Go, once, unless the machine has them. Prints the API server's program.

    starling local build
    """
    with counting() as report:
        binaries = console.run(find_binaries(PROGRAMS, report))
    there = binaries.ready_made()
    if all(component in there for component in PROGRAMS):
        console.note(f"nothing to build, these are used: {', '.join(there.values())}")
    console.data(binaries.command("kube-apiserver")[0])


@app.command()
def logs(
    name: Name,
    component: Annotated[str | None, typer.Argument(help="One component; else all.", show_default=False)] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as the logs grow.")] = False,
) -> None:
    """Print what a cluster's components wrote.

    starling local logs hub kube-apiserver -f
    """
    cluster = LocalClusters().get(name)
    if component and component not in cluster.components:
        raise InputError(
            f"cluster {name} has no component {component}", hint=f"it has: {', '.join(cluster.components)}"
        )
    console.run(print_logs(cluster, [component] if component else list(cluster.components), follow=follow))


async def print_logs(cluster: LocalCluster, components: list[str], *, follow: bool) -> None:
    """Print whole lines of the logs, each with its component's name if there are several."""
    offsets = dict.fromkeys(components, 0)
    while True:
        for component in components:
            prefix = f"{component}: " if len(components) > 1 else ""
            offsets[component] = print_lines(cluster.log(component), offsets[component], prefix)
        if not follow:
            return
        await asyncio.sleep(FOLLOW_SECONDS)


def print_lines(log: Path, offset: int, prefix: str) -> int:
    """Print the whole lines from the offset on; give where the next one begins."""
    if not log.exists():
        return offset
    with log.open("rb") as file:
        file.seek(offset)
        whole, newline, _ = file.read().rpartition(b"\n")
    if newline:
        lines = whole.decode(errors="replace").split("\n")
        console.data("".join(f"{prefix}{line}\n" for line in lines))
    return offset + len(whole) + len(newline)


# Options after NAME are kubectl's: --help too.
@app.command(context_settings={"allow_interspersed_args": False})
def kubectl(
    name: Name,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS…", help="What to tell kubectl.", show_default=False)
    ] = None,
) -> None:
    """Run kubectl on a cluster; none need be installed.

    starling local kubectl hub get pods -A -o wide
    """
    cluster = LocalClusters().get(name)
    with counting() as report:
        binaries = console.run(find_binaries(["kubectl"], report))
    given = arguments or []
    command = [*binaries.command("kubectl"), *(given[1:] if given[:1] == ["--"] else given)]
    os.execve(command[0], command, {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})  # noqa: S606 - no shell is the point


@app.command()
def git_server(
    root: Annotated[Path, typer.Argument(help="The folder that has the repositories.", exists=True, file_okay=False)],
    port: Annotated[int, typer.Option(help="Where to listen; 0: any free port.", min=0, max=65535)] = 0,
    username: Annotated[str | None, typer.Option(help="Ask for this user name.", show_default=False)] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(help="Ask for the password in this file.", exists=True, dir_okay=False, show_default=False),
    ] = None,
) -> None:
    """Serve git repositories on this machine over HTTP until interrupted; prints the URL.

    Pushing needs a password here, or `git config http.receivepack true` in the repository.

    starling local git-server ./repositories --port 8080
    """
    if bool(username) != bool(password_file):
        raise InputError("--username and --password-file go together")
    password = password_file.read_text().rstrip("\r\n") if password_file else None
    if password_file and not password:
        raise InputError(f"there is no password in {password_file}")
    console.run(serve(GitServer(root, username, password, port)))


async def serve(server: GitServer) -> None:
    """Serve until told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        console.data(server.url)
        await stopped.wait()
