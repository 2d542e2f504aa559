"""Which version a repository has: the pure part, from what `git ls-remote` prints to one commit."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from starling.errors import InputError
from starling.sources.errors import NoSuchVersion, Refused
from starling.versions import best

__all__ = ["Ref", "Version", "choose", "parse_listing", "patterns"]

HEADS: Final = "refs/heads/"
TAGS: Final = "refs/tags/"
PEELED: Final = "^{}"
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAMES_SHOWN: Final = 5


class Ref(msgspec.Struct, frozen=True):
    """Which version is wanted: exactly one of these."""

    branch: str = ""
    tag: str = ""
    semver: str = ""
    commit: str = ""

    def __post_init__(self) -> None:
        given = [name for name in self.__struct_fields__ if getattr(self, name)]
        if len(given) != 1:
            raise InputError(f"exactly one of branch, tag, semver and commit, not {' and '.join(given) or 'none'}")
        if self.commit and not _OBJECT.fullmatch(self.commit):
            raise InputError(f"{self.commit!r} is no full commit id", hint="40 or 64 lower-case hex digits")
        if (name := self.branch or self.tag) and not _is_name(name):
            raise InputError(f"{name!r} can't be the name of a {'branch' if self.branch else 'tag'}")

    def __str__(self) -> str:
        return next(f"{name} {getattr(self, name)}" for name in self.__struct_fields__ if getattr(self, name))


class Version(msgspec.Struct, frozen=True):
    """One exact version: the ref that led to it ("" for none), what that names (maybe a tag object), and the commit."""

    ref: str
    named: str
    commit: str

    @property
    def name(self) -> str:
        """The branch or tag, without what comes before its name."""
        return self.ref.split("/", 2)[2] if self.ref else ""

    @property
    def revision(self) -> str:
        """As people read it: `main@sha1:…`, `v1.2.3@sha1:…`, or `sha1:…` where only a commit was asked for."""
        exact = f"sha{1 if len(self.commit) == 40 else 256}:{self.commit}"
        return f"{self.name}@{exact}" if self.name else exact

    @property
    def is_tag(self) -> bool:
        """Whether a tag led to it."""
        return self.ref.startswith(TAGS)

    @property
    def is_tag_object(self) -> bool:
        """Whether the ref names a tag object, which has a message and maybe a signature of its own."""
        return self.named != self.commit


def patterns(ref: Ref) -> tuple[str, ...]:
    """What to ask the server for: no more than it takes to know."""
    if ref.branch:
        return (HEADS + ref.branch,)
    if ref.tag:
        return (TAGS + ref.tag, TAGS + ref.tag + PEELED)
    return (f"{TAGS}*",) if ref.semver else ("HEAD",)


def parse_listing(output: bytes) -> dict[str, str]:
    """The refs by name, as `git ls-remote` prints them; what isn't such a line is refused."""
    found = {}
    for line in output.decode(errors="surrogateescape").split("\n"):
        if not line:
            continue
        commit, tab, name = line.partition("\t")
        if not tab or not _OBJECT.fullmatch(commit):
            raise Refused(f"the server's list of refs has a line that isn't one: {line[:80]!r}")
        found[name] = commit
    return found


def choose(listing: Mapping[str, str], ref: Ref) -> Version:
    """The version that is wanted, among those that are there; NoSuchVersion if it isn't."""
    if ref.commit:
        return Version("", ref.commit, ref.commit)
    if ref.branch:
        if (commit := listing.get(HEADS + ref.branch)) is None:
            raise NoSuchVersion(f"there is no branch {ref.branch}{_instead(listing, HEADS)}")
        return Version(HEADS + ref.branch, commit, commit)
    tags = {name.removeprefix(TAGS) for name in listing if name.startswith(TAGS) and not name.endswith(PEELED)}
    if ref.tag:
        if ref.tag not in tags:
            raise NoSuchVersion(f"there is no tag {ref.tag}{_instead(listing, TAGS)}")
        return _tagged(listing, ref.tag)
    if (tag := best(tags, ref.semver)) is None:
        raise NoSuchVersion(f"none of {len(tags)} tags is a version in {ref.semver}{_instead(listing, TAGS)}")
    return _tagged(listing, tag)


def _tagged(listing: Mapping[str, str], tag: str) -> Version:
    named = listing[TAGS + tag]
    return Version(TAGS + tag, named, listing.get(TAGS + tag + PEELED, named))


def _instead(listing: Mapping[str, str], prefix: str) -> str:
    """Some of what there is instead."""
    names = [name.removeprefix(prefix) for name in listing if name.startswith(prefix) and not name.endswith(PEELED)]
    if not names:
        return ""
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return f"; there are {', '.join(sorted(names, reverse=True)[:_NAMES_SHOWN])}{more}"


def _is_name(name: str) -> bool:
    """What git allows as the name of a branch or tag; nothing that it could take for an option or a pattern."""
    parts = name.split("/")
    return (
        not re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{", name)
        and not name.startswith("-")
        and name not in ("@", "HEAD")
        and not name.endswith(".")
        and all(part and not part.startswith(".") and not part.endswith(".lock") for part in parts)
    )
