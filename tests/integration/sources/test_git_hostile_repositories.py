"""Repositories that mean harm, or are too much, are refused with what it is; nothing is written anywhere else."""

import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from starling.local import GitServer
from starling.sources import ArtifactStore, FetchSettings, GitSource, GitSources, Ref, Refused, SourceError
from starling.sources.trees import Limits
from tests.integration.sources.repositories import Repository

MAIN = Ref(branch="main")


def tree(repository: Repository, *lines: bytes) -> bytes:
    """The raw id of a tree, whatever is in it."""
    command = ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"]
    done = subprocess.run(command, cwd=repository.bare, input=b"".join(lines), capture_output=True, check=True)
    return bytes.fromhex(done.stdout.decode().strip())


def push_tree(repository: Repository, *lines: bytes) -> None:
    """Have main be a commit of a tree that git itself would never write: mode, name, id of each entry."""
    made = tree(repository, *lines).hex()
    commit = repository.git("-C", str(repository.bare), "commit-tree", "-m", "x", made).strip()
    repository.git("-C", str(repository.bare), "update-ref", "refs/heads/main", commit)


def blob(repository: Repository, content: bytes) -> bytes:
    """The raw id of a blob that is written now."""
    command = ["git", "hash-object", "-w", "--stdin"]
    done = subprocess.run(command, cwd=repository.bare, input=content, capture_output=True, check=True)
    return bytes.fromhex(done.stdout.decode().strip())


@pytest.mark.parametrize(
    ("name", "target"),
    [("passwd", "/etc/passwd"), ("up", "../../../etc/passwd"), ("a/up", "../../x"), ("through", "inside/../../x")],
)
async def test_links_out(repository: Repository, sources: GitSources, name: str, target: str) -> None:
    """By an absolute path, by going up, and through another link."""
    (repository.work / "inside").symlink_to("app")
    link = repository.work / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    repository.commit()
    with pytest.raises(Refused, match=rf"the link {name} leads to"):
        await sources.fetch(GitSource(repository.url, MAIN))
    left_out = GitSource(repository.url, MAIN, ignore=(f"/{name}",))
    assert (await sources.fetch(left_out)).revision.endswith(repository.head())


@pytest.mark.parametrize("name", [b"..", b".", b".git", b".GIT", b"git~1", b"a/b", b"\xe2\x80\x8c.git"])
async def test_names_that_lead_elsewhere(
    repository: Repository, sources: GitSources, name: bytes, tmp_path: Path
) -> None:
    """In a tree that no git would make; whatever git or we refuse, nothing is where it would have led."""
    content = blob(repository, b"owned")
    inner = tree(repository, b"100644 owned\0" + content)
    push_tree(repository, b"40000 " + name + b"\0" + inner)
    try:
        artifact = await sources.fetch(GitSource(repository.url, MAIN))
    except SourceError:
        artifact = None
    assert artifact is None or name == b"a/b"
    assert not [path for path in tmp_path.rglob("owned") if "store" not in path.parts]


async def test_one_name_twice(repository: Repository, sources: GitSources) -> None:
    """Nobody could say which of the two it is."""
    push_tree(repository, b"100644 a\0" + blob(repository, b"one"), b"100644 a\0" + blob(repository, b"two"))
    with pytest.raises(SourceError):
        await sources.fetch(GitSource(repository.url, MAIN))


async def test_bombs(repository: Repository, tmp_path: Path) -> None:
    """A file that is too large, too many files, too much in all; a change of one file that makes it so, too."""
    repository.commit({"zeros": b"\0" * 2_000_000})
    small = FetchSettings(allow_file=True, largest_file=1_000_000)
    sources = GitSources(tmp_path / "a", ArtifactStore(tmp_path / "sa"), small)
    with pytest.raises(Refused, match=r"zeros has 2,000,000 bytes"):
        await sources.fetch(GitSource(repository.url, MAIN))
    assert (await sources.fetch(GitSource(repository.url, MAIN, ignore=("zeros",)))).size < 1000
    for limits, says in ((Limits(files=3), "more than 3 files"), (Limits(total_size=1_000_000), "in all")):
        store = ArtifactStore(tmp_path / says.replace(" ", "-"), limits)
        strict = GitSources(tmp_path / f"{says}-b", store, FetchSettings(allow_file=True))
        with pytest.raises(Refused, match=says):
            await strict.fetch(GitSource(repository.url, MAIN))
        without = repository.git("rev-parse", "HEAD~1").strip()
        await strict.fetch(GitSource(repository.url, Ref(commit=without)))
        with pytest.raises(Refused, match=says):
            await strict.fetch(GitSource(repository.url, MAIN))


async def test_a_server_that_talks_nonsense(repository: Repository, tmp_path: Path) -> None:
    """Web pages, errors and rubbish are told as what they are: no version from there."""
    answers = [
        web.Response(text="<html>hello</html>"),
        web.Response(status=500, text="no"),
        web.Response(body=b"\xff" * 1000, content_type="application/x-git-upload-pack-advertisement"),
    ]

    class Nonsense(GitServer):
        async def _serve(self, request: web.Request) -> web.StreamResponse:
            del request
            return answers[0]

    sources = GitSources(tmp_path / "s", ArtifactStore(tmp_path / "t"), FetchSettings(look_within=3.0))
    while answers:
        async with Nonsense(repository.bare.parent) as server:
            with pytest.raises(SourceError, match=server.url):
                await sources.fetch(GitSource(f"{server.url}/app.git", MAIN))
        answers.pop(0)
