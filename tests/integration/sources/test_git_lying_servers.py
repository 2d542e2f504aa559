"""What a server says isn't taken for true where it matters: tags, commits, submodules, limits; and mirrors heal."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from starling.errors import InputError
from starling.local import GitServer
from starling.sources import (
    AccessDenied,
    ArtifactStore,
    Credentials,
    FetchSettings,
    GitSource,
    GitSources,
    Keys,
    NotSigned,
    Ref,
    Refused,
    Unreachable,
)
from starling.sources.git import fetch as fetching
from starling.sources.git import mirror as mirrors
from starling.sources.trees import Limits
from tests.integration.sources.repositories import IDENTITY, Repository
from tests.integration.sources.test_git_hostile_repositories import blob, push_tree
from tests.integration.sources.test_git_signatures import SshKey
from tests.integration.sources.test_git_submodules import with_submodule

MAIN = Ref(branch="main")


def mirror_of(tmp_path: Path) -> Path:
    """The one mirror there is."""
    (head,) = (tmp_path / "sources" / "git").glob("*/HEAD")
    return head.parent


async def test_a_signed_tag_of_another_commit(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """The server says which commit a tag is of, but it is the tag itself that was signed."""
    mine = SshKey(tmp_path / "keys/mine")
    good = repository.head()
    repository.tag("v1.0.0", "-s", "-m", "words", config=mine.config)
    evil = repository.commit({"app/web.yaml": "kind: Evil\n"}, branch="evil")
    tag = repository.git("rev-parse", "v1.0.0").strip()
    repository.git("-C", str(repository.bare), "pack-refs", "--all")
    packed = repository.bare / "packed-refs"
    packed.write_text(packed.read_text().replace(f"^{good}", f"^{evil}"))
    await sources.fetch(GitSource(repository.url, Ref(branch="evil")))  # so that the mirror has it
    for keys in (Keys.of([mine.public]), None):
        with pytest.raises(Refused, match=r"v1\.0\.0 isn't a tag of the commit"):
            await sources.fetch(GitSource(repository.url, Ref(tag="v1.0.0"), keys=keys))
    assert tag != evil


async def test_tags_of_things_that_are_no_commits(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """A tree or a file isn't a version; the mirror isn't to blame."""
    await sources.fetch(GitSource(repository.url, MAIN))
    before = mirror_of(tmp_path).stat().st_ino
    for name, what in (("v8.0.0", "HEAD^{tree}"), ("v9.0.0", "HEAD:run.sh")):
        repository.git("tag", name, what)
        repository.git("push", "-q", "origin", name)
        with pytest.raises(Refused, match=f"{name} names no commit"):
            await sources.fetch(GitSource(repository.url, Ref(tag=name)))
    assert mirror_of(tmp_path).stat().st_ino == before


async def test_an_old_signed_commit_under_a_new_version(
    repository: Repository, sources: GitSources, tmp_path: Path
) -> None:
    """Whoever can't sign can't make a version: a light tag isn't one, whatever it points to."""
    mine = SshKey(tmp_path / "keys/mine")
    repository.commit({"a": "1"}, "-S", config=mine.config)
    repository.tag("v9.0.0")
    with pytest.raises(NotSigned, match=r"tag v9\.0\.0 isn't signed") as caught:
        await sources.fetch(GitSource(repository.url, Ref(semver="*"), keys=Keys.of([mine.public])))
    assert "git tag -s" in str(caught.value.hint)


async def test_what_another_fetched_of_a_private_submodule(
    repository: Repository, store: ArtifactStore, tmp_path: Path
) -> None:
    """Who may read the outer repository alone gets nothing of the inner one, fetched before or not."""
    inner = Repository(repository.bare.with_name("lib.git"))
    inner.commit({"secret.yaml": "kind: Secret\n"})
    with_submodule(repository, "lib", "../lib.git", inner.head())

    class HalfPrivate(GitServer):
        def _knows(self, request: web.Request) -> bool:
            return "/lib.git/" not in request.path or super()._knows(request)

    async with HalfPrivate(repository.bare.parent, "me", "secret") as server:
        sources = GitSources(tmp_path / "sources", store)
        source = GitSource(f"{server.url}/app.git", MAIN, submodules=True)
        mine = Credentials(username="me", password="secret")
        first = await sources.fetch(source, mine)
        with pytest.raises(AccessDenied):
            await sources.fetch(source)
        assert await sources.fetch(source, mine) == first


async def test_submodules_without_end(
    repository: Repository, sources: GitSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that has itself for a submodule, several times: each doubles their number."""
    monkeypatch.setattr(fetching, "MOST_SUBMODULES", 10)
    for number in range(4):
        with_submodule(repository, f"again{number}", repository.url, repository.head())
    with pytest.raises(Refused, match="too many submodules"):
        await sources.fetch(GitSource(repository.url, MAIN, submodules=True))


async def test_submodules_though_what_names_them_is_ignored(
    repository: Repository, sources: GitSources, store: ArtifactStore
) -> None:
    """The file isn't in the artifact, and is read all the same."""
    inner = Repository(repository.bare.with_name("lib.git"))
    inner.commit({"lib.yaml": "kind: L\n"})
    with_submodule(repository, "lib", "../lib.git", inner.head())
    source = GitSource(repository.url, MAIN, submodules=True, ignore=(".*",))
    folder = await store.checkout((await sources.fetch(source)).digest)
    assert (folder / "lib/lib.yaml").exists()
    assert not (folder / ".gitmodules").exists()


async def test_limits_hold_before_anything_is_written(repository: Repository, tmp_path: Path) -> None:
    """A repository that would fill the disk fills little of it."""
    repository.commit({f"{number}.bin": os.urandom(1_000_000) for number in range(20)})
    store = ArtifactStore(tmp_path / "store", Limits(total_size=2_000_000))
    sources = GitSources(tmp_path / "sources", store, FetchSettings(allow_file=True))
    with pytest.raises(Refused, match=r"more than 2,000,000 bytes in all, up to .*\.bin"):
        await sources.fetch(GitSource(repository.url, MAIN))
    assert sum(file.stat().st_size for file in (tmp_path / "store").rglob("*") if file.is_file()) < 7_000_000


async def test_one_name_twice_in_a_change(repository: Repository, sources: GitSources) -> None:
    """Refused as it is in a first fetch."""
    await sources.fetch(GitSource(repository.url, MAIN))
    push_tree(repository, *(b"100644 a\0" + blob(repository, content) for content in (b"one", b"two")))
    with pytest.raises(Refused, match="a is there twice"):
        await sources.fetch(GitSource(repository.url, MAIN))


async def test_a_server_that_wants_less(repository: Repository, store: ArtifactStore, tmp_path: Path) -> None:
    """That it has enough for now isn't the mirror's fault, which stays."""

    class Busy(GitServer):
        answers = 1000

        async def _serve(self, request: web.Request) -> web.StreamResponse:
            self.answers -= request.method == "POST"
            return web.Response(status=429, text="later\n") if self.answers < 0 else await super()._serve(request)

    async with Busy(repository.bare.parent) as server:
        sources = GitSources(tmp_path / "sources", store)
        source = GitSource(f"{server.url}/app.git", MAIN)
        await sources.fetch(source)
        before = mirror_of(tmp_path).stat().st_ino
        repository.commit({"a": "1"})
        server.answers = 1  # to the look
        with pytest.raises(Unreachable, match="429"):
            await sources.fetch(source)
        assert mirror_of(tmp_path).stat().st_ino == before


@pytest.mark.parametrize("file", ["HEAD", "config"])
async def test_a_mirror_that_is_no_repository_any_more(
    repository: Repository, sources: GitSources, tmp_path: Path, file: str
) -> None:
    """It is made anew, and nobody is told that the remote isn't there."""
    await sources.fetch(GitSource(repository.url, MAIN))
    (mirror_of(tmp_path) / file).write_text("")
    head = repository.commit({"a": "1"})
    assert (await sources.fetch(GitSource(repository.url, MAIN))).revision.endswith(head)


async def test_mirrors_stay_small(
    repository: Repository, sources: GitSources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many versions go through one, with files left out or not."""
    monkeypatch.setattr(mirrors, "MOST_KEPT", 4)
    for number in range(12):
        repository.commit({"large.bin": os.urandom(100_000), "n": f"{number}"})
        for ignore in ((), ("docs/**",)):
            await sources.fetch(GitSource(repository.url, MAIN, ignore=ignore))
    size = sum(file.stat().st_size for file in mirror_of(tmp_path).rglob("*") if file.is_file())
    assert size < 700_000
    await sources.collect(older_than=-1.0)
    left = [path for path in (tmp_path / "sources").rglob("*") if path.is_file()]
    assert left == []
    assert (await sources.fetch(GitSource(repository.url, MAIN))).revision.endswith(repository.head())


async def test_strange_names(repository: Repository, sources: GitSources, store: ArtifactStore) -> None:
    """A tag with a line separator in it is no version, and in nobody's way; nor is a file whose name isn't UTF-8."""
    repository.tag("v1.0.0")
    repository.tag("v1\u2028x")
    assert (await sources.look(GitSource(repository.url, Ref(semver="*")))).name == "v1.0.0"
    push_tree(repository, b"100644 caf\xe9.yaml\0" + blob(repository, b"x"), b"100644 ok\0" + blob(repository, b"y"))
    folder = await store.checkout((await sources.fetch(GitSource(repository.url, MAIN))).digest)
    assert (folder / os.fsdecode(b"caf\xe9.yaml")).read_text() == "x"
    without = await store.checkout((await sources.fetch(GitSource(repository.url, MAIN, ignore=("caf*",)))).digest)
    assert [path.name for path in without.iterdir()] == ["ok"]


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A repository whose ids are sha256."""
    work = tmp_path / "newer"
    environment = {"PATH": os.environ["PATH"], **IDENTITY}
    for command in (
        ("init", "-q", "-b", "main", "--object-format=sha256", str(work)),
        ("-C", str(work), "commit", "-q", "--allow-empty", "-m", "x"),
    ):
        subprocess.run(["git", *command], env=environment, check=True)
    return work


async def test_repositories_of_the_newer_kind(newer: Path, sources: GitSources, store: ArtifactStore) -> None:
    """Their revisions say so."""
    artifact = await sources.fetch(GitSource(f"file://{newer}", MAIN))
    assert artifact.revision.startswith("main@sha256:")
    assert list((await store.checkout(artifact.digest)).iterdir()) == []


def test_what_a_killed_process_left_goes(tmp_path: Path, store: ArtifactStore) -> None:
    """There are credentials in it; all of it is private anyway."""
    left = tmp_path / "sources" / "talks" / "left"
    left.mkdir(parents=True)
    (left / "config").write_text("secret")
    GitSources(tmp_path / "sources", store)
    assert not left.exists()
    private = Path(tmp_path / "private")
    GitSources(private, store)
    assert {path.stat().st_mode & 0o077 for path in (private, *private.iterdir())} == {0}


async def test_no_gpg(
    repository: Repository, sources: GitSources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What verifies isn't there: that is said."""
    signed = repository.git("cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n", 1
    )
    (tmp_path / "commit").write_text(signed)
    name = repository.git("hash-object", "-t", "commit", "-w", str(tmp_path / "commit")).strip()
    repository.git("push", "-q", "--force", "origin", f"{name}:refs/heads/main")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", str(tools))
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"
    with pytest.raises(InputError, match="there is no gpg on this machine"):
        await sources.fetch(GitSource(repository.url, MAIN, keys=Keys.of([key])))
