"""Source: the version it is at is written down; what is wrong is said, and the last good version stays."""

from starling.api import Source
from tests.integration.controllers.hub.stage import Hub, condition
from tests.integration.sources.test_git_signatures import SshKey


async def test_a_branch_is_fetched_and_followed(hub: Hub) -> None:
    """A new commit of the branch becomes revision and artifact, and an event tells of each."""
    first = hub.repository.head()
    await hub.put_source()
    async with hub.running():
        before = (await hub.fetched(first)).status.artifact
        assert before is not None
        assert before.size > 0
        second = hub.repository.commit({"base/two.yaml": ""})
        after = (await hub.fetched(second)).status.artifact
        assert after is not None
        assert after.digest != before.digest
        assert after.revision == f"main@sha1:{second}"


async def test_a_status_that_stays_the_same_is_not_written(hub: Hub) -> None:
    """Looking again, which a Source with an interval of a second does, writes nothing while nothing changes."""
    await hub.put_source()
    await hub.put_source("other", ref={"branch": "side"})
    hub.repository.commit({}, branch="side")
    async with hub.running():
        source = await hub.fetched(hub.repository.git("rev-parse", "HEAD~1").strip())
        # Another Source of the same interval has been looked at several times meanwhile.
        for number in range(3):
            commit = hub.repository.commit({"n": str(number)}, branch="side")
            await hub.sees(Source, "other", lambda it, commit=commit: commit in (it.status.revision or ""))  # type: ignore[misc]
        again = await hub.get(Source, "app")
        assert again is not None
        assert again.metadata.resource_version == source.metadata.resource_version


async def test_a_branch_that_is_not_there_is_told(hub: Hub) -> None:
    """Ready says which branch is missing, and the artifact of the one before stays in use."""
    commit = hub.repository.head()
    await hub.put_source()
    async with hub.running():
        good = await hub.fetched(commit)
        await hub.patch(Source, "app", {"spec": {"git": {"ref": {"branch": "nowhere"}}}})
        bad = await hub.says(Source, "app", "nowhere")
        assert condition(bad)[0] == "False"
        assert bad.status.artifact == good.status.artifact
        assert bad.status.revision == good.status.revision
        await hub.patch(Source, "app", {"spec": {"git": {"ref": {"branch": "main"}}}})
        await hub.fetched(commit)


async def test_a_secret_that_is_not_there_is_told_until_it_is(hub: Hub) -> None:
    """It is Stalled and names the Secret; once that exists, it is fetched without anybody touching the Source."""
    await hub.put_source(private=True, secretRef={"name": "git"})
    async with hub.running():
        source = await hub.says(Source, "app", f"no Secret {hub.namespace}/git", "Stalled")
        assert source.status.artifact is None
        await hub.put_secret("git", {"username": "me", "password": "pw"})
        await hub.fetched(hub.repository.head())


async def test_credentials_that_are_refused_are_told(hub: Hub) -> None:
    """What the server says is told, and no word of what was refused."""
    await hub.put_secret("git", {"username": "me", "password": "mistaken"})
    await hub.put_source(private=True, secretRef={"name": "git"})
    async with hub.running():
        source = await hub.says(Source, "app", "Authentication failed", "Reconciling")
        assert "mistaken" not in f"{source} {hub.log}"


async def test_only_what_is_signed_is_taken(hub: Hub) -> None:
    """With keys to verify, a commit that none of them signed isn't used, and the signed one before it stays."""
    key = SshKey(hub.folder / "keys" / "mine")
    signed = hub.repository.commit({"base/two.yaml": ""}, "-S", config=key.config)
    await hub.put_secret("keys", {"mine": key.public})
    await hub.put_source(verify={"secretRef": {"name": "keys"}})
    async with hub.running():
        good = await hub.fetched(signed)
        hub.repository.commit({"base/two.yaml": "evil: true\n"})
        bad = await hub.says(Source, "app", "isn't signed")
        assert bad.status.artifact == good.status.artifact
        assert bad.status.revision == good.status.revision


async def test_one_that_is_suspended_stays(hub: Hub) -> None:
    """What is committed meanwhile isn't taken, until it is no longer suspended."""
    first = hub.repository.head()
    await hub.put_source()
    await hub.put_source("other")
    async with hub.running():
        await hub.fetched(first)
        await hub.patch(Source, "app", {"spec": {"suspend": True}})
        second = hub.repository.commit({"base/two.yaml": ""})
        await hub.fetched(second, "other")
        third = hub.repository.commit({"base/three.yaml": ""})
        await hub.fetched(third, "other")  # at the latest now, two intervals later
        suspended = await hub.get(Source, "app")
        assert suspended is not None
        assert first in (suspended.status.revision or "")
        await hub.patch(Source, "app", {"spec": {"suspend": False}})
        await hub.fetched(third)
