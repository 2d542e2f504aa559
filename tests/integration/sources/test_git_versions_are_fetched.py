"""A Source's version becomes an artifact with exactly the commit's files; what is there isn't fetched again."""

import asyncio
import os
from pathlib import Path

import pytest
from aiohttp import web

from starling.errors import InputError
from starling.local import GitServer
from starling.sources import (
    ArtifactStore,
    GitSource,
    GitSources,
    NoSuchVersion,
    Ref,
    SourceError,
    Unreachable,
)
from tests.integration.sources.repositories import Repository


def files(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its content; a link with its target."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


async def content(store: ArtifactStore, digest: str) -> dict[str, str]:
    """An artifact's files."""
    return files(await store.checkout(digest))


async def test_a_branch_is_its_tip(repository: Repository, sources: GitSources, store: ArtifactStore) -> None:
    """With all of its files, modes and links; and the next commit's when it comes."""
    (repository.work / "run.sh").chmod(0o755)
    (repository.work / "link").symlink_to("app/web.yaml")
    first = repository.commit({"é ü.yaml": "x\n"})
    source = GitSource(repository.url, Ref(branch="main"))
    artifact = await sources.fetch(source)
    assert artifact.revision == f"main@sha1:{first}"
    folder = await store.checkout(artifact.digest)
    assert files(folder) == {
        "app/web.yaml": "kind: A\n", "docs/read.md": "hello\n", "run.sh": "#!/bin/sh\n",
        "link": "-> app/web.yaml", "é ü.yaml": "x\n",
    }  # fmt: skip
    assert os.access(folder / "run.sh", os.X_OK)
    second = repository.commit({"app/web.yaml": "kind: B\n", "docs/read.md": None})
    artifact = await sources.fetch(source)
    assert artifact.revision == f"main@sha1:{second}"
    assert (await content(store, artifact.digest))["app/web.yaml"] == "kind: B\n"
    assert "docs/read.md" not in await content(store, artifact.digest)


async def test_tags_ranges_and_commits(repository: Repository, sources: GitSources, store: ArtifactStore) -> None:
    """Light tags and tag objects, the highest version in a range, a commit that no ref names any more."""
    old = repository.head()
    repository.tag("v1.0.0")
    new = repository.commit({"app/web.yaml": "kind: B\n"})
    repository.tag("v1.1.0", "-m", "words")
    repository.commit({"app/web.yaml": "kind: C\n"})
    repository.tag("v2.0.0-rc.1")
    for ref, revision in (
        (Ref(tag="v1.0.0"), f"v1.0.0@sha1:{old}"),
        (Ref(tag="v1.1.0"), f"v1.1.0@sha1:{new}"),
        (Ref(semver=">=1.0.0"), f"v1.1.0@sha1:{new}"),
        (Ref(semver="1.0.x"), f"v1.0.0@sha1:{old}"),
        (Ref(commit=new), f"sha1:{new}"),
    ):
        artifact = await sources.fetch(GitSource(repository.url, ref))
        assert artifact.revision == revision
        assert (await content(store, artifact.digest))["app/web.yaml"] == f"kind: {'A' if old in revision else 'B'}\n"


async def test_two_refs_to_one_tree_are_one_digest(repository: Repository, sources: GitSources) -> None:
    """And so are two repositories with the same files."""
    repository.tag("v1.0.0")
    twin = Repository(repository.bare.with_name("twin.git"))
    twin.commit(
        {"run.sh": "#!/bin/sh\n", "docs/read.md": "hello\n", "app/web.yaml": "kind: A\n"}, "-m", "another commit"
    )
    artifacts = [
        await sources.fetch(GitSource(repository.url, Ref(branch="main"))),
        await sources.fetch(GitSource(repository.url, Ref(tag="v1.0.0"))),
        await sources.fetch(GitSource(twin.url, Ref(branch="main"))),
    ]
    assert len({artifact.digest for artifact in artifacts}) == 1
    assert len({artifact.revision for artifact in artifacts}) == 3


async def test_ignored_files_are_neither_fetched_nor_kept(
    repository: Repository, sources: GitSources, store: ArtifactStore, tmp_path: Path
) -> None:
    """The server sends commits and trees, and then just the files that are wanted."""
    repository.commit({"docs/film.bin": os.urandom(3_000_000), "docs/keep.yaml": "kind: K\n"})
    source = GitSource(repository.url, Ref(branch="main"), ignore=("docs/*", "!docs/keep.yaml"))
    artifact = await sources.fetch(source)
    assert await content(store, artifact.digest) == {
        "app/web.yaml": "kind: A\n", "docs/keep.yaml": "kind: K\n", "run.sh": "#!/bin/sh\n",
    }  # fmt: skip
    fetched = sum(file.stat().st_size for file in (tmp_path / "sources").rglob("*") if file.is_file())
    assert fetched < 300_000
    everything = await sources.fetch(GitSource(repository.url, Ref(branch="main")))
    assert (await store.checkout(everything.digest) / "docs/film.bin").stat().st_size == 3_000_000


async def test_a_server_that_can_not_filter_sends_all(repository: Repository, sources: GitSources) -> None:
    """It is slower, and otherwise the same."""
    repository.git("-C", str(repository.bare), "config", "uploadpack.allowFilter", "false")
    source = GitSource(repository.url, Ref(branch="main"), ignore=("docs/**",))
    assert (await sources.fetch(source)).size == len("kind: A\n") + len("#!/bin/sh\n")


async def test_the_history_stays_where_it_is(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """A fetch brings one commit."""
    for number in range(5):
        repository.commit({"app/web.yaml": f"kind: A{number}\n"})
    await sources.fetch(GitSource(repository.url, Ref(branch="main")))
    (mirror,) = (path.parent for path in (tmp_path / "sources").rglob("HEAD"))
    assert repository.git("-C", str(mirror), "rev-list", "--all", "--count").strip() == "1"


async def test_rewritten_history_is_followed(repository: Repository, sources: GitSources, store: ArtifactStore) -> None:
    """A branch that was forced elsewhere, and a tag that moved, are where they are now."""
    repository.commit({"app/web.yaml": "kind: B\n"})
    repository.tag("v1.0.0")
    by_branch, by_tag = GitSource(repository.url, Ref(branch="main")), GitSource(repository.url, Ref(tag="v1.0.0"))
    await sources.fetch(by_branch), await sources.fetch(by_tag)
    repository.git("reset", "-q", "--hard", "HEAD~1")
    moved = repository.commit({"app/web.yaml": "kind: C\n"}, force=True)
    repository.tag("v1.0.0", force=True)
    for source in (by_branch, by_tag):
        artifact = await sources.fetch(source)
        assert artifact.revision.endswith(moved)
        assert (await content(store, artifact.digest))["app/web.yaml"] == "kind: C\n"


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        (Ref(branch="nope"), "there is no branch nope; there are main"),
        (Ref(tag="v9"), "there is no tag v9; there are v1.0.0"),
        (Ref(semver=">=2"), "none of 1 tags is a version in >=2; there are v1.0.0"),
        (Ref(commit="0" * 39 + "1"), "not our ref"),
    ],
)
async def test_what_is_not_there_is_said(repository: Repository, sources: GitSources, ref: Ref, says: str) -> None:
    """With the repository, and with what there is instead."""
    repository.tag("v1.0.0")
    with pytest.raises(NoSuchVersion, match=says) as caught:
        await sources.fetch(GitSource(repository.url, ref))
    assert repository.url in caught.value.message


async def test_a_repository_that_goes_away_leaves_the_last_artifact(
    repository: Repository, sources: GitSources, store: ArtifactStore
) -> None:
    """Fetching says what is wrong; what was fetched can be used."""
    source = GitSource(repository.url, Ref(branch="main"))
    artifact = await sources.fetch(source)
    repository.bare.rename(repository.bare.with_name("elsewhere.git"))
    with pytest.raises(SourceError) as caught:
        await sources.fetch(source)
    assert caught.value.reason == "NoSuchRepository"
    assert (await content(store, artifact.digest))["app/web.yaml"] == "kind: A\n"


async def test_an_empty_repository_has_no_branch(tmp_path: Path, sources: GitSources) -> None:
    """That is what is said."""
    empty = Repository(tmp_path / "repositories" / "empty.git")
    with pytest.raises(NoSuchVersion, match="there is no branch main"):
        await sources.fetch(GitSource(empty.url, Ref(branch="main")))


async def test_a_server_that_is_down(sources: GitSources) -> None:
    """Is unreachable."""
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        await sources.look(GitSource("http://127.0.0.1:1/app.git", Ref(branch="main")))


async def test_the_machines_disk_is_read_only_if_that_is_allowed(
    repository: Repository, store: ArtifactStore, tmp_path: Path
) -> None:
    """A controller that serves many isn't to be sent to its own files."""
    with pytest.raises(InputError, match="aren't read here"):
        await GitSources(tmp_path / "other", store).look(GitSource(repository.url, Ref(branch="main")))


async def test_a_broken_mirror_is_made_anew(
    repository: Repository, sources: GitSources, store: ArtifactStore, tmp_path: Path
) -> None:
    """It is a cache, and nobody has to mend it by hand."""
    source = GitSource(repository.url, Ref(branch="main"))
    await sources.fetch(source)
    for pack in (tmp_path / "sources").rglob("*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(b"rubbish")
    repository.commit({"app/web.yaml": "kind: B\n"})
    artifact = await sources.fetch(source)
    assert (await content(store, artifact.digest))["app/web.yaml"] == "kind: B\n"


async def test_collected_blobs_are_read_again(
    repository: Repository, sources: GitSources, store: ArtifactStore
) -> None:
    """The store may forget what nobody keeps; what is wanted again comes again."""
    source = GitSource(repository.url, Ref(branch="main"))
    first = await sources.fetch(source)
    await store.collect((), older_than=0)
    again = await sources.fetch(source)
    assert again.digest == first.digest
    assert (await content(store, again.digest))["app/web.yaml"] == "kind: A\n"


class CountingServer(GitServer):
    """Knows how often someone began to talk to it."""

    conversations = 0

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.conversations += request.path.endswith("/info/refs")
        return await super()._serve(request)


async def test_many_at_once_fetch_once(repository: Repository, store: ArtifactStore, tmp_path: Path) -> None:
    """200 Sources on one repository cost one look and one fetch for a change, though each leaves out other files."""
    async with CountingServer(repository.bare.parent) as server:
        sources = GitSources(tmp_path / "sources", store)
        url, ref = f"{server.url}/app.git", Ref(branch="main")
        wanted = [GitSource(url, ref), *(GitSource(url, ref, ignore=(f"{number}.md",)) for number in range(199))]
        for kind in ("A", "B"):
            repository.commit({"app/web.yaml": f"kind: {kind}\n"})
            server.conversations = 0
            artifacts = await asyncio.gather(*(sources.fetch(each) for each in wanted))
            assert server.conversations == 2
            (digest,) = {artifact.digest for artifact in artifacts}
            assert (await content(store, digest))["app/web.yaml"] == f"kind: {kind}\n"
            assert {artifact.revision for artifact in artifacts} == {f"main@sha1:{repository.head()}"}
        server.conversations = 0
        await asyncio.gather(*(sources.fetch(each) for each in wanted))
        assert server.conversations == 1
