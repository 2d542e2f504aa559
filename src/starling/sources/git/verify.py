"""Whether one of the given keys has signed what a ref names: git's own check, with these keys and no others.

A ref that names a tag object needs the tag signed, and the tag must say its own name: else someone who may push could
put an old signed tag under a new name. Any other ref needs its commit signed.
"""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from starling.errors import InputError
from starling.files import write_private
from starling.programs import Finished, run
from starling.sources.errors import NotSigned
from starling.sources.git.command import LOCALLY
from starling.sources.git.mirror import Mirror
from starling.sources.git.refs import Version

__all__ = ["Keys", "verify"]

QUICK: Final = 60.0
_PGP: Final = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_SSH: Final = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+")
_GOOD: Final = re.compile(r"^\[GNUPG:\] GOODSIG ", re.MULTILINE)
_BAD: Final = re.compile(r"^\[GNUPG:\] (BADSIG|ERRSIG|EXPSIG|EXPKEYSIG|REVKEYSIG|NO_PUBKEY|KEYREVOKED)\b", re.MULTILINE)


class Keys(msgspec.Struct, frozen=True):
    """Public keys: of gpg as armoured blocks, of ssh as lines of an `authorized_keys` or `allowed_signers` file."""

    pgp: tuple[str, ...] = ()
    ssh: tuple[str, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Keys":
        """Keys from texts, such as a Secret's values; InputError for one that has none."""
        pgp: list[str] = []
        ssh: list[str] = []
        for text in texts:
            if _PGP in text:
                pgp.append(text)
                continue
            lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
            if not lines or not all(_SSH.search(line) for line in lines):
                raise InputError(
                    "one of the keys to verify with is neither an armoured gpg key nor an ssh public key",
                    hint="gpg --armor --export KEY prints one, the other is what ssh-keygen writes to a .pub file",
                )
            ssh += lines
        return cls(tuple(pgp), tuple(ssh))


async def verify(mirror: Mirror, version: Version, keys: Keys) -> None:
    """NotSigned unless one of the keys has signed what the version's ref names."""
    kind = "tag" if version.is_tag_object else "commit"
    what = f"{mirror.url}: tag {version.name}" if version.is_tag_object else f"{mirror.url}: commit {version.commit}"
    content = await mirror.object(kind, version.named)
    head = content.partition(b"\n\n")[0]
    if version.is_tag_object and f"\ntag {version.name}\n".encode() not in head + b"\n":
        raise NotSigned(f"{what} is another tag, put under this name")
    signature = content if version.is_tag_object else head
    if b"-----BEGIN PGP SIGNATURE-----" in signature:
        await _verify_pgp(mirror, kind, version.named, keys.pgp, what)
    elif b"-----BEGIN SSH SIGNATURE-----" in signature:
        await _verify_ssh(mirror, kind, version.named, keys.ssh, what)
    else:
        raise NotSigned(f"{what} isn't signed", hint=f"git {kind} -S signs; or leave verify out of the Source")


async def _verify_pgp(mirror: Mirror, kind: str, object_id: str, keys: Sequence[str], what: str) -> None:
    with tempfile.TemporaryDirectory(prefix="starling-gpg-") as home:
        environment = {**LOCALLY.environment, "GNUPGHOME": home}
        for key in keys:
            command = ("gpg", "--batch", "--quiet", "--no-autostart", "--import")
            done = await run(*command, environment=environment, within=QUICK, feed=key.encode())
            if done.code != 0:
                raise InputError(f"a gpg key to verify with can't be read: {done.complaints.strip()[-300:]}")
        said = await _ask_git(mirror, (), kind, object_id, environment)
        if said.code != 0 or not _GOOD.search(said.complaints) or _BAD.search(said.complaints):
            raise NotSigned(f"{what} isn't signed by any of the given keys{_why(said.complaints)}")


def _why(status: str) -> str:
    reasons = {
        "BADSIG": "the signature doesn't fit the content",
        "EXPKEYSIG": "the key has expired",
        "REVKEYSIG": "the key was revoked",
        "EXPSIG": "the signature has expired",
        "NO_PUBKEY": "it is another's signature",
    }
    found = next((words for word, words in reasons.items() if f"[GNUPG:] {word} " in status), "")
    return f": {found}" if found else ""


async def _verify_ssh(mirror: Mirror, kind: str, object_id: str, keys: Sequence[str], what: str) -> None:
    with tempfile.TemporaryDirectory(prefix="starling-ssh-") as folder:
        signers = Path(folder) / "allowed_signers"
        write_private(signers, "".join(f"{_signer(line)}\n" for line in keys))
        options = ("-c", f"gpg.ssh.allowedSignersFile={signers}")
        done = await _ask_git(mirror, options, kind, object_id, LOCALLY.environment)
        if done.code != 0 or not re.search(r'^Good "git" signature for ', done.complaints, re.MULTILINE):
            raise NotSigned(f"{what} isn't signed by any of the given keys")


def _signer(line: str) -> str:
    """A line of allowed_signers: whoever has the key may be anyone."""
    return f"* {line}" if _SSH.match(line) else line


async def _ask_git(
    mirror: Mirror, options: Sequence[str], kind: str, object_id: str, environment: Mapping[str, str]
) -> Finished:
    command = ("git", *options, f"verify-{kind}", "--raw", object_id)
    return await run(*command, environment=environment, cwd=mirror.folder, within=QUICK)
