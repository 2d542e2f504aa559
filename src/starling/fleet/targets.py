"""The target of a Module: one digest of what is synced and how, which a rollout moves clusters to.

It covers the content of every path used, template and overrides as written, with defaults left out, and the
repository's address and credentials by name, which clusters need. The commit is no part of it, so that one which
changes nothing moves nothing; nor is to whom it goes, or how fast. `t1` names these rules: a target made by others is
never compared with one of these.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from starling.api.v1alpha1 import ExactGit, ModuleSpec
from starling.objects import digest

__all__ = ["paths_used", "target_of"]

SCHEME: Final = "t1:"
NO_INSTRUCTION: Final = frozenset({"source", "revision"})


def paths_used(spec: ModuleSpec) -> tuple[str, ...]:
    """The folders that a Module syncs to one cluster or another, as written, each once."""
    overrides = (override.path for override in spec.overrides if override.path is not None)
    return tuple(dict.fromkeys((spec.sync.path, *overrides)))


def target_of(spec: ModuleSpec, contents: Mapping[str, str], source: ExactGit) -> str:
    """The target, given the digest of the content of each path used, and where that comes from."""
    template: dict[str, Any] = msgspec.to_builtins(spec.sync)
    what = {
        "contents": {path: contents[path] for path in paths_used(spec)},
        "template": {key: value for key, value in template.items() if key not in NO_INSTRUCTION},
        "overrides": msgspec.to_builtins(spec.overrides),
        "from": [source.url, source.secret_ref.name if source.secret_ref is not None else ""],
    }
    return SCHEME + digest(what).removeprefix("sha256:")
