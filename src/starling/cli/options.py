"""Options that several commands share."""

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeGuard, get_type_hints

import typer

from starling import api

__all__ = [
    "AllowEmpty",
    "Confirm",
    "Context",
    "Files",
    "Force",
    "Kubeconfig",
    "Namespace",
    "Output",
    "OutputOption",
    "Prune",
    "Timeout",
    "UnitName",
    "options",
    "seconds",
]


class Output(StrEnum):
    """How the answer is printed."""

    TEXT = "text"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to print it.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", help="The cluster's kubeconfig; else $KUBECONFIG, ~/.kube/config or the pod's own account."
    ),
]
Context = Annotated[str | None, typer.Option("--context", help="The kubeconfig's context; else its current one.")]
Namespace = Annotated[
    str | None,
    typer.Option(
        "-n",
        "--namespace",
        help="Where the unit's record is, and objects that name no namespace; else the context's.",
        show_default=False,
    ),
]
Files = Annotated[
    list[str],
    typer.Option(
        "-f",
        "--file",
        metavar="DIR|FILE|URL|-",
        help="What `starling render` takes: a kustomization, a chart, a folder of YAML and JSON, a git repository's "
        "address; or a file; - is stdin. May be repeated.",
        show_default=False,
    ),
]
UnitName = Annotated[
    str,
    typer.Option("--name", metavar="UNIT", help="What the set of objects is called as a whole.", show_default=False),
]
Prune = Annotated[
    bool, typer.Option("--prune/--no-prune", help="Delete what the unit had and the files no longer have.")
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Pruning may take everything that the unit has.")]


def _digest(value: str) -> str:
    """The digest; an option that was swallowed since no digest was given is none."""
    if value and not re.fullmatch(r"sha256:[0-9a-f]{64}", value, re.ASCII):
        raise typer.BadParameter(f"{value} is no digest; the refusal prints it: sha256:…")
    return value


Confirm = Annotated[
    str,
    typer.Option(
        "--confirm",
        metavar="DIGEST",
        callback=_digest,
        help="This very plan may do so; the refusal prints its digest.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Delete and recreate objects where a field changes that can't be changed.")
]
Timeout = Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long in all: 90s, 5m, 1h30m.")]


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take values whose fields are options, so that several commands can say them once.

    In place of each parameter whose type is a dataclass typer sees its fields, those of dataclasses in it too.
    """
    types = get_type_hints(command, include_extras=True)
    given = [each.replace(annotation=types[each.name]) for each in signature(command).parameters.values()]
    structs = {each.name: each.annotation for each in given if _is_struct(each.annotation)}

    @functools.wraps(command)
    def called(**values: Any) -> None:
        made = {name: _take(struct, values) for name, struct in structs.items()}
        command(**values, **made)

    spread = [one for each in given for one in (_parameters(each.annotation) if each.name in structs else [each])]
    called.__signature__ = signature(command).replace(parameters=spread)  # type: ignore[attr-defined]
    return called


def _parameters(struct: type[Any]) -> Iterator[Parameter]:
    types = get_type_hints(struct, include_extras=True)
    for each in fields(struct):
        kind = types[each.name]
        if _is_struct(kind):
            yield from _parameters(kind)
        else:
            default = Parameter.empty if each.default is MISSING else each.default
            yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _take(struct: type[Any], values: dict[str, Any]) -> Any:
    """The value that the options come to; they are taken out."""
    types = get_type_hints(struct)
    kinds = {each.name: types[each.name] for each in fields(struct)}
    return struct(
        **{name: _take(kind, values) if _is_struct(kind) else values.pop(name) for name, kind in kinds.items()}
    )


def _is_struct(kind: Any) -> TypeGuard[type[Any]]:
    return isinstance(kind, type) and is_dataclass(kind)


def seconds(duration: str) -> float:
    """A duration as people write it, in seconds; a bare number is seconds."""
    if re.fullmatch(r"\d+(\.\d+)?", duration, re.ASCII):
        return float(duration)
    return api.seconds(duration)
