"""`starling diff`: what an apply would change, field by field."""

import asyncio
from collections.abc import Sequence

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
from starling.cli.reports import encoded, refuse, tell_problems
from starling.cli.units import Reach, Wanted
from starling.engine import Problem
from starling.engine.diff import Effect, ObjectDiff, document, render
from starling.errors import OutOfTime

__all__ = ["diff"]


def diff(
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
    timeout: Timeout = "1m",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what `starling apply` with the same options would change; nothing is written.

    The API server applies as a dry run, so defaults and admission are in it. So is what goes when an object that
    another tool made is adopted: what that tool's manifest said and the files don't. Values of Secrets are masked.

    With -o json, one document: unit, different, objects (each with its effect and changes).

    Exit codes: 0 nothing differs, 1 something does, 2 the manifests or the call are wrong, 3 something would be
    refused or can't be told, 4 out of time.

    starling diff -f ./web --name web --prune
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
    limit = seconds(timeout)
    try:
        asyncio.run(_diff(wanted, limit, output))
    except TimeoutError:
        raise OutOfTime(f"the cluster couldn't be compared in {timeout}") from None


async def _diff(wanted: Wanted, limit: float, output: Output) -> None:
    async with wanted.opened() as session, asyncio.timeout(limit):
        preview = await session.engine.preview(session.unit.id)
        refuse(preview.plan)
        found = await preview.diffs()
        problems = (*preview.plan.problems, *_refusals(found))
    different = any(each.different for each in found)
    if output is Output.JSON:
        objects = [document(each) for each in found if each.different]
        console.data(encoded({"unit": session.unit.id, "different": different, "objects": objects}))
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
