"""`starling enrol`: clusters that dial in to the hub."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from starling.api import Cluster
from starling.api.enrolment import (
    account_name,
    downstream_documents,
    hub_documents,
    kubeconfig,
    owned_by,
    revoked,
)
from starling.cli import console
from starling.cli.fleet import (
    AGENT_IMAGE,
    DEFAULT_NAMESPACE,
    AgentImage,
    HubNamespace,
    Key,
    Labels,
    NoAgent,
    apply_all,
    cluster_documents,
    delete_all,
    hub,
    keep_cluster,
    named_object,
    naming,
    parsed_labels,
    reached_by,
    refuse_bad_name,
)
from starling.cli.install import applied, served
from starling.cli.kubeconfigs import find
from starling.cli.options import Context, Kubeconfig, options, seconds
from starling.errors import InputError
from starling.kube import Client, Ref, Resource, default_access
from starling.objects import dump_all

__all__ = ["enrol"]

ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """A cluster to enrol; options, spread."""

    labels: Labels = ""
    allowed: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-label",
            metavar="KEY",
            help="A label that the cluster may choose by itself, in its Upstream. May be repeated.",
            show_default=False,
        ),
    ] = None
    server: Annotated[
        str,
        typer.Option("--server", metavar="URL", help="Where the cluster finds the hub; else as we do."),
    ] = ""
    lifetime: Annotated[
        str, typer.Option("--lifetime", metavar="DURATION", help="How long the token lives; it is renewed at half.")
    ] = "720h"
    kubeconfig: Kubeconfig = None
    context: Context = None
    namespace: HubNamespace = DEFAULT_NAMESPACE
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="FILE", help="The cluster's own kubeconfig: apply there instead of printing.",
            show_default=False,
        ),
    ] = None  # fmt: skip
    into_context: Annotated[
        str | None, typer.Option("--into-context", help="The context in it; else its current one.")
    ] = None
    agent_image: AgentImage = AGENT_IMAGE
    no_agent: NoAgent = False


class _TokenStatus(msgspec.Struct, rename="camel"):
    token: str
    expiration_timestamp: datetime


class _Token(msgspec.Struct):
    status: _TokenStatus


@options
def enrol(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The Cluster's name.", show_default=False)],
    *,
    enrolled: Enrolled,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Take its account from the cluster: its token is worthless at once.")
    ] = False,
) -> None:
    """Let a cluster dial in to the hub (pull): prints what to apply there, with a token in it, and the agent.

    On the hub it gets a Cluster and an account that can do what this one cluster needs, and nothing else. Nobody needs
    to be able to connect to the cluster. Again is harmless, and gives a new token: so a cluster is enrolled anew when
    its token ran out or the hub was built anew. Labels are added to those that the Cluster has.

    With --revoke the account goes, the Cluster stays; what runs there goes on. `starling cluster remove` lets it go.

    Exit codes: 0 done, 2 the call or a kubeconfig is wrong, 3 something failed, 4 out of time.

    starling enrol edge-7 --labels region=eu --allow-label zone --into edge-7.yaml

    starling enrol edge-7 --server https://hub.example:6443 > edge-7.manifests.yaml

    starling enrol edge-7 --revoke
    """
    key = Key(enrolled.namespace, name)
    if revoke:
        console.run(_revoke(enrolled, key))
        return
    refuse_bad_name(name)
    labels, lifetime = parsed_labels(enrolled.labels), int(seconds(enrolled.lifetime))
    where = find(enrolled.kubeconfig, enrolled.context).cluster()
    console.run(_enrol(key, enrolled, labels, lifetime, where))


async def _enrol(
    key: Key, enrolled: Enrolled, labels: Mapping[str, str], lifetime: int, where: Mapping[str, Any]
) -> None:
    first = cluster_documents("" if enrolled.no_agent else enrolled.agent_image)
    if enrolled.into is None:
        config = await _admitted(key, enrolled, labels, lifetime, where)
        console.data(dump_all([*first, *downstream_documents(key.name, key.namespace, config, {})]))
        console.note(_how_to_apply(key))
        return
    who = f"cluster {key.name}"
    async with Client(default_access(enrolled.into, enrolled.into_context)) as there:
        async with naming(who):
            await there.raw("GET", "/version")  # before anything is done, both answer
        config = await _admitted(key, enrolled, labels, lifetime, where)
        async with naming(who):
            await apply_all(there, first, who)
            await served(there)
            await apply_all(there, downstream_documents(key.name, key.namespace, config, {}), who)
    console.note(_what_next(enrolled))


async def _admitted(
    key: Key, enrolled: Enrolled, labels: Mapping[str, str], lifetime: int, where: Mapping[str, Any]
) -> dict[str, Any]:
    """The kubeconfig with which the cluster may dial in from now on."""
    async with hub(enrolled.kubeconfig, enrolled.context) as client:
        await _prepare_hub(client, key, labels, enrolled.allowed or ())
        ref = Ref(ACCOUNTS, account_name(key.name), key.namespace, "token")
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime},
        }
        token = (await client.raw("POST", ref.path, body=request)).decode(_Token).status
    console.note(f"its token lives until {token.expiration_timestamp.isoformat()}; the agent renews it at half of that")
    authority = where.get("certificate-authority-data", "")
    config = kubeconfig(enrolled.server or where["server"], authority, token.token, key.namespace, key.name)
    if not enrolled.server and "tls-server-name" in where:
        config["clusters"][0]["cluster"]["tls-server-name"] = where["tls-server-name"]
    return config


async def _prepare_hub(client: Client, key: Key, labels: Mapping[str, str], allowed: Sequence[str]) -> None:
    """Have the Cluster and its account on the hub; what is told of it doesn't go between the manifests on stdout."""
    _, *account = hub_documents(key.name, key.namespace, labels, allowed)
    pull = {"allowedLabels": sorted(set(allowed))} if allowed else {}  # those that it has stay unless others are given
    cluster, became = await keep_cluster(client, key, labels, {"pull": pull})
    console.note(f"hub: {Cluster.declaration.resource.ref(key.name, key.namespace)} {became}")
    for each in owned_by(account, key.name, cluster.metadata.uid):
        ref, outcome = await applied(client, each)
        console.note(f"hub: {ref} {outcome}")


async def _revoke(enrolled: Enrolled, key: Key) -> None:
    async with hub(enrolled.kubeconfig, enrolled.context) as client:
        if await delete_all(client, revoked(key.name, key.namespace), "hub"):
            console.note(
                f"{key.name} can't dial in any more; what runs there goes on, and starling enrol lets it in again"
            )
            return
        cluster = await named_object(client, Cluster, key)
    if reached_by(cluster) == "push":
        raise InputError(f"cluster {key.name} doesn't dial in: the hub connects to it", hint="starling cluster remove")
    console.note(f"{key.name} has no account to revoke")


def _how_to_apply(key: Key) -> str:
    return (
        f"apply this to {key.name}: kubectl apply --server-side -f FILE; the first time it doesn't know our kinds yet "
        "and says so of the Upstream: then the same again\nit holds the token: keep it as you keep passwords"
    )


def _what_next(enrolled: Enrolled) -> str:
    return (
        "where no pods run, as in clusters of `starling local` (their nodes are simulated), the agent is a process: "
        f"starling agent --kubeconfig {enrolled.into}"
        + (f" --context {enrolled.into_context}" if enrolled.into_context else "")
    )
