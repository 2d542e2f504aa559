"""Taking over objects that other tools made, so that what is removed from git later really goes.

Our first apply owns what git says, but whoever applied the object before owns it too, and the API server removes a
field only when its last owner drops it. `adopt` looks at the entries that an apply's answer shows and says how to mend
them. Earlier managers are of two sorts:

- *Makers* put whole manifests into the cluster: kubectl apply, create, replace, run, expose, autoscale; Helm; Flux;
  Argo CD; our own creates; and whatever owns the annotation that client-side apply leaves. Their fields become ours, so
  that the next apply also removes what they said and git doesn't. Defaults that the API server had filled in for them
  come back with the same values: specs stay as they are and nothing restarts.
- *Hands* changed some field once: kubectl edit, patch, set, label, rollout, … Of their fields just those become ours
  alone that git says. The rest stays: taking `kubectl rollout restart`'s annotation, say, would restart the pods.
  `before-first-apply` counts as a hand. It is what the API server calls everything it found on an object without
  managed fields, be it allocated, scaled by an autoscaler, or set by a person; taking it all would set replicas
  to 1.

Status, finalizers and owner references are left to whoever set them, and so is every entry of a subresource, a
controller, an operator.

Entries of an API version other than ours speak of that version's fields, and can't be merged into an entry of ours.
They are adopted in a turn of their own: our entry *becomes* theirs, with their version, and the next apply makes the
API server convert, remove what only they said, and write ours anew.

`adopted` says beforehand what an object will be like.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import msgspec

from starling.engine.fields import ManagedFields, own_entry
from starling.engine.fieldsets import FieldSet, difference, intersection, parse, union, unparse, without
from starling.kube import FIELD_MANAGER

__all__ = ["Adoption", "adopt", "adopted", "is_maker"]

_UPDATE: Final = frozenset({"Update"})
_APPLY: Final = frozenset({"Apply"})

# Flux's own controllers write finalizers into Flux's own kinds by Update, under the same names; theirs is only what
# they apply. helm-controller uses Helm's library, which updates.
_MAKERS: Final = {
    "kubectl": _APPLY,
    "kubectl-last-applied": _APPLY,
    "kubectl-client-side-apply": _UPDATE,
    "kubectl-create": _UPDATE,
    "kubectl-replace": _UPDATE,
    "kubectl-run": _UPDATE,
    "kubectl-expose": _UPDATE,
    "kubectl-autoscale": _UPDATE,
    "helm": _APPLY | _UPDATE,
    "helm-controller": _APPLY | _UPDATE,
    "kustomize-controller": _APPLY,
    "argocd-controller": _APPLY | _UPDATE,
    "argocd-application-controller": _APPLY | _UPDATE,
}
_LAST_APPLIED: Final[FieldSet] = {
    "f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {".": {}}}}
}

# What nobody owns and every object has.
_IDENTITY: Final[FieldSet] = {
    "f:apiVersion": {".": {}},
    "f:kind": {".": {}},
    "f:metadata": {"f:name": {".": {}}, "f:namespace": {".": {}}},
}


class Adoption(msgspec.Struct, frozen=True):
    """How to take an object over: JSON patch operations, and from whom.

    The operations begin with tests that the entries are still those that were looked at; if not, the API server says
    Invalid and changes nothing: look again. `beyond` says that we own more after it than git says: apply once more.
    Afterwards ask `adopt` again with what the last answer shows, until it has nothing left to say.
    """

    operations: tuple[dict[str, Any], ...]
    beyond: bool
    managers: tuple[str, ...]


def is_maker(entry: ManagedFields, manager: str = FIELD_MANAGER) -> bool:
    """Whether an entry is of one of those whose place we take."""
    if entry.subresource:
        return False
    if entry.operation in _MAKERS.get(entry.manager, ()):
        return True
    if entry.operation != "Update":
        return False
    return entry.manager == manager or bool(intersection(_LAST_APPLIED, parse(entry.fields_v1)))


def _is_hand(entry: ManagedFields) -> bool:
    named = entry.manager == "before-first-apply" or entry.manager.partition("-")[0] == "kubectl"
    return named and entry.operation == "Update" and not entry.subresource


def adopt(entries: Sequence[ManagedFields], manager: str = FIELD_MANAGER) -> Adoption | None:
    """What to do about earlier managers, given all entries of an object in their order; None if nothing.

    For objects that we apply for the first time: on one of ours it would also take what someone added since.
    """
    own = own_entry(entries, manager)
    if own is None:
        return None
    ours = parse(own.fields_v1)
    claims = [claim for claim in (_claim(entry, ours, manager) for entry in entries if entry is not own) if claim]
    versions = [claim.entry.api_version for claim in claims if claim.taken]
    if own.api_version in versions or not versions:
        return _turn(entries, own, ours, [claim for claim in claims if claim.at(own.api_version)])
    return _turn(entries, own, {}, [claim for claim in claims if claim.taken and claim.at(versions[0])])


def adopted(applied: Mapping[str, Any], manager: str = FIELD_MANAGER) -> dict[str, Any]:
    """An object, as our first apply's answer shows it, without the fields that go when it is adopted.

    Some may be defaults, which come back: only the API server knows which. Entries of another API version than ours
    are read as if their fields were called the same in ours.
    """
    content = dict(applied)
    shown = msgspec.json.encode((content.get("metadata") or {}).get("managedFields") or [])
    entries = msgspec.json.decode(shown, type=list[ManagedFields])
    own = own_entry(entries, manager)
    if own is None:
        return content
    ours = parse(own.fields_v1)
    taken: FieldSet = {}
    kept = ours
    for entry in entries:
        claim = _claim(entry, ours, manager) if entry is not own else None
        taken = union(taken, claim.taken) if claim is not None else taken
        kept = union(kept, claim.left if claim is not None else parse(entry.fields_v1))
    found = without(content, difference(taken, ours), union(kept, _IDENTITY))
    return dict(found)


@dataclass(frozen=True, slots=True)
class _Claim:
    """An earlier manager's entry, the fields we take from it, and what remains of it."""

    entry: ManagedFields
    taken: FieldSet
    left: FieldSet

    def at(self, version: str) -> bool:
        """Whether a turn in this version deals with it. Giving fields up is possible in any."""
        return not self.taken or self.entry.api_version == version


def _claim(entry: ManagedFields, ours: FieldSet, manager: str) -> _Claim | None:
    theirs = parse(entry.fields_v1)
    if is_maker(entry, manager):
        left = difference(_outside_manifests(theirs), ours)
        taken = difference(theirs, left)
        return _Claim(entry, taken, left) if taken else None
    left = difference(theirs, ours)
    return _Claim(entry, {}, left) if _is_hand(entry) and left != theirs else None


def _outside_manifests(fields: FieldSet) -> FieldSet:
    """The part of a set that controllers write, under whatever name, and manifests seldom say."""
    metadata = fields.get("f:metadata", {})
    kept: FieldSet = {step: metadata[step] for step in ("f:finalizers", "f:ownerReferences") if step in metadata}
    outside: FieldSet = {"f:metadata": kept} if kept else {}
    return outside | {step: fields[step] for step in ("f:status",) if step in fields}


def _turn(
    entries: Sequence[ManagedFields], own: ManagedFields, ours: FieldSet, claims: Sequence[_Claim]
) -> Adoption | None:
    if not claims:
        return None
    taken: FieldSet = reduce(union, (claim.taken for claim in claims), {})
    version = next((claim.entry.api_version for claim in claims if claim.taken), own.api_version)
    places = {id(entry): f"/metadata/managedFields/{place}" for place, entry in enumerate(entries)}
    concerned = [own, *(claim.entry for claim in claims)]
    tests = [{"op": "test", "path": places[id(entry)], "value": _document(entry)} for entry in concerned]
    beyond = bool(difference(taken, ours))
    changes = [_replaced(places[id(own)], union(ours, taken))] if beyond else []
    if version != own.api_version:
        changes.append({"op": "replace", "path": f"{places[id(own)]}/apiVersion", "value": version})
    changes += [_replaced(places[id(claim.entry)], claim.left) for claim in claims if claim.left]
    # From the back, for each removal moves what comes after it.
    gone = [places[id(claim.entry)] for claim in claims if not claim.left]
    removals = [{"op": "remove", "path": path} for path in sorted(gone, key=_index, reverse=True)]
    managers = tuple(dict.fromkeys(claim.entry.manager for claim in claims))
    return Adoption((*tests, *changes, *removals), beyond, managers)


def _index(path: str) -> int:
    return int(path.rpartition("/")[2])


def _replaced(place: str, fields: FieldSet) -> dict[str, Any]:
    return {"op": "replace", "path": f"{place}/fieldsV1", "value": unparse(fields)}


def _document(entry: ManagedFields) -> dict[str, Any]:
    """An entry as the API server has it."""
    said: Iterable[tuple[str, Any]] = (
        ("manager", entry.manager),
        ("operation", entry.operation),
        ("apiVersion", entry.api_version),
        ("time", entry.time),
        ("fieldsType", "FieldsV1"),
        ("fieldsV1", msgspec.json.decode(entry.fields_v1)),
        ("subresource", entry.subresource),
    )
    return {name: value for name, value in said if value not in (None, "")}
