"""Why something failed on a cluster, in that cluster's words: asked for once, when a rollout stops for it."""

from collections.abc import Collection, Iterable

from starling.api import ProxyAssemblage, Sync
from starling.api.v1alpha1 import Entry, EntryStatus
from starling.fleet import entry_status
from starling.kube import Client, KubeError, NotFound
from starling.runtime import Key

__all__ = ["cause_of"]


async def cause_of(client: Client, cluster: Key, entries: Collection[str], syncs: Iterable[str] = ()) -> str:
    """What a cluster says of its entries, and Syncs of the hub's that go there, one of which failed.

    Empty if nothing can be read now: what is told to people isn't worth another try.
    """
    try:
        found = [*await _told(client, cluster, entries), *[await _synced(client, cluster, name) for name in syncs]]
    except KubeError:
        return ""
    worst_first = sorted(found, key=lambda each: ("failed", "updating", "succeeded").index(each.state))
    return next((each.message for each in worst_first if each.message), "")


async def _told(client: Client, cluster: Key, entries: Collection[str]) -> list[EntryStatus]:
    if not entries:
        return []
    ref = ProxyAssemblage.declaration.resource.ref(cluster.name, cluster.namespace)
    try:
        proxy = (await client.get(ref)).decode(ProxyAssemblage)
    except NotFound:
        return []
    return [each for each in proxy.status.syncs if each.name in entries]


async def _synced(client: Client, cluster: Key, name: str) -> EntryStatus:
    sync = (await client.get(Sync.declaration.resource.ref(name, cluster.namespace))).decode(Sync)
    return entry_status(Entry(name=name, unit="", target=sync.spec.target, source=sync.spec.source), sync)
