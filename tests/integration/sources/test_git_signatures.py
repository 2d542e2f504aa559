"""Only what one of the given keys has signed is used; ssh and gpg, commits and tags."""

import os
import subprocess
from pathlib import Path

import pytest

from starling.errors import InputError
from starling.sources import GitSource, GitSources, Keys, NotSigned, Ref
from tests.integration.sources.repositories import Repository

MAIN = Ref(branch="main")


class SshKey:
    """A key made for a test, and how git signs with it."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", str(file)], check=True)
        self.public = file.with_suffix(".pub").read_text()
        self.config = {"gpg.format": "ssh", "user.signingKey": str(file)}


@pytest.fixture
def gpg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for gpg, with its agent ended afterwards by gpg itself."""
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    return home


def gpg_key(name: str, *expires: str) -> str:
    """A new key without a passphrase; gives the armoured public part."""
    new = [
        "gpg",
        "--batch",
        "--quiet",
        "--passphrase",
        "",
        "--quick-generate-key",
        f"{name}@example.org",
        "ed25519",
        "sign",
    ]
    subprocess.run([*new, *(expires or ("never",))], check=True, capture_output=True)
    export = ["gpg", "--batch", "--armor", "--export", f"{name}@example.org"]
    return subprocess.run(export, check=True, capture_output=True, text=True).stdout


def end_agent(home: Path) -> None:
    """Let no agent outlive its test."""
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, env={**os.environ})


async def test_ssh_signatures(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """By one of several keys; not by another's, not unsigned."""
    mine, other = SshKey(tmp_path / "keys/mine"), SshKey(tmp_path / "keys/other")
    by_me = GitSource(repository.url, MAIN, keys=Keys.of([other.public + mine.public]))
    by_other = GitSource(repository.url, MAIN, keys=Keys.of([other.public]))
    with pytest.raises(NotSigned, match=r"commit .* isn't signed"):
        await sources.fetch(by_me)
    signed = repository.commit({"a": "1"}, "-S", config=mine.config)
    assert (await sources.fetch(by_me)).revision == f"main@sha1:{signed}"
    with pytest.raises(NotSigned, match="by any of the given keys"):
        await sources.fetch(by_other)
    repository.commit({"a": "2"})
    with pytest.raises(NotSigned):
        await sources.fetch(by_me)
    assert (await sources.fetch(GitSource(repository.url, MAIN))).revision.endswith(repository.head())


async def test_gpg_signatures(repository: Repository, sources: GitSources, gpg: Path) -> None:
    """The machine's own keyring counts for nothing: only the given keys do."""
    try:
        mine, other = gpg_key("mine"), gpg_key("other")
        config = {"user.signingKey": "mine@example.org"}
        signed = repository.commit({"a": "1"}, "-S", config=config)
        by_me = GitSource(repository.url, MAIN, keys=Keys.of([other, mine]))
        assert (await sources.fetch(by_me)).revision.endswith(signed)
        with pytest.raises(NotSigned, match="another's signature"):
            await sources.fetch(GitSource(repository.url, MAIN, keys=Keys.of([other])))
        with pytest.raises(NotSigned):
            await sources.fetch(GitSource(repository.url, MAIN, keys=Keys()))
    finally:
        end_agent(gpg)


async def test_a_signature_of_something_else(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """A commit with the signature of another commit."""
    mine = SshKey(tmp_path / "keys/mine")
    repository.commit({"a": "1"}, "-S", config=mine.config)
    commit = repository.git("cat-file", "commit", "HEAD")
    forged = tmp_path / "forged"
    forged.write_text(commit.replace("\nx\n", "\nforged\n"))
    name = repository.git("hash-object", "-t", "commit", "-w", str(forged)).strip()
    repository.git("push", "-q", "--force", "origin", f"{name}:refs/heads/main")
    with pytest.raises(NotSigned):
        await sources.fetch(GitSource(repository.url, MAIN, keys=Keys.of([mine.public])))


async def test_tags_are_signed_themselves(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """It is the tag that counts, whether its commit is signed or not."""
    mine = SshKey(tmp_path / "keys/mine")
    keys = Keys.of([mine.public])
    repository.commit({"a": "1"})
    repository.tag("v1.0.0", "-s", "-m", "words", config=mine.config)
    await sources.fetch(GitSource(repository.url, Ref(tag="v1.0.0"), keys=keys))
    await sources.fetch(GitSource(repository.url, Ref(semver="1.x"), keys=keys))
    repository.commit({"a": "2"}, "-S", config=mine.config)
    repository.tag("v1.1.0", "-m", "words")
    with pytest.raises(NotSigned, match=r"tag v1\.1\.0 isn't signed"):
        await sources.fetch(GitSource(repository.url, Ref(tag="v1.1.0"), keys=keys))


async def test_an_old_tag_under_a_new_name(repository: Repository, sources: GitSources, tmp_path: Path) -> None:
    """Whoever may push can't pass an old signed version off as a new one."""
    mine = SshKey(tmp_path / "keys/mine")
    repository.tag("v1.0.0", "-s", "-m", "words", config=mine.config)
    repository.git("push", "-q", "origin", "refs/tags/v1.0.0:refs/tags/v9.0.0")
    with pytest.raises(NotSigned, match="another tag, put under this name"):
        await sources.fetch(GitSource(repository.url, Ref(semver="*"), keys=Keys.of([mine.public])))


def test_keys_are_recognised() -> None:
    """Anything else is a mistake that would let nothing through, or be read as something else."""
    with pytest.raises(InputError, match="neither an armoured gpg key nor an ssh public key"):
        Keys.of(["-----BEGIN OPENSSH PRIVATE KEY-----\nx"])
    with pytest.raises(InputError):
        Keys.of([""])
