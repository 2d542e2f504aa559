"""`starling rollout`: how a change spreads, and what people say to that."""

import asyncio
from contextlib import aclosing
from typing import Annotated, Final

import typer

from starling.aio import SYSTEM_CLOCK
from starling.api.orders import Order
from starling.cli import console
from starling.cli.courses import (
    Seen,
    course_document,
    course_lines,
    history_documents,
    history_lines,
    trouble_lines,
    watch_line,
)
from starling.cli.fleet import MANAGER, Fleet, Where, hub
from starling.cli.options import Output, OutputOption, options, seconds
from starling.cli.orders import approval, described, give, is_obeyed, retrial, undoing
from starling.cli.progress import showing
from starling.cli.rollouts import (
    Which,
    found,
    history_of,
    is_at,
    line_of,
    meant,
    message_of,
    owners_of,
    policy_of,
    states,
    verdict,
)
from starling.cli.standings import Rolled, version_of_revision
from starling.errors import OutOfTime, StarlingError
from starling.kube import Client, Interrupted

__all__ = ["app"]

app = typer.Typer(
    help="How a change spreads over the clusters: see it, wait for it, stop it, let it go on, take it back.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The Module's name, or syncgroup/NAME.", show_default=False)]
OrderTimeout = Annotated[
    str,
    typer.Option("--timeout", metavar="DURATION", help="How long to wait until it is carried out; 0: not at all."),
]


@app.command("status")
@options
def status(name: Name, *, where: Where, output: OutputOption = Output.TEXT) -> None:
    """Tell where a rollout stands, stage by stage, and what it waits for.

    Its phase and the line that says why, target and last good one, each stage (done; its turn; baking until; waits for
    approval; to come) with how many of its clusters are there and who approved it, the clusters that are updating, and
    those that failed with what they say. With -o json, one document with all of it.

    Exit codes: 0 whatever its state (`starling rollout wait` tells that), 2 there is none, or the call is wrong,
    3 something failed.

    starling rollout status web

    starling rollout status module/web -o json
    """
    console.run(_status(where, meant(name, where.namespace), output))


@app.command("watch")
@options
def watch(name: Name, *, where: Where) -> None:
    """Print a line each time the rollout gets somewhere, until interrupted: the time, the version, where it stands.

    Exit codes: 2 there is none, or the call is wrong, 3 something failed, or it was deleted, 130 interrupted.

    starling rollout watch web
    """
    console.run(_watch(where, meant(name, where.namespace)))


@app.command("pause")
@options
def pause(name: Name, *, where: Where) -> None:
    """Start no further updates; clusters that are updating finish, what runs stays as it is. Sets spec.suspend.

    Exit codes: 0 it is paused, 2 there is none, or the call is wrong, 3 something failed.

    starling rollout pause web
    """
    console.run(_suspend(where, meant(name, where.namespace), suspend=True))


@app.command("resume")
@options
def resume(name: Name, *, where: Where) -> None:
    """Go on with what was paused. Takes spec.suspend away.

    Exit codes: 0 it isn't paused by that any more, 2 there is none, or the call is wrong, 3 something failed.

    starling rollout resume web
    """
    console.run(_suspend(where, meant(name, where.namespace), suspend=False))


@app.command("approve")
@options
def approve(
    name: Name,
    stage: Annotated[
        str, typer.Argument(metavar="[STAGE]", help="The stage; else the one that waits for it.", show_default=False)
    ] = "",
    *,
    where: Where,
    timeout: OrderTimeout = "30s",
) -> None:
    """Let a stage start whose approval is Manual, with the version that the rollout is at now, and no other.

    Who approved it is recorded, by the name that the API server has for you. A stage can be approved before its turn.

    Exit codes: 0 it is approved, 1 it was seen and nothing came of it, 2 nothing waits for that, or the call is wrong,
    3 something failed, or there is another version meanwhile, 4 nobody carried it out in time.

    starling rollout approve web

    starling rollout approve web eu --timeout 2m
    """
    console.run(_approve(where, meant(name, where.namespace), stage, seconds(timeout)))


@app.command("retry")
@options
def retry(name: Name, *, where: Where, timeout: OrderTimeout = "30s") -> None:
    """Try a version again that failed on more clusters than may, or was taken back.

    Exit codes: 0 it is tried again, 1 it was seen and nothing came of it, 2 nothing has failed, or the call is wrong,
    3 something failed, or there is another version meanwhile, 4 nobody carried it out in time.

    starling rollout retry web
    """
    console.run(_retry(where, meant(name, where.namespace), seconds(timeout)))


@app.command("undo")
@options
def undo(
    name: Name,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="NUMBER|TAG|COMMIT|TARGET",
            help="What to go back to, as `starling rollout history` has it; else the last good one, or the one before.",
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Go back to a version that failed, too.")] = False,
    where: Where,
    timeout: OrderTimeout = "30s",
) -> None:
    """Have the clusters go back to an earlier version, as many at once as the policy lets them.

    They do so in all stages at once, and nothing is waited for: no bake, no approval, no gate, no window.

    The version that is taken back isn't tried again, until `starling rollout retry`; a newer one is rolled out as ever.
    What is in git stays as it is.

    Exit codes: 0 they go back, 1 it was seen and nothing came of it, 2 there is nothing to go back to, or the call is
    wrong, 3 something failed, or there is another version meanwhile, 4 nobody carried it out in time.

    starling rollout undo web

    starling rollout undo web --to v1.4.0
    """
    console.run(_undo(where, meant(name, where.namespace), to, seconds(timeout), force=force))


@app.command("history")
@options
def history(name: Name, *, where: Where, output: OutputOption = Output.TEXT) -> None:
    """List what has been rolled out, the newest first, as far as it is kept; undo goes back to any of these.

    Exit codes: 0 done, 2 there is no such rollout, or the call is wrong, 3 something failed.

    starling rollout history web
    """
    console.run(_history(where, meant(name, where.namespace), output))


@app.command("wait")
@options
def wait(
    name: Name,
    *,
    where: Where,
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long: 90s, 5m, 1h30m.")] = "10m",
    for_revision: Annotated[
        str,
        typer.Option(
            "--for-revision",
            metavar="TAG|COMMIT",
            help="First wait until it is at this one, as a pipeline does that has just pushed it.",
        ),
    ] = "",
) -> None:
    """Wait until a rollout has ended, and tell it by the exit code; how it goes is on stderr.

    What was said before the object was changed last doesn't count, nor, with --for-revision, what was said of another
    version; a newer one that comes meanwhile is waited for in its place. While clusters go back it waits on.

    Exit codes: 0 it went through all stages, 1 it failed, or was taken back, 2 there is none, or the call is wrong,
    3 something failed, or it was deleted, 4 out of time, 130 interrupted.

    starling rollout wait web

    starling rollout wait web --for-revision $(git rev-parse HEAD) --timeout 1h
    """
    console.run(_wait(where, meant(name, where.namespace), for_revision, seconds(timeout)))


async def _status(where: Where, which: Which, output: Output) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        seen = await _seen(client, which, await found(client, which))
    if output is Output.JSON:
        console.document(course_document(seen))
    else:
        console.data("\n".join(course_lines(seen, SYSTEM_CLOCK.now())))


async def _seen(client: Client, which: Which, rolled: Rolled) -> Seen:
    fleet = await Fleet.read(client, which.key.namespace)
    return Seen(
        which,
        rolled,
        await policy_of(client, rolled),
        fleet.of_rolled(rolled),
        await history_of(client, rolled),
        {key.name: each for key, each in fleet.clusters.items()},
    )


async def _watch(where: Where, which: Which) -> None:
    told = ""
    async with hub(where.kubeconfig, where.context) as client:
        await found(client, which)
        async with aclosing(states(client, which)) as seen:
            async for state in seen:
                if isinstance(state, Interrupted):
                    console.note(f"the API server is away: {state.error.message}")
                    continue
                line = f"{state.status.revision} {line_of(state)}"
                if line != told:
                    told = line
                    console.data(watch_line(state, SYSTEM_CLOCK.now()))


_PAUSED: Final = {
    (True, False): "is paused",
    (True, True): "was paused already",
    (False, False): "goes on",
    (False, True): "wasn't paused",
}


async def _suspend(where: Where, which: Which, *, suspend: bool) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        before = await found(client, which)
        ref = which.kind.declaration.resource.ref(which.key.name, which.key.namespace)
        if before.spec.suspend != suspend:
            patch = {"metadata": {"uid": before.metadata.uid}, "spec": {"suspend": True if suspend else None}}
            await client.merge_patch(ref, patch, manager=MANAGER)
        policy = await policy_of(client, before)
        owners = await owners_of(client, ref, "suspend")
    was = before.spec.suspend == suspend
    console.data(f"{which} {_PAUSED[suspend, was]}")
    if owners:
        console.note(f"{', '.join(owners)} sets spec.suspend as well, and may put it back: if that is git, do it there")
    if policy.paused and not suspend:
        console.note("its policy says paused: true, so nothing moves until that is changed")


async def _approve(where: Where, which: Which, stage: str, within: float) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        rolled = await found(client, which)
        order = approval(which, rolled, await policy_of(client, rolled), stage)
        version = version_of_revision(rolled.status.revision)
        done = f"stage {order.stage} of {which} is approved for {version}"
        await _order(client, which, rolled, order, within=within, done=done)


async def _retry(where: Where, which: Which, within: float) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        rolled = await found(client, which)
        version = version_of_revision(rolled.status.revision)
        done = f"{which} tries {version} again"
        await _order(client, which, rolled, retrial(which, rolled), within=within, done=done)


async def _undo(where: Where, which: Which, to: str, within: float, *, force: bool) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        rolled = await found(client, which)
        order, past = undoing(which, rolled, await history_of(client, rolled), to, force=force)
        version = version_of_revision(rolled.status.revision)
        done = f"{which} goes back from {version} to {described(past)}"
        await _order(client, which, rolled, order, within=within, done=done)


async def _order(client: Client, which: Which, rolled: Rolled, order: Order, *, within: float, done: str) -> None:
    """Give an order, and say what came of it."""
    after = await give(client, which, rolled, order, within)
    if after is None:
        console.data(f"{which}: the order to {order.verb} it is given, and not waited for")
        return
    if is_obeyed(order, after.status):
        console.data(done)
        console.note(line_of(after))
        return
    console.data(f"{which}: nothing came of the order to {order.verb} it")
    console.note(line_of(after))
    raise typer.Exit(1)


async def _history(where: Where, which: Which, output: Output) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        rolled = await found(client, which)
        past = await history_of(client, rolled)
    if output is Output.JSON:
        console.document({"history": history_documents(rolled, past)})
    elif not past:
        console.note(f"{which} has no history yet")
    else:
        console.data("\n".join(history_lines(rolled, past, SYSTEM_CLOCK.now())))


async def _wait(where: Where, which: Which, wanted: str, within: float) -> None:
    async with hub(where.kubeconfig, where.context) as client:
        await found(client, which)
        rolled = await _ended(client, which, wanted, within)
        version = version_of_revision(rolled.status.revision)
        if verdict(rolled) == "done":
            console.data(f"{which} is rolled out: {version}; {message_of(rolled)}")
            return
        console.data(f"{which} isn't rolled out: {version} {rolled.status.phase}; {message_of(rolled)}")
        await _tell_trouble(client, which, rolled)
    raise typer.Exit(1)


async def _ended(client: Client, which: Which, wanted: str, within: float) -> Rolled:
    """The state in which it has ended."""
    reached = not wanted
    line = "nothing was heard of it"
    with showing(data=False) as progress:
        try:
            async with asyncio.timeout(within), aclosing(states(client, which)) as seen:
                async for state in seen:
                    if isinstance(state, Interrupted):
                        progress.wait(f"the API server is away: {state.error.message}")
                        continue
                    reached = reached or is_at(state, wanted)
                    if reached and verdict(state) != "waits":
                        return state
                    at = state.status.revision or "none"
                    line = line_of(state) if reached else f"for {wanted}; it is at {at} yet"
                    progress.wait(line)
        except TimeoutError:
            raise OutOfTime(
                f"{which} isn't rolled out after {within:g} s: {line}",
                hint=f"starling rollout status {which.argument} says more; the same command goes on waiting",
            ) from None
    raise AssertionError("a watch doesn't end")


async def _tell_trouble(client: Client, which: Which, rolled: Rolled) -> None:
    """Say which clusters failed, if that can be read: the answer is no in any case."""
    try:
        lines = [line for line in trouble_lines(await _seen(client, which, rolled)) if line]
    except StarlingError as error:
        lines = [f"which clusters failed can't be read: {error.message}"]
    for line in lines:
        console.note(line)
