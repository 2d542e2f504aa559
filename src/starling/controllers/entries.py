"""Clusters as entries are made of them, and whether one can be made at all."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from starling.api import Cluster
from starling.errors import InputError
from starling.fleet import ModuleRevision, make_entry

__all__ = ["check_entries", "described"]


def described(cluster: Cluster) -> dict[str, Any]:
    """A cluster as bindings see it."""
    return {"metadata": msgspec.to_builtins(cluster.metadata), "spec": msgspec.to_builtins(cluster.spec)}


def check_entries(
    module: str, revision: ModuleRevision, names: Iterable[str], find: Callable[[str], Cluster | None]
) -> None:
    """Refuse to move clusters for which a Module's entry can't be made; InputError names the first."""
    for name in names:
        if (cluster := find(name)) is None:
            continue
        try:
            make_entry(revision, described(cluster), name=module, unit="", admission=0, credentials="")
        except InputError as error:
            raise InputError(f"cluster {name}: {error.message}", hint=error.hint) from error
