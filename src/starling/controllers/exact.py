"""The exact commit that a Sync or a Module wants: written there, or what its Source is at."""

import re
from typing import Final

import msgspec

from starling.api import Module, Source, Sync
from starling.api.v1alpha1 import CredentialsReference, ExactGit, SyncTemplate
from starling.errors import InputError, StarlingError
from starling.objects import digest, short_digest
from starling.sources import Version

__all__ = ["NotFetched", "exact_git", "origin_of", "revision_of", "template_of"]

_REVISION: Final = re.compile(r"(?:.+@)?sha(?:1:[0-9a-f]{40}|256:[0-9a-f]{64})")


class NotFetched(StarlingError):
    """A Source has no version yet."""

    reason = "NotFetched"


def template_of(obj: Sync | Module) -> SyncTemplate:
    """How it is to be synced."""
    return obj.spec.sync if isinstance(obj, Module) else obj.spec


def exact_git(obj: Sync | Module, source: Source | None) -> tuple[ExactGit, str]:
    """The commit that it wants, and how people call that version; `source` is the Source it names, if that is there.

    InputError if that can't be told, NotFetched if it can't yet.
    """
    template, namespace = template_of(obj), obj.metadata.namespace
    if template.source.git is not None:
        return template.source.git, revision_of(template.source.git)
    who, named = f"{type(obj).__name__} {namespace}/{obj.metadata.name}", f"Source {namespace}/{template.source.name}"
    if source is None:
        raise InputError(f"there is no {named}", hint=f"{who} names it: create it, or name another")
    git, artifact = source.spec.git, source.status.artifact
    stale = artifact is not None and artifact.origin not in ("", origin_of(source))
    if stale and isinstance(obj, Module):  # a Sync goes on with what it has
        raise NotFetched(f"{named} has changed, and what it is now hasn't been fetched", hint="its conditions say why")
    found = artifact.revision if artifact is not None else ""
    revision = template.revision or found
    if not revision:
        raise NotFetched(f"{named} has fetched nothing yet", hint="its conditions say why")
    if not _REVISION.fullmatch(revision):
        raise InputError(
            f"{who} wants the revision {revision!r} of {named}, which names no commit",
            hint="write it as Source.status.revision has it: main@sha1:…",
        )
    if git.verify is not None and (stale or revision != found):
        raise InputError(
            f"{named} wants signatures, and nobody has checked those of {revision}",
            hint="say which version to stay at in the Source's ref",
        )
    reference = CredentialsReference(name=git.secret_ref.name) if git.secret_ref is not None else None
    name, _, commit = revision.rpartition("@")
    return ExactGit(
        url=git.url, commit=commit.partition(":")[2], tag=name or None, secret_ref=reference,
        submodules=git.submodules, ignore=source.spec.ignore,
    ), revision  # fmt: skip


def origin_of(source: Source) -> str:
    """What an artifact of this Source is fetched by; another once it says something else."""
    return short_digest(digest(msgspec.to_builtins([source.spec.git, source.spec.ignore])))


def revision_of(git: ExactGit) -> str:
    """An exact commit as people read it: v1.2.3@sha1:…, or sha1:… alone."""
    return Version(f"refs/tags/{git.tag}" if git.tag else "", git.commit, git.commit).revision
