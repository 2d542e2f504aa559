"""Who may read a repository: over https, http and ssh, with the right credentials, the wrong ones, and none."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from starling.local import GitServer
from starling.local.pki import Pki
from starling.sources import (
    ANONYMOUS,
    AccessDenied,
    ArtifactStore,
    Credentials,
    GitSource,
    GitSources,
    NoSuchRepository,
    Ref,
    SourceError,
    UntrustedHost,
)
from tests.integration.sources.repositories import Repository, SshServer, ssh_server

MAIN = Ref(branch="main")
ME = Credentials(username="me", password="a:b c/ü%'\"-s3cr3t")


@pytest.fixture
async def private(repository: Repository) -> AsyncIterator[str]:
    """The address of a repository that wants a password."""
    async with GitServer(repository.bare.parent, ME.username, ME.password) as server:
        yield f"{server.url}/app.git"


@pytest.fixture
async def ssh(tmp_path: Path) -> AsyncIterator[SshServer]:
    """An ssh server that lets one key in."""
    async with ssh_server(tmp_path / "ssh") as server:
        yield server


async def test_a_password_opens(private: str, sources: GitSources) -> None:
    """Whatever characters are in it."""
    assert (await sources.fetch(GitSource(private, MAIN), ME)).revision.startswith("main@sha1:")


@pytest.mark.parametrize(
    "wrong", [ANONYMOUS, Credentials(username="me", password="hunter2"), Credentials(bearer_token="hunter2")], ids=repr
)
async def test_wrong_credentials_are_denied_though_the_files_are_here(
    private: str, sources: GitSources, wrong: Credentials
) -> None:
    """That someone else has fetched it is no reason to let others read it; nothing of a secret is in the error."""
    await sources.fetch(GitSource(private, MAIN), ME)
    with pytest.raises(AccessDenied, match=r"app\.git") as caught:
        await sources.fetch(GitSource(private, MAIN), wrong)
    assert "hunter2" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__!r}"


async def test_nothing_secret_is_on_a_command_line(private: str, sources: GitSources, tmp_path: Path) -> None:
    """Nor in an environment: looked at while git runs, through all of /proc. Nor in the files that stay behind."""
    seen: set[bytes] = set()
    over = asyncio.Event()

    async def spy() -> None:
        while not over.is_set():
            for process in Path("/proc").iterdir():
                for file in ("cmdline", "environ"):
                    with suppress(OSError):  # none, or gone by now
                        seen.add((process / file).read_bytes())
            await asyncio.sleep(0)

    watching = asyncio.create_task(spy())
    await sources.fetch(GitSource(private, MAIN), ME)
    over.set()
    await watching
    assert [line for line in seen if b"ls-remote" in line]
    assert [line for line in seen if b"GIT_CONFIG_GLOBAL=" in line]
    assert not [line for line in seen if b"s3cr3t" in line]
    kept = [file for file in (tmp_path / "sources").rglob("*") if file.is_file() and b"s3cr3t" in file.read_bytes()]
    assert not kept


async def test_a_token_is_sent_as_such(repository: Repository, sources: GitSources) -> None:
    """`Authorization: Bearer …`."""

    class WantsToken(GitServer):
        def _knows(self, request: web.Request) -> bool:
            return request.headers.get("Authorization") == "Bearer t0ken"

    async with WantsToken(repository.bare.parent) as server:
        source = GitSource(f"{server.url}/app.git", MAIN)
        await sources.fetch(source, Credentials(bearer_token="t0ken"))
        with pytest.raises(AccessDenied):
            await sources.fetch(source, Credentials(bearer_token="other"))


async def test_a_token_follows_no_redirection(repository: Repository, sources: GitSources) -> None:
    """The server that sends us elsewhere may not have it sent there."""
    asked: list[str | None] = []

    class Thief(GitServer):
        async def _serve(self, request: web.Request) -> web.StreamResponse:
            asked.append(request.headers.get("Authorization"))
            return await super()._serve(request)

    async with Thief(repository.bare.parent) as thief:

        class Redirects(GitServer):
            async def _serve(self, request: web.Request) -> web.StreamResponse:
                raise web.HTTPFound(f"{thief.url.replace('127.0.0.1', 'localhost')}{request.path_qs}")

        async with Redirects(repository.bare.parent) as server:
            source = GitSource(f"{server.url}/app.git", MAIN)
            with pytest.raises(SourceError):
                await sources.fetch(source, Credentials(bearer_token="t0ken"))
            assert asked == []
            await sources.fetch(source, ME)  # a password isn't given to another host
            assert set(asked) == {None}


async def test_a_private_authority_must_be_given(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """Without its certificate the server could be anyone."""
    pki = Pki(tmp_path / "pki")
    pki.ensure({})
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki.server.certificate, pki.server.key)
    async with GitServer(repository.bare.parent, tls=context) as server:
        source = GitSource(f"{server.url}/app.git", MAIN)
        with pytest.raises(UntrustedHost):
            await sources.fetch(source)
        await sources.fetch(source, Credentials(ca=pki.authority.certificate.read_text()))


async def test_ssh_with_the_right_key(repository: Repository, sources: GitSources, ssh: SshServer) -> None:
    """And the host's."""
    credentials = Credentials(identity=ssh.identity, known_hosts=ssh.known_hosts)
    artifact = await sources.fetch(GitSource(ssh.url(repository), MAIN), credentials)
    assert artifact.revision == f"main@sha1:{repository.head()}"
    with pytest.raises(NoSuchRepository):
        await sources.look(GitSource(ssh.url(repository) + "-not", MAIN), credentials)


async def test_ssh_with_another_key(
    repository: Repository, sources: GitSources, ssh: SshServer, tmp_path: Path
) -> None:
    """Ours that the host doesn't know, or the host's that we don't; and one that is no key."""
    async with ssh_server(tmp_path / "other") as other:
        source = GitSource(ssh.url(repository), MAIN)
        with pytest.raises(AccessDenied):
            await sources.look(source, Credentials(identity=other.identity, known_hosts=ssh.known_hosts))
        lie = ssh.known_hosts.split(" ")[0] + " " + other.known_hosts.split(" ", 1)[1]
        with pytest.raises(UntrustedHost):
            await sources.look(source, Credentials(identity=ssh.identity, known_hosts=lie))
        with pytest.raises(UntrustedHost):
            await sources.look(source, Credentials(identity=ssh.identity, known_hosts=other.known_hosts))
        with pytest.raises(AccessDenied):
            await sources.look(source, Credentials(identity="no key", known_hosts=ssh.known_hosts))


async def test_the_machines_own_configuration_counts_for_nothing(
    private: str, store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A helper in the user's configuration that knows the password isn't asked."""
    (tmp_path / ".gitconfig").write_text(
        f'[credential]\n\thelper = "!f() {{ echo username=me; echo password={ME.password!r}; }}; f"\n'
        f'[url "{private}"]\n\tinsteadOf = https://git.example/\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    with pytest.raises(AccessDenied):
        await GitSources(tmp_path / "sources", store).look(GitSource(private, MAIN))
