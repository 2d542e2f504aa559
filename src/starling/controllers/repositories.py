"""From one exact commit to manifests, or to the digest that rollouts compare: sources and rendering, put together."""

from pathlib import Path

from starling.api.v1alpha1 import ExactGit
from starling.rendering import Package, Rendered, Renderer, Request
from starling.sources import ANONYMOUS, ArtifactStore, Credentials, GitSource, GitSources, Ref

__all__ = ["Repositories"]


class Repositories:
    """Repositories' files, fetched and rendered once for all who want the same."""

    def __init__(self, sources: GitSources, store: ArtifactStore, renderer: Renderer) -> None:
        self.sources = sources
        self._store = store
        self._renderer = renderer

    async def folder(self, git: ExactGit, credentials: Credentials = ANONYMOUS) -> tuple[Path, str]:
        """The files of a commit, and their digest, once the server has let us see them."""
        source = GitSource(git.url, Ref(commit=git.commit), submodules=git.submodules, ignore=git.ignore)
        artifact = await self.sources.fetch(source, credentials)
        return await self._store.checkout(artifact.digest), artifact.digest

    async def render(
        self, git: ExactGit, credentials: Credentials, request: Request, *, no_cache: bool = False
    ) -> Rendered:
        """The manifests of a commit."""
        folder, digest = await self.folder(git, credentials)
        return await self._renderer.render(folder, digest, request, no_cache=no_cache)

    async def content(
        self, git: ExactGit, credentials: Credentials, path: str, package: Package | None, *, known: str = ""
    ) -> str:
        """The digest of what a path comes to, before anything of a cluster's own.

        `known` is the digest of the commit's files, if these were fetched for the same reader: then nobody is asked.
        """
        if known and self._store.has(known):
            folder, digest = await self._store.checkout(known), known
        else:
            folder, digest = await self.folder(git, credentials)
        return await self._renderer.content(folder, digest, Request(path=path, package=package))
