"""Source: what to sync, and which version of it. Git alone for now."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from starling.api.declaration import Column, Rule, checked, doc, exactly_one_of, kind, matching, rules
from starling.api.meta import Fields, ReconciledStatus, Resource
from starling.api.v1alpha1.fields import LocalSecretReference, PositiveDuration

__all__ = ["GitRef", "GitSource", "GitVerification", "Source", "SourceArtifact", "SourceSpec", "SourceStatus"]


# git runs programs for some URLs (ext::…) and takes those with a leading dash for options; a password or token in a
# URL would be there to read for everyone who may see the Source.
GitUrl = Annotated[
    str,
    Meta(min_length=1, max_length=2048),
    matching(
        r"^(https?://[A-Za-z0-9\[][^\s/@]*(/[^\s]*)?"
        r"|ssh://([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9\[][^\s/@]*/[^\s]+"
        r"|[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s:-][^\s]*"
        r"|file:///[^\s]+)$",
        "must be an https://, http://, ssh:// or file:/// URL or user@host:path, without spaces;"
        " no user in http and https URLs: credentials belong in secretRef",
    ),
]
# What `git check-ref-format --branch` allows, but for @ alone, which git reads as HEAD. Without \s and its kin, which
# mean more to Python, in which a test compares this with git, than to the API server.
_REF_CHARACTERS = r"[^\x00-\x20\x7f~^:?*\[\\/.]"
_REF_PART = rf"{_REF_CHARACTERS}+(\.{_REF_CHARACTERS}+)*"
GitRefName = Annotated[
    str,
    Meta(min_length=1, max_length=255),
    checked(
        Rule(
            rf"self.matches(r'^{_REF_PART}(\.?/{_REF_PART})*$')"
            r" && !self.matches(r'^-|^(@|HEAD)$|@\{|\.lock(/|$)')",
            "must be a name that git allows: no space, control character, .., // or @{ and none of ~^:?*[\\ in it,"
            " no - / or . at its start, no / or . at its end, no part of a path that starts with . or ends with .lock,"
            " and neither HEAD nor @",
        )
    ),
]
_VERSION = r"v?([0-9]+|[xX*])(\.([0-9]+|[xX*])){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?"
_COMPARED_VERSION = rf"(!=|[<>]=?|=[<>]?|~>?|\^)? *{_VERSION}"
SemverRange = Annotated[
    str,
    Meta(min_length=1, max_length=256),
    matching(
        rf"^ *{_COMPARED_VERSION}( *( |,|\|\|| - ) *{_COMPARED_VERSION})* *$",
        "must be a range of versions such as >=1.2.0 <2, ~1.4 or 1.x",
    ),
]
GitCommit = Annotated[
    str,
    Meta(min_length=1, max_length=64),
    matching(
        "^([0-9a-f]{40}|[0-9a-f]{64})$",
        "must be a full commit id: 40 (sha1) or 64 (sha256) lower-case hex digits",
    ),
]


@rules(exactly_one_of("branch", "tag", "semver", "commit"))
class GitRef(Fields, frozen=True, kw_only=True):
    """Which version of a repository: exactly one of branch, tag, semver and commit."""

    branch: Annotated[GitRefName | None, doc("The tip of this branch.")] = None
    tag: Annotated[GitRefName | None, doc("What this tag points to.")] = None
    semver: Annotated[
        SemverRange | None, doc('The highest version among the tags in this range, such as ">=1.2.0 <2".')
    ] = None
    commit: Annotated[GitCommit | None, doc("This commit, by its full id.")] = None


class GitVerification(Fields, frozen=True, kw_only=True):
    """Whose signatures to trust."""

    secret_ref: Annotated[
        LocalSecretReference, doc("The Secret that holds the trusted public keys, ssh or gpg, one per entry.")
    ]


class GitSource(Fields, frozen=True, kw_only=True):
    """A git repository and the version of it to use."""

    url: Annotated[GitUrl, doc("Where the repository is: an https, http, ssh or file URL, or user@host:path.")]
    ref: Annotated[GitRef, doc("The version to use: exactly one of branch, tag, semver and commit.")]
    secret_ref: Annotated[
        LocalSecretReference | None,
        doc(
            "The Secret with the credentials: username and password, bearerToken, or identity and known_hosts;"
            " ca.crt for a private certificate authority."
        ),
    ] = None
    verify: Annotated[GitVerification | None, doc("Refuse commits and tags that none of these keys has signed.")] = None
    submodules: Annotated[bool, doc("Whether to fetch the repository's submodules too.")] = False


IgnorePattern = Annotated[str, Meta(min_length=1, max_length=1024)]
Revision = Annotated[str, Meta(max_length=1024)]


class SourceSpec(Fields, frozen=True, kw_only=True):
    """What to sync, and how often to look for a new version."""

    git: Annotated[GitSource, doc("A git repository and the version of it to use.")]
    interval: Annotated[PositiveDuration, doc("How often to look for a new version, such as 1m or 1h30m.")] = "1m"
    ignore: Annotated[
        tuple[IgnorePattern, ...],
        Meta(max_length=256),
        doc('Files to leave out, as .gitignore has them: "docs/**".'),
    ] = ()
    suspend: Annotated[bool, doc("Whether to stop looking for new versions; the last one found stays in use.")] = False


class SourceArtifact(Fields, frozen=True, kw_only=True):
    """The files of one exact version."""

    revision: Annotated[Revision, doc("The exact version, such as main@sha1:….")]
    digest: Annotated[str, Meta(max_length=256), doc("The digest of the files, such as sha256:….")]
    size: Annotated[int, Meta(ge=0), doc("The size of the files in bytes.")]
    last_update: Annotated[datetime, doc("When this version was fetched.")]
    origin: Annotated[str, Meta(max_length=64), doc("A digest of spec.git and spec.ignore as they were then.")] = ""


class SourceStatus(ReconciledStatus, frozen=True, kw_only=True):
    """The version found, and how it went."""

    revision: Annotated[Revision | None, doc("The exact version found last, such as main@sha1:… or v1.2.3@sha1:….")] = (
        None
    )
    artifact: Annotated[SourceArtifact | None, doc("The files of the version in use.")] = None


@kind(
    plural="sources",
    short_names=("src",),
    columns=(
        Column("URL", ".spec.git.url", "Where the repository is."),
        Column("Ref", ".spec.git.ref.*", "The version asked for."),
        Column("Revision", ".status.revision", "The exact version found last."),
    ),
)
class Source(Resource, frozen=True, kw_only=True):
    """A Source says what to sync, and which version of it."""

    spec: Annotated[SourceSpec, doc("What to sync, and how often to look for a new version.")]
    status: Annotated[SourceStatus, doc("The version found, and how it went; never written by hand.")] = SourceStatus()
