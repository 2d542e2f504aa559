"""`starling apply`: make a cluster have what files say, once."""

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated

import typer

from starling.cli import console
from starling.cli.materials import (
    CredentialsFolder,
    How,
    KeyFiles,
    KubeVersion,
    Materials,
    PathOption,
    RefOption,
    Settings,
    Strict,
    Submodules,
    ValueFiles,
    Variables,
)
from starling.cli.options import (
    AllowEmpty,
    Confirm,
    Context,
    Files,
    Force,
    Kubeconfig,
    Namespace,
    Output,
    OutputOption,
    Prune,
    Timeout,
    UnitName,
    seconds,
)
from starling.cli.progress import showing
from starling.cli.reports import not_ready, plan_document, refuse, summary, tell_problems, unit_document
from starling.cli.units import Reach, Session, Wanted
from starling.engine import Action, Phase, Plan, Problem, Readiness, UnitSeen
from starling.errors import OutOfTime

__all__ = ["apply"]


@dataclass(frozen=True, slots=True)
class Options:
    """What is to come of it, and when."""

    wait: bool
    timeout: str
    dry_run: bool
    output: Output


def apply(
    *,
    files: Files,
    name: UnitName,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    prune: Prune = False,
    allow_empty: AllowEmpty = False,
    confirm: Confirm = "",
    force: Force = False,
    ref: RefOption = "",
    path: PathOption = ".",
    values: ValueFiles = None,
    settings: Settings = None,
    variables: Variables = None,
    strict: Strict = False,
    kube_version: KubeVersion = "",
    credentials: CredentialsFolder = None,
    keys: KeyFiles = None,
    submodules: Submodules = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until every object is ready.")] = False,
    timeout: Timeout = "5m",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and why; do nothing.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Apply manifests as one unit, which remembers what it has in the ConfigMap starling-UNIT.

    Prints a line per object that is written: created, changed, unchanged, pruned. What is as it should be isn't
    written. Waves (argocd.argoproj.io/sync-wave) wait for one another, with or without --wait. Stopped half-way, the
    same command carries on. Of two at the same time for one unit, one ends with an error.

    With -o json, one document at the end: unit, operation, readiness, counts, problems, objects; with --dry-run: unit,
    tasks, unchanged, problems.

    Exit codes: 0 done, 2 the manifests or the call (so also kubeconfig and context) are wrong and nothing was sent,
    3 something failed, 4 out of time.

    starling apply -f ./web --name web --prune --wait

    starling apply -f ./overlays/eu --name shop -n shop --substitute CLUSTER=eu-1 --dry-run

    starling apply -f https://github.com/stefanprodan/podinfo --ref '>=6 <7' --path charts/podinfo --name podinfo
    """
    how = How(
        path=path, values=values or (), settings=settings or (), variables=variables or (), strict=strict,
        kube_version=kube_version, release=name, may_be_empty=allow_empty,
    )  # fmt: skip
    materials = Materials.of(files, how, ref=ref, credentials=credentials, keys=keys, submodules=submodules)
    wanted = Wanted(
        reach=Reach(kubeconfig, context, namespace), name=name, materials=materials,
        prune=prune, allow_empty=allow_empty, confirm=confirm, force=force,
    )  # fmt: skip
    seconds(timeout)
    with nullcontext() if dry_run else console.resumable():
        asyncio.run(_apply(wanted, Options(wait, timeout, dry_run, output)))


async def _apply(wanted: Wanted, options: Options) -> None:
    text = options.output is Output.TEXT
    async with wanted.opened() as session:
        try:
            async with asyncio.timeout(seconds(options.timeout)) as deadline:
                preview = await session.engine.preview(session.unit.id)
                plan = await preview.examined() if options.dry_run else preview.plan
        except TimeoutError:
            raise OutOfTime(f"the cluster couldn't be seen in {options.timeout}") from None
        refuse(plan, wanted.name)
        if options.dry_run:
            _print_plan(session, plan, text=text)
            return
        late = await _sync(session, plan, options, deadline.when() or 0.0)
        problems = _problems(session, plan)
        if not text:
            console.data(unit_document(session, await session.status(), plan, problems))
        elif not late:
            console.note(f"{wanted.name}: {summary(session, plan)}")
        if problems:
            tell_problems(problems)
            raise typer.Exit(3)
        if late:
            raise _out_of_time(session, wanted.name, options)


async def _sync(session: Session, plan: Plan, options: Options, deadline: float) -> bool:
    """Do what there is to do, and wait for what is to be waited for; whether that took too long."""
    if not options.wait and _nothing_to_do(plan):
        return False

    def done(seen: UnitSeen) -> bool:
        if session.problems():
            return True
        operation = seen.status.operation
        if operation is None or operation.phase is Phase.RUNNING:
            return False
        failed = operation.phase is Phase.FAILED
        return failed or not options.wait or seen.status.readiness is Readiness.CURRENT

    try:
        with showing(data=options.output is Output.TEXT) as progress:
            async with asyncio.timeout_at(deadline):
                await session.run(done, progress.show)
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
        console.data(plan_document(session, plan))
    else:
        console.data("".join(f"{task}\n" for task in plan.tasks))
        console.note(f"{len(plan.work)} to do, {plan.unchanged} unchanged; nothing was done")
    if plan.problems:
        tell_problems(plan.problems)
        raise typer.Exit(3)


def _out_of_time(session: Session, name: str, options: Options) -> OutOfTime:
    return OutOfTime(
        f"{name} isn't {'ready' if options.wait else 'applied'} after {options.timeout}: {not_ready(session)}",
        hint=f"the same command goes on from here; starling tree --name {name} shows more",
    )
