"""Who we are to a git server, and whom we trust: written into files that only we can read, for one exchange."""

import base64
import ipaddress
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import quote, urlsplit

import msgspec

from starling.errors import InputError
from starling.files import write_private
from starling.objects import digest
from starling.sources.git.url import GitUrl

__all__ = ["ANONYMOUS", "Credentials", "configuration"]


class Credentials(msgspec.Struct, frozen=True):
    """As a Source's Secret has them: user name and password, or a token, or an ssh identity; and a CA for either.

    Never shown: neither in a repr nor in an error.
    """

    username: str = ""
    password: str = ""
    bearer_token: str = ""
    identity: str = ""
    known_hosts: str = ""
    ca: str = ""

    KEYS: ClassVar[Mapping[str, str]] = {
        "username": "username",
        "password": "password",
        "bearerToken": "bearer_token",
        "identity": "identity",
        "known_hosts": "known_hosts",
        "ca.crt": "ca",
    }
    """What a Secret calls them."""

    @classmethod
    def from_secret(cls, data: Mapping[str, bytes]) -> "Credentials":
        """Of a Secret's decoded data; other keys are none of our business."""
        try:
            return cls(**{field: data[name].decode() for name, field in cls.KEYS.items() if name in data})
        except UnicodeDecodeError as error:
            raise InputError("a value among the git credentials is no text") from error

    def __repr__(self) -> str:
        given = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"Credentials({', '.join(f'{name}=…' for name in given)})"

    @property
    def fingerprint(self) -> str:
        """The same for the same credentials, and of no use to who doesn't have them."""
        return digest(msgspec.structs.asdict(self))

    @property
    def sent_username(self) -> str:
        """Who we are along with a password; servers that go by the password alone take any name, but not none."""
        return self.username or "git"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may never be repeated, in the forms that a tool might show."""
        basic = base64.b64encode(f"{self.sent_username}:{self.password}".encode()).decode() if self.password else ""
        texts = (self.password, quote(self.password, safe=""), self.bearer_token, basic)
        return tuple(sorted({text for text in texts if text}, key=len, reverse=True))

    def check(self, url: GitUrl) -> None:
        """InputError if they are of no use for this address."""
        if url.scheme == "ssh":
            if not self.identity or not self.known_hosts:
                missing = "identity" if not self.identity else "known_hosts"
                raise InputError(
                    f"{url}: ssh needs a key (identity) and the host's (known_hosts); {missing} is missing",
                    hint=f"ssh-keyscan {url.host.partition(':')[0]} prints its keys: compare them with its owner's",
                )
        elif self.bearer_token and (self.username or self.password):
            raise InputError(f"{url}: a bearerToken, or username and password, not both")
        elif self.username and not self.password:
            raise InputError(f"{url}: there is a username without a password")
        if any(
            "\n" in text or "\r" in text or "\0" in text for text in (self.username, self.password, self.bearer_token)
        ):
            raise InputError(f"{url}: a line break in username, password or bearerToken", hint="echo adds one: echo -n")
        if url.scheme == "http" and (self.password or self.bearer_token) and not _is_loopback(url.host):
            raise InputError(f"{url}: credentials aren't sent over plain http", hint="https://")


ANONYMOUS: Final = Credentials()


def configuration(url: GitUrl, credentials: Credentials, folder: Path) -> str:
    """The text of a git configuration for this address and nobody else's; files it names are written to `folder`."""
    sections: list[tuple[str, dict[str, str]]] = [
        ("protocol", {"allow": "never"}),
        (f'protocol "{url.scheme}"', {"allow": "always"}),
        ("core", {"hooksPath": "/dev/null", "fsmonitor": "false", "askPass": "true"}),
        ("gc", {"auto": "0"}),
        ("maintenance", {"auto": "false"}),
        ("credential", {"helper": ""}),
        # Files that were left out are the server's to give; without this, git takes a mirror for a broken one.
        ('remote "origin"', {"url": url.normal, "promisor": "true", "partialclonefilter": "blob:none"}),
        ("http", {"followRedirects": "initial", "sslVerify": "true", "lowSpeedLimit": "100", "lowSpeedTime": "60"}),
    ]
    where = f"{url.scheme}://{url.host}"
    if credentials.ca:
        write_private(folder / "ca.crt", credentials.ca)
        sections.append((f'http "{where}"', {"sslCAInfo": str(folder / "ca.crt")}))
    if credentials.bearer_token:
        # A header goes along wherever a redirection leads: so none is followed.
        header = f"Authorization: Bearer {credentials.bearer_token}"
        sections.append((f'http "{where}"', {"extraHeader": header, "followRedirects": "false"}))
    elif credentials.password:
        user, password = quote(credentials.sent_username, safe=""), quote(credentials.password, safe="")
        write_private(folder / "credentials", f"{url.scheme}://{user}:{password}@{url.host}\n")
        store = f"store --file={shlex.quote(str(folder / 'credentials'))}"
        sections.append((f'credential "{where}"', {"helper": store}))
    if url.scheme == "file":
        # Root in a container reads what belongs to others, and has no configuration that we would heed.
        sections.append(("safe", {"directory": "*"}))
    if url.scheme == "ssh":
        sections.append(("core", {"sshCommand": _ssh(credentials, folder)}))
    return "".join(_section(name, values) for name, values in sections)


def _ssh(credentials: Credentials, folder: Path) -> str:
    write_private(folder / "identity", credentials.identity.rstrip("\n") + "\n")
    write_private(folder / "known_hosts", credentials.known_hosts.rstrip("\n") + "\n")
    options = {
        "IdentityFile": folder / "identity",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": folder / "known_hosts",
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "BatchMode": "yes",
        "PreferredAuthentications": "publickey",
        "ConnectTimeout": "15",
        "ServerAliveInterval": "15",
        "LogLevel": "ERROR",
    }
    return " ".join(
        ["ssh", "-F", "/dev/null", *(f"-o {name}={shlex.quote(str(value))}" for name, value in options.items())]
    )


def _section(name: str, values: Mapping[str, str]) -> str:
    lines = (f'\t{key} = "{_escaped(value)}"\n' for key, value in values.items())
    return f"[{name}]\n{''.join(lines)}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _is_loopback(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
