"""`starling delete`: a unit's objects away, or our marks off them."""

import asyncio
from functools import partial
from typing import Annotated

import typer

from starling.cli import console
from starling.cli.options import (
    Context,
    Kubeconfig,
    Namespace,
    Output,
    OutputOption,
    Timeout,
    UnitName,
    seconds,
)
from starling.cli.progress import showing
from starling.cli.reports import not_ready, show, summary, tell_problems, unit_document
from starling.cli.units import Reach, Session, opened, refuse_unknown
from starling.engine import Plan, UnitSeen
from starling.errors import OutOfTime

__all__ = ["delete"]


def delete(
    *,
    name: UnitName,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    orphan: Annotated[
        bool, typer.Option("--orphan", help="Leave the objects in the cluster, without our label and annotation.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until every object is gone; else until all are asked to go.")
    ] = True,
    timeout: Timeout = "5m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Delete a unit: all its objects, in reverse order, and its record.

    Objects marked to be kept stay, without our marks. Stopped half-way, or while something takes its time to go, the
    same command carries on. With -o json, one document at the end, as of apply.

    Exit codes: 0 done, 2 there is no such unit (any more), kubeconfig or context, 3 something failed, 4 out of time.

    starling delete --name web

    starling delete --name web --orphan
    """
    limit = seconds(timeout)
    with console.resumable():
        console.run(_delete(Reach(kubeconfig, context, namespace), name, limit, output, orphan=orphan, wait=wait))


async def _delete(reach: Reach, name: str, limit: float, output: Output, *, orphan: bool, wait: bool) -> None:
    policy = "Orphan" if orphan else "Prune"
    async with opened(reach, name, deleting=True, deletion_policy=policy) as session:
        await refuse_unknown(session.store, session.unit.id)
        late = await _removed(session, limit, output, wait=wait)
        problems = session.problems()
        if output is Output.JSON:
            console.document(unit_document(session, await session.status(), Plan(), problems))
        elif not late:
            console.note(f"{name}: {summary(session, Plan())}{'' if problems else _rest(session)}")
        if problems:
            tell_problems(problems)
            raise typer.Exit(3)
        if late:
            raise OutOfTime(
                f"{name} isn't deleted after {limit:g} s: {not_ready(session)}",
                hint="the same command goes on from here",
            )


async def _removed(session: Session, limit: float, output: Output, *, wait: bool) -> bool:
    """Have the unit removed; whether that took too long."""

    def done(seen: UnitSeen) -> bool:
        return seen.status.removed or bool(session.problems()) or not wait

    try:
        with showing(data=output is Output.TEXT) as progress:
            async with asyncio.timeout(limit):
                await session.run(done, partial(show, progress))
    except TimeoutError:
        return True
    return False


def _rest(session: Session) -> str:
    removed = session.seen is not None and session.seen.status.removed
    return "; the unit is gone" if removed else "; the same command finishes it when they are gone"
