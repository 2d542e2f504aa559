"""`starling controller` and `starling agent`: what runs for as long as there is a fleet."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from starling.cli import console
from starling.cli.materials import cache_folder
from starling.cli.options import Context, Kubeconfig, options, seconds
from starling.kube import default_access

__all__ = ["agent", "controller"]


@dataclass(frozen=True)
class Running:
    """How a process runs."""

    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Where fetched and rendered data is kept; it may be lost."),
    ] = None
    elect: Annotated[
        bool,
        typer.Option("--leader-election/--no-leader-election", help="Work only while holding the Lease for it."),
    ] = True
    address: Annotated[str, typer.Option("--address", help="Where to answer probes and metrics.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", help="The port for them; 0: any that is free.")] = 0
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option("--log-level", help="What to log.")
    ] = "info"
    log_format: Annotated[Literal["json", "text"], typer.Option("--log-format", help="How to log, to stderr.")] = "json"

    def folder(self, what: str) -> Path:
        """Where data is kept."""
        return (self.data or cache_folder() / what).absolute()


@options
def controller(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    instance: Annotated[
        str,
        typer.Option(
            "--instance",
            help="This installation's name, part of every unit's id: keep it when a hub is built anew.",
        ),
    ] = "fleet",
    lost_after: Annotated[
        str,
        typer.Option(
            "--lost-after",
            metavar="DURATION",
            help="A push cluster that doesn't answer for so long is unreachable; pull clusters after three heartbeats.",
        ),
    ] = "180s",
    running: Running,
) -> None:
    """Be the hub: follow Sources, roll Modules out, deliver to clusters; until interrupted.

    starling controller --kubeconfig hub.yaml

    starling controller --instance production --log-format text
    """
    from starling.operator import Settings, run_controller  # noqa: PLC0415 - half a second that others needn't wait for
    from starling.runtime import structured_logs  # noqa: PLC0415 - as above

    structured_logs(running.log_level, running.log_format)
    settings = Settings(
        instance=instance, lost_after=seconds(lost_after), data=running.folder("controller"), elect=running.elect,
        address=running.address, port=running.port,
    )  # fmt: skip
    console.run(run_controller(default_access(kubeconfig, context), settings))


@options
def agent(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    instance: Annotated[
        str,
        typer.Option("--instance", help="What units are called after that no hub names; on a hub, its own and -hub."),
    ] = "local",
    heartbeat: Annotated[
        str, typer.Option("--heartbeat", metavar="DURATION", help="How often to tell an Upstream that we are there.")
    ] = "60s",
    running: Running,
) -> None:
    """Make a cluster match: its Assemblages and Syncs, and what its Upstreams say; until interrupted.

    On a hub, Syncs with a cluster go to that cluster.

    starling agent --kubeconfig edge-7.yaml

    starling agent --kubeconfig hub.yaml --instance fleet-hub
    """
    from starling.operator import AgentSettings, run_agent  # noqa: PLC0415 - as above
    from starling.runtime import structured_logs  # noqa: PLC0415 - as above

    structured_logs(running.log_level, running.log_format)
    settings = AgentSettings(
        instance=instance, data=running.folder("agent"), elect=running.elect,
        address=running.address, port=running.port, heartbeat=seconds(heartbeat),
    )  # fmt: skip
    console.run(run_agent(default_access(kubeconfig, context), settings))
