"""What the hub keeps in memory of each cluster's ProxyAssemblage: names, targets, states; the rest is read to write."""

from functools import cached_property

from starling.api.meta import Fields, OwnerReference
from starling.runtime import Key

__all__ = ["EntryView", "Proxy", "ProxySpec", "ProxyStatus", "StateView"]


class ProxyMeta(Fields, frozen=True, kw_only=True):
    """Which object, and which state of it."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    owner_references: tuple[OwnerReference, ...] = ()


class EntryView(Fields, frozen=True, kw_only=True):
    """An entry: what it was moved to, and when in the order of its Module's admissions."""

    name: str
    target: str = ""
    admission: int = 0


class ProxySpec(Fields, frozen=True, kw_only=True):
    """What the cluster is to run."""

    adopted: str = ""
    released: bool = False
    syncs: tuple[EntryView, ...] = ()


class StateView(Fields, frozen=True, kw_only=True):
    """How one thing stands there."""

    name: str
    target: str = ""
    state: str = ""


class ProxyStatus(Fields, frozen=True, kw_only=True):
    """What the cluster says."""

    assemblage: str = ""
    imported: tuple[EntryView, ...] = ()
    observed: int = 0
    syncs: tuple[StateView, ...] = ()


class Proxy(Fields, frozen=True, kw_only=True, dict=True):
    """A ProxyAssemblage, as far as decisions need it."""

    metadata: ProxyMeta
    spec: ProxySpec = ProxySpec()
    status: ProxyStatus = ProxyStatus()

    @property
    def key(self) -> Key:
        """Which cluster's it is."""
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def acknowledged(self) -> bool:
        """Whether the cluster has taken in all that stands here."""
        return self.status.observed >= self.metadata.generation

    @property
    def adopted(self) -> bool:
        """Whether all that the cluster runs is known here, so that absences count."""
        return bool(self.spec.adopted) and self.spec.adopted == self.status.assemblage

    def entry(self, name: str) -> EntryView | None:
        """The entry of a Module."""
        return self._entries.get(name)

    def state(self, name: str) -> StateView | None:
        """How a Module's thing stands there."""
        return self._states.get(name)

    @cached_property
    def _entries(self) -> dict[str, EntryView]:
        return {each.name: each for each in self.spec.syncs}

    @cached_property
    def _states(self) -> dict[str, StateView]:
        return {each.name: each for each in self.status.syncs}


def changed_names(before: Proxy | None, after: Proxy | None) -> set[str]:
    """The Modules for which something has changed between two states of a cluster."""
    if before is None or after is None or before.adopted != after.adopted:
        return {each.name for proxy in (before, after) if proxy is not None for each in _parts(proxy)}
    was, is_ = set(_parts(before)), set(_parts(after))
    return {each.name for each in was ^ is_}


def _parts(proxy: Proxy) -> tuple[EntryView | StateView, ...]:
    return (*proxy.spec.syncs, *proxy.status.syncs)
