"""What a Module is on a cluster, in a version and a word; and how that and other things are put in tables."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from starling.api import Cluster, Module, ProxyAssemblage
from starling.api.v1alpha1 import Entry, EntryStatus
from starling.fleet import selects

__all__ = [
    "WORDS",
    "Standing",
    "aligned",
    "counted",
    "in_text",
    "labels_in_text",
    "plural",
    "since",
    "standing",
    "version_of_entry",
    "version_of_revision",
]

Word = Literal["ok", "updating", "pending", "held", "leaving", "unreachable", "failed"]
WORDS: Final[tuple[Word, ...]] = ("ok", "updating", "pending", "held", "leaving", "unreachable", "failed")
"""All that a Module can be on a cluster, in the order in which they are told."""

SHORT: Final = 7
"""Letters of a commit that tell it from others."""

_VERSION: Final = re.compile(r"(.*/)?v?\d+(\.\d+)+([-+].*)?", re.ASCII)
_SPANS: Final = (("d", 86400), ("h", 3600), ("m", 60))


class Standing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a Module is on a cluster: the version it has, the one that it is to have if that is another, and a word."""

    name: str
    state: Word
    version: str = ""
    wanted: str = ""
    readiness: str = ""
    message: str = ""


def standing(cluster: Cluster, proxy: ProxyAssemblage | None, module: Module) -> Standing | None:
    """What a Module is on a cluster; None: it doesn't go there."""
    name = module.metadata.name
    entry = next((each for each in proxy.spec.syncs if each.name == name), None) if proxy is not None else None
    its = next((each for each in proxy.status.syncs if each.name == name), None) if proxy is not None else None
    selected = selects(module.spec.selector, cluster.metadata.labels) and module.metadata.deletion_timestamp is None
    if entry is None and its is None and not selected:
        return None
    word = _word(cluster, module, entry, its, selected=selected)
    has = _version_there(entry, its)
    forth = _aim(module) == module.status.target  # of what it goes back to, only the target is known
    wanted = version_of_revision(module.status.revision) if word in ("pending", "held") and forth else ""
    if word == "updating" and entry is not None:
        wanted = version_of_entry(entry)
    return Standing(
        name=name,
        state=word,
        version=has or wanted,
        wanted=wanted if has and wanted != has else "",
        readiness=its.readiness if its is not None else "",
        message=its.message if its is not None else "",
    )


def _word(cluster: Cluster, module: Module, entry: Entry | None, its: EntryStatus | None, *, selected: bool) -> Word:
    if cluster.status.phase == "Unreachable":
        return "unreachable"
    if not selected:
        return "leaving"
    waits: Word = "pending" if cluster.spec.mode == "Active" else "held"
    if entry is None:
        return waits
    if its is None or its.target != entry.target or its.state == "updating":
        return "updating"
    if its.state == "failed":
        return "failed"
    return waits if module.status.target and entry.target != _aim(module) else "ok"


def _aim(module: Module) -> str:
    """Where clusters are to be in the end: at the target, or, if that failed or was undone, where they return to."""
    status = module.status
    return (status.rollback_to or status.target) if status.failed_target == status.target else status.target


def _version_there(entry: Entry | None, its: EntryStatus | None) -> str:
    """What was applied last; while nothing is known of that, nothing."""
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
    """A revision such as v1.2.3@sha1:… as people call it."""
    name, _, exact = revision.rpartition("@")
    return _version(name, exact.partition(":")[2] or exact)


def _version(name: str, commit: str) -> str:
    """A tag that is a version says it all; a branch moves, so it comes with its commit."""
    if not name or _VERSION.fullmatch(name):
        return name or commit[:SHORT]
    return f"{name}@{commit[:SHORT]}"


def in_text(each: Standing | None) -> str:
    """What a Module is on a cluster, in a few words."""
    if each is None:
        return "-"
    versions = f"{each.version} → {each.wanted}" if each.wanted else each.version
    return f"{versions} {each.state}".lstrip()


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
