"""What the hub wants for a cluster gets there, by push and by pull, and what becomes of it is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from starling.api import Assemblage, ProxyAssemblage
from tests.integration.controllers.delivering.world import World, entry, found
from tests.waiting import until

pytestmark = pytest.mark.parametrize("mode", ["push", "pull"])


@asynccontextmanager
async def delivered(world: World, mode: str) -> AsyncIterator[None]:
    """A cluster that is delivered to in one of both ways."""
    if mode == "push":
        await world.add_push()
        async with world.pushing():
            yield
    else:
        await world.dial_in(await world.enrol())
        async with world.pulling():
            yield


async def test_a_new_cluster_gets_what_is_wanted_and_is_adopted(world: World, mode: str) -> None:
    """The Assemblage is made from the proxy, its uid told, and once adopted it follows what is wanted."""
    await world.propose(entry("base"))
    async with delivered(world, mode):
        local = await world.runs("base")
        adopted = await world.adopt()
        assert adopted.spec.adopted == local.metadata.uid
        await world.propose(entry("mesh"), adopted=local.metadata.uid)
        changed = await world.runs("mesh")
        assert changed.metadata.uid == local.metadata.uid
        await world.stands()
        proxy = await world.reported()
        assert proxy.status.imported == ()


async def test_status_is_mirrored_with_the_generation_it_is_about(world: World, mode: str) -> None:
    """`observed` waits for the cluster to have taken in the newest, and states arrive as they are."""
    await world.propose(entry("base"))
    async with delivered(world, mode):
        await world.runs("base")
        await world.adopt()
        await world.follows()
        before = await world.proxy()
        assert before is not None
        assert before.status.observed < before.metadata.generation
        await world.stands({"name": "base", "target": "t1:one", "state": "succeeded", "readiness": "Current"})
        proxy = await world.reported()
        (state,) = proxy.status.syncs
        assert (state.name, state.target, state.state, state.readiness) == ("base", "t1:one", "succeeded", "Current")


async def test_a_rebuilt_hub_imports_what_runs(world: World, mode: str) -> None:
    """A hub that knows nothing removes nothing: it is told what is there, and takes it over verbatim."""
    await world.propose(entry("base", "t1:old"), entry("mesh"))
    async with delivered(world, mode):
        await world.runs("base", "mesh")
    await world.hub.delete(ProxyAssemblage.declaration.resource.ref("c", world.namespace))
    await world.propose(entry("new"))
    async with delivered(world, mode):
        local = await world.runs("base", "mesh", "new")
        proxy = await found(lambda: _imports(world, {"base", "mesh", "new"}))
        assert proxy.status.assemblage == local.metadata.uid
        adopted = await world.adopt()
        assert {each.name: each.target for each in adopted.spec.syncs}["base"] == "t1:old"
        await world.follows()
        await world.stands()
        assert (await world.reported()).status.imported == ()
        await world.runs("base", "mesh", "new")


async def _imports(world: World, names: set[str]) -> ProxyAssemblage | None:
    proxy = await world.proxy()
    return proxy if proxy is not None and {each.name for each in proxy.status.imported} == names else None


async def test_a_deleted_proxy_changes_nothing_downstream(world: World, mode: str) -> None:
    """When the hub's object is gone, the cluster goes on with what it has; a hand's edits there are nobody's then."""
    await world.propose(entry("base"))
    async with delivered(world, mode):
        before = await world.runs("base")
        await world.hub.delete(ProxyAssemblage.declaration.resource.ref("c", world.namespace))
        # What is told next shows that the deletion was heard: a proxy of another installation.
        await world.propose(entry("other"), instance="another")
        await found(lambda: world.local("another"))
        after = await world.local()
        assert after is not None
        assert (after.metadata.uid, after.metadata.generation) == (before.metadata.uid, before.metadata.generation)


async def test_an_edit_by_hand_is_undone(world: World, mode: str) -> None:
    """What someone changes in the Assemblage, a field that the hub leaves at its default included, comes back."""
    await world.propose(entry("base"))
    async with delivered(world, mode):
        await world.runs("base")
        await world.adopt()
        await world.follows()
        await world.stands()
        await world.reported()
        ref = Assemblage.declaration.resource.ref("fleet", world.namespace)
        await world.downstream.merge_patch(ref, {"spec": {"mode": "Frozen", "syncs": []}}, manager="hand")

        async def undone() -> bool:
            local = await world.local()
            return local is not None and local.spec.mode == "Active" and len(local.spec.syncs) == 1

        await until(undone)


async def test_a_cluster_is_let_go(world: World, mode: str) -> None:
    """`released` gets there, and that nothing is left comes back; where nothing was, that is told at once."""
    await world.propose(entry("base"))
    async with delivered(world, mode):
        local = await world.runs("base")
        await world.adopt()
        await world.propose(entry("base"), adopted=local.metadata.uid, released=True)

        async def told() -> bool:
            found = await world.local()
            return found is not None and found.spec.released

        await until(told)
        await world.stands()
        proxy = await world.reported()
        assert proxy.status.syncs == ()


async def test_letting_go_of_nothing_makes_nothing(world: World, mode: str) -> None:
    """A cluster that runs nothing acknowledges being let go, and no Assemblage is made for it."""
    await world.propose(released=True)
    async with delivered(world, mode):
        await world.reported()
        await world.propose(released=True, mode="Frozen")
        await world.reported()
        assert await world.local() is None


async def test_credentials_are_copied_and_removed_when_nothing_needs_them(world: World, mode: str) -> None:
    """The hub's Secret arrives under the name that entries use, follows changes, and goes when no entry uses it."""
    await world.put_secret(world.hub, "starling-cluster-c-credentials", {"git-creds": b"{}"})
    await world.propose(entry("base", secret="git-creds"))
    copy = "starling-credentials-fleet"
    async with delivered(world, mode):
        local = await world.runs("base")
        assert await world.secret(world.downstream, copy) == {"git-creds": b"{}"}
        await world.adopt()
        await world.put_secret(world.hub, "starling-cluster-c-credentials", {"git-creds": b'{"password": "bmV3"}'})
        # By push the hub itself wrote it, and a changed entry follows; an agent hears of the Secret alone.
        await world.propose(entry("base", "t1:two", secret="git-creds"), adopted=local.metadata.uid)

        async def copied() -> bool:
            return await world.secret(world.downstream, copy) == {"git-creds": b'{"password": "bmV3"}'}

        await until(copied)
        await world.propose(entry("base", "t1:two"), adopted=local.metadata.uid)

        async def gone() -> bool:
            return await world.secret(world.downstream, copy) is None

        await until(gone)


async def test_credentials_that_a_new_hub_does_not_know_stay(world: World, mode: str) -> None:
    """What entries use and only the cluster has isn't taken from it, be the hub's Secret missing or another."""
    await world.put_secret(world.hub, "starling-cluster-c-credentials", {"old": b"{}"})
    await world.propose(entry("base", secret="old"))
    copy = "starling-credentials-fleet"
    async with delivered(world, mode):
        await world.runs("base")
    await world.hub.delete(ProxyAssemblage.declaration.resource.ref("c", world.namespace))
    await world.put_secret(world.hub, "starling-cluster-c-credentials", {"new": b"{}"})
    await world.propose(entry("mesh", secret="new"))
    async with delivered(world, mode):
        await world.runs("base", "mesh")

        async def both() -> bool:
            return await world.secret(world.downstream, copy) == {"old": b"{}", "new": b"{}"}

        await until(both)


async def test_an_assemblage_that_is_going_is_left_alone_and_made_anew(world: World, mode: str) -> None:
    """One deleted by hand is written to only when it is gone, and the new one isn't adopted by its name."""
    await world.propose(entry("base"))
    async with delivered(world, mode):
        first = await world.runs("base")
        ref = Assemblage.declaration.resource.ref("fleet", world.namespace)
        await world.downstream.merge_patch(ref, {"metadata": {"finalizers": ["example.dev/hold"]}})
        await world.adopt()
        await world.downstream.delete(ref)
        await world.propose(entry("base"), entry("mesh"), adopted=first.metadata.uid)
        await world.stands({"name": "base", "state": "failed"})
        await until(lambda: _told_failed(world))
        going = await world.local()
        assert going is not None
        assert [each.name for each in going.spec.syncs] == ["base"]
        await world.downstream.merge_patch(ref, {"metadata": {"finalizers": None}})
        second = await world.runs("base", "mesh")
        assert second.metadata.uid != first.metadata.uid
        proxy = await found(lambda: _imports(world, {"base", "mesh"}))
        assert proxy.status.assemblage == second.metadata.uid


async def _told_failed(world: World) -> bool:
    proxy = await world.proxy()
    return proxy is not None and any(each.state == "failed" for each in proxy.status.syncs)
