"""The commands under one roof; the one place that turns errors into messages and exit codes."""

import gc
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from starling import __version__
from starling.aio import slim_tls_buffers
from starling.cli import console
from starling.errors import InputError, OutOfTime, StarlingError

__all__ = ["app", "run"]

COMMANDS: Final = {
    "local": "starling.cli.local:app",
    "install": "starling.cli.install:install",
    "cluster": "starling.cli.cluster:app",
    "enrol": "starling.cli.enrol:enrol",
    "get": "starling.cli.get:get",
    "status": "starling.cli.status:app",
    "rollout": "starling.cli.rollout:app",
    "apply": "starling.cli.apply:apply",
    "diff": "starling.cli.diff:diff",
    "delete": "starling.cli.delete:delete",
    "tree": "starling.cli.tree:tree",
    "health": "starling.cli.health:health",
    "render": "starling.cli.render:render",
    "source": "starling.cli.source:app",
    "controller": "starling.cli.services:controller",
    "agent": "starling.cli.services:agent",
}
"""Where each is, in the order in which they are told; all of them take a second to load."""


class _Commands(Mapping[str, Any]):  # typer's own copy of click, whose types it keeps to itself
    """Commands by name, each loaded when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # nobody adds to it


@cache
def _loaded(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    gc.disable()  # what is loaded stays, and looking through it again and again takes its time
    found = getattr(import_module(module), attribute)
    gc.freeze()
    gc.enable()
    holder = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    return typer.main.get_group(holder).commands[name]


app = typer.Typer(
    name="starling",
    cls=_Group,
    help="Keep any number of Kubernetes clusters synchronised to git.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start here: `starling local up hub` gives a real Kubernetes API server, `starling install` prepares it.",
)


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
    from starling.kube import ConfigError  # noqa: PLC0415 - who has one has loaded it already

    match error:
        case InputError() | ConfigError():  # a kubeconfig or a context that isn't there is a wrong call
            return 2
        case OutOfTime():
            return 4
        case _:
            return 3
