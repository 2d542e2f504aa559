"""What was rendered last is kept in the cluster: an agent goes on without git, and says what it can't have."""

from starling.kube import Resource, Selection
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap
from tests.integration.controllers.syncing.stage import Stage, config_map

SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)


def lose_git(stage: Stage) -> None:
    """Have no repository any more, and no files of it either."""
    stage.repository.bare.rename(stage.folder / "elsewhere.git")
    stage.forget_files()


def find_git(stage: Stage) -> None:
    """Have the repository back."""
    (stage.folder / "elsewhere.git").rename(stage.repository.bare)


async def vandalise(stage: Stage, name: str) -> None:
    """Change a ConfigMap, as someone who shouldn't."""
    await stage.client.merge_patch(CONFIG_MAPS.ref(name, stage.namespace), {"data": {"v": "x"}}, manager="vandal")


async def test_a_new_agent_without_git_corrects_drift(stage: Stage) -> None:
    """A restarted agent with an empty disk and no git puts right what changed meanwhile, and what changes then."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    await stage.assemble(stage.entry("web", first, "t1:a"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
    lose_git(stage)
    await vandalise(stage, "web")
    async with stage.agent():
        await stage.has("web", {"v": "1"})
        await vandalise(stage, "web")
        await stage.has("web", {"v": "1"})
        await stage.ready("web", "t1:a")


async def test_a_version_that_can_not_be_had_leaves_the_last_in_force(stage: Stage) -> None:
    """The old version stays enforced, the status says so and isn't about the new target; with git it moves on."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    second = stage.repository.commit({"web/cm.yaml": config_map("web", v="2")})
    await stage.assemble(stage.entry("web", first, "t1:a"))
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
    lose_git(stage)
    async with stage.agent() as engine:
        await stage.assemble(stage.entry("web", second, "t1:b"))
        sync = await stage.says("web", f"main@sha1:{first} stays, since main@sha1:{second} can't be had", "Reconciling")
        assert sync.status.target == "t1:a"
        assert sync.status.problems[0].reason == "NoSuchRepository"
        await stage.states({"web": ("t1:b", "updating")})
        await vandalise(stage, "web")
        await stage.has("web", {"v": "1"})
        find_git(stage)
        engine.refresh(f"prod/{stage.namespace}/Module.web@c1")
        await stage.has("web", {"v": "2"})
        await stage.states({"web": ("t1:b", "succeeded")})


async def test_without_anything_rendered_the_error_is_told(stage: Stage) -> None:
    """A Sync that never had anything says what is wrong with its repository, and that it is tried again."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    lose_git(stage)
    async with stage.agent():
        await stage.put_sync("web", first)
        sync = await stage.says("web", "repo.git")
        assert sync.status.problems[0].reason == "NoSuchRepository"
        find_git(stage)
        await stage.ready("web")


async def test_the_render_is_in_secrets_of_the_sync(stage: Stage) -> None:
    """The stored render belongs to its Sync, and is the one Secret that there is."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    await stage.put_sync("web", first)
    async with stage.agent():
        sync = await stage.ready("web")
        stored = (await stage.client.get(SECRETS.ref("starling-render-web-0", stage.namespace))).json()
        assert stored["metadata"]["ownerReferences"][0]["uid"] == sync.metadata.uid
        assert stored["metadata"]["labels"] == {"starling.dev/render": "web"}
        listed = await stage.client.list(SECRETS, ConfigMap, Selection(stage.namespace))
        assert [each.metadata.name for each in listed.items] == ["starling-render-web-0"]
