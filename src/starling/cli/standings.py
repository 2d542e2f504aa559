"""What a Module or a SyncGroup is on a cluster, in a version and a word; and how that and more is put in tables."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

import msgspec

from starling.api import Cluster, Module, ProxyAssemblage, Sync, SyncGroup
from starling.api.v1alpha1 import Entry, EntryStatus
from starling.fleet import GROUP, PART, entry_status, part_name, selects

__all__ = [
    "WORDS",
    "Rolled",
    "Standing",
    "aligned",
    "counted",
    "direct_standing",
    "group_of",
    "group_standing",
    "in_text",
    "labels_in_text",
    "plural",
    "since",
    "standing",
    "version_of_entry",
    "version_of_revision",
]

Rolled = Module | SyncGroup
"""What is rolled out."""

Word = Literal["ok", "updating", "pending", "held", "leaving", "unreachable", "failed"]
WORDS: Final[tuple[Word, ...]] = ("ok", "updating", "pending", "held", "leaving", "unreachable", "failed")
"""All that one can be on a cluster, in the order in which they are told."""

SHORT: Final = 7
"""Letters of a commit that tell it from others."""

_VERSION: Final = re.compile(r"(.*/)?v?\d+(\.\d+)+([-+].*)?", re.ASCII)
_SPANS: Final = (("d", 86400), ("h", 3600), ("m", 60))


class Standing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one is on a cluster: the version it has, the one that it is to have if that is another, and a word."""

    name: str
    state: Word
    version: str = ""
    wanted: str = ""
    readiness: str = ""
    message: str = ""


class Had(NamedTuple):
    """A thing that a cluster is to have, and what it says of that; either may be missing."""

    entry: Entry | None
    its: EntryStatus | None


def standing(cluster: Cluster, proxy: ProxyAssemblage | None, module: Module) -> Standing | None:
    """What a Module is on a cluster; None: it doesn't go there."""
    name, (entries, said) = module.metadata.name, _told(proxy)
    entry = next((each for each in entries if each.name == name), None)
    its = next((each for each in said if each.name == name), None)
    return _standing(cluster, module, name, [Had(entry, its)] if entry or its else [])


def group_standing(
    cluster: Cluster, proxy: ProxyAssemblage | None, syncs: Sequence[Sync], group: SyncGroup
) -> Standing | None:
    """What a SyncGroup is on a cluster, all its parts as one: `syncs` are the hub's own that go there."""
    name, (entries, said) = group.metadata.name, _told(proxy)
    its = {each.name: each for each in said}
    travelling = [Had(each, its.get(each.name)) for each in entries if group_of(each) == name]
    found = _standing(cluster, group, f"syncgroup/{name}", travelling + [_direct(each) for each in syncs])
    there = {each.entry.name for each in travelling if each.entry is not None} | {_direct_name(each) for each in syncs}
    missing = sorted({part_name(name, each.name) for each in group.spec.syncs} - there)
    if found is None or found.state != "ok" or not missing:
        return found
    return msgspec.structs.replace(found, state="updating", message=f"{missing[0]} isn't there yet")


def direct_standing(cluster: Cluster, sync: Sync) -> Standing:
    """What a Sync is that goes straight to a cluster, and is no group's."""
    had = _direct(sync)
    words: dict[str, Word] = {"succeeded": "ok", "failed": "failed", "updating": "updating"}
    word = "held" if sync.spec.suspend else words[had.its.state if had.its is not None else "updating"]
    return Standing(
        name=f"sync/{sync.metadata.name}",
        state="unreachable" if cluster.status.phase == "Unreachable" else word,
        version=_version_there(had),
        readiness=sync.status.readiness,
        message=had.its.message if had.its is not None else "",
    )


def group_of(entry: Entry) -> str:
    """The SyncGroup that an entry is a part of; nothing if it is of something else."""
    kind, _, name = entry.unit.split("/", 2)[-1].partition("@")[0].partition(".")
    return name.rpartition(".")[0] if kind == "SyncGroup" else ""


def _told(proxy: ProxyAssemblage | None) -> tuple[Sequence[Entry], Sequence[EntryStatus]]:
    return (proxy.spec.syncs, proxy.status.syncs) if proxy is not None else ((), ())


def _direct(sync: Sync) -> Had:
    spec = sync.spec
    entry = Entry(name=_direct_name(sync), unit="", target=spec.target, source=spec.source, revision=spec.revision)
    return Had(entry, entry_status(entry, sync))


def _direct_name(sync: Sync) -> str:
    return part_name(sync.metadata.annotations.get(GROUP, ""), sync.metadata.labels.get(PART, ""))


def _standing(cluster: Cluster, rolled: Rolled, name: str, parts: Sequence[Had]) -> Standing | None:
    selector, status = rolled.spec.selector, rolled.status
    picked = selector is not None and selects(selector, cluster.metadata.labels)
    selected = picked and rolled.metadata.deletion_timestamp is None
    if not parts and not selected:
        return None
    waits: Word = "pending" if cluster.spec.mode == "Active" else "held"
    words = [_word(each, rolled, waits) for each in parts]
    order: tuple[Word, ...] = ("failed", "updating", waits, "ok")
    word = next((each for each in order if each in words), waits)
    its = next((each.its for each, its_word in zip(parts, words, strict=True) if its_word == word), None)
    has = _joined(_version_there(each) for each in parts)
    forth = _aim(rolled) == status.target  # of what it goes back to, only the target is known
    if cluster.status.phase == "Unreachable":
        word = "unreachable"
    elif not selected:
        word = "leaving"
    behind = word == waits or (
        word == "failed" and any(each.entry and each.entry.target != _aim(rolled) for each in parts)
    )
    wanted = version_of_revision(status.revision) if behind and forth else ""
    if word in ("updating", "failed") and not behind:
        wanted = _joined(version_of_entry(each.entry) for each in parts if each.entry is not None)
    said = its.message if its is not None else ""
    return Standing(
        name=name,
        state=word,
        version=has,
        wanted=wanted if wanted != has else "",
        readiness=its.readiness if its is not None else "",
        message=f"{its.name}: {said}" if its is not None and said and len(parts) > 1 else said,
    )


def _word(had: Had, rolled: Rolled, waits: Word) -> Word:
    """What one thing is on a cluster that is there, and meant."""
    entry, its = had
    if entry is None:
        return waits
    if its is None or its.target != entry.target or its.state == "updating":
        return "updating"
    if its.state == "failed":
        return "failed"
    return waits if rolled.status.target and entry.target != _aim(rolled) else "ok"


def _aim(rolled: Rolled) -> str:
    """Where clusters are to be in the end: at the target, or, if that failed or was undone, where they return to."""
    status = rolled.status
    return (status.rollback_to or status.target) if status.failed_target == status.target else status.target


def _joined(versions: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(each for each in versions if each))


def _version_there(had: Had) -> str:
    """What was applied last; while nothing is known of that, nothing."""
    entry, its = had
    if its is None or not its.revision:
        return ""
    git = entry.source.git if entry is not None else None
    if entry is not None and git is not None and its.revision.endswith(git.commit):
        return version_of_entry(entry)  # which says by which name it was found
    return version_of_revision(its.revision)


def version_of_entry(entry: Entry) -> str:
    """An entry's version as people call it: its tag, or a short commit."""
    git = entry.source.git
    return _version(git.tag or "", git.commit) if git is not None else version_of_revision(entry.revision)


def version_of_revision(revision: str) -> str:
    """A revision such as v1.2.3@sha1:… as people call it; a group may have several."""
    found = []
    for each in revision.split(", "):
        name, _, exact = each.rpartition("@")
        found.append(_version(name, exact.partition(":")[2] or exact))
    return _joined(found)


def _version(name: str, commit: str) -> str:
    """A tag that is a version says it all; a branch moves, so it comes with its commit."""
    if not name or _VERSION.fullmatch(name):
        return name or commit[:SHORT]
    return f"{name}@{commit[:SHORT]}"


def in_text(each: Standing | None) -> str:
    """What one is on a cluster, in a few words."""
    if each is None:
        return "-"
    to = f"→ {each.wanted}" if each.wanted else ""
    return " ".join(word for word in (each.version, to, each.state) if word)


def counted(found: Iterable[Standing]) -> str:
    """How many are what: 18 ok, 1 updating, 1 failed."""
    counts = Counter(each.state for each in found)
    return ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])


def plural(number: int, one: str, many: str = "") -> str:
    """1 cluster, 2 clusters."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def labels_in_text(labels: Mapping[str, str]) -> str:
    """Labels as --labels takes them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def since(then: datetime | None, now: datetime) -> str:
    """How long ago that was: 3m."""
    if then is None:
        return ""
    passed = max(0, int((now - then).total_seconds()))
    return next((f"{passed // span}{unit}" for unit, span in _SPANS if passed >= span), f"{passed}s")


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns, two spaces between them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
