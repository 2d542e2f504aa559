"""Sources: from a repository and a version policy to the files of one exact version.

    store = ArtifactStore(Path("artifacts"))
    sources = GitSources(Path("sources"), store)
    artifact = await sources.fetch(GitSource(url, Ref(semver=">=1.2.0 <2")), credentials)
    path = await store.checkout(artifact.digest)

The nouns:

    GitSource      a repository, which version of it, whose signatures it needs, what to leave out
    Version        what that is now: a ref, a commit
    Artifact       the files of one version: revision, digest, size
    ArtifactStore  all files by their content: the same tree has the same digest on any machine
    Credentials    who we are to a server, and whom we trust

How data goes through: a look at the server (`git ls-remote`) tells the Version; if we have no artifact of it, one fetch
into the mirror that all who use the repository share brings what is new; the files that the store lacks are written to
it, and a listing of them is the Artifact. `checkout` makes a folder of it, verified. `versions` picks from a range,
`ignore` reads patterns, both pure. `follow` does all that again and again.

What can go wrong is in `errors`; whatever it is, the last good artifact stays.
"""

from starling.sources.errors import (
    AccessDenied,
    Damaged,
    Incomplete,
    NoSuchRepository,
    NoSuchVersion,
    NotSigned,
    NotStored,
    Refused,
    SourceError,
    StoreError,
    Unreachable,
    UntrustedHost,
)
from starling.sources.following import follow
from starling.sources.git import (
    ANONYMOUS,
    Credentials,
    FetchSettings,
    GitSource,
    GitSources,
    Keys,
    Ref,
    Version,
)
from starling.sources.store import Artifact, ArtifactStore

__all__ = [
    "ANONYMOUS",
    "AccessDenied",
    "Artifact",
    "ArtifactStore",
    "Credentials",
    "Damaged",
    "FetchSettings",
    "GitSource",
    "GitSources",
    "Incomplete",
    "Keys",
    "NoSuchRepository",
    "NoSuchVersion",
    "NotSigned",
    "NotStored",
    "Ref",
    "Refused",
    "SourceError",
    "StoreError",
    "Unreachable",
    "UntrustedHost",
    "Version",
    "follow",
]
