"""Addresses of git repositories: which we take, and which are the same repository."""

import posixpath
import re
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from starling.errors import InputError

__all__ = ["GitUrl", "Scheme", "parse_url"]

Scheme = Literal["https", "http", "ssh", "file"]
SCHEMES: Final[tuple[Scheme, ...]] = get_args(Scheme)

_SCP: Final = re.compile(
    r"(?P<user>[A-Za-z0-9_][\w.-]*)@(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*):(?P<path>[^\s:-]\S*)", re.ASCII
)
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]")
_USER: Final = re.compile(r"[A-Za-z0-9_][\w.-]*", re.ASCII)
_AT: Final = re.compile("@|%40")
_PLAIN_USER: Final = re.compile(r"(?:ssh://)?[\w.-]+@[^@%\s]*", re.ASCII)
_PORTS: Final = {"https": 443, "http": 80, "ssh": 22}


class GitUrl(msgspec.Struct, frozen=True):
    """A repository's address. `host` is in lower case and has the port if it isn't the scheme's own.

    `path` starts with a slash, except in user@host:path, where it is relative to what that server takes for home.
    """

    text: str
    scheme: Scheme
    host: str
    path: str
    user: str = ""

    @property
    def normal(self) -> str:
        """The address as git is to be given it: git looks for credentials by the very spelling of a host.

        What is relative stays so: not all servers know that ssh://…/~/path is the same.
        """
        return self._at(self.path)

    @property
    def repository(self) -> str:
        """The same text for every spelling of one address."""
        return self.normal.rstrip("/")

    def joined(self, relative: str) -> "GitUrl":
        """The address that a submodule's relative one (`../other.git`) means here."""
        path = posixpath.normpath(f"{self.path.rstrip('/')}/{relative}")
        if path in ("/", ".", "..") or path.startswith("../"):
            raise InputError(f"{relative} leads out of {self.text}")
        return parse_url(self._at(path))

    def _at(self, path: str) -> str:
        who = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{who}{self.host}{path}" if path.startswith("/") else f"{who}{self.host}:{path}"

    def __str__(self) -> str:
        return self.text


def parse_url(text: str) -> GitUrl:
    """The address, if it is one that we take: InputError for programs (`ext::…`), options, passwords in it."""
    if any(character.isspace() or not character.isprintable() for character in text):
        raise _refused(text, "there are spaces or control characters in it")
    if scp := _SCP.fullmatch(text):
        return _scp(text, scp["user"], scp["host"], scp["path"])
    scheme = next((each for each in SCHEMES if text.startswith(f"{each}://")), None)
    if scheme is None:
        raise _refused(text, "it is none of https://, http://, ssh://, file:/// and user@host:path")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # which quotes what may be a password
        raise _refused(text, "its host or port isn't one", show=False) from None
    if parts.query or parts.fragment:
        raise _refused(text, "a ? or # has no meaning in it", show=False)
    if scheme == "file":
        return _file(text, parts.netloc, parts.path)
    if parts.password is not None or (parts.username is not None and scheme != "ssh"):
        raise _refused(text, "user and password belong in the credentials", show=False)
    host, user = parts.netloc.rpartition("@")[2].removesuffix(f":{port}"), parts.username or ""
    if not _HOST.fullmatch(host) or (user and not _USER.fullmatch(user)):
        raise _refused(text, "its host or user isn't one")
    if not parts.path.strip("/"):
        raise _refused(text, "it names no repository, only a host")
    place = host.lower() if port in (None, _PORTS[scheme]) else f"{host.lower()}:{port}"
    return GitUrl(text, scheme, place, parts.path, user)


def _scp(text: str, user: str, host: str, path: str) -> GitUrl:
    if not path.strip("/"):
        raise _refused(text, "it names no repository, only a host")
    # Someone's home by name is the same in either form.
    return GitUrl(text, "ssh", host.lower(), f"/{path}" if path.startswith("~") else path, user)


def _file(text: str, host: str, path: str) -> GitUrl:
    if host or not path.strip("/"):
        raise _refused(text, "a file URL is file:/// and an absolute path")
    return GitUrl(text, "file", "", path)


def _refused(text: str, why: str, *, show: bool = True) -> InputError:
    """What may hold a password isn't repeated: nothing with an @ but after a plain user's name."""
    show = show and (not _AT.search(text) or _PLAIN_USER.fullmatch(text) is not None)
    return InputError(
        f"{text!r} is no address of a git repository: {why}" if show else f"the git repository's address: {why}",
        hint="such as https://git.example/team/app.git or git@git.example:team/app.git",
    )
