"""Kubeconfigs of the user's own, made to stand alone: what is in files comes in, what needs this machine is refused.

A kubeconfig that goes into a Secret is used elsewhere, where neither its files nor its programs are.
"""

import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from starling.errors import InputError
from starling.objects import load_documents

__all__ = ["Given", "find"]

_FILES: Final = ("certificate-authority", "client-certificate", "client-key")
"""Fields that name a file; its content belongs in the field that ends in -data."""

_PROGRAMS: Final = ("exec", "auth-provider")
_IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")


class Section(NamedTuple):
    """A file's content, or a cluster, user or context of it, and the folder that relative paths in it start from."""

    content: Mapping[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class Given:
    """What one context of the user's kubeconfig says; `origin` names it in errors."""

    origin: str
    _cluster: Section
    _user: Section

    def cluster(self) -> dict[str, Any]:
        """Where the cluster is and how it proves itself, without files."""
        if self._cluster.content.get("insecure-skip-tls-verify"):
            raise InputError(
                f"{self.origin}: insecure-skip-tls-verify is set; Starling always verifies",
                hint="put the cluster's CA in certificate-authority-data",
            )
        if not self._cluster.content.get("server"):
            raise InputError(f"{self.origin}: it doesn't say at which server the cluster is")
        return self._inlined(self._cluster)

    def user(self) -> dict[str, Any]:
        """Who we are there, without files or programs."""
        for field in (*_PROGRAMS, *_IMPERSONATION):
            if self._user.content.get(field):
                raise InputError(
                    f"{self.origin}: its user needs {field!r}, which works on this machine alone",
                    hint="make a service account with a token there, and a kubeconfig with that token",
                )
        user = self._inlined(self._user)
        if (file := user.pop("tokenFile", None)) is not None:
            user["token"] = self._read(self._user.folder / file).decode().strip()
        return user

    def standalone(self) -> dict[str, Any]:
        """A kubeconfig of this context alone that can be used anywhere."""
        name = "cluster"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": self.cluster()}],
            "users": [{"name": name, "user": self.user()}],
        }

    def _inlined(self, section: Section) -> dict[str, Any]:
        content = {name: value for name, value in section.content.items() if name not in _FILES}
        for field in _FILES:
            if (file := section.content.get(field)) and not content.get(f"{field}-data"):
                raw = self._read(section.folder / file)
                content[f"{field}-data"] = base64.b64encode(raw).decode()
        return content

    def _read(self, file: Path) -> bytes:
        try:
            return file.read_bytes()
        except OSError as error:
            raise InputError(f"{self.origin}: {file}: {error.strerror}") from error


def find(path: Path | None, context: str | None = None) -> Given:
    """A context of the given file, else of what kubectl would use; without a name, the current one."""
    places = str(path or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    parts = list(_parts(places.split(os.pathsep) if path is None else [places]))
    if not parts:
        raise InputError(f"no kubeconfig at {places}", hint="give a file, or set KUBECONFIG")
    current = (part.content.get("current-context") for part in parts)
    name = context or next((each for each in current if each), "")
    chosen = _section(parts, "context", name)
    if chosen is None:
        names = ", ".join(str(each.get("name")) for part in parts for each in _listed(part, "context"))
        said = f"has no context {name}" if name else "has no current context"
        raise InputError(f"kubeconfig {places} {said}", hint=f"it has: {names}" if names else None)
    cluster = _section(parts, "cluster", chosen.content.get("cluster"))
    user = _section(parts, "user", chosen.content.get("user"))
    if cluster is None:
        raise InputError(f"kubeconfig {places}: context {name} names a cluster that isn't there")
    return Given(f"kubeconfig {places}", cluster, user or Section({}, cluster.folder))


def _parts(places: Sequence[str]) -> Iterator[Section]:
    for place in (Path(each).expanduser() for each in places if each):
        if not place.exists():
            continue
        documents = load_documents(place.read_bytes(), str(place))
        if not documents:
            continue
        if not isinstance(documents[0].value, dict):
            raise InputError(f"{place} is no kubeconfig")
        yield Section(documents[0].value, place.absolute().parent)


def _section(parts: Sequence[Section], kind: str, name: object) -> Section | None:
    """The first of that name, as kubectl merges files."""
    for part in parts:
        for each in _listed(part, kind):
            if name and each.get("name") == name:
                return Section(each.get(kind) or {}, part.folder)
    return None


def _listed(part: Section, kind: str) -> list[Mapping[str, Any]]:
    found = part.content.get(f"{kind}s") or []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
