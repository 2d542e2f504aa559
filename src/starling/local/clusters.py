"""All the control planes kept under one folder."""

import asyncio
import logging
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from starling.errors import InputError, StarlingError
from starling.files import locked, private_folder
from starling.local.binaries import Binaries, find_binaries
from starling.local.cluster import STATE, LocalCluster, read_cluster
from starling.local.commands import CONTROL_PLANE, WORKLOADS
from starling.local.errors import LocalError
from starling.local.processes import find, find_all, kill
from starling.local.start import bring_up, free_port

__all__ = ["LocalClusters", "default_root"]

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def default_root() -> Path:
    """Where clusters are kept unless one says otherwise: STARLING_LOCAL_DIR, or the user's state folder."""
    if chosen := os.environ.get("STARLING_LOCAL_DIR"):
        return Path(chosen)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "starling"


class LocalClusters:
    """The control planes kept under one folder; `report` is told, in a line, whatever takes a while."""

    def __init__(self, root: Path | None = None, report: Callable[[str], None] = logger.info) -> None:
        self.root = (root or default_root()).resolve()
        self.report = report

    async def up(self, *names: str, workloads: bool = False, audit: bool = False) -> list[LocalCluster]:
        """Have these clusters run, side by side; what runs already is left alone, what died is started again.

        With `workloads`, pods run too, on a simulated node. Without, nothing acts on what the API holds: Deployments
        make no pods and deleted namespaces stay. With `audit`, an API server that is started here writes an audit log.
        """
        for name in names:
            check_name(name)
        wants_more = workloads or any(cluster.workloads for cluster in self.list() if cluster.name in names)
        binaries = await find_binaries(CONTROL_PLANE + (WORKLOADS if wants_more else ()), self.report)
        private_folder(self.root)
        # Starting one takes some CPU seconds: more at a time than there are CPUs only has all of them be late.
        slots = asyncio.Semaphore(max(2, os.cpu_count() or 2))
        return await side_by_side(
            {name: self._up(name, binaries, slots, workloads=workloads, audit=audit) for name in names}
        )

    async def _up(
        self, name: str, binaries: Binaries, slots: asyncio.Semaphore, *, workloads: bool, audit: bool
    ) -> LocalCluster:
        folder = self.root / name
        async with slots, locked(self._lock(name), lambda: self._waits(name)):
            if not (cluster := read_cluster(folder)):
                self._refuse_foreign(folder)
                cluster = LocalCluster(name, folder, free_port(), workloads)
                cluster.save()
            if audit:
                cluster.audit()
            return await bring_up(replace(cluster, workloads=cluster.workloads or workloads), binaries, self.report)

    async def down(self, *names: str) -> list[str]:
        """End these clusters, all if none is named, and remove what they kept; give those that there were."""
        for name in names:
            check_name(name)
        # A cluster whose folder someone deleted still runs; one in a folder further below is another root's.
        running = {process.folder.name for process in find_all() if process.folder.parent == self.root}
        there = running | {cluster.name for cluster in self.list()}
        chosen = names or sorted(there)
        if unknown := [name for name in names if name not in there and not (self.root / name).is_dir()]:
            raise self._unknown(unknown[0])
        return await side_by_side({name: self._down(name) for name in chosen})

    async def _down(self, name: str) -> str:
        folder = self.root / name
        private_folder(self.root)
        async with locked(self._lock(name), lambda: self._waits(name)):
            while processes := find(folder):
                await kill(processes)
            if read_cluster(folder):
                await asyncio.to_thread(remove, folder)
            elif folder.exists():
                self._refuse_foreign(folder)
                folder.rmdir()
            self._lock(name).unlink()
        self.report(f"{name}: gone")
        return name

    def list(self) -> list[LocalCluster]:
        """Give the clusters there are, running or not, by name."""
        folders = sorted(self.root.iterdir()) if self.root.is_dir() else []
        return [cluster for folder in folders if (cluster := read_cluster(folder))]

    def get(self, name: str) -> LocalCluster:
        """Give the cluster of that name."""
        check_name(name)
        if cluster := read_cluster(self.root / name):
            return cluster
        raise self._unknown(name)

    def _lock(self, name: str) -> Path:
        return self.root / f".{name}.lock"

    def _waits(self, name: str) -> None:
        self.report(f"{name}: waiting for another command that works on it")

    def _unknown(self, name: str) -> LocalError:
        names = ", ".join(cluster.name for cluster in self.list())
        return LocalError(
            f"there is no cluster {name} in {self.root}",
            hint=f"there are: {names}" if names else f"make it with: starling local up {name}",
        )

    def _refuse_foreign(self, folder: Path) -> None:
        if not is_absent_or_empty(folder):
            raise LocalError(
                f"{folder} exists and isn't a cluster's folder (it has no {STATE} of ours)",
                hint="choose another name, or another folder with STARLING_LOCAL_DIR",
            )


async def side_by_side(work: Mapping[str, Coroutine[Any, Any, Result]]) -> list[Result]:
    """Do all of it at once and to its end; only then raise what failed, by the clusters' names if it is several."""
    results = await asyncio.gather(*work.values(), return_exceptions=True)
    done: list[Result] = []
    failed: dict[str, StarlingError] = {}
    for name, result in zip(work, results, strict=True):
        if isinstance(result, StarlingError):
            failed[name] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            done.append(result)
    if failed:
        raise one_error(failed)
    return done


def one_error(failed: Mapping[str, StarlingError]) -> StarlingError:
    """Give the only failure as it is, or one error that tells all of them."""
    errors = list(failed.values())
    if len(errors) == 1:
        return errors[0]
    told = "".join(f"\n  {name}: {error.message}" for name, error in failed.items())
    hints = dict.fromkeys(error.hint for error in errors if error.hint)
    return LocalError(f"{len(errors)} clusters failed:{told}", hint="\n  ".join(hints) or None)


def is_absent_or_empty(folder: Path) -> bool:
    """Tell whether making or removing that folder takes nothing from anybody."""
    try:
        return not any(folder.iterdir())
    except FileNotFoundError:
        return True
    except (NotADirectoryError, PermissionError):
        return False


def check_name(name: str) -> None:
    """Refuse a name that can't be a folder's, a context's and a label's alike."""
    if not NAME.fullmatch(name):
        raise InputError(
            f"{name!r} can't be a cluster's name",
            hint="use up to 63 lower-case letters, digits and dashes, with a letter or digit at both ends",
        )


def remove(folder: Path) -> None:
    """Delete a cluster's folder, what marks it as one last: being killed half-way leaves it recognisable."""
    for entry in folder.iterdir():
        if entry.name == STATE:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    with suppress(FileNotFoundError):
        (folder / STATE).unlink()
    folder.rmdir()
