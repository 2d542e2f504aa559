"""Git repositories, by the git command.

    url          which addresses we take, and which are the same repository
    credentials  who we are and whom we trust, as a configuration in private files
    command      running git with nothing of the machine's own configuration; its errors as types
    refs         pure: what a server has → the version that is wanted
    mirror       one bare, shallow clone for all who use a repository
    blobs        what git calls a file's content, and what the store calls it
    files        a commit's files → entries in the store
    verify       signatures, against given keys only
    fetch        all of it together: GitSources

Nothing but `command`, `mirror` and `verify` runs git; nothing but `refs` decides which version is meant.
"""

from starling.sources.git.credentials import ANONYMOUS, Credentials
from starling.sources.git.fetch import FetchSettings, GitSource, GitSources
from starling.sources.git.refs import Ref, Version
from starling.sources.git.url import parse_url
from starling.sources.git.verify import Keys

__all__ = [
    "ANONYMOUS",
    "Credentials",
    "FetchSettings",
    "GitSource",
    "GitSources",
    "Keys",
    "Ref",
    "Version",
    "parse_url",
]
