"""Three revisions of a unit with some sixty objects, and how a cluster must look when one of them is in it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from starling.engine.diff import diff_object, render
from starling.engine.ownership import LABEL, TRACKING, owner, tracking_id
from starling.engine.prepare import prepare
from starling.engine.unit import Unit, unit_hash
from starling.kube import Client, NotFound, NotServed, Ref, Selection
from starling.objects import GroupVersionKind, Manifest, ObjectKey, dump_all, load_manifests
from tests.integration.config_maps import CONFIG_MAPS

Json = dict[str, Any]

REVISIONS = ("A", "B", "C")
WAVE = "argocd.argoproj.io/sync-wave"
RBAC = "rbac.authorization.k8s.io"
CORE_KINDS = ("ConfigMap", "Secret", "ServiceAccount")
KINDS = (
    *(GroupVersionKind("", "v1", kind) for kind in CORE_KINDS),
    *(GroupVersionKind(RBAC, "v1", kind) for kind in ("Role", "RoleBinding", "ClusterRole")),
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy"),
    GroupVersionKind("policy", "v1", "PodDisruptionBudget"),
    GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
)


def _object(api_version: str, kind: str, name: str, wave: int = 0, **rest: Any) -> Json:
    annotations = {"annotations": {WAVE: str(wave)}} if wave else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **annotations}, **rest}


def _definition(group: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "eggs", "singular": "egg", "kind": "Egg"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"eggs.{group}", spec=spec)


def _deployment() -> Json:
    pod = {"containers": [{"name": "web", "image": "web:1"}]}
    labels = {"app": "web"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return _object("apps/v1", "Deployment", "web", 2, spec=spec)


def objects(revision: str, prefix: str) -> list[Json]:
    """A revision's objects: some stay as they are, some change, some come and some go, kinds among them."""
    number = REVISIONS.index(revision)
    lasting, passing = f"{prefix}.example.org", f"passing.{prefix}.example.org"
    found = [
        _definition(lasting),
        *(_object(f"{lasting}/v1", "Egg", f"egg-{n + number}", spec={"n": n}) for n in range(5)),
        *(
            _object("v1", "ConfigMap", f"map-{n}", n % 3, data={"n": str(n), f"only-{revision}": "1"} if n % 2 else {})
            for n in range(24)
            if (n + number) % 6
        ),
        *(_object("v1", "Secret", f"secret-{revision.lower()}-{n}", n % 3, data={"a": "AAAA"}) for n in range(6)),
        *(_object("v1", "ServiceAccount", f"account-{n}") for n in range(number, 5 + number)),
        *(_object(f"{RBAC}/v1", "Role", f"role-{n}", 1, rules=_rules(revision)) for n in range(5)),
        *(_object(f"{RBAC}/v1", "RoleBinding", f"binding-{n}", 1, roleRef=_role(n)) for n in range(3)),
        _object(f"{RBAC}/v1", "ClusterRole", f"{prefix}-{revision.lower()}", rules=_rules(revision)),
        _deployment(),
        _object("v1", "ConfigMap", "adopted", data={"ours": revision}),
    ]
    # Kinds that other revisions know nothing of: only the record tells what to look for.
    if revision == "A":
        found += [_object("networking.k8s.io/v1", "NetworkPolicy", f"only-{n}", spec={"podSelector": {}}) for n in "ab"]
    if revision == "B":
        found += [_object("policy/v1", "PodDisruptionBudget", f"only-{n}", spec={"maxUnavailable": 1}) for n in "ab"]
        found += [_definition(passing), *(_object(f"{passing}/v1", "Egg", f"egg-{n}", 1) for n in range(3))]
    once = _object("v1", "ConfigMap", "", data={"made": "once" if number < 2 else "again"})
    once["metadata"] = {"generateName": "once-"}
    return [*found, once]


def _rules(revision: str) -> list[Json]:
    return [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] if revision == "A" else ["get"]}]


def _role(n: int) -> Json:
    return {"apiGroup": RBAC, "kind": "Role", "name": f"role-{n}"}


def text(revision: str, prefix: str) -> str:
    """The revision as a file has it."""
    return dump_all(objects(revision, prefix))


@dataclass(frozen=True)
class Place:
    """A namespace with a unit in it, and objects that aren't the unit's."""

    client: Client
    namespace: str
    unit: Unit

    async def prepare(self) -> None:
        """Put there what was there before: an object to adopt, one of someone else's, and two with copied marks."""
        adopted = _object("v1", "ConfigMap", "adopted", data={"ours": "0", "theirs": "goes"})
        copied = json.dumps(adopted)
        adopted["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": copied}
        await self.client.create(CONFIG_MAPS, adopted, namespace=self.namespace, manager="kubectl-client-side-apply")
        of_another = ObjectKey("", "ConfigMap", self.namespace, "map-1")
        marks = {"annotations": {TRACKING: tracking_id(self.unit.id, of_another)}, "labels": self._label}
        for name, metadata in (("foreign", {}), ("copied", marks), ("labelled", {"labels": self._label})):
            content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": name}}
            await self.client.create(CONFIG_MAPS, content, namespace=self.namespace, manager="someone")

    async def leave(self) -> None:
        """Remove from the cluster what is in no namespace."""
        for kind, name in ((KINDS[-1], f"eggs.{self.namespace}.example.org"), (KINDS[5], f"{self.namespace}-c")):
            with suppress(NotFound):
                await self.client.delete((await self.client.discovery.resource(kind)).ref(name))

    @property
    def _label(self) -> dict[str, str]:
        return {LABEL: unit_hash(self.unit.id)}

    async def found(self) -> dict[ObjectKey, Json]:
        """All objects in the namespace, and those of the unit that are in none."""
        groups = (f"{self.namespace}.example.org", f"passing.{self.namespace}.example.org")
        kinds = [*KINDS, *(GroupVersionKind(group, "v1", "Egg") for group in groups)]
        objects: dict[ObjectKey, Json] = {}
        self.client.discovery.forget()
        for kind in kinds:
            try:
                resource = await self.client.discovery.resource(kind)
                where = Selection(self.namespace) if resource.namespaced else Selection(labels=LABEL)
                listed = (await self.client.list(resource, msgspec.Raw, where)).items
            except NotServed:
                continue
            for raw in listed:
                content = msgspec.json.decode(raw)
                metadata = content["metadata"]
                key = ObjectKey(kind.group, kind.kind, metadata.get("namespace", ""), metadata["name"])
                if resource.namespaced or self._owned(key, content):
                    objects[key] = content
        return objects

    def _owned(self, key: ObjectKey, content: Json) -> bool:
        metadata = content["metadata"]
        return owner(key, metadata.get("labels"), metadata.get("annotations")) == self.unit.id

    def foreign(self, found: dict[ObjectKey, Json]) -> dict[ObjectKey, Json]:
        """Those that aren't the unit's, by their names."""
        return {key: each for key, each in found.items() if key.name in ("foreign", "copied", "labelled")}

    async def check(self, manifests: Sequence[Manifest]) -> dict[ObjectKey, Json]:
        """Assert that all that the manifests say is there just so, and nothing else; all that is there."""
        found = await self.found()
        resources = {each.gvk: await self.client.discovery.resource(each.gvk) for each in manifests}
        desired = {each.key: each for each in prepare(manifests, self.unit, resources).desired}
        assert found.keys() - self.foreign(found).keys() == desired.keys()
        assert len(self.foreign(found)) == 3
        for key, each in desired.items():
            content = found[key]
            assert self._owned(key, content), key
            assert content.get("data", {}) == each.manifest.content.get("data", {}), key
            assert each.resource is not None
            diff = await diff_object(self.client, Ref(each.resource, key.name, key.namespace), each.manifest.content)
            assert not diff.different, render([diff])
            assert not diff.ownership or each.create_only, diff
        return found


def manifests_of(revision: str, prefix: str) -> Sequence[Manifest]:
    """The revision as it is loaded."""
    return load_manifests(text(revision, prefix), "manifests.yaml")
