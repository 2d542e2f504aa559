"""Running git: an environment of our own, nothing of the machine's configuration, and errors as types."""

import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from starling.errors import InputError, StarlingError
from starling.files import write_private
from starling.programs import Finished, OutputTooLong, run
from starling.sources.errors import (
    AccessDenied,
    NoSuchRepository,
    NoSuchVersion,
    Refused,
    SourceError,
    Unreachable,
    UntrustedHost,
)
from starling.sources.git.credentials import ANONYMOUS, Credentials, configuration
from starling.sources.git.url import GitUrl

__all__ = ["LOCALLY", "Git", "exchange"]

_FROM_THE_MACHINE: Final = ("PATH", "TMPDIR", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
_LONGEST: Final = 1 << 31


class Git(msgspec.Struct, frozen=True):
    """Git for one address, as whom its `environment` says; without an address, for what is on this machine."""

    environment: Mapping[str, str]
    url: GitUrl | None = None
    secrets: tuple[str, ...] = ()

    async def run(
        self, *arguments: str, folder: Path, within: float, feed: bytes | None = None, codes: tuple[int, ...] = (0,)
    ) -> Finished:
        """What git wrote. SourceError for any exit code but these, with what git said, less what is secret."""
        command = ("git", "--no-pager", *arguments)
        try:
            done = await run(
                *command, environment=self.environment, cwd=folder, within=within, feed=feed, longest=_LONGEST
            )
        except TimeoutError as error:
            where = self.url.text if self.url is not None else "git"
            raise Unreachable(f"{where}: git {arguments[0]} took longer than {within:.0f} s") from error
        except OutputTooLong as error:
            raise Refused(f"{self.url or 'git'}: git {arguments[0]} doesn't come to an end") from error
        except FileNotFoundError as error:
            raise InputError("there is no git on this machine", hint="install git 2.36 or newer") from error
        if done.code not in codes:
            raise self._error(arguments[0], done)
        return done

    def _error(self, verb: str, done: Finished) -> StarlingError:
        said = done.complaints
        for secret in self.secrets:
            said = said.replace(secret, "***")
        words = _last_words(said) or f"git {verb} ended with {done.code}"
        where = f"{self.url}: " if self.url is not None else f"git {verb}: "
        for pattern, kind, hint in _MEANINGS:
            if pattern.search(said):
                return kind(f"{where}{words}", hint=hint)
        return SourceError(f"{where}{words}")


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
        r"error: 5\d\d",
        "operation too slow",
        "temporary failure",
        "empty reply",
    ),
)


def _last_words(said: str) -> str:
    """Of what git said the lines that tell what was wrong, on one line."""
    lines = [line.strip() for line in said.splitlines()]
    telling = [
        line
        for line in lines
        if line and not line.startswith(("hint:", "warning:", "Please make sure", "and the repo"))
    ]
    chosen = [
        line.removeprefix("fatal: ").removeprefix("error: ") for line in telling if ":" in line or line is telling[-1]
    ]
    return "; ".join(dict.fromkeys(chosen[-3:]))[:600]


@asynccontextmanager
async def exchange(url: GitUrl, credentials: Credentials = ANONYMOUS) -> AsyncIterator[Git]:
    """Git for talking to one server: what it needs stands in a private folder that goes when the block ends."""
    credentials.check(url)
    with tempfile.TemporaryDirectory(prefix="starling-git-") as name:
        folder = Path(name)
        write_private(folder / "config", configuration(url, credentials, folder))
        yield Git(_environment(folder, folder / "config"), url, credentials.secrets)


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


LOCALLY: Final = Git({**_environment("/nonexistent", "/dev/null"), "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"})
"""For what needs no server: no protocol at all is allowed, so nothing that is missing is fetched behind our back."""
