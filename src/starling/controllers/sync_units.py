"""What a Sync means to the engine: which unit it is, where and as whom it acts, which exact version it wants. Pure."""

from collections.abc import Callable
from typing import Final

import msgspec

from starling.api import PLATFORM_NAMESPACE, Assemblage, Cluster, Source, Sync, seconds
from starling.api.meta import OwnerReference
from starling.controllers.entries import described
from starling.controllers.exact import NotFetched, exact_git
from starling.controllers.writing import CONFIRM
from starling.engine import IgnoredDifference, Limits, Unit
from starling.errors import InputError
from starling.fleet import resolve_bindings
from starling.kube import Identity
from starling.runtime import Key, key_of

__all__ = [
    "DEFAULT_ACCOUNT",
    "FINALIZER",
    "HERE",
    "Surroundings",
    "SyncSettings",
    "account_of",
    "cluster_of",
    "controller_of",
    "kept_from",
    "owner_of",
    "place_of",
    "unit_id",
    "unit_of",
    "variables",
]

FINALIZER: Final = "starling.dev/sync"
HERE: Final = "here"
"""The cluster where the agent is, to the engine; others are <namespace>/<name> of their Cluster."""

DEFAULT_ACCOUNT: Final = "starling"
FROZEN: Final = "the cluster is frozen"


class SyncSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What units that no hub has named are called after, and the engine's bounds.

    `give_up_after` is for how many seconds the deletion of a Sync waits for another cluster that doesn't answer.
    """

    instance: str = "local"
    cluster: str = "this"
    give_up_after: float = 600.0
    limits: Limits = Limits()
    processors: int = 8


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a Sync's meaning depends on besides itself.

    `controller` is the Assemblage that it belongs to, `source` the Source and `cluster` the Cluster that it names, if
    these are there; of a Sync that is being deleted, `controller` and `cluster` are as they are now, past all caches.
    `terminating`: its namespace or its very kind is being deleted, so nobody asked for what it would take along.
    """

    controller: Assemblage | None = None
    source: Source | None = None
    cluster: Cluster | None = None
    terminating: bool = False


def owner_of(sync: Sync) -> OwnerReference | None:
    """The Assemblage that a Sync names as its controller, be it there or not."""
    for owner in sync.metadata.owner_references:
        if owner.controller and owner.kind == "Assemblage" and owner.api_version.startswith("starling.dev/"):
            return owner
    return None


def controller_of(sync: Sync, find: Callable[[Key], Assemblage | None]) -> Assemblage | None:
    """The Assemblage that controls a Sync: that very one, and of its own namespace."""
    owner = owner_of(sync)
    found = find(Key(sync.metadata.namespace, owner.name)) if owner is not None else None
    return found if owner is not None and found is not None and found.metadata.uid == owner.uid else None


def cluster_of(sync: Sync) -> Key | None:
    """The Cluster that a Sync goes to; None: it stays where it is."""
    cluster = sync.spec.cluster
    return Key(sync.metadata.namespace, cluster.name) if cluster is not None else None


def place_of(cluster: Key | None) -> str:
    """What the engine calls a cluster; no Cluster of that name is ever taken for where we are."""
    return str(cluster) if cluster is not None else HERE


def kept_from(key: Key, cluster: Cluster | None) -> str:
    """Why nothing can be brought directly to a Cluster; nothing if it can."""
    if cluster is None:
        return f"there is no Cluster {key}"
    if cluster.metadata.deletion_timestamp is not None:
        return f"Cluster {key} is being deleted"
    if cluster.spec.push is None:
        return f"Cluster {key} dials in, and the hub can't connect to it: a Module gets there"
    return ""


def unit_id(sync: Sync, controller: Assemblage | None, settings: SyncSettings) -> str:
    """The id of a Sync's unit: what the hub calls it if an Assemblage controls it, else made of its own name.

    InputError if the hub's is none, or of another namespace than its own: namespaces correspond by name; or if it is an
    Assemblage's, which is about the cluster where it is, and for another one.
    """
    namespace, name = key_of(sync)
    cluster = cluster_of(sync)
    if cluster is not None and owner_of(sync) is not None:
        raise InputError(
            f"Sync {namespace}/{name} is an Assemblage's, whose Syncs stay where they are, and names Cluster {cluster}",
            hint="make a Sync of its own for that cluster, on the hub",
        )
    if controller is None:
        where = cluster.name if cluster is not None else settings.cluster
        return f"{settings.instance}/{namespace}/Sync.{name}@{where}"
    said = sync.spec.unit
    if ":" in said or said.count("/") < 2 or said.split("/", 2)[1] != namespace:
        raise InputError(
            f"Sync {namespace}/{name} says that it is the unit {said!r}, which is none of the namespace {namespace}",
            hint="its hub writes <instance>/<namespace>/<kind>.<name>@<cluster> there",
        )
    return said


def unit_of(sync: Sync, identity: str, around: Surroundings) -> Unit:
    """The unit that a Sync is, by this id."""
    spec, deleting = sync.spec, sync.metadata.deletion_timestamp is not None
    # Who removes what is suspended, as in Flux, or what goes down with its namespace or its Assemblage, hasn't asked
    # for its objects. The garbage collector deletes what an Assemblage has before anyone can say Orphan.
    orphaned = deleting and (spec.suspend or around.terminating or _let_go(sync, around.controller))
    platform = sync.metadata.namespace == PLATFORM_NAMESPACE
    return Unit(
        id=identity,
        cluster=place_of(cluster_of(sync)),
        revision=_known_revision(sync, around.source),
        target_namespace=spec.target_namespace,
        default_namespace="default" if platform else sync.metadata.namespace,
        # The account and its rights go down with the namespace too; taking our marks off needs nobody's leave.
        identity=None if around.terminating else account_of(sync),
        prune=spec.prune,
        allow_empty=spec.allow_empty,
        confirm=sync.metadata.annotations.get(CONFIRM, ""),
        force=spec.force,
        deletion_policy="Orphan" if orphaned else spec.deletion_policy,
        interval=seconds(spec.interval),
        timeout=seconds(spec.timeout),
        ignore_differences=tuple(
            IgnoredDifference(
                group=each.group, kind=each.kind, namespace=each.namespace, name=each.name,
                json_pointers=each.json_pointers,
            )
            for each in spec.ignore_differences
        ),
        held=_held(sync, around),
        deleting=deleting,
    )  # fmt: skip


def account_of(sync: Sync) -> Identity | None:
    """Whom a Sync acts as; None, with our own rights, in the platform namespace alone."""
    namespace, name = sync.metadata.namespace, sync.spec.service_account_name
    if namespace == PLATFORM_NAMESPACE and not name:
        return None
    return Identity.service_account(namespace, name or DEFAULT_ACCOUNT)


def variables(sync: Sync, around: Surroundings) -> dict[str, str]:
    """What manifests may mention as ${NAME}: what the hub has resolved, or what a Sync of its own says itself."""
    if around.controller is not None:
        return {each.name: each.value for each in sync.spec.values}
    if around.cluster is not None:
        return {each.name: each.value for each in resolve_bindings(sync.spec.bindings, described(around.cluster))}
    found: dict[str, str] = {}
    for binding in sync.spec.bindings:
        if binding.value is None:
            raise InputError(
                f"the binding {binding.name} of Sync {key_of(sync)} refers to a Cluster, and those are on the hub",
                hint="give it a value",
            )
        found[binding.name] = binding.value
    return found


def _known_revision(sync: Sync, source: Source | None) -> str:
    try:
        return exact_git(sync, source)[1]
    except (InputError, NotFetched):  # whoever needs it says so
        return ""


def _let_go(sync: Sync, controller: Assemblage | None) -> bool:
    """Whether the Assemblage that has a Sync lets go of all it has, or is gone; not so if only the entry left it."""
    if controller is None:
        return owner_of(sync) is not None
    return controller.spec.released or controller.metadata.deletion_timestamp is not None


def _held(sync: Sync, around: Surroundings) -> str:
    """Why nothing may be done now; what is let go isn't held."""
    controller, deleting = around.controller, sync.metadata.deletion_timestamp is not None
    if controller is not None and controller.spec.mode == "Frozen":
        return "" if around.terminating or _let_go(sync, controller) else FROZEN
    if why := _kept_off(sync, around):
        return why
    if deleting:
        return ""
    return "suspended" if sync.spec.suspend else _unfetched(sync, around.source)


def _kept_off(sync: Sync, around: Surroundings) -> str:
    """Why nothing may be done now on the Cluster that a Sync goes to.

    Where nothing new arrives, what was rendered last stays in force, which says nothing of the rest of a spec: that may
    have changed since, so what isn't the spec that was tried last is left alone.
    """
    key, cluster, status = cluster_of(sync), around.cluster, sync.status
    if key is None:
        return ""
    if cluster is None or kept_from(key, cluster):
        return kept_from(key, cluster)
    if cluster.spec.mode == "Frozen":
        return "" if around.terminating else FROZEN
    if cluster.spec.mode == "Active" or sync.metadata.deletion_timestamp is not None:
        return ""
    if status.operation is not None and status.observed_generation == sync.metadata.generation:
        return ""
    return "the cluster is cordoned: what is new here waits until it isn't, and drift with it"


def _unfetched(sync: Sync, source: Source | None) -> str:
    name = sync.spec.source.name
    if name is not None and source is None:
        return f"there is no Source {sync.metadata.namespace}/{name}"
    if name is not None and not sync.spec.revision and source is not None:
        return "" if source.status.artifact else f"Source {sync.metadata.namespace}/{name} has no version yet"
    return ""
