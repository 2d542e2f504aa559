"""A cluster's Secret holds what its own Modules need there: in time, up to date, and nothing else."""

import asyncio
import time
from typing import Any

import msgspec

from starling.aio import SystemClock
from starling.api import Cluster, Module, ProxyAssemblage
from starling.api.v1alpha1 import Entry
from starling.controllers.assembler import Assembler
from starling.controllers.secrets import SECRETS, Secrets
from starling.controllers.world import World
from starling.kube import Client, Selection
from starling.runtime import Group, Recorder
from tests.integration.controllers.hub.downstream import Downstream
from tests.integration.controllers.hub.stage import Hub, at_work

GIT = {"username": "me", "password": "pw"}


async def put_private(hub: Hub, name: str = "base", **more: Any) -> None:
    """A Module of a Source that needs credentials."""
    await hub.put_secret("git", GIT)
    await hub.put_source(private=True, secretRef={"name": "git"})
    await hub.put_module(name, **more)


def entry(name: str, secret: str, target: str = "t1:mine") -> Entry:
    """What a cluster says that it runs, with credentials of that name."""
    reference = {"name": "starling-credentials-fleet", "key": secret}
    git = {"url": "https://git.example/x.git", "commit": "a" * 40, "secretRef": reference}
    return msgspec.convert({"name": name, "unit": "u", "target": target, "source": {"git": git}}, Entry)


async def test_they_are_there_before_the_entry_is(hub: Hub) -> None:
    """Whoever sees the entry finds the credentials; their Secret is older than the state that has the entry."""
    await put_private(hub)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        proxy = await hub.sees_entries_of("c", ["base"])
        assert await hub.credentials() == {"git": GIT}
        secret = (await hub.client.get(SECRETS.ref("starling-cluster-c-credentials", hub.namespace))).json()["metadata"]
        assert int(secret["resourceVersion"]) < int(proxy.metadata.resource_version)
        reference = proxy.spec.syncs[0].source.git
        assert reference is not None
        assert reference.secret_ref is not None
        assert (reference.secret_ref.name, reference.secret_ref.key) == ("starling-credentials-fleet", "git")
        await cluster.delivers()


async def test_no_secret_goes_along_because_a_cluster_names_it(hub: Hub) -> None:
    """Entries that were imported get no Secret of the hub, be they of nobody or of a Module's name."""
    await put_private(hub, "secret", selector={"matchLabels": {"ring": "production"}})
    await hub.put_secret("other-kubeconfig", {"kubeconfig": "the keys to another cluster"})
    async with hub.running():
        production = await Downstream.ready(hub, "production", {"ring": "production"})
        await production.delivers_until(lambda it: it.status.syncs)
        target = (await production.entries())["secret"].target
        await hub.has_credentials({"git": GIT}, "production")
        await hub.patch(Module, "secret", {"spec": {"suspend": True}})  # so that it doesn't leave the thief at once
        await hub.sees(Module, "secret", lambda it: it.status.phase == "Suspended")
        thief = await Downstream.enrol(hub, "thief")
        await thief.comes()
        # By name of a Secret; by name of a Module that doesn't go there, at the very target that needs the Secret.
        thief.holds(entry("own", "other-kubeconfig"), entry("secret", "git", target))
        await thief.adopted()
        # Something is compiled there anew, with a Module of its own whose credentials it may have.
        await hub.put_secret("mine", GIT)
        await hub.put_source("mine", private=True, secretRef={"name": "mine"})
        await hub.put_module("mine", {"source": {"name": "mine"}})
        await thief.delivers_until(lambda it: [each.name for each in it.spec.syncs] == ["mine", "own", "secret"])
        assert await hub.credentials("thief") == {"mine": GIT}


async def test_no_secret_goes_along_when_a_cluster_claims_a_module_that_goes_there(hub: Hub) -> None:
    """An imported entry with the Module's name but another Secret gets what the Module needs, if anything."""
    await put_private(hub)
    await hub.put_secret("other-kubeconfig", {"kubeconfig": "the keys to another cluster"})
    async with hub.running():
        thief = await Downstream.enrol(hub, "thief")
        await thief.comes()
        target = (await hub.sees(Module, "base", lambda it: bool(it.status.target))).status.target
        thief.holds(entry("base", "other-kubeconfig", target))
        await thief.adopted()
        await hub.has_credentials({"git": GIT}, "thief")


async def test_they_go_when_nothing_needs_them(hub: Hub) -> None:
    """Once the last Module that needs them has left, the cluster's Secret is empty."""
    await put_private(hub)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.has_credentials({"git": GIT})
        await hub.delete(Module, "base")
        await cluster.delivers_until(lambda it: not it.spec.syncs)
        await hub.has_credentials({})


async def test_they_go_also_if_the_hub_was_away_meanwhile(hub: Hub) -> None:
    """A hub that starts, and finds a Secret of which nothing is needed any more, empties it."""
    await put_private(hub)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.has_credentials({"git": GIT})
    await hub.patch(ProxyAssemblage, "c", {"spec": {"syncs": []}})
    await hub.patch(Cluster, "c", {"metadata": {"labels": {"ring": "other"}}})
    async with hub.running():
        await hub.has_credentials({})


async def test_a_cluster_that_is_to_be_left_keeps_them_until_it_is(hub: Hub) -> None:
    """As long as an entry of ours is there, so are its credentials, though the Module no longer selects the cluster."""
    await put_private(hub)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        await hub.sees(Module, "base", lambda it: it.status.phase == "Succeeded")
        await hub.patch(Module, "base", {"spec": {"suspend": True}})
        await hub.sees(Module, "base", lambda it: it.status.phase == "Suspended")
        await hub.patch(Cluster, "c", {"metadata": {"labels": {"ring": "other"}}})
        await hub.sees(Module, "base", lambda it: it.status.summary.leaving == 1)
        await hub.put_source("open")
        await hub.put_module("more", {"source": {"name": "open"}}, selector={"matchLabels": {"ring": "other"}})
        await cluster.delivers_until(lambda it: len(it.spec.syncs) == 2)
        assert await hub.credentials() == {"git": GIT}


async def test_a_cluster_of_the_same_name_gets_them_anew(hub: Hub) -> None:
    """One that is enrolled again just before what the old one left is collected has what it needs."""
    await put_private(hub)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
        await cluster.goes()
        await hub.delete(Cluster, "c")
        await hub.gone(Cluster, "c")
        again = await Downstream.enrol(hub)
        old = (await hub.sees(Cluster, "c", lambda it: it.status.phase == "Pending")).metadata.uid
        await hub.delete(ProxyAssemblage, "c")
        await hub.client.delete(SECRETS.ref("starling-cluster-c-credentials", hub.namespace))
        await again.comes()
        await again.adopted()
        await again.delivers_until(lambda it: it.status.syncs and it.metadata.owner_references[0].uid == old)
        await hub.has_credentials({"git": GIT})


class Hasty(SystemClock):
    """The machine's clock, a thousand times as fast."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return time.monotonic() * 1000

    async def sleep(self, seconds: float) -> None:
        """Return after that many of them."""
        await asyncio.sleep(seconds / 1000)


def assembling(client: Client, hub: Hub) -> Group:
    """An assembler for which five minutes are a moment; nothing else of the hub runs."""
    group, selection = Group("assembler"), Selection(hub.namespace)
    world = World.followed(client, group, selection)
    recorder, clock = Recorder(client, "starling.dev/controller", "test"), Hasty()
    Assembler(client, Secrets(client, clock=clock), recorder, "fleet", clock=clock).join(group, world)
    return group


async def test_they_are_copied_again_when_they_change(hub: Hub) -> None:
    """A new password arrives by itself within minutes, and a Secret that was deleted is no longer handed out."""
    await put_private(hub)
    async with hub.running():
        cluster = await Downstream.ready(hub)
        await cluster.delivers_until(lambda it: it.status.syncs)
    async with Client(hub.access) as client, at_work(assembling(client, hub).run()):
        await hub.has_credentials({"git": GIT})
        await hub.put_secret("git", {**GIT, "password": "another"})
        await hub.has_credentials({"git": {**GIT, "password": "another"}})
        await hub.client.delete(SECRETS.ref("git", hub.namespace))
        await hub.has_credentials({})
        await hub.put_secret("git", GIT)
        await hub.has_credentials({"git": GIT})
