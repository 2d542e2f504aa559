"""Repositories made for a test by real git, served over smart HTTP or by an sshd of our own."""

import asyncio
import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


class Repository:
    """A bare repository, and a work tree that is pushed to it."""

    def __init__(self, bare: Path) -> None:
        self.bare = bare
        self.work = bare.with_suffix(".work")
        bare.parent.mkdir(parents=True, exist_ok=True)
        self._git("init", "-q", "-b", "main", "--bare", str(bare), at=bare.parent)
        self._git("init", "-q", "-b", "main", str(self.work), at=bare.parent)
        self._git("remote", "add", "origin", str(bare))
        for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
            self._git("config", name, "true", at=bare)

    @property
    def url(self) -> str:
        """Its address on this machine's disk."""
        return f"file://{self.bare}"

    def commit(
        self,
        files: Mapping[str, str | bytes | None] | None = None,
        *options: str,
        branch: str = "main",
        force: bool = False,
        config: Mapping[str, str] | None = None,
    ) -> str:
        """Write these files, remove those that are None, and push the commit; gives its id."""
        for name, content in (files or {}).items():
            path = self.work / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._git("add", "-A", "-f")
        self._git(*_configured(config), "commit", "-q", "-m", "x", "--allow-empty", *options)
        self._git("push", "-q", *(["--force"] if force else []), "origin", f"HEAD:refs/heads/{branch}")
        return self.head()

    def head(self) -> str:
        """The work tree's commit."""
        return self._git("rev-parse", "HEAD").strip()

    def tag(self, name: str, *options: str, force: bool = False, config: Mapping[str, str] | None = None) -> None:
        """Tag the work tree's commit: with a tag object if -m is among the options."""
        forced = ["--force"] if force else []
        self._git(*_configured(config), "tag", *forced, *options, name)
        self._git("push", "-q", *forced, "origin", f"refs/tags/{name}")

    def git(self, *arguments: str) -> str:
        """Anything else, in the work tree."""
        return self._git(*arguments)

    def _git(self, *arguments: str, at: Path | None = None) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.bare.parent), **IDENTITY}
        if home := os.environ.get("GNUPGHOME"):
            environment["GNUPGHOME"] = home
        where = at or self.work
        done = subprocess.run(["git", *arguments], cwd=where, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, (arguments, done.stderr.decode())
        return done.stdout.decode()


def _configured(config: Mapping[str, str] | None) -> list[str]:
    return [part for name, value in (config or {}).items() for part in ("-c", f"{name}={value}")]


@dataclass(frozen=True, slots=True)
class SshServer:
    """An sshd on loopback that lets one key in; `known_hosts` has its own."""

    port: int
    identity: str
    known_hosts: str

    def url(self, repository: Repository) -> str:
        """A repository's address there."""
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository.bare}"


@asynccontextmanager
async def ssh_server(folder: Path) -> AsyncIterator[SshServer]:
    """The server, while the block lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host", "user"):
        keygen = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name))
        assert await (await asyncio.create_subprocess_exec(*keygen)).wait() == 0
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'authorized_keys'}\n"
        f"PidFile {folder / 'pid'}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        "MaxStartups 100\n"
    )
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert sshd is not None
    Path("/run/sshd").mkdir(exist_ok=True)
    server = await asyncio.create_subprocess_exec(
        sshd, "-D", "-e", "-f", str(folder / "sshd_config"), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: _listens(port))
        host = " ".join((folder / "host.pub").read_text().split()[:2])
        yield SshServer(port, (folder / "user").read_text(), f"[127.0.0.1]:{port} {host}\n")
    finally:
        server.send_signal(signal.SIGTERM)
        await server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
