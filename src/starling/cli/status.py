"""`starling status`: where a Module, a SyncGroup or a Cluster stands, and why."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
import typer

from starling.aio import SYSTEM_CLOCK
from starling.api import Cluster, Condition, Module, ProxyAssemblage, Resource, Sync, SyncGroup
from starling.cli import console
from starling.cli.fleet import Fleet, Key, Where, hub, named_object, reached_by
from starling.cli.get import described_cluster, described_rolled
from starling.cli.options import Context, Kubeconfig, Output, OutputOption, options
from starling.cli.standings import (
    WORDS,
    Rolled,
    Standing,
    aligned,
    counted,
    in_text,
    labels_in_text,
    since,
    version_of_entry,
    version_of_revision,
)
from starling.kube import ApiError, Client, NotFound, Selection
from starling.kube import Resource as Served

__all__ = [
    "app",
    "cluster_lines",
    "conditions_in_text",
    "fact_lines",
    "is_ready",
    "latest",
    "one_line",
    "rolled_lines",
    "some_lines",
    "tell_cluster",
]

app = typer.Typer(help="Where a Module, a SyncGroup or a Cluster stands, and why.", no_args_is_help=True)

EVENTS: Final = Served("events.k8s.io", "v1", "Event", "events", namespaced=True)
MOST_TOLD: Final = 20
MOST_EVENTS: Final = 5
WELL: Final = frozenset({"ok"})

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)]


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: datetime | None = None
    count: int = 1


class _EventMeta(msgspec.Struct, rename="camel"):
    creation_timestamp: datetime | None = None


class Event(msgspec.Struct, rename="camel"):
    """Something that happened, as the API server keeps it."""

    metadata: _EventMeta
    reason: str = ""
    note: str = ""
    type: str = ""
    event_time: datetime | None = None
    deprecated_last_timestamp: datetime | None = None
    series: _Series | None = None

    @property
    def at(self) -> datetime | None:
        """When it happened last."""
        repeated = self.series.last_observed_time if self.series is not None else None
        return repeated or self.event_time or self.deprecated_last_timestamp or self.metadata.creation_timestamp

    def document(self) -> dict[str, Any]:
        """As JSON."""
        count = self.series.count if self.series is not None else 1
        return {"at": self.at, "type": self.type, "reason": self.reason, "message": self.note, "count": count}


@app.command("module")
@options
def module(name: Name, *, where: Where, output: OutputOption = Output.TEXT) -> None:
    """Tell how far a Module's rollout is, and why it isn't further.

    Its phase and what its conditions say, the version that goes out, its clusters by state with what those say that
    aren't well, the latest events. With -o json, one document with all of it.

    Exit codes: 0 it is Ready, 1 it isn't, 2 there is none, or the call is wrong, 3 something failed.

    starling status module web
    """
    console.run(_rolled(where, Module, name, output))


@app.command("syncgroup")
@options
def syncgroup(name: Name, *, where: Where, output: OutputOption = Output.TEXT) -> None:
    """Tell how far a SyncGroup's rollout is, and why it isn't further, as `starling status module` does for a Module.

    Exit codes: 0 it is Ready, 1 it isn't, 2 there is none, or the call is wrong, 3 something failed.

    starling status syncgroup platform
    """
    console.run(_rolled(where, SyncGroup, name, output))


@app.command("cluster")
@options
def cluster(name: Name, *, where: Where, output: OutputOption = Output.TEXT) -> None:
    """Tell whether a cluster is there, and how everything stands that it runs.

    Entries that no Module claims were found on the cluster, and stay until a Module of that name takes them over or
    `starling cluster release` lets them go. With -o json, one document with all of it.

    Exit codes: 0 the cluster is Ready, 1 it isn't, 2 there is none, or the call is wrong, 3 something failed.

    starling status cluster eu-1
    """
    console.run(tell_cluster(where.kubeconfig, where.context, Key(where.namespace, name), output))


async def _rolled(where: Where, kind: type[Rolled], name: str, output: Output) -> None:
    key = Key(where.namespace, name)
    async with hub(where.kubeconfig, where.context) as client:
        found: Rolled = await named_object(client, kind, key)
        standings = (await Fleet.read(client, key.namespace)).of_rolled(found)
        events = await _events(client, found)
    if output is Output.JSON:
        clusters = [{"cluster": name, **msgspec.to_builtins(each)} for name, each in standings]
        console.document(
            {**described_rolled(found), **_told(found), "clusters": clusters, "events": _documents(events)}
        )
    else:
        lines = (*rolled_lines(found, standings), *event_lines(events, SYSTEM_CLOCK.now()))
        console.data("\n".join(lines))
    _exit(found)


async def tell_cluster(kubeconfig: Kubeconfig, context: Context, key: Key, output: Output) -> None:
    """Print where a Cluster stands; exit with 1 if it isn't Ready."""
    async with hub(kubeconfig, context) as client:
        found = await named_object(client, Cluster, key)
        every = Selection(key.namespace)
        modules = (await client.list(Module.declaration.resource, Module, every)).items
        groups = (await client.list(SyncGroup.declaration.resource, SyncGroup, every)).items
        syncs = (await client.list(Sync.declaration.resource, Sync, every)).items
        try:
            ref = ProxyAssemblage.declaration.resource.ref(key.name, key.namespace)
            proxies = [(await client.get(ref)).decode(ProxyAssemblage)]
        except NotFound:
            proxies = []
        events = await _events(client, found)
    fleet = Fleet.of([found], modules, proxies, groups, syncs)
    if output is Output.JSON:
        unclaimed = [
            {"name": entry.name, "version": version_of_entry(entry), "unit": entry.unit}
            for entry in fleet.unclaimed(key)
        ]
        entries = {
            "modules": fleet.modules_on(key),
            "syncGroups": fleet.groups_on(key),
            "syncs": fleet.syncs_on(key),
            "unclaimed": unclaimed,
        }
        console.document({**described_cluster(found), **_told(found), **entries, "events": _documents(events)})
    else:
        now = SYSTEM_CLOCK.now()
        console.data("\n".join((*cluster_lines(fleet, key, now), *event_lines(events, now))))
    _exit(found)


def rolled_lines(rolled: Rolled, standings: Sequence[tuple[str, Standing]]) -> Iterator[str]:
    """Where a Module or a SyncGroup stands, line by line."""
    status = rolled.status
    yield f"{type(rolled).declaration.singular} {rolled.metadata.namespace}/{rolled.metadata.name}"
    same = " (the same as target)" if status.last_good and status.last_good == status.target else ""
    facts = [
        ("phase", status.phase),
        ("version", version_of_revision(status.revision)),
        ("revision", status.revision),
        ("target", status.target),
        ("last good", status.last_good + same),
        ("suspended", "yes" if rolled.spec.suspend else ""),
        *conditions_in_text(rolled),
        ("clusters", f"{len(standings)}: {counted(each for _, each in standings)}" if standings else "none"),
    ]
    yield from fact_lines(facts)
    well = [name for name, each in standings if each.state in WELL]
    if well:
        yield ""
        yield from some_lines(["ok: " + ", ".join(well[:MOST_TOLD])], len(well) - MOST_TOLD)
    rest = [(name, each) for name, each in standings if each.state not in WELL]
    if worst_first := sorted(rest, key=lambda both: -WORDS.index(both[1].state)):
        rows = [(name, in_text(each), one_line(each.message)) for name, each in worst_first]
        yield ""
        yield from some_lines(aligned(rows[:MOST_TOLD]).splitlines(), len(rows) - MOST_TOLD)


def cluster_lines(fleet: Fleet, key: Key, now: datetime) -> Iterator[str]:
    """Where a Cluster stands, line by line."""
    cluster = fleet.clusters[key]
    status = cluster.status
    seen = f"{status.last_seen.isoformat()} ({since(status.last_seen, now)} ago)" if status.last_seen else ""
    yield f"cluster {key.namespace}/{key.name}"
    facts = [
        ("phase", status.phase),
        ("mode", cluster.spec.mode),
        ("reached by", reached_by(cluster)),
        ("last seen", seen if status.phase != "Ready" else ""),  # it is told at changes of phase only
        ("kubernetes", status.kubernetes_version),
        ("agent", status.agent_version),
        ("uid", status.uid),
        ("labels", labels_in_text(cluster.metadata.labels)),
        *conditions_in_text(cluster),
    ]
    yield from fact_lines(facts)
    found = fleet.on(key)
    if rows := [(each.name, in_text(each), each.readiness or "-", one_line(each.message)) for each in found]:
        yield ""
        yield from aligned([("NAME", "STATE", "READINESS", "MESSAGE"), *rows]).splitlines()
    if unclaimed := fleet.unclaimed(key):
        yield ""
        yield "found on the cluster, of no Module or SyncGroup; `starling cluster release` lets one go:"
        yield from (f"  {entry.name} {version_of_entry(entry)}" for entry in unclaimed)


def is_ready(obj: Resource) -> bool:
    """Whether it is as it should be, as far as someone has looked since it was last changed."""
    looked = obj.status.observed_generation in (None, obj.metadata.generation)
    return looked and any(each.type == "Ready" and each.status == "True" for each in obj.status.conditions)


def latest(events: Iterable[Event]) -> list[Event]:
    """The last few, the newest first."""
    dated = [(each.at, each) for each in events]
    known = sorted(((at, each) for at, each in dated if at is not None), key=lambda both: both[0], reverse=True)
    return [each for _, each in known[:MOST_EVENTS]]


def event_lines(events: Sequence[Event], now: datetime) -> Iterator[str]:
    """What happened, line by line."""
    if events:
        yield ""
        rows = [(since(each.at, now), each.type, each.reason, one_line(each.note)) for each in events]
        yield from aligned([("AGO", "TYPE", "EVENT", "MESSAGE"), *rows]).splitlines()


def conditions_in_text(obj: Resource) -> Iterator[tuple[str, str]]:
    """What the conditions say, each thing once."""
    if obj.metadata.deletion_timestamp is not None:
        yield "deleted", f"since {obj.metadata.deletion_timestamp.isoformat()}; it goes once it is let go"
    heard = set[str]()
    for each in obj.status.conditions:
        if each.type == "Ready" or each.message not in heard:
            yield each.type.lower(), _condition(each)
        heard.add(each.message)
    if not obj.status.conditions:
        yield "ready", "unknown: nobody has looked at it yet; is `starling controller` running?"
    elif obj.status.observed_generation not in (None, obj.metadata.generation):
        yield "", "this was said before it was changed last"


def _condition(each: Condition) -> str:
    word = {"True": "yes", "False": "no"}.get(each.status, "unknown")
    reason = "" if each.reason == each.type else f" ({each.reason})"
    return f"{word}{reason}" + f": {one_line(each.message)}" * bool(each.message)


def fact_lines(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Those that there are, their names in a column."""
    told = [(name, value) for name, value in facts if value]
    width = max(len(name) for name, _ in told)
    yield from (f"  {name:{width}}  {value}" for name, value in told)


def some_lines(lines: Sequence[str], more: int) -> Iterator[str]:
    """These, and how many more there are."""
    yield from (f"  {line}" for line in lines)
    if more > 0:
        yield f"  and {more} more"


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def _told(obj: Resource) -> dict[str, Any]:
    return {"ready": is_ready(obj), "conditions": obj.status.conditions}


def _documents(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [each.document() for each in events]


async def _events(client: Client, obj: Resource) -> list[Event]:
    """The latest about an object; none, with a word, where they may not be read."""
    meta, kind = obj.metadata, type(obj).declaration.kind
    about = f"regarding.kind={kind},regarding.name={meta.name},regarding.uid={meta.uid}"
    try:
        found = await client.list(EVENTS, Event, Selection(meta.namespace, fields=about))
    except ApiError as error:
        console.note(f"without events: {error.message}")
        return []
    return latest(found.items)


def _exit(obj: Resource) -> None:
    if not is_ready(obj):
        raise typer.Exit(1)
