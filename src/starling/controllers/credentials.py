"""Secrets that travel, and those that say how to travel: credentials copied downstream, kubeconfigs read.

What is in them is never printed: an error names the Secret and what is wrong with it, not what it holds.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

from starling.api import Assemblage, ObjectMeta
from starling.api.meta import Fields
from starling.api.v1alpha1 import AssemblageSpec
from starling.controllers.secrets import SECRETS
from starling.errors import InputError
from starling.kube import Client, DeleteOptions, NotFound
from starling.objects import ManifestError, digest, load_documents
from starling.runtime import Key

__all__ = ["KUBECONFIG", "KUBECONFIG_LABEL", "CredentialsCopy", "Secret", "credentials_used", "kubeconfig_in"]

KUBECONFIG: Final = "kubeconfig"
"""The entry of a Secret that holds one."""

KUBECONFIG_LABEL: Final = "starling.dev/kubeconfig"
"""On a Secret that holds one: `cluster` on a hub, `upstream` on a cluster. Others aren't watched."""

_MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "starling"}


class Secret(Fields, frozen=True, kw_only=True):
    """A Secret, its values as they travel: in base64."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name})"

    @property
    def entries(self) -> dict[str, str]:
        """What is in it."""
        return self.data or {}


def kubeconfig_in(secret: Secret | None, key: Key) -> Mapping[str, Any]:
    """The kubeconfig that a Secret holds; InputError where there is none."""
    if secret is None:
        hint = f"it needs the label {KUBECONFIG_LABEL} and an entry {KUBECONFIG}"
        raise InputError(f"there is no Secret {key} with a kubeconfig", hint=hint)
    if KUBECONFIG not in secret.entries:
        raise InputError(f"Secret {key} has no entry {KUBECONFIG}")
    try:
        documents = load_documents(base64.b64decode(secret.entries[KUBECONFIG], validate=True))
    except (ManifestError, ValueError):
        documents = []
    if len(documents) != 1 or not _is_kubeconfig(documents[0].value):
        raise InputError(f"Secret {key}: its entry {KUBECONFIG} isn't a kubeconfig")
    found: Mapping[str, Any] = documents[0].value
    return found


def _is_kubeconfig(value: object) -> bool:
    """Whether it has the shape of one: lists of named maps."""
    parts = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))
    return isinstance(value, dict) and all(
        isinstance(value.get(many), list)
        and all(isinstance(each, dict) and isinstance(each.get(one), dict) for each in value[many])
        for many, one in parts
    )


def credentials_used(name: str, spec: AssemblageSpec) -> frozenset[str]:
    """The keys in the Secret of that name that entries refer to."""
    references = (entry.source.git.secret_ref for entry in spec.syncs if entry.source.git is not None)
    return frozenset(each.key for each in references if each is not None and each.name == name)


class CredentialsCopy:
    """Keeps a copy of a cluster's credentials downstream. Mutable: it remembers what it has copied."""

    def __init__(self, downstream: Client, key: Key) -> None:
        self._downstream = downstream
        self._ref = SECRETS.ref(key.name, key.namespace)
        self._done: str | None = None

    @property
    def name(self) -> str:
        """The copy's name."""
        return self._ref.name

    def doubt(self) -> None:
        """Look again at what is there, the next time."""
        self._done = None

    async def keep(self, original: Secret, used: frozenset[str]) -> None:
        """Have the copy hold what the original does; and what only it holds, as long as an entry uses it.

        A hub that was built anew doesn't know yet the credentials of all that runs here.
        """
        state = digest([original.entries, sorted(used)])
        if state == self._done:
            return
        there = await self._there()
        has = there.entries if there is not None else {}
        data = {name: has[name] for name in sorted(used) if name in has} | original.entries
        if there is None or has != data:
            await self._write(data)
        self._done = state

    async def remove(self) -> None:
        """Have no copy: nothing uses it. A Secret of that name that someone else made stays."""
        if self._done == "":
            return
        there = await self._there()
        if there is not None and _MANAGED_BY.items() <= there.metadata.labels.items():
            await self._downstream.delete(self._ref, DeleteOptions(uid=there.metadata.uid))
        self._done = ""

    async def _there(self) -> Secret | None:
        try:
            return (await self._downstream.get(self._ref)).decode(Secret)
        except NotFound:
            return None

    async def _write(self, data: dict[str, str]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._ref.name, "namespace": self._ref.namespace, "labels": _MANAGED_BY},
            "type": "Opaque",
            "data": data,
        }
        await self._downstream.apply(self._ref, body)


def released(spec: AssemblageSpec, local: Assemblage | None) -> bool:
    """Whether the cluster has been let go, and has nothing left of ours."""
    if not spec.released or local is None:
        return spec.released
    return local.status.observed_generation == local.metadata.generation and not local.status.syncs
