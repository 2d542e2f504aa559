"""Whether one of the given keys has signed what a ref names: git's own check, with these keys and no others.

A tag must be signed itself and say its own name: else someone who may push, and can't sign, could put an old signed
version under a new name. A branch's tip, or the commit that was asked for, must be signed as a commit.
"""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from starling.errors import InputError
from starling.files import write_private
from starling.programs import Finished, OutputTooLong, run
from starling.sources.errors import NotSigned
from starling.sources.git.command import locally
from starling.sources.git.mirror import Mirror
from starling.sources.git.refs import Version

__all__ = ["Keys", "verify"]

QUICK: Final = 60.0
_PGP: Final = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
_SSH: Final = re.compile(r"(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+")
LONGEST: Final = 1 << 20
_IN_HEADER: Final = re.compile(rb"^gpgsig(?:-sha256)? -----BEGIN (PGP|SSH) SIGNATURE-----$", re.MULTILINE)
_AT_END: Final = re.compile(rb"^-----BEGIN (PGP|SSH) SIGNATURE-----$", re.MULTILINE)
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
    what = f"{mirror.url}: tag {version.name}" if version.is_tag else f"{mirror.url}: commit {version.commit}"
    if version.is_tag and not version.is_tag_object:
        raise NotSigned(f"{what} isn't signed", hint="the tag itself must be: git tag -s; or follow a branch or commit")
    content = await mirror.object(kind, version.named)
    head, _, body = content.partition(b"\n\n")
    if version.is_tag_object and f"\ntag {version.name}\n".encode() not in head + b"\n":
        raise NotSigned(f"{what} is another tag, put under this name")
    match _signature(head, body, kind):
        case b"PGP":
            await _verify_pgp(mirror, kind, version.named, keys.pgp, what)
        case b"SSH":
            await _verify_ssh(mirror, kind, version.named, keys.ssh, what)
        case _:
            raise NotSigned(
                f"{what} isn't signed",
                hint=f"git {kind} -{'s' if kind == 'tag' else 'S'} signs it; or don't ask for signatures",
            )


def _signature(head: bytes, body: bytes, kind: str) -> bytes | None:
    """Which kind of signature an object has: a commit in its header, a tag at its end."""
    found = _IN_HEADER.search(head) if kind == "commit" else _AT_END.search(body)
    return found[1] if found is not None else None


async def _verify_pgp(mirror: Mirror, kind: str, object_id: str, keys: Sequence[str], what: str) -> None:
    with tempfile.TemporaryDirectory(prefix="starling-gpg-") as home:
        environment = {**locally(mirror.url).environment, "GNUPGHOME": home}
        for key in keys:
            command = ("gpg", "--batch", "--quiet", "--no-autostart", "--import")
            done = await _run(*command, environment=environment, feed=key.encode())
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
        done = await _ask_git(mirror, options, kind, object_id, locally(mirror.url).environment)
        if done.code != 0 or not re.search(r'^Good "git" signature for ', done.complaints, re.MULTILINE):
            raise NotSigned(f"{what} isn't signed by any of the given keys")


def _signer(line: str) -> str:
    """A line of allowed_signers: whoever has the key may be anyone."""
    return f"* {line}" if _SSH.match(line) else line


async def _ask_git(
    mirror: Mirror, options: Sequence[str], kind: str, object_id: str, environment: Mapping[str, str]
) -> Finished:
    command = ("git", *options, f"verify-{kind}", "--raw", object_id)
    return await _run(*command, environment=environment, cwd=mirror.folder)


async def _run(
    *command: str, environment: Mapping[str, str], cwd: Path | None = None, feed: bytes | None = None
) -> Finished:
    try:
        return await run(*command, environment=environment, cwd=cwd, feed=feed, within=QUICK, longest=LONGEST)
    except FileNotFoundError as error:
        raise InputError(f"there is no {command[0]} on this machine, which verifies signatures") from error
    except (TimeoutError, OutputTooLong) as error:
        raise NotSigned(f"{command[0]} doesn't come to an end with a signature") from error
