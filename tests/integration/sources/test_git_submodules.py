"""Submodules come along on request: from their own repositories, at the commits that the outer one pins."""

from pathlib import Path

import pytest

from starling.errors import InputError
from starling.local import GitServer
from starling.sources import (
    AccessDenied,
    ArtifactStore,
    Credentials,
    GitSource,
    GitSources,
    Ref,
    Refused,
)
from tests.integration.sources.repositories import Repository

MAIN = Ref(branch="main")


def with_submodule(outer: Repository, path: str, address: str, commit: str) -> None:
    """A commit of the outer repository that pins another's commit."""
    modules = outer.work / ".gitmodules"
    known = modules.read_text() if modules.exists() else ""
    modules.write_text(f'{known}[submodule "{path}"]\n\tpath = {path}\n\turl = {address}\n')
    outer.git("update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    (outer.work / path).mkdir(parents=True, exist_ok=True)
    outer.git("add", ".gitmodules")
    outer.git("commit", "-q", "-m", "x")
    outer.git("push", "-q", "origin", "HEAD:refs/heads/main")


@pytest.fixture
def inner(repository: Repository) -> Repository:
    """A repository beside the outer one."""
    made = Repository(repository.bare.with_name("lib.git"))
    made.commit({"lib.yaml": "kind: L\n"})
    return made


async def test_on_request_only(
    repository: Repository, inner: Repository, sources: GitSources, store: ArtifactStore
) -> None:
    """At the pinned commit, wherever the inner repository's branch is by now."""
    pinned = inner.head()
    inner.commit({"lib.yaml": "kind: later\n"})
    with_submodule(repository, "vendor/lib", "../lib.git", pinned)
    without = await store.checkout((await sources.fetch(GitSource(repository.url, MAIN))).digest)
    assert not (without / "vendor").exists()
    folder = await store.checkout((await sources.fetch(GitSource(repository.url, MAIN, submodules=True))).digest)
    assert (folder / "vendor/lib/lib.yaml").read_text() == "kind: L\n"
    assert (folder / "app/web.yaml").exists()


async def test_within_one_another(
    repository: Repository, inner: Repository, sources: GitSources, store: ArtifactStore
) -> None:
    """A submodule's submodules come too; a circle ends."""
    deepest = Repository(repository.bare.with_name("deep.git"))
    deepest.commit({"deep.yaml": "kind: D\n"})
    with_submodule(inner, "deep", deepest.url, deepest.head())
    with_submodule(repository, "lib", "../lib.git", inner.head())
    folder = await store.checkout((await sources.fetch(GitSource(repository.url, MAIN, submodules=True))).digest)
    assert (folder / "lib/deep/deep.yaml").read_text() == "kind: D\n"


async def test_credentials_stay_with_their_host(
    repository: Repository, inner: Repository, store: ArtifactStore, tmp_path: Path
) -> None:
    """The outer repository's password opens what is on its own host and port, and is shown to nobody else."""
    sources = GitSources(tmp_path / "s", store)
    me = Credentials(username="me", password="secret")
    async with (
        GitServer(repository.bare.parent, "me", "secret") as server,
        GitServer(inner.bare.parent, "me", "secret") as other,
    ):
        with_submodule(repository, "same", "../lib.git", inner.head())
        source = GitSource(f"{server.url}/app.git", MAIN, submodules=True)
        await sources.fetch(source, me)
        with_submodule(repository, "other", f"{other.url}/lib.git", inner.head())
        with pytest.raises(AccessDenied, match=other.url):
            await sources.fetch(source, me)


async def test_hostile_submodules(
    repository: Repository, inner: Repository, store: ArtifactStore, tmp_path: Path
) -> None:
    """Not from this machine's disk, and not by running programs."""
    sources = GitSources(tmp_path / "s", store)
    async with GitServer(repository.bare.parent) as server:
        source = GitSource(f"{server.url}/app.git", MAIN, submodules=True)
        for address in (inner.url, f"ext::touch {tmp_path}/owned", "--upload-pack=touch", str(inner.bare)):
            with_submodule(repository, f"x{len(address)}", address, inner.head())
            with pytest.raises((Refused, InputError)):
                await sources.fetch(source)
            repository.git("reset", "-q", "--hard", "HEAD~1")
            repository.git("push", "-q", "--force", "origin", "HEAD:refs/heads/main")
    assert not (tmp_path / "owned").exists()
