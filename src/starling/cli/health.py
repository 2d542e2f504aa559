"""`starling health`: how ready the objects in files are, without asking a cluster."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from starling.aio import SYSTEM_CLOCK
from starling.cli import console
from starling.engine.health import RULES, Health, Rules
from starling.errors import InputError
from starling.objects import Manifest, load_manifests

__all__ = ["health"]

STDIN = Path("-")


class Output(StrEnum):
    """How the answer is printed."""

    TEXT = "text"
    JSON = "json"


def health(
    files: Annotated[
        list[Path],
        typer.Option(
            "-f", "--file", metavar="FILE", help="YAML or JSON; - is stdin. May be repeated.", show_default=False
        ),
    ],
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="More files, as a shell makes of *.", show_default=False)
    ] = None,
    rules: Annotated[str, typer.Option("--rules", help=f"By which rules: {', '.join(RULES)}.")] = next(iter(RULES)),
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print it.")] = Output.TEXT,
) -> None:
    """Tell how ready objects are, from what is written in files; lists are taken apart.

    With -o json, one line per object, in order: {"status": …, "message": …}. The exit code is 0 whatever the health.

    kubectl get deployments -A -o yaml | starling health -f -

    starling health --rules kstatus -f live/*.yaml -o json
    """
    assess = _rules(rules)
    now = SYSTEM_CLOCK.now()
    manifests = [manifest for file in (*files, *(more or ())) for manifest in _read(file)]
    found = [(manifest, assess(manifest.content, now)) for manifest in manifests]
    if not found:
        console.note("there are no objects")
    elif output is Output.JSON:
        console.data("\n".join(_json(each) for _, each in found))
    else:
        console.data(_table(found))


def _rules(name: str) -> Rules:
    if name in RULES:
        return RULES[name]
    raise InputError(f"there are no health rules {name!r}", hint=f"--rules takes {' or '.join(RULES)}")


def _read(file: Path) -> list[Manifest]:
    if file == STDIN:
        return load_manifests(sys.stdin.buffer.read(), "stdin")
    return load_manifests(file.read_bytes(), str(file))


def _json(each: Health) -> str:
    return msgspec.json.encode({"status": each.readiness, "message": each.message}).decode()


def _table(found: list[tuple[Manifest, Health]]) -> str:
    rows = [("OBJECT", "STATUS", "MESSAGE")]
    rows += [(str(each), str(its.readiness), " ".join(its.message.split())) for each, its in found]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in rows)
