"""`starling source`: what a Source would find."""

from typing import Annotated

import msgspec
import typer

from starling.cli import console
from starling.cli.materials import CredentialsFolder, KeyFiles, RefOption, Repository
from starling.cli.options import Output, OutputOption

__all__ = ["app"]

app = typer.Typer(help="Repositories, and which version of them is meant.", no_args_is_help=True)


@app.callback()
def _source() -> None:
    """Repositories, and which version of them is meant."""


@app.command("check")
def check(
    url: Annotated[str, typer.Argument(metavar="URL", help="A git repository's address.")],
    *,
    ref: RefOption = None,
    credentials: CredentialsFolder = None,
    keys: KeyFiles = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print the exact version that a ref of a repository means now.

    Nothing is fetched but to verify it, or to see that a commit is there.

    With -o json: url, revision.

    Exit codes: 0 found, 2 the call is wrong, 3 it isn't there, may not be read, or isn't signed.

    starling source check https://github.com/stefanprodan/podinfo --ref '>=6 <7'

    starling source check git@git.example:team/app.git --ref main --credentials ./secret --verify team.pub
    """
    repository = Repository(url=url, ref=ref, credentials=credentials, keys=keys or ())
    revision = console.run(repository.look())
    if output is Output.JSON:
        console.data(msgspec.json.encode({"url": url, "revision": revision}).decode())
    else:
        console.data(revision)
