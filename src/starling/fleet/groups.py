"""SyncGroups: several things that move together. One target for all of them, and one Member of all that a cluster has.

A group's parts are entries as a Module's is, named `<group>.<part>`, with one target and one admission between them.
A cluster is at a target when it has just the parts of it, all of that target; until then it has something else.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from starling.api.meta import Fields
from starling.fleet.assembly import Claim, ModuleRevision
from starling.fleet.targets import SCHEME
from starling.objects import digest

__all__ = [
    "GROUP",
    "PART",
    "GroupRevision",
    "Held",
    "Part",
    "group_revision",
    "held_parts",
    "part_claim",
    "part_name",
]

GROUP = "starling.dev/syncgroup-name"
"""The annotation of a Sync that says which SyncGroup it is of."""

PART = "starling.dev/part"
"""The label of such a Sync that says which part it is."""


MIXED = ""
"""The target of a cluster whose parts aren't all of one."""


def _scheme() -> Literal[1]:
    return 1


class GroupRevision(Fields, frozen=True, kw_only=True):
    """All that a group's target was made from, as a ControllerRevision keeps it."""

    scheme: Literal[1] = msgspec.field(default_factory=_scheme)  # a plain default would be left out when encoding
    parts: dict[str, ModuleRevision]
    revision: str
    target: str


def group_revision(parts: Mapping[str, ModuleRevision]) -> GroupRevision:
    """What a group wants, by what its parts want."""
    target = SCHEME + digest({name: part.target for name, part in parts.items()}).removeprefix("sha256:")
    return GroupRevision(
        parts={name: msgspec.structs.replace(part, target=target) for name, part in parts.items()},
        revision=", ".join(dict.fromkeys(part.revision for part in parts.values()))[:1024],
        target=target,
    )


def part_name(group: str, part: str) -> str:
    """What a part is called among all that a cluster runs."""
    return f"{group}.{part}"


@dataclass(frozen=True, slots=True)
class Part:
    """A part that a cluster has, and what it says of it."""

    name: str
    target: str
    admission: int
    reported: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """All parts that a cluster has, as one: see Member, which has these fields."""

    entry: str | None = None
    admission: int = 0
    reported: str = ""
    state: str = ""


def held_parts(parts: Iterable[Part], names_at: Callable[[str], frozenset[str] | None]) -> Held:
    """What a cluster has of a group; `names_at` gives the parts of a target, None if nobody knows any more."""
    found = list(parts)
    if not found:
        return Held()
    targets, reports = {part.target for part in found}, {part.reported for part in found}
    entry = targets.pop() if len(targets) == 1 else MIXED
    names = names_at(entry) if entry else None
    if names is not None and names != {part.name for part in found}:
        entry = MIXED
    states = {part.state for part in found}
    state = "failed" if "failed" in states else "succeeded" if states == {"succeeded"} else "updating"
    reported = reports.pop() if len(reports) == 1 else ""
    return Held(entry, min(part.admission for part in found), reported, state if reported else "")


def part_claim(claim: Claim, *, wanted: bool) -> Claim:
    """A group's claim on one part; one that the target hasn't goes where the cluster moves there."""
    if wanted or claim.admitted is None or claim.restore:
        return claim
    return Claim(
        module=claim.module,
        target=claim.target,
        admission=claim.admission,
        selected=False,
        make=claim.make,
        admitted=claim.admitted,
        leave=True,
        deleting=claim.deleting,
        reported=claim.reported,
        kind=claim.kind,
    )
