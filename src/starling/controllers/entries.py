"""Clusters as entries are made of them, and whether one can be made at all."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from starling.api import Cluster
from starling.errors import InputError
from starling.fleet import ModuleRevision, make_entry

__all__ = ["described", "unmakeable"]


def described(cluster: Cluster) -> dict[str, Any]:
    """A cluster as bindings see it."""
    return {"metadata": msgspec.to_builtins(cluster.metadata), "spec": msgspec.to_builtins(cluster.spec)}


def unmakeable(
    module: str, revision: ModuleRevision, names: Iterable[str], find: Callable[[str], Cluster | None]
) -> dict[str, InputError]:
    """Those of the clusters for which a Module's entry can't be made, and why."""
    found = {}
    for name in names:
        if (cluster := find(name)) is None:
            continue
        try:
            make_entry(revision, described(cluster), name=module, unit="", admission=0, credentials="")
        except InputError as error:
            found[name] = InputError(f"cluster {name} can't have it: {error.message}", hint=error.hint)
    return found
