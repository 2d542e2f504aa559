"""An Assemblage's entries become Syncs, Syncs become objects, and how they stand comes back."""

from starling.api import Sync
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.controllers.syncing.stage import Stage, config_map
from tests.waiting import until


def commit(stage: Stage, **values: str) -> str:
    """A commit with a ConfigMap in a folder for each name."""
    return stage.repository.commit({f"{name}/cm.yaml": config_map(name, v=value) for name, value in values.items()})


async def test_entries_are_synced_and_reported(stage: Stage) -> None:
    """Two entries become Syncs and objects, and the status tells each one's target, revision and state."""
    first = commit(stage, web="1", db="1")
    await stage.assemble(stage.entry("web", first, "t1:a"), stage.entry("db", first, "t1:b"))
    async with stage.agent():
        told = await stage.states({"web": ("t1:a", "succeeded"), "db": ("t1:b", "succeeded")})
        assert {each.revision for each in told.status.syncs} == {f"main@sha1:{first}"}
        assert told.status.conditions[0].status == "True"
        sync = await stage.ready("web", "t1:a")
        assert sync.status.last_applied_revision == f"main@sha1:{first}"
        assert sync.metadata.owner_references[0].uid == told.metadata.uid
        live = await stage.live("web")
        assert live is not None
        tracked = live["metadata"]["annotations"]["starling.dev/tracking-id"]
        assert tracked.startswith(f"prod/{stage.namespace}/Module.web@c1:")
        assert ("Synced", f"applied main@sha1:{first}") in await stage.events("web")


async def test_patches_are_put_on_before_variables_are_replaced(stage: Stage) -> None:
    """What an entry says to change is changed on the cluster, with the cluster's own values in it."""
    patch = {
        "patch": '[{"op": "add", "path": "/data/on", "value": "${CLUSTER_NAME}"}]',
        "target": {"kind": "ConfigMap"},
    }
    values = [{"name": "CLUSTER_NAME", "value": "c1"}]
    entry = stage.entry("web", commit(stage, web="1"), "t1:a", patches=[patch], values=values)
    await stage.assemble(entry)
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        await stage.has("web", {"v": "1", "on": "c1"})


async def test_one_entry_moves_alone(stage: Stage) -> None:
    """A new target of one entry is brought about and told, and the other's Sync isn't written to."""
    first = commit(stage, web="1", db="1")
    await stage.assemble(stage.entry("web", first, "t1:a"), stage.entry("db", first, "t1:b"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded"), "db": ("t1:b", "succeeded")})
        other = await stage.ready("db")
        second = commit(stage, web="2")
        await stage.assemble(stage.entry("web", second, "t1:c"), stage.entry("db", first, "t1:b"))
        await stage.states({"web": ("t1:c", "succeeded"), "db": ("t1:b", "succeeded")})
        await stage.has("web", {"v": "2"})
        assert await stage.sync("db") == other


async def test_a_target_that_renders_alike_is_told(stage: Stage) -> None:
    """A new target that comes to the same manifests is reported though nothing is applied."""
    first = commit(stage, web="1")
    await stage.assemble(stage.entry("web", first, "t1:a"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        before = await stage.live("web")
        await stage.assemble(stage.entry("web", first, "t1:b", interval="2h"))
        await stage.states({"web": ("t1:b", "succeeded")})
        assert await stage.live("web") == before


async def test_what_fails_is_told_and_mended_by_another_target(stage: Stage) -> None:
    """Manifests that can't be read fail the entry with a message, and a target that can be mends it."""
    bad = stage.repository.commit({"web/cm.yaml": "kind: ConfigMap\n"})
    await stage.assemble(stage.entry("web", bad, "t1:a"))
    async with stage.agent():
        told = await stage.states({"web": ("t1:a", "failed")})
        assert "web/cm.yaml" in told.status.syncs[0].message
        sync = await stage.says("web", "apiVersion is missing", "Stalled")
        assert sync.status.problems[0].reason == "InvalidManifest"
        good = commit(stage, web="1")
        await stage.assemble(stage.entry("web", good, "t1:b"))
        await stage.states({"web": ("t1:b", "succeeded")})


async def test_an_entry_that_leaves_is_pruned(stage: Stage) -> None:
    """What leaves the spec goes with its objects, the rest stays, and the last thing heard of it is that it is gone."""
    first = commit(stage, web="1", db="1")
    await stage.assemble(stage.entry("web", first, "t1:a"), stage.entry("db", first, "t1:b"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded"), "db": ("t1:b", "succeeded")})
        await stage.assemble(stage.entry("db", first, "t1:b"))
        await stage.states({"db": ("t1:b", "succeeded")})
        assert await stage.sync("web") is None
        assert await stage.live("web") is None
        assert await stage.live("db") is not None


async def test_what_is_released_stays_without_our_marks(stage: Stage) -> None:
    """A released Assemblage has no Syncs any more, and the objects are there as if we had never been."""
    first = commit(stage, web="1")
    await stage.assemble(stage.entry("web", first, "t1:a"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        await stage.assemble(stage.entry("web", first, "t1:a"), released=True)
        await stage.states({})
        assert await stage.sync("web") is None
        live = await stage.live("web")
    assert live is not None
    assert live["data"] == {"v": "1"}
    assert "starling.dev" not in str(live["metadata"].get("labels", {})) + str(live["metadata"].get("annotations", {}))


async def test_a_deleted_assemblage_is_handled_as_released(stage: Stage) -> None:
    """Whoever deletes an Assemblage by hand takes no objects along."""
    first = commit(stage, web="1")
    made = await stage.assemble(stage.entry("web", first, "t1:a"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        await stage.client.delete(type(made).declaration.resource.ref("prod", stage.namespace))

        async def is_gone() -> bool:
            return await stage.assemblage() is None

        await until(is_gone)
        assert await stage.sync("web") is None
        live = await stage.live("web")
        assert live is not None
        assert live["data"] == {"v": "1"}


async def test_a_sync_of_someone_else_is_left_alone(stage: Stage) -> None:
    """An entry whose name a user's Sync has is refused in its status, and that Sync stays as it is."""
    first = commit(stage, web="1")
    theirs = await stage.put_sync("web", first, suspend=True)
    async with stage.agent():
        await stage.assemble(stage.entry("web", first, "t1:a"))
        told = await stage.states({"web": ("t1:a", "failed")})
        assert "isn't this Assemblage's" in told.status.syncs[0].message
        found = await stage.sync("web")
        assert found is not None
        assert found.spec == theirs.spec


async def test_what_is_suspended_or_frozen_is_not_touched(stage: Stage) -> None:
    """A controlled Sync may be suspended by hand, and a frozen cluster isn't touched; both go on afterwards."""
    first = commit(stage, web="1")
    await stage.assemble(stage.entry("web", first, "t1:a"), mode="Frozen")
    ref = Sync.declaration.resource.ref("web", stage.namespace)
    async with stage.agent():
        await stage.says("web", "the cluster is frozen")
        await stage.client.merge_patch(ref, {"spec": {"suspend": True}}, manager="kubectl")
        await stage.assemble(stage.entry("web", first, "t1:a"), mode="Active")
        await stage.says("web", "suspended")
        await stage.states({"web": ("t1:a", "updating")})
        assert await stage.live("web") is None
        await stage.client.merge_patch(ref, {"spec": {"suspend": False}}, manager="kubectl")
        await stage.states({"web": ("t1:a", "succeeded")})


async def test_values_of_the_cluster_are_put_in(stage: Stage) -> None:
    """What the hub has resolved for this cluster stands in its objects."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", region="${REGION}")})
    await stage.assemble(stage.entry("web", first, "t1:a", values=[{"name": "REGION", "value": "eu"}]))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        await stage.has("web", {"region": "eu"})


async def test_drift_is_put_right_and_told(stage: Stage) -> None:
    """A changed field is put back, and an Event names the field and who did it."""
    first = commit(stage, web="1")
    await stage.assemble(stage.entry("web", first, "t1:a"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        patch = {"data": {"v": "theirs"}}
        await stage.client.merge_patch(CONFIG_MAPS.ref("web", stage.namespace), patch, manager="vandal")
        await stage.has("web", {"v": "1"})

        async def is_told() -> bool:
            told = [note for reason, note in await stage.events("web") if reason == "DriftCorrected"]
            return any("data.v" in note and "vandal" in note for note in told)

        await until(is_told)
        assert (await stage.ready("web")).status.drift[0].manager == "vandal"
