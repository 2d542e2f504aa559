"""`starling apply`: make a cluster have what files say, once."""

import asyncio
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import typer

from starling.cli import console
from starling.cli.materials import Materials
from starling.cli.options import Output, OutputOption, Timeout, options, seconds
from starling.cli.progress import showing
from starling.cli.reports import not_ready, plan_document, refusal, refuse, show, summary, tell_problems, unit_document
from starling.cli.units import Session, Wanted
from starling.engine import Action, Phase, Plan, Problem, Readiness, UnitSeen
from starling.errors import OutOfTime

__all__ = ["apply"]


@dataclass(frozen=True, slots=True)
class Ending:
    """What is to come of it, and when."""

    wait: bool
    timeout: str
    dry_run: bool
    output: Output


@options
def apply(
    *,
    wanted: Wanted,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every object is ready.")] = False,
    timeout: Timeout = "5m",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and why; do nothing.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Apply manifests as one unit, which remembers what it has in the ConfigMap starling-UNIT.

    Prints a line per object that is written: created, changed, unchanged, pruned. What is as it should be isn't
    written. Waves (argocd.argoproj.io/sync-wave) wait for one another, with or without --wait. Stopped half-way, the
    same command carries on. Of two at the same time for one unit, one ends with an error.

    With -o json, one document at the end: unit, operation, readiness, counts, problems, objects; with --dry-run, or if
    nothing was done since everything would be deleted: unit, tasks, unchanged, problems.

    Exit codes: 0 done, 2 the manifests or the call (so also kubeconfig and context) are wrong and nothing was sent,
    3 something failed, 4 out of time.

    starling apply -f ./web --name web --prune --wait

    starling apply -f ./overlays/eu --name shop -n shop --substitute CLUSTER=eu-1 --dry-run

    starling apply -f https://github.com/stefanprodan/podinfo --ref '>=6 <7' --path charts/podinfo --name podinfo
    """
    seconds(timeout)
    materials = wanted.materials()
    with nullcontext() if dry_run else console.resumable():
        console.run(_apply(wanted, materials, Ending(wait, timeout, dry_run, output)))


async def _apply(wanted: Wanted, materials: Materials, ending: Ending) -> None:
    text = ending.output is Output.TEXT
    deadline = asyncio.get_running_loop().time() + seconds(ending.timeout)
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout_at(deadline):
                session = await stack.enter_async_context(wanted.opened(materials))
        except TimeoutError:
            raise OutOfTime(f"the manifests weren't there in {ending.timeout}") from None
        try:
            async with asyncio.timeout_at(deadline):
                preview = await session.engine.preview(session.unit.id)
                plan = await preview.examined() if ending.dry_run else preview.plan
        except TimeoutError:
            raise OutOfTime(f"the cluster couldn't be seen in {ending.timeout}") from None
        if plan.refusal is not None and not text:
            document = plan_document(session, replace(plan, problems=refusal(plan, wanted.name), tasks=()))
            console.document(document)
        refuse(plan, wanted.name)
        if ending.dry_run:
            _print_plan(session, plan, text=text)
            return
        late = await _sync(session, plan, ending, deadline)
        problems = _problems(session, plan)
        if not text:
            console.document(unit_document(session, await session.status(), plan, problems))
        elif not late:
            console.note(f"{wanted.name}: {summary(session, plan)}")
        if problems:
            tell_problems(problems)
            raise typer.Exit(3)
        if late:
            raise _out_of_time(session, wanted.name, ending)


async def _sync(session: Session, plan: Plan, ending: Ending, deadline: float) -> bool:
    """Do what there is to do, and wait for what is to be waited for; whether that took too long."""
    if not ending.wait and _nothing_to_do(plan):
        return False

    def done(seen: UnitSeen) -> bool:
        if session.problems():
            return True
        operation = seen.status.operation
        if operation is None or operation.phase is Phase.RUNNING:
            return False
        failed = operation.phase is Phase.FAILED
        return failed or not ending.wait or seen.status.readiness is Readiness.CURRENT

    try:
        with showing(data=ending.output is Output.TEXT) as progress:
            async with asyncio.timeout_at(deadline):
                await session.run(done, partial(show, progress))
    except TimeoutError:
        return True
    return False


def _nothing_to_do(plan: Plan) -> bool:
    """Whether the unit's operation has succeeded with these very manifests, and nothing has happened since."""
    return not plan.gated and not plan.problems and all(task.action is Action.RELEASE for task in plan.tasks)


def _problems(session: Session, plan: Plan) -> list[Problem]:
    """Everything that keeps the unit from being applied; that an object isn't ready is none of it."""
    status = session.seen.status if session.seen is not None else None
    failed = status is not None and status.operation is not None and status.operation.phase is Phase.FAILED
    return session.problems((*plan.problems, *(status.problems if status is not None and failed else ())))


def _print_plan(session: Session, plan: Plan, *, text: bool) -> None:
    if not text:
        console.document(plan_document(session, plan))
    else:
        console.data("".join(f"{task}\n" for task in plan.tasks))
        console.note(f"{len(plan.work)} to do, {plan.unchanged} unchanged; nothing was done")
    if plan.problems:
        tell_problems(plan.problems)
        raise typer.Exit(3)


def _out_of_time(session: Session, name: str, ending: Ending) -> OutOfTime:
    return OutOfTime(
        f"{name} isn't {'ready' if ending.wait else 'applied'} after {ending.timeout}: {not_ready(session)}",
        hint=f"the same command goes on from here; starling tree --name {name} shows more",
    )
