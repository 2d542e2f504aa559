"""`starling health`: how ready the objects in files are, without asking a cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from starling.aio import SYSTEM_CLOCK
from starling.cli import console
from starling.cli.files import content
from starling.cli.options import Output, OutputOption
from starling.engine.health import RULES, Health, Rules
from starling.errors import InputError
from starling.objects import ManifestError, load_objects

__all__ = ["health"]


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
    output: OutputOption = Output.TEXT,
) -> None:
    """Tell how ready objects are, from what is written in files; lists are taken apart.

    With -o json, one line per object, in order: {"status": …, "message": …}. The exit code is 0 whatever the health.

    kubectl get deployments -A -o yaml | starling health -f -

    starling health --rules kstatus -f live/*.yaml -o json
    """
    assess = _rules(rules)
    now = SYSTEM_CLOCK.now()
    objects = [each for file in (*files, *(more or ())) for each in _read(file)]
    found = [(_called(each), assess(each, now)) for each in objects]
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


def _read(file: Path) -> list[dict[str, Any]]:
    """The objects in a file. The same one may be there twice, as when clusters are compared."""
    documents = load_objects(*content(file))
    for document in documents:
        if not isinstance(document.value, dict) or not isinstance(document.value.get("kind"), str):
            what = "kind is missing" if isinstance(document.value, dict) else "this is no object"
            raise ManifestError(what, document.origin, hint="an object starts with apiVersion and kind")
    return [document.value for document in documents]


def _called(obj: Mapping[str, Any]) -> str:
    """An object as people call it; what it doesn't say is left out."""
    metadata = obj.get("metadata")
    names = metadata if isinstance(metadata, Mapping) else {}
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    kind = f"{obj.get('kind', '?')}.{group}" if group else str(obj.get("kind", "?"))
    return f"{kind} {'/'.join(str(names[part]) for part in ('namespace', 'name') if names.get(part))}".rstrip()


def _json(each: Health) -> str:
    return msgspec.json.encode({"status": each.readiness, "message": each.message}).decode()


def _table(found: list[tuple[str, Health]]) -> str:
    rows = [("OBJECT", "STATUS", "MESSAGE")]
    rows += [(each, str(its.readiness), " ".join(its.message.split())) for each, its in found]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}".rstrip() for row in rows)
