"""Running git: an environment of our own, nothing of the machine's configuration, and errors as types."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from starling.errors import InputError, StarlingError
from starling.files import private_folder, write_private
from starling.programs import Finished, OutputTooLong, run
from starling.sources.errors import (
    AccessDenied,
    MirrorBroken,
    NoSuchRepository,
    NoSuchVersion,
    Refused,
    SourceError,
    Unreachable,
    UntrustedHost,
)
from starling.sources.git.credentials import Credentials, configuration
from starling.sources.git.url import GitUrl

__all__ = ["Git", "exchange", "locally", "sweep"]

_FROM_THE_MACHINE: Final = ("PATH", "TMPDIR", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
LONGEST: Final = 64 << 20
"""Of what git may write: the names of half a million refs or files."""


class Git(msgspec.Struct, frozen=True):
    """Git for one repository, as whom its `environment` says; `local`: for its mirror, with no server in sight."""

    environment: Mapping[str, str]
    url: GitUrl
    secrets: tuple[str, ...] = ()
    local: bool = False

    async def run(
        self, *arguments: str, folder: Path, within: float, feed: bytes | None = None, longest: int = LONGEST
    ) -> Finished:
        """What git wrote. SourceError if it fails, with what git said, less what is secret."""
        command = ("git", "--no-pager", *arguments)
        verb = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
        try:
            done = await run(
                *command, environment=self.environment, cwd=folder, within=within, feed=feed, longest=longest
            )
        except TimeoutError as error:
            raise Unreachable(f"{self.url}: git {verb} took longer than {within:.0f} s") from error
        except OutputTooLong as error:
            raise Refused(f"{self.url}: git {verb} doesn't come to an end") from error
        except FileNotFoundError as error:
            if not folder.exists():
                raise MirrorBroken(f"{self.url}: the copy of the repository on this machine is gone") from error
            raise InputError("there is no git on this machine", hint="install git 2.36 or newer") from error
        if done.code != 0:
            raise self._error(verb, done)
        return done

    def _error(self, verb: str, done: Finished) -> StarlingError:
        said = done.complaints
        for secret in self.secrets:
            said = said.replace(secret, "***")
        words = f"{self.url}: {_last_words(said) or f'git {verb} ended with {done.code}'}"
        if self.local:
            return MirrorBroken(words)
        # What the server says is shown, but doesn't decide what we take it for.
        ours = "\n".join(line for line in said.splitlines() if not line.startswith("remote:"))
        for pattern, kind, hint in _MEANINGS:
            if pattern.search(ours):
                return kind(words, hint=hint)
        return SourceError(words)


_Meaning = tuple[re.Pattern[str], type[SourceError], str | None]


def _meaning(kind: type[SourceError], hint: str | None, *words: str) -> _Meaning:
    return re.compile("|".join(words), re.IGNORECASE), kind, hint


_MEANINGS: Final = (
    _meaning(
        UntrustedHost,
        "known_hosts must have the key of this very host and port; ask its owner for it, don't take what it shows",
        "host key verification failed",
        "no .* host key is known",
        "remote host identification",
    ),
    _meaning(
        UntrustedHost,
        "a private authority's certificate belongs in the credentials as ca.crt",
        "certificate problem",
        "certificate verif",
        "ssl certificate",
        "unable to get local issuer",
    ),
    _meaning(
        AccessDenied,
        "the identity must be a private key in OpenSSH or PEM form, without a passphrase",
        "error in libcrypto",
        "load key .*: (error|invalid|incorrect)",
    ),
    _meaning(
        AccessDenied,
        "are these the credentials for this repository, and do they still hold?",
        "authentication failed",
        "could not read (username|password)",
        r"permission denied \(",
        "error: 40[13]",
        "access denied",
        "terminal prompts disabled",
    ),
    _meaning(
        SourceError,
        "the server sends us elsewhere, where a token isn't sent along: use the address that it names",
        "unable to update url base from redirection",
        r"error: 30\d",
    ),
    _meaning(
        NoSuchVersion,
        None,
        "not our ref",
        "couldn't find remote ref",
        "unadvertised object",
        "no such remote ref",
    ),
    _meaning(
        MirrorBroken,
        None,
        "bad object",
        "object file .* is empty",
        "corrupt",
        r"unable to create '.*\.lock'",
        r"not a git repository(: '?\.| \(or any)",
        "packfile .* cannot be accessed",
        "unable to read (tree|sha1|askpass response)",
        "shallow file has changed",
        "did not send all necessary objects",
    ),
    _meaning(
        NoSuchRepository,
        "is the address right? Some servers say so, too, if the credentials may not see it",
        "repository .*not found",
        "error: 404",
        "does not appear to be a git repository",
        "no such file or directory",
        "not a git repository",
        "repository not exported",
    ),
    _meaning(
        Unreachable,
        "is the address right, and the host up?",
        "could not resolve host",
        "name or service not known",
        "connection (refused|reset|closed)",
        "timed? ?out",
        "no route to host",
        "network is unreachable",
        "(failed|couldn't) to? ?connect",
        "early eof",
        "hung up",
        r"error: (429|5\d\d)",
        "operation too slow",
        "temporary failure",
        "empty reply",
    ),
)


def _last_words(said: str) -> str:
    """Of what git said the lines that tell what was wrong, on one line."""
    lines = [line.strip() for line in said.splitlines()]
    noise = ("hint:", "warning:", "Please make sure", "and the repo")
    telling = [line for line in lines if line and not line.startswith(noise)]
    chosen = [
        line.removeprefix("fatal: ").removeprefix("error: ") for line in telling if ":" in line or line is telling[-1]
    ]
    return "; ".join(dict.fromkeys(chosen[-3:]))[:600]


@asynccontextmanager
async def exchange(url: GitUrl, credentials: Credentials, scratch: Path) -> AsyncIterator[Git]:
    """Git for talking to one server: what it needs stands in a private folder that goes when the block ends.

    The folder is locked meanwhile, so that `sweep` finds those whose owners were killed.
    """
    credentials.check(url)
    folder = private_folder(scratch / secrets.token_hex(8))
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        write_private(folder / "config", configuration(url, credentials, folder))
        yield Git(_environment(folder, folder / "config"), url, credentials.secrets)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(scratch: Path) -> None:
    """Take away what killed processes left of their exchanges: there are credentials in it."""
    for folder in private_folder(scratch).iterdir():
        try:
            lock = os.open(folder, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (folder / "config").exists():  # else its owner may just be about to lock it
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(lock)


def locally(url: GitUrl) -> Git:
    """For what needs no server: no protocol is allowed, so nothing that is missing is fetched behind our back."""
    environment = _environment("/nonexistent", "/dev/null")
    return Git({**environment, "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}, url, local=True)


def _environment(home: Path | str, config: Path | str) -> dict[str, str]:
    """Nothing of the machine's or its user's git configuration, prompts, traces or agents."""
    kept = {name: os.environ[name] for name in _FROM_THE_MACHINE if name in os.environ}
    return {
        "PATH": os.defpath,
        **kept,
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }
