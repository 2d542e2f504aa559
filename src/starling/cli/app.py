"""The commands under one roof; the one place that turns errors into messages and exit codes."""

import sys
from typing import Annotated

import typer

from starling import __version__
from starling.aio import slim_tls_buffers
from starling.cli import (
    apply,
    cluster,
    console,
    delete,
    diff,
    enrol,
    get,
    health,
    install,
    local,
    render,
    rollout,
    services,
    source,
    status,
    tree,
)
from starling.errors import InputError, OutOfTime, StarlingError
from starling.kube import ConfigError

__all__ = ["app", "run"]

app = typer.Typer(
    name="starling",
    help="Keep any number of Kubernetes clusters synchronised to git.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start here: `starling local up hub` gives a real Kubernetes API server, `starling install` prepares it.",
)
app.add_typer(local.app, name="local")
app.command("install")(install.install)
app.add_typer(cluster.app, name="cluster")
app.command("enrol")(enrol.enrol)
app.command("get")(get.get)
app.add_typer(status.app, name="status")
app.add_typer(rollout.app, name="rollout")
app.command("apply")(apply.apply)
app.command("diff")(diff.diff)
app.command("delete")(delete.delete)
app.command("tree")(tree.tree)
app.command("health")(health.health)
app.command("render")(render.render)
app.add_typer(source.app, name="source")
app.command("controller")(services.controller)
app.command("agent")(services.agent)


def _print_version(wanted: bool) -> None:
    if wanted:
        console.data(f"starling {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


def run() -> None:
    """Run the command that was asked for, and exit as it ends."""
    try:
        slim_tls_buffers()
        app()
    except StarlingError as error:
        console.error(error)
        sys.exit(_exit_code(error))
    except console.Ended as ending:
        console.ended(ending)
        sys.exit(ending.code)
    except KeyboardInterrupt:
        console.ended(console.Interrupted())
        sys.exit(console.Interrupted.code)
    except SystemExit as ending:
        if ending.code == console.Interrupted.code:  # typer's, for Ctrl-C
            console.ended(console.Interrupted())
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        console.error(StarlingError(f"{where}{error.strerror or error}"))
        sys.exit(3)


def _exit_code(error: StarlingError) -> int:
    match error:
        case InputError() | ConfigError():  # a kubeconfig or a context that isn't there is a wrong call
            return 2
        case OutOfTime():
            return 4
        case _:
            return 3
