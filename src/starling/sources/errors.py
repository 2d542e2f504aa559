"""What can go wrong between a Source and its files.

    SourceError
    ├── Unreachable      the host doesn't answer, or not in time
    ├── AccessDenied     it doesn't know these credentials, or wants some
    ├── UntrustedHost    its certificate or host key isn't one that we were told to trust
    ├── NoSuchRepository there is none at this address, or none that these credentials may see
    ├── NoSuchVersion    the branch, tag or commit isn't there, or no tag is in the range
    ├── NotSigned        none of the given keys has signed what the ref names
    ├── MirrorBroken     the copy of the repository on this machine can't be used
    ├── Refused          the content is such that we don't touch it: links out, bombs, impossible names
    └── StoreError       the artifact store can't do what is asked
        ├── NotStored    … there is no such artifact, or not any more
        ├── Incomplete   … files of a tree aren't there
        └── Damaged      … a file isn't what was put in

Whichever it is, the last good artifact stays in use.
"""

from starling.errors import StarlingError

__all__ = [
    "AccessDenied",
    "Damaged",
    "Incomplete",
    "MirrorBroken",
    "NoSuchRepository",
    "NoSuchVersion",
    "NotSigned",
    "NotStored",
    "Refused",
    "SourceError",
    "StoreError",
    "Unreachable",
    "UntrustedHost",
]


class SourceError(StarlingError):
    """A Source has no new version for us; the last good one stays as it is."""

    reason = "FetchFailed"


class Unreachable(SourceError):
    """The host doesn't answer."""

    reason = "Unreachable"


class AccessDenied(SourceError):
    """The host doesn't let us in."""

    reason = "AccessDenied"


class UntrustedHost(SourceError):
    """The host isn't known to be the one that is meant."""

    reason = "UntrustedHost"


class NoSuchRepository(SourceError):
    """There is no repository at the address."""

    reason = "NoSuchRepository"


class NoSuchVersion(SourceError):
    """The repository hasn't the version that is asked for."""

    reason = "NoSuchVersion"


class NotSigned(SourceError):
    """What the ref names isn't signed by any of the given keys."""

    reason = "NotSigned"


class MirrorBroken(SourceError):
    """The copy of a repository on this machine can't be used; it is made anew, once, before anyone hears of it."""

    reason = "MirrorBroken"


class Refused(SourceError):
    """The content is refused."""

    reason = "Refused"


class StoreError(SourceError):
    """The store can't do what is asked."""

    reason = "StoreFailed"


class NotStored(StoreError):
    """There is no such artifact, or not any more."""

    reason = "ArtifactNotFound"


class Incomplete(StoreError):
    """A tree names files whose content isn't there: `missing`, by digest. Add these, and it can be put."""

    reason = "ArtifactIncomplete"

    def __init__(self, message: str, missing: frozenset[str], *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class Damaged(StoreError):
    """A stored file isn't what was put in; all that needs it was taken away, so that fetching again brings it back."""

    reason = "ArtifactDamaged"
