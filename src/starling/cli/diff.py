"""`starling diff`: what an apply would change, field by field."""

import asyncio
from collections.abc import Sequence

import typer

from starling.cli import console
from starling.cli.materials import Materials
from starling.cli.options import Output, OutputOption, Timeout, options, seconds
from starling.cli.reports import refuse, tell_problems
from starling.cli.units import Wanted
from starling.engine import Problem
from starling.engine.diff import Effect, ObjectDiff, document, render
from starling.errors import InputError, OutOfTime
from starling.kube import ConfigError

__all__ = ["diff"]


@options
def diff(
    *,
    wanted: Wanted,
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what `starling apply` with the same options would change; nothing is written.

    The API server applies as a dry run, so defaults and admission are in it. So is what goes when an object that
    another tool made is adopted: what that tool's manifest said and the files don't. Values of Secrets are masked.

    With -o json, one document: unit, different, objects (each with its effect and changes).

    Exit codes: 0 nothing differs, 1 something does, 2 the command line can't be read, 3 anything else is wrong (files,
    names, kubeconfig, context), something would be refused or can't be told, 4 out of time.

    starling diff -f ./web --name web --prune
    """
    limit = seconds(timeout)
    try:
        console.run(_diff(wanted, wanted.materials(), limit, output))
    except TimeoutError:
        raise OutOfTime(f"the cluster couldn't be compared in {timeout}") from None
    except (InputError, ConfigError) as error:  # 2 elsewhere; who asks for differences tells errors by 3 and up
        console.error(error)
        raise typer.Exit(3) from None


async def _diff(wanted: Wanted, materials: Materials, limit: float, output: Output) -> None:
    async with asyncio.timeout(limit), wanted.opened(materials) as session:
        preview = await session.engine.preview(session.unit.id)
        refuse(preview.plan, wanted.name)
        found = await preview.diffs()
        problems = (*preview.plan.problems, *_refusals(found))
    different = any(each.different for each in found)
    if output is Output.JSON:
        objects = [document(each) for each in found if each.different]
        console.document({"unit": session.unit.id, "different": different, "objects": objects})
    elif different:
        console.data(render(found, colour=console.stdout.is_terminal and not console.stdout.no_color))
    if problems:
        tell_problems(problems)
        raise typer.Exit(3)
    if different:
        raise typer.Exit(1)


def _refusals(found: Sequence[ObjectDiff]) -> list[Problem]:
    return [
        Problem("Refused", f"{each.key}: would be refused: {each.message}", each.key, hint=_way_out(each))
        for each in found
        if each.effect is Effect.REFUSED
    ]


def _way_out(refused: ObjectDiff) -> str:
    return "--force deletes and recreates the object; or keep the field as it is" if refused.needs_force else ""
