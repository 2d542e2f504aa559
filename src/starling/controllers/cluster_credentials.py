"""The one Secret on the hub, per cluster, with the credentials of what the cluster is to run."""

import base64
import logging
from collections.abc import Iterable
from typing import Final

from starling.api import Cluster, ObjectMeta
from starling.api.enrolment import credentials_name
from starling.api.meta import Fields
from starling.api.v1alpha1 import Entry
from starling.controllers.groups import revision_of_entry
from starling.controllers.secrets import SECRETS, Secrets, packed
from starling.controllers.world import World
from starling.controllers.writing import owned_by
from starling.errors import InputError
from starling.fleet import selects
from starling.kube import Client, NotFound
from starling.objects import digest
from starling.runtime import Key

__all__ = ["ClusterCredentials"]

LOG = logging.getLogger(__name__)
EVERY: Final = 300.0
"""Seconds after which credentials are compared with what they were copied from; they change without being asked for."""

LABELS: Final = {"app.kubernetes.io/managed-by": "starling"}
NONE: Final = "none"


class _Secret(Fields, frozen=True, kw_only=True):
    metadata: ObjectMeta


class ClusterCredentials:
    """Keeps them. Mutable: a digest of what it wrote for each cluster, or found not to be there."""

    def __init__(self, client: Client, secrets: Secrets, world: World) -> None:
        self._client = client
        self._secrets = secrets
        self._world = world
        self._written: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        """Look again the next time."""
        self._written.pop(key, None)

    async def keep(self, key: Key, cluster: Cluster, entries: Iterable[Entry]) -> float | None:
        """Have the Secret hold just what the entries need, before they need it; seconds to the next look."""
        wanted: dict[str, str] = {}
        names = self._needed(cluster, entries)
        for name in sorted(names):
            data = await self._secrets.data(key.namespace, name)
            if data is None:
                LOG.warning("%s: there is no Secret %s/%s for its sources", key, key.namespace, name)
                continue
            wanted[name] = base64.b64encode(packed(data)).decode()
        if key not in self._written and not await self._is_there(key, cluster):
            self._written[key] = NONE
        if not names and self._written.get(key) == NONE:
            return None
        if self._written.get(key) != (state := digest(wanted)):
            await self._write(key, cluster, wanted)
            self._written[key] = state
        return EVERY if names else None

    def _needed(self, cluster: Cluster, entries: Iterable[Entry]) -> set[str]:
        """The Secrets that what goes there needs there.

        By the history of Modules and SyncGroups, never by what entries say: those that were imported are the cluster's
        word, and it may name any Secret.
        """
        found = set()
        for entry in entries:
            made = revision_of_entry(self._world, cluster.metadata.namespace, entry.name, entry.target)
            if made is None or made[1].source.secret_ref is None:
                continue
            # One that we made stays whole until it goes, also while the cluster waits to be left.
            if entry.admission or selects(made[0], cluster.metadata.labels):
                found.add(made[1].source.secret_ref.name)
        return found

    async def _is_there(self, key: Key, cluster: Cluster) -> bool:
        """Whether there is one from before; InputError if it is someone else's."""
        ref = SECRETS.ref(credentials_name(key.name), key.namespace)
        try:
            found = (await self._client.get(ref)).decode(_Secret)
        except NotFound:
            return False
        owners = {each.name for each in found.metadata.owner_references if each.kind == "Cluster"}
        if not LABELS.items() <= found.metadata.labels.items() or owners - {cluster.metadata.name}:
            raise InputError(
                f"Secret {key.namespace}/{ref.name} isn't Starling's, and in the way of what {key} needs",
                hint="rename the Secret, or the Cluster",
            )
        return True

    async def _write(self, key: Key, cluster: Cluster, data: dict[str, str]) -> None:
        ref = SECRETS.ref(credentials_name(key.name), key.namespace)
        metadata = {
            "name": ref.name,
            "namespace": ref.namespace,
            "labels": LABELS,
            "ownerReferences": [owned_by(cluster)],
        }
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        await self._client.apply(ref, body)
