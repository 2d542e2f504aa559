"""What a Module wants its clusters to run: the target, worked out from the content of its paths."""

from starling.api import Module, Source
from starling.api.v1alpha1 import ExactGit
from starling.controllers.exact import exact_git
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import Secrets
from starling.fleet import ModuleRevision, paths_used, target_of
from starling.rendering import Package
from starling.runtime import Informer, Key, key_of

__all__ = ["Wanted"]


class Wanted:
    """Works targets out. Mutable: content digests that were worked out before, by the key of who wants them."""

    def __init__(self, repositories: Repositories, secrets: Secrets, sources: Informer[Source]) -> None:
        self._repositories = repositories
        self._secrets = secrets
        self._sources = sources
        self._contents: dict[Key, tuple[object, dict[str, str]]] = {}

    def forget(self, key: Key) -> None:
        """Drop what was worked out for one that is gone, and for its parts."""
        for each in [each for each in self._contents if each == key or each.name.startswith(f"{key.name}.")]:
            if each.namespace == key.namespace:
                del self._contents[each]

    async def by(self, module: Module) -> ModuleRevision:
        """The target as it is wanted now, and what it stands for."""
        namespace, template = module.metadata.namespace, module.spec.sync
        source = self._sources.get(Key(namespace, template.source.name or ""))
        git, revision = exact_git(module, source)
        artifact = source.status.artifact if source is not None else None
        known = artifact.digest if artifact is not None and artifact.revision == revision else ""
        contents = await self._contents_of(module, git, known)
        return ModuleRevision(
            template=template,
            overrides=module.spec.overrides,
            source=git,
            revision=revision,
            target=target_of(module.spec, contents, git),
        )

    async def _contents_of(self, module: Module, git: ExactGit, known: str) -> dict[str, str]:
        """What each path comes to; worked out once for each version that a Module is at."""
        package, key = _package(module), key_of(module)
        place = (git.url, git.commit, known, git.ignore, git.submodules, package)
        contents = self._contents.get(key, (place, {}))
        contents = contents if contents[0] == place else (place, {})
        for path in paths_used(module.spec):
            if path not in contents[1]:
                credentials = await self._secrets.credentials(key.namespace, git.secret_ref)
                contents[1][path] = await self._repositories.content(git, credentials, path, package, known=known)
        self._contents[key] = contents
        return contents[1]


def _package(module: Module) -> Package | None:
    said = module.spec.sync.package
    if said is None:
        return None
    return Package.HELM if said.helm is not None else Package.PLAIN if said.plain is not None else Package.KUSTOMIZE
