"""The fleet as commands read and change it: the hub, its Clusters, what is rolled out to them, what they say."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import typer

from starling import __version__
from starling.api import (
    PLATFORM_NAMESPACE,
    Cluster,
    Declaration,
    Module,
    ProxyAssemblage,
    Resource,
    Sync,
    SyncGroup,
    crds,
)
from starling.api.documents import document
from starling.api.enrolment import agent_installation
from starling.api.v1alpha1 import Entry
from starling.cli import console
from starling.cli.install import applied
from starling.cli.options import Context, Kubeconfig
from starling.cli.standings import Rolled, Standing, direct_standing, group_of, group_standing, standing
from starling.errors import InputError, StarlingError
from starling.fleet import GROUP
from starling.kube import (
    BadRequest,
    Client,
    ConfigError,
    KubeError,
    NotFound,
    NotServed,
    Ref,
    Selection,
    default_access,
)

__all__ = [
    "AGENT_IMAGE",
    "DEFAULT_NAMESPACE",
    "MANAGER",
    "AgentImage",
    "Fleet",
    "HubContext",
    "HubNamespace",
    "HubOption",
    "Key",
    "Labels",
    "NoAgent",
    "Where",
    "apply_all",
    "cluster_documents",
    "delete_all",
    "hub",
    "keep_cluster",
    "named_object",
    "naming",
    "parsed_labels",
    "reached_by",
    "refuse_bad_name",
    "refuse_other_way",
    "selected",
]

Labels = Annotated[
    str,
    typer.Option("--labels", metavar="KEY=VALUE,…", help="Labels, besides those that it has: region=eu,ring=canary."),
]
HubNamespace = Annotated[
    str, typer.Option("-n", "--namespace", metavar="NAMESPACE", help="The namespace of the fleet's objects on the hub.")
]
HubOption = Annotated[
    Path | None,
    typer.Option(
        "--hub",
        "--kubeconfig",
        metavar="FILE",
        help="The hub's kubeconfig; else $KUBECONFIG, ~/.kube/config or the pod's own account.",
    ),
]
HubContext = Annotated[
    str | None,
    typer.Option("--hub-context", "--context", help="The context in the hub's kubeconfig; else its current one."),
]
AgentImage = Annotated[
    str, typer.Option("--agent-image", metavar="IMAGE", help="The image that the agent runs from, there.")
]
NoAgent = Annotated[
    bool, typer.Option("--no-agent", help="Bring the kinds alone: the agent is there, or started otherwise.")
]
DEFAULT_NAMESPACE: Final = PLATFORM_NAMESPACE
AGENT_IMAGE: Final = f"starling:{__version__}"

MANAGER: Final = "starling-cli"
"""Who sets what people say on the command line."""

_WORD: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_NAME: Final = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_WORD}", re.ASCII)
_LABEL_VALUE: Final = re.compile(rf"({_WORD})?", re.ASCII)
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", re.ASCII)

K = TypeVar("K", bound=Resource)


class Key(NamedTuple):
    """Which object of a kind."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The hub, and the namespace there; options, spread."""

    kubeconfig: Kubeconfig = None
    context: Context = None
    namespace: HubNamespace = DEFAULT_NAMESPACE


@dataclass(frozen=True, slots=True)
class Fleet:
    """All that the hub says; `syncs` are those that go straight to a cluster, by that one."""

    clusters: Mapping[Key, Cluster]
    modules: Mapping[Key, Module]
    proxies: Mapping[Key, ProxyAssemblage]
    groups: Mapping[Key, SyncGroup] = field(default_factory=dict)
    syncs: Mapping[Key, Sequence[Sync]] = field(default_factory=dict)

    @classmethod
    async def read(cls, client: Client, namespace: str, selector: str = "") -> "Fleet":
        """Everything in a namespace, or, if it is empty, in all; of the clusters, those that the selector picks."""
        chosen, every = Selection(namespace, selector), Selection(namespace)
        clusters, modules, proxies, groups, syncs = await asyncio.gather(
            selected(client, Cluster, chosen),
            client.list(Module.declaration.resource, Module, every),
            client.list(ProxyAssemblage.declaration.resource, ProxyAssemblage, every),
            client.list(SyncGroup.declaration.resource, SyncGroup, every),
            client.list(Sync.declaration.resource, Sync, every),
        )
        return cls.of(clusters, modules.items, proxies.items, groups.items, syncs.items)

    @classmethod
    def of(
        cls,
        clusters: Iterable[Cluster],
        modules: Iterable[Module],
        proxies: Iterable[ProxyAssemblage],
        groups: Iterable[SyncGroup] = (),
        syncs: Iterable[Sync] = (),
    ) -> "Fleet":
        """These, in order."""
        found = dict[Key, list[Sync]]()
        for each in sorted(syncs, key=_key):
            if each.spec.cluster is not None:
                found.setdefault(Key(each.metadata.namespace, each.spec.cluster.name), []).append(each)
        return cls(
            {_key(each): each for each in sorted(clusters, key=_key)},
            {_key(each): each for each in sorted(modules, key=_key)},
            {_key(each): each for each in sorted(proxies, key=_key)},
            {_key(each): each for each in sorted(groups, key=_key)},
            found,
        )

    def on(self, cluster: Key) -> list[Standing]:
        """What each Module of its namespace is on a cluster, each SyncGroup, and each Sync; but for who isn't there."""
        return [*self.modules_on(cluster), *self.groups_on(cluster), *self.syncs_on(cluster)]

    def modules_on(self, cluster: Key) -> list[Standing]:
        """What each Module of its namespace is on a cluster, those left out that don't go there."""
        found = (self._standing(cluster, each) for each in self.modules.values())
        return [each for each in found if each is not None]

    def groups_on(self, cluster: Key) -> list[Standing]:
        """What each SyncGroup of its namespace is on a cluster, those left out that don't go there."""
        found = (self._standing(cluster, each) for each in self.groups.values())
        return [each for each in found if each is not None]

    def syncs_on(self, cluster: Key) -> list[Standing]:
        """What each Sync is that goes straight to a cluster, those of SyncGroups left out."""
        own = (each for each in self.syncs.get(cluster, ()) if GROUP not in each.metadata.annotations)
        return [direct_standing(self.clusters[cluster], each) for each in own]

    def of_rolled(self, rolled: Rolled) -> list[tuple[str, Standing]]:
        """What a Module or a SyncGroup is on each cluster that it goes to, or still is on."""
        found = ((key.name, self._standing(key, rolled)) for key in self.clusters)
        return [(name, each) for name, each in found if each is not None]

    def _standing(self, key: Key, rolled: Rolled) -> Standing | None:
        if key.namespace != rolled.metadata.namespace:
            return None
        cluster, proxy = self.clusters[key], self.proxies.get(key)
        if isinstance(rolled, Module):
            return standing(cluster, proxy, rolled)
        name = rolled.metadata.name
        its = [each for each in self.syncs.get(key, ()) if each.metadata.annotations.get(GROUP) == name]
        return group_standing(cluster, proxy, its, rolled)

    def unclaimed(self, cluster: Key) -> list[Entry]:
        """What a cluster runs that is of no Module and no SyncGroup."""
        proxy = self.proxies.get(cluster)
        entries = proxy.spec.syncs if proxy is not None else ()
        of_none = (entry for entry in entries if Key(cluster.namespace, entry.name) not in self.modules)
        return [entry for entry in of_none if not (entry.admission and group_of(entry))]


@asynccontextmanager
async def hub(kubeconfig: Path | None, context: str | None = None) -> AsyncIterator[Client]:
    """A client of the hub, which answers and is one."""
    async with Client(default_access(kubeconfig, context)) as client:
        try:
            await client.raw("GET", f"/apis/{Declaration.group}/{Declaration.version}")
        except NotServed as error:
            server = (await client.transport.access()).server
            raise StarlingError(
                f"{server} is no hub: it doesn't have Starling's kinds",
                hint="starling install makes it one; or is this another cluster than the one meant?",
            ) from error
        yield client


async def selected(client: Client, kind: type[K], chosen: Selection) -> Sequence[K]:
    """Those that somebody's selector picks; InputError if it is none."""
    try:
        return (await client.list(kind.declaration.resource, kind, chosen)).items
    except BadRequest as error:
        if not chosen.labels:
            raise
        hint = "write it as kubectl takes it: region=eu,ring!=canary or 'region in (eu, us)'"
        cause = error.message.removeprefix(f"{error.action}: ")
        raise InputError(f"{chosen.labels!r} is no selector: {cause}", hint=hint) from error


@asynccontextmanager
async def naming(who: str) -> AsyncIterator[None]:
    """Errors of API servers say whose they are, for commands that speak with two."""
    try:
        yield
    except ConfigError:
        raise
    except KubeError as error:
        raise StarlingError(f"{who}: {error.message}", hint=error.hint) from error


def refuse_bad_name(name: str) -> None:
    """Raise if no Cluster can be called so, before anything is done for it."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be a Cluster's name", hint="lower-case letters, digits, - and . in between, 63 at most"
        )


async def keep_cluster(
    client: Client, key: Key, labels: Mapping[str, str], reach: Mapping[str, Mapping[str, Any]]
) -> tuple[Cluster, str]:
    """Have a Cluster that is reached so, with these labels besides those it has; and what that did to it.

    A Cluster that is reached the other way is refused: its account or its kubeconfig would stay behind.
    """
    ref = Cluster.declaration.resource.ref(key.name, key.namespace)
    metadata = {"name": key.name, "namespace": key.namespace, "labels": dict(labels)}
    try:
        before = (await client.get(ref)).decode(Cluster)
    except NotFound:
        api_version = Cluster.declaration.resource.gvk.api_version
        body = {"apiVersion": api_version, "kind": ref.resource.kind, "metadata": metadata, "spec": reach}
        made = await client.create(ref.resource, body, namespace=key.namespace, manager=MANAGER)
        return made.decode(Cluster), "created"
    refuse_other_way(before, *reach)
    patch = {"metadata": {"labels": dict(labels), "uid": before.metadata.uid}, "spec": reach}
    after = (await client.merge_patch(ref, patch, manager=MANAGER)).decode(Cluster)
    same = (before.spec, before.metadata.labels) == (after.spec, after.metadata.labels)
    return after, "unchanged" if same else "changed"


def refuse_other_way(cluster: Cluster, wanted: str) -> None:
    """Raise if the Cluster is on its way out, or is reached by push and pull is wanted, or the other way round."""
    name = cluster.metadata.name
    if cluster.metadata.deletion_timestamp is not None:
        raise InputError(f"cluster {name} is being removed", hint=f"starling cluster remove {name} waits for that")
    if (has := reached_by(cluster)) != wanted:
        raise InputError(
            f"cluster {name} is reached by {has}, not by {wanted}",
            hint=f"starling cluster remove {name} first: what runs there stays, and is taken over again",
        )


def reached_by(cluster: Cluster) -> Literal["push", "pull"]:
    """Who opens the connection: the hub pushes, or the cluster pulls."""
    return "push" if cluster.spec.push is not None else "pull"


def cluster_documents(image: str) -> list[dict[str, Any]]:
    """What every cluster of the fleet must hold: our kinds, a namespace, and the agent if there is an image."""
    if image:
        return agent_installation(image)
    return [document("v1", "Namespace", PLATFORM_NAMESPACE, namespaced=False), *crds()]


async def apply_all(client: Client, documents: Iterable[Mapping[str, Any]], where: str) -> None:
    """Apply objects one after the other, and tell on stdout what became of each."""
    for each in documents:
        ref, outcome = await applied(client, each)
        console.data(f"{where}: {ref} {outcome}")


async def delete_all(client: Client, refs: Iterable[Ref], where: str) -> int:
    """Delete those of these that are there, tell it on stdout, and how many they were."""
    count = 0
    for ref in refs:
        try:
            await client.delete(ref)
        except NotFound:
            continue
        count += 1
        console.data(f"{where}: {ref} deleted")
    return count


def parsed_labels(text: str) -> dict[str, str]:
    """Labels from region=eu,ring=canary."""
    given = [each for each in text.split(",") if each]
    if wrong := [each for each in given if not each.partition("=")[0].strip() or "=" not in each]:
        raise InputError(f"--labels: {wrong[0]!r} is no label", hint="write them like region=eu,ring=canary")
    pairs = (each.partition("=") for each in given)
    found = {name.strip(): value.strip() for name, _, value in pairs}
    for name, value in found.items():  # before anything is done for them
        if not (_LABEL_NAME.fullmatch(name) and _LABEL_VALUE.fullmatch(value)):
            hint = "letters, digits, -, _ and . in between, 63 at most; a name may have a domain before it, with a /"
            raise InputError(f"--labels: {name}={value} can't be a label", hint=hint)
    return found


async def named_object(client: Client, kind: type[K], key: Key) -> K:
    """An object by its name; InputError that says which there are if there is none."""
    resource = kind.declaration.resource
    try:
        return (await client.get(resource.ref(key.name, key.namespace))).decode(kind)
    except NotFound as error:
        listing = await client.list(resource, kind, Selection(key.namespace))
        names = ", ".join(sorted(each.metadata.name for each in listing.items)[:10])
        word = kind.declaration.singular
        raise InputError(
            f"there is no {word} {key.name} in namespace {key.namespace}",
            hint=f"there is: {names}; -n looks in another namespace" if names else "-n looks in another namespace",
        ) from error


def _key(obj: Resource) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)
