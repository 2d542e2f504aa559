"""What one cluster is to run: an entry for each Module that may have one there.

A Module's claim on a cluster says whether it selects it, and whether the cluster has been admitted to change. Entries
move, and go, only by admission; whoever has seen less of a Module than an entry has leaves it alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from starling.api.meta import Fields
from starling.api.v1alpha1 import (
    MOST_PATCHES,
    CredentialsReference,
    Entry,
    ExactGit,
    ModuleOverride,
    Package,
    SourceReference,
    SyncTemplate,
)
from starling.errors import InputError
from starling.fleet.bindings import resolve_bindings
from starling.fleet.selection import selects

__all__ = ["LARGEST", "Claim", "ModuleRevision", "assemble", "check_size", "make_entry", "size_of"]

LARGEST: Final = 512 * 1024
"""How many bytes all entries of a cluster may be; etcd refuses objects of about three times as much."""


def _scheme() -> Literal[1]:
    return 1


class ModuleRevision(Fields, frozen=True, kw_only=True):
    """All that a target was made from, as a ControllerRevision keeps it. `source` names the hub's own Secret."""

    scheme: Literal[1] = msgspec.field(default_factory=_scheme)  # a plain default would be left out when encoding
    template: SyncTemplate
    overrides: tuple[ModuleOverride, ...] = ()
    source: ExactGit
    revision: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one Module wants of one cluster, as far as its record has been read.

    `admission` is the Module's counter, `admitted` the one at which the cluster was admitted, None if it isn't; with
    `restore`, to go back to what it `reported`, with `leave`, to lose the entry. `make` gives the entry for a target,
    None if that isn't known. `orphans`: whoever claims it says by now that objects stay when it goes, which the cluster
    may not have heard; `acknowledged`: it has taken in all that it is told.
    """

    module: str
    target: str
    admission: int
    selected: bool
    make: Callable[[str], Entry | None]
    admitted: int | None = None
    restore: bool = False
    leave: bool = False
    reported: str = ""
    deleting: bool = False
    orphans: bool = False
    acknowledged: bool = False
    kind: str = "Module"
    """Whose claim it is: entries of several kinds may have one name."""


def make_entry(
    revision: ModuleRevision, cluster: Mapping[str, Any], *, name: str, unit: str, admission: int, credentials: str
) -> Entry:
    """The entry of a cluster at a revision of a Module; `credentials` is the Secret there that holds them all."""
    template = _overridden(revision, cluster["metadata"].get("labels") or {}, name)
    fields = {field: getattr(template, field) for field in template.__struct_fields__}
    fields |= {
        "source": SourceReference(git=_with_credentials(revision.source, credentials)),
        "bindings": (),
        "values": resolve_bindings(template.bindings, cluster),
    }
    return Entry(name=name, unit=unit, target=revision.target, admission=admission, **fields)


def _overridden(revision: ModuleRevision, labels: Mapping[str, str], module: str) -> SyncTemplate:
    """The template with what the first override that picks the cluster says."""
    template = revision.template
    override = next((each for each in revision.overrides if selects(each.selector, labels)), None)
    if override is None:
        return template
    if override.path is not None:
        template = msgspec.structs.replace(template, path=override.path)
    if override.patches:
        template = msgspec.structs.replace(template, patches=(*template.patches, *override.patches))
    if len(template.patches) > MOST_PATCHES:
        raise InputError(
            f"Module {module}: with those of an override there are {len(template.patches)} patches, more than "
            f"{MOST_PATCHES}",
            hint="put several changes to an object into one patch",
        )
    if not override.values:
        return template
    helm = template.package.helm if template.package is not None else None
    if helm is None:
        raise InputError(
            f"Module {module}: an override has values, but the package isn't said to be a Helm chart",
            hint="set sync.package.helm, or take the values out",
        )
    helm = msgspec.structs.replace(helm, values=_merged(helm.values, override.values))
    return msgspec.structs.replace(template, package=Package(helm=helm))


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, as Helm merges files of values: mappings key by key, of anything else the one above."""
    found = dict(below)
    for key, value in above.items():
        before = found.get(key)
        mappings = isinstance(before, dict) and isinstance(value, dict)
        found[key] = _merged(found[key], value) if mappings else value
    return found


def _with_credentials(source: ExactGit, credentials: str) -> ExactGit:
    if source.secret_ref is None:
        return source
    return msgspec.structs.replace(
        source, secret_ref=CredentialsReference(name=credentials, key=source.secret_ref.name)
    )


def assemble(current: Sequence[Entry], claims: Sequence[Claim]) -> tuple[Entry, ...]:
    """The entries of a cluster, from those it has and all Modules' claims; an entry that nobody claims stays.

    What was found there has no admission until a Module that selects the cluster claims it by its name: until then it
    is nobody's to take away.
    """
    entries = {entry.name: entry for entry in current}
    for claim in claims:
        entry = _claimed(entries.pop(claim.module, None), claim)
        if entry is not None:
            entries[claim.module] = entry
    return tuple(entries[name] for name in sorted(entries))


def _claimed(entry: Entry | None, claim: Claim) -> Entry | None:
    """The entry that a claim leads to; None: there is none, or no longer."""
    if entry is not None and _not_ours(entry, claim):
        return entry
    acts = claim.admitted is not None and not claim.restore
    if claim.deleting or (acts and claim.leave and not claim.selected):
        return _letting_stay(entry, claim) if entry is not None and claim.orphans else None
    if acts and claim.admitted is not None and claim.selected and not claim.leave:
        return _moved(entry, claim, claim.admitted)
    if entry is None or (claim.admitted is None and not claim.selected):
        return entry
    if claim.restore and claim.admitted is not None and entry.admission < claim.admitted:
        return _restored(entry, claim)
    # As it is, but with bindings resolved now; a higher counter alone is no reason to write, unless it was nobody's.
    kept = _made(entry, claim, entry.target, entry.admission or claim.admission) if claim.selected else None
    return kept or entry


def _letting_stay(entry: Entry, claim: Claim) -> Entry | None:
    """An entry that goes and whose objects stay: the cluster has to know that before it goes."""
    there = claim.make(claim.reported) if claim.reported == entry.target else None
    known = there is not None and there.deletion_policy == "Orphan"
    if entry.deletion_policy == "Orphan" and (known or claim.acknowledged):
        return None
    return msgspec.structs.replace(entry, deletion_policy="Orphan")


def _not_ours(entry: Entry, claim: Claim) -> bool:
    """Whether the entry is none of the claim's business: found there, or written by who has read more of the record."""
    found = not entry.admission and not claim.selected
    kind = entry.unit.split("/", 2)[-1].partition(".")[0]
    another = bool(entry.admission and kind and kind != claim.kind)
    return found or another or (entry.admission > claim.admission and not claim.deleting)


def _moved(entry: Entry | None, claim: Claim, admitted: int) -> Entry | None:
    """The entry at the target, with the counter that tells so: a cluster may have been there before."""
    counter = max(admitted, entry.admission) if entry is not None else admitted
    return _made(entry, claim, claim.target, counter) or entry


def _restored(entry: Entry, claim: Claim) -> Entry:
    """The entry at what the cluster runs, with the newest counter: whoever has read less leaves it alone from now."""
    made = _made(entry, claim, claim.reported or entry.target, claim.admission)
    return made or msgspec.structs.replace(entry, admission=claim.admission)


def _made(entry: Entry | None, claim: Claim, target: str, admission: int) -> Entry | None:
    """The entry for a target, None if that isn't known; while the target is the same, the commit stays, too."""
    made = claim.make(target)
    if made is None:
        return None
    git, there = made.source.git, entry.source.git if entry is not None and entry.target == target else None
    if git is not None and there is not None:
        git = msgspec.structs.replace(git, commit=there.commit, tag=there.tag)
    return msgspec.structs.replace(made, admission=admission, source=SourceReference(git=git))


def size_of(entries: Iterable[Entry]) -> int:
    """How many bytes entries are in all."""
    return sum(len(msgspec.json.encode(entry)) for entry in entries)


def check_size(entries: Iterable[Entry], *, at_most: int = 0) -> None:
    """Refuse entries of more bytes than fit one object, or than `at_most` if that is more; it names the largest."""
    sizes = {entry.name: len(msgspec.json.encode(entry)) for entry in entries}
    total = sum(sizes.values())
    if total > max(LARGEST, at_most):
        largest = max(sizes, key=lambda name: (sizes[name], name))
        raise InputError(
            f"the cluster's entries are {total} bytes in all, more than {LARGEST};"
            f" that of Module {largest} is the largest, with {sizes[largest]}",
            hint="make its values and overrides smaller, or give the cluster fewer Modules",
        )
