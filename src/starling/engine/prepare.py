"""Manifests as they will be applied to one cluster: placed in a namespace, normalised, marked, in order.

Nothing here changes what it is given: contents are shared with whoever rendered them, so a changed content is a new one
that shares all but the way to the change.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import msgspec

from starling.engine.annotations import left_out, sync_wave
from starling.engine.order import CRD, sort_key, tier
from starling.engine.ownership import LABEL, mark
from starling.engine.unit import Problem, Unit
from starling.kube import NotServed, Resource
from starling.objects import (
    GroupVersionKind,
    Manifest,
    ManifestError,
    ObjectKey,
    digest,
    refuse_duplicates,
    short_digest,
)

__all__ = ["UNKNOWN_KIND", "Desired", "Prepared", "kinds_needed", "prepare"]

UNKNOWN_KIND: Final = "UnknownKind"
NOTHING: Final[Mapping[GroupVersionKind, NotServed]] = {}
# Of the API server's making; they come along when someone writes a live object to a file.
_SERVERS_OWN: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
# Empty ones on custom resources make the API server write the object at every apply, though nothing changes.
_WRITTEN_ANEW: Final = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
# Where kinds name a ServiceAccount or a Service together with its namespace; `*` is each item of a list.
_REFERENCES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    (_RBAC, "RoleBinding"): ("subjects", "*"),
    (_RBAC, "ClusterRoleBinding"): ("subjects", "*"),
    (_ADMISSION, "MutatingWebhookConfiguration"): ("webhooks", "*", "clientConfig", "service"),
    (_ADMISSION, "ValidatingWebhookConfiguration"): ("webhooks", "*", "clientConfig", "service"),
    ("apiregistration.k8s.io", "APIService"): ("spec", "service"),
    CRD: ("spec", "conversion", "webhook", "clientConfig", "service"),
}
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
# With ten digits behind it a generated name stays within 63, the limit of Services and of the labels that name a Job.
_LONGEST_BASE: Final = 52


@dataclass(frozen=True, slots=True)
class Desired:
    """One object as it will be applied.

    `resource` is None while its kind isn't served: a CRD of the same set will bring it. `create_only` is for what has
    a generateName; its name is made from unit and content, so that a retry finds it.
    """

    manifest: Manifest
    resource: Resource | None
    digest: str
    wave: int
    tier: int
    create_only: bool = False

    @property
    def key(self) -> ObjectKey:
        """The object's identity."""
        return self.manifest.key


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is to be applied, in order, and what can't be.

    `withheld` has every key that a manifest with a problem may mean. Such an object is still wanted: it isn't pruned.
    `blocked` is the first wave with a problem: those after it have to wait.
    """

    desired: tuple[Desired, ...]
    problems: tuple[Problem, ...]
    digest: str
    withheld: frozenset[ObjectKey] = frozenset()
    blocked: int | None = None


def kinds_needed(manifests: Iterable[Manifest]) -> set[GroupVersionKind]:
    """The kinds to ask discovery for. It needn't know them all: a CRD of the set may bring some."""
    return {manifest.gvk for manifest in manifests}


def prepare(
    manifests: Sequence[Manifest],
    unit: Unit,
    kinds: Mapping[GroupVersionKind, Resource],
    label_key: str = LABEL,
    unserved: Mapping[GroupVersionKind, NotServed] = NOTHING,
) -> Prepared:
    """Everything that a unit wants in a cluster which serves `kinds`; `unserved` has its words about others.

    An object that can't be addressed (its kind is served by nobody, its name fits no path) becomes a problem, and the
    others go on. ManifestError for what makes the set as a whole unusable: two manifests of one object, a Secret's
    value that is no text, or no base64.
    """
    manifests = [manifest for manifest in manifests if not left_out(manifest.annotations)]
    definitions = _definitions(manifests)
    scopes = {gvk: defined.namespaced for defined in definitions.values() for gvk in defined.served}
    moved = _moved(manifests, unit)
    desired: list[Desired] = []
    problems: list[Problem] = []
    rejected: list[Manifest] = []
    for manifest in manifests:
        resource = kinds.get(manifest.gvk)
        namespaced = resource.namespaced if resource else scopes.get(manifest.gvk)
        problem = _problem(manifest, namespaced, unserved.get(manifest.gvk))
        if problem:
            problems.append(problem)
            rejected.append(manifest)
        else:
            content = _content(manifest, unit, bool(namespaced), moved)
            desired.append(_desired(manifest, resource, content, unit.id, label_key))
    refuse_duplicates(chain((each.manifest for each in desired), rejected))
    ordered = sorted(_brought_forward(desired, definitions), key=lambda each: sort_key(each.wave, each.key))
    return Prepared(
        tuple(ordered),
        tuple(problems),
        digest(sorted((each.key, each.digest) for each in ordered)),
        frozenset(key for manifest in rejected for key in _possible_keys(manifest, unit)),
        min((sync_wave(manifest.annotations) for manifest in rejected), default=None),
    )


def _problem(manifest: Manifest, namespaced: bool | None, unserved: NotServed | None) -> Problem | None:
    """Why an object has no address in the cluster, if it hasn't."""
    key, place = manifest.key, manifest.origin
    if namespaced is None:
        words = (
            unserved.message
            if unserved is not None
            else f"the cluster doesn't serve {manifest.gvk.kind} in {manifest.gvk.api_version}"
        )
        message = f"{place}: {key}: {words}"
        hint = "check apiVersion and kind, or install what defines it; it is tried again when the kind appears"
        return Problem(UNKNOWN_KIND, message, key, hint)
    name = key.name or manifest.content["metadata"]["generateName"]
    for what, text in (("name", name), ("namespace", key.namespace)):
        if text in (".", "..") or "/" in text or "%" in text:
            return Problem("InvalidName", f"{place}: {key}: {text!r} can't be an object's {what}", key, "rename it")
    return None


def _possible_keys(manifest: Manifest, unit: Unit) -> Iterable[ObjectKey]:
    """An object's key if its kind is namespaced, and if it isn't: who doesn't know the kind can't know which."""
    namespace = unit.target_namespace or manifest.namespace or unit.default_namespace
    return (msgspec.structs.replace(manifest.key, namespace=each) for each in ("", namespace))


def _content(manifest: Manifest, unit: Unit, namespaced: bool, moved: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The content in its namespace, without what the API server makes.

    A namespace on a cluster-scoped object goes: templating tools put it everywhere, and kubectl, Flux and Argo CD all
    apply such an object as if it were not there.
    """
    content = {name: value for name, value in manifest.content.items() if name != "status"}
    metadata = {
        name: value
        for name, value in content["metadata"].items()
        if name not in _SERVERS_OWN and (value or name not in _WRITTEN_ANEW)
    }
    if namespaced:
        metadata["namespace"] = unit.target_namespace or manifest.namespace or unit.default_namespace
    else:
        metadata.pop("namespace", None)
    content["metadata"] = metadata
    group_kind = (manifest.gvk.group, manifest.gvk.kind)
    if group_kind == ("", "Secret"):
        return _without_string_data(content, manifest)
    if moved and group_kind in _REFERENCES:
        content = _at(content, _REFERENCES[group_kind], lambda found: _followed(found, moved, unit.target_namespace))
    return content


def _desired(
    manifest: Manifest, resource: Resource | None, content: dict[str, Any], unit_id: str, label_key: str
) -> Desired:
    create_only = not manifest.name
    if create_only:
        base = content["metadata"]["generateName"][:_LONGEST_BASE]
        suffix = short_digest(digest([unit_id, content]))[:10]
        content["metadata"]["name"] = base + suffix
    metadata = content["metadata"]
    key = ObjectKey(manifest.gvk.group, manifest.gvk.kind, metadata.get("namespace", ""), metadata["name"])
    marked = manifest.with_content(mark(content, unit_id, key, label_key))
    return Desired(
        manifest=marked,
        resource=resource,
        digest=short_digest(marked.digest),
        wave=sync_wave(manifest.annotations),
        tier=tier(key.group, key.kind),
        create_only=create_only,
    )


# Secrets


def _without_string_data(content: dict[str, Any], manifest: Manifest) -> dict[str, Any]:
    """A Secret with its stringData in data, where the API server puts it and managed fields name its keys.

    As there, stringData wins. No message may hold a value.
    """
    data = _texts(content, "data", manifest)
    plain = _texts(content, "stringData", manifest)
    content = {name: value for name, value in content.items() if name != "stringData"}
    if plain:
        content["data"] = {**data, **{name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}}
    return content


def _texts(content: dict[str, Any], field: str, manifest: Manifest) -> dict[str, Any]:
    found = content.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ManifestError(f"{field} of {manifest.key} is not a mapping", manifest.origin)
    for name, text in found.items():
        if field == "data" and isinstance(text, str) and not _is_base64(text):
            raise ManifestError(
                f"data[{json.dumps(name, ensure_ascii=False)}] of {manifest.key} is not base64",
                manifest.origin,
                hint="stringData takes text as it is",
            )
        # To the API server a null in data is an empty value; nothing here needs to know.
        if not isinstance(text, str) and (text is not None or field == "stringData"):
            raise ManifestError(
                f"{field}[{json.dumps(name, ensure_ascii=False)}] of {manifest.key} is not text",
                manifest.origin,
                hint='put it in quotes; "" is empty',
            )
    return found


def _is_base64(text: str) -> bool:
    """Whether the API server can decode it: Go's standard encoding, which passes over the ends of lines."""
    return _BASE64.fullmatch(text.replace("\n", "").replace("\r", "")) is not None


# References into the set that follow what target_namespace moves


def _moved(manifests: Iterable[Manifest], unit: Unit) -> dict[tuple[str, str], str]:
    """The ServiceAccounts and Services of the set that are moved, by kind and name, and the namespace they leave."""
    if not unit.target_namespace:
        return {}
    return {
        (key.kind, key.name): key.namespace or unit.default_namespace
        for key in (manifest.key for manifest in manifests)
        if not key.group and key.kind in ("ServiceAccount", "Service")
    }


def _followed(reference: Any, moved: Mapping[tuple[str, str], str], target: str) -> Any:
    """A reference to something that was moved as it must read now; any other as it is.

    One without a namespace can only mean the set's. One with another namespace than the object had means another.
    """
    if not isinstance(reference, dict) or not isinstance(reference.get("name"), str):
        return reference
    # A subject says its kind; where only a Service can stand, none is said.
    left = moved.get((str(reference.get("kind", "Service")), reference["name"]))
    named = reference.get("namespace")
    if left is None or (named and named != left):
        return reference
    return {**reference, "namespace": target}


def _at(value: Any, path: Sequence[str], change: Callable[[Any], Any]) -> Any:
    """A value with what stands at the path changed; only the way there is copied."""
    if not path:
        return change(value)
    step, rest = path[0], path[1:]
    if step == "*":
        return [_at(item, rest, change) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict) or step not in value:
        return value
    return {**value, step: _at(value[step], rest, change)}


# Definitions of kinds in the set


class _Version(msgspec.Struct):
    name: str
    served: bool = False


class _Names(msgspec.Struct):
    kind: str


class _Definition(msgspec.Struct):
    group: str
    names: _Names
    scope: str
    versions: list[_Version] = []

    @property
    def namespaced(self) -> bool:
        return self.scope == "Namespaced"

    @property
    def served(self) -> list[GroupVersionKind]:
        return [GroupVersionKind(self.group, each.name, self.names.kind) for each in self.versions if each.served]


def _definitions(manifests: Iterable[Manifest]) -> dict[str, _Definition]:
    """What the CRDs of the set define, by their names. One that can't be read is the API server's to refuse."""
    found: dict[str, _Definition] = {}
    for manifest in manifests:
        if (manifest.gvk.group, manifest.gvk.kind) == CRD:
            try:
                found[manifest.name] = msgspec.convert(manifest.content.get("spec"), _Definition)
            except msgspec.ValidationError:
                continue
    return found


def _brought_forward(desired: Sequence[Desired], definitions: Mapping[str, _Definition]) -> Iterable[Desired]:
    """Namespaces and CRDs in the wave of the first object that needs them, if their own is later: as Argo CD does."""
    by_namespace: dict[str, int] = {}
    by_kind: dict[tuple[str, str], int] = {}
    for each in desired:
        key = each.key
        by_namespace[key.namespace] = min(each.wave, by_namespace.get(key.namespace, each.wave))
        kind = (key.group, key.kind)
        by_kind[kind] = min(each.wave, by_kind.get(kind, each.wave))
    for each in desired:
        needed = each.wave
        if (each.key.group, each.key.kind) == ("", "Namespace"):
            needed = by_namespace.get(each.key.name, each.wave)
        elif (each.key.group, each.key.kind) == CRD and each.key.name in definitions:
            defined = definitions[each.key.name]
            needed = by_kind.get((defined.group, defined.names.kind), each.wave)
        yield replace(each, wave=needed) if needed < each.wave else each
