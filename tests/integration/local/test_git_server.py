"""Repositories are cloned and pushed to over smart HTTP, by real git."""

import asyncio
import gzip
import os
from pathlib import Path

import aiohttp
import pytest

from starling.local import GitServer, LocalError
from tests.integration.local.conftest import processes_with
from tests.waiting import until

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}


async def git(*arguments: str | Path, **environment: str) -> tuple[int, str]:
    """Run git; give its exit code and all that it wrote."""
    process = await asyncio.create_subprocess_exec(
        "git",
        *map(str, arguments),
        env={"PATH": os.environ["PATH"], **IDENTITY, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def must(*arguments: str | Path, **environment: str) -> str:
    """Run git, which has to succeed; give what it wrote."""
    code, output = await git(*arguments, **environment)
    assert code == 0, output
    return output


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """A folder with one bare repository that allows pushing, and its first commit."""
    root = tmp_path / "repositories"
    work = tmp_path / "work"
    await must("init", "-q", "-b", "main", "--bare", root / "team" / "app.git")
    await must("-C", root / "team" / "app.git", "config", "http.receivepack", "true")
    await must("init", "-q", "-b", "main", work)
    (work / "file").write_text("one\n")
    await must("-C", work, "add", ".")
    await must("-C", work, "commit", "-q", "-m", "one")
    await must("-C", work, "push", "-q", root / "team" / "app.git", "main")
    return root


async def test_clone_and_push(root: Path, tmp_path: Path) -> None:
    """A clone has what was committed, and a big push to it arrives, compressed and in chunks."""
    async with GitServer(root) as server:
        clone = tmp_path / "clone"
        await must("clone", "-q", f"{server.url}/team/app.git", clone)
        assert (clone / "file").read_text() == "one\n"
        (clone / "big").write_bytes(os.urandom(5_000_000))
        await must("-C", clone, "add", ".")
        await must("-C", clone, "commit", "-q", "-m", "two")
        await must("-C", clone, "push", "-q", "origin", "main")
        head = await must("-C", clone, "rev-parse", "HEAD")
    assert await must("-C", root / "team" / "app.git", "rev-parse", "main") == head


async def test_protocol_version_two(root: Path) -> None:
    """The server speaks protocol v2 to those who ask for it."""
    async with GitServer(root) as server:
        trace = await must("ls-remote", f"{server.url}/team/app.git", GIT_TRACE_PACKET="1", GIT_PROTOCOL="version=2")
    assert "git< version 2" in trace
    assert "refs/heads/main" in trace


async def test_a_compressed_request(root: Path) -> None:
    """A request body that comes gzipped is understood."""
    body = gzip.compress(b"0014command=ls-refs\n0001000bpeel\n0000".replace(b"000bpeel\n", b"0009peel\n"))
    headers = {
        "Content-Type": "application/x-git-upload-pack-request",
        "Content-Encoding": "gzip",
        "Git-Protocol": "version=2",
    }
    async with GitServer(root) as server, aiohttp.ClientSession() as session:
        url = f"{server.url}/team/app.git/git-upload-pack"
        async with session.post(url, data=body, headers=headers) as response:
            assert response.status == 200
            assert b"refs/heads/main" in await response.read()


async def test_pushing_is_up_to_the_repository(root: Path, tmp_path: Path) -> None:
    """Without http.receivepack, and without a password, a push is refused."""
    await must("-C", root / "team" / "app.git", "config", "http.receivepack", "false")
    clone = tmp_path / "clone"
    async with GitServer(root) as server:
        await must("clone", "-q", f"{server.url}/team/app.git", clone)
        code, output = await git("-C", clone, "push", "origin", "HEAD:other")
    assert code != 0
    assert "403" in output


async def test_passwords(root: Path, tmp_path: Path) -> None:
    """With the right user name and password git gets in; with a wrong one, or none, it doesn't."""
    async with GitServer(root, "flock", "pässword") as server:
        address = server.url.removeprefix("http://") + "/team/app.git"
        await must("clone", "-q", f"http://flock:p%C3%A4ssword@{address}", tmp_path / "clone")
        for credentials in ("flock:wrong@", "other:p%C3%A4ssword@", ""):
            code, _ = await git("ls-remote", f"http://{credentials}{address}")
            assert code != 0, credentials
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/team/app.git/HEAD") as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.git/HEAD",
        "/team/../../outside.git/HEAD",
        "/%2e%2e/outside.git/HEAD",
        "/team%2f..%2f..%2foutside.git/HEAD",
        "/link.git/HEAD",
        "/team/app.git/HEAD%00",
        "//../outside.git/HEAD",
    ],
)
async def test_nothing_outside_the_root_is_served(root: Path, tmp_path: Path, path: str) -> None:
    """Neither dots nor links lead out of the root."""
    await must("init", "-q", "--bare", tmp_path / "outside.git")
    (root / "link.git").symlink_to(tmp_path / "outside.git")
    async with GitServer(root) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.split()[1] in (b"400", b"404"), answer


async def test_a_client_that_leaves_ends_its_backend(root: Path) -> None:
    """When a client goes away in the middle of its request, git doesn't wait for it for ever."""
    async with GitServer(root) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /team/app.git/git-upload-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
            b"Content-Type: application/x-git-upload-pack-request\r\n\r\n0014command"
        )
        await until(lambda: bool(processes_with(f"GIT_PROJECT_ROOT={root}")))
        writer.close()
        await until(lambda: not processes_with(f"GIT_PROJECT_ROOT={root}"))


async def test_a_port_in_use(root: Path) -> None:
    """Two servers can't have one port, and the second says so."""
    async with GitServer(root) as server:
        with pytest.raises(LocalError, match=f"can't listen on 127.0.0.1:{server.port}"):
            async with GitServer(root, port=server.port):
                pass
