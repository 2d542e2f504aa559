"""An engine in a process of its own, whose units are files, and which dies at a given point.

    python -m tests.integration.engine.killable FOLDER KUBECONFIG TURN TASK

FOLDER has `unit.json` and `manifests.yaml`; the status goes to `status.json`, by renaming. The process ends by itself
when the unit is done, and says how many turns its loop has made. It dies at the TURN-th turn of its loop, or when so
many tasks are done; 0 is never.
"""

import asyncio
import os
import selectors
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from starling.engine import (
    ClusterAccess,
    Engine,
    Limits,
    Operation,
    Phase,
    ReconciliationSettings,
    StoredUnit,
    SyncEvent,
    Unit,
    UnitSeen,
    UnitStatus,
    pack,
    unpack,
)
from starling.kube import kubeconfig
from starling.objects import Manifest, load_manifests


class Mortal(selectors.DefaultSelector):
    """What asyncio asks at every turn of its loop; at the last turn, the process is killed the hard way."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.turns = 0
        self._last = last

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """One more turn."""
        self.turns += 1
        if self.turns == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().select(timeout)


class Written(msgspec.Struct):
    """A status as it is written down: JSON has no keys but texts."""

    status: UnitStatus
    inventory: list[str]


def read_status(folder: Path) -> UnitStatus:
    """The status that was written last."""
    path = folder / "status.json"
    if not path.exists():
        return UnitStatus()
    written = msgspec.json.decode(path.read_bytes(), type=Written)
    return msgspec.structs.replace(written.status, inventory=unpack(written.inventory))


class Folder:
    """A CredentialsStore, a ManifestGenerator and a SyncStore in one, for one unit."""

    def __init__(self, folder: Path, cluster: Path, last_task: int) -> None:
        self._folder = folder
        self._last_task = last_task
        self._tasks = 0
        self._access = ClusterAccess(kubeconfig(cluster))
        self.unit = msgspec.json.decode((folder / "unit.json").read_bytes(), type=Unit)
        self.done = asyncio.Event()

    async def get_cluster(self, _name: str) -> ClusterAccess:
        """The one cluster."""
        return self._access

    async def watch_clusters(self) -> AsyncIterator[str]:
        """Nothing changes."""
        await asyncio.Event().wait()
        yield ""

    async def generate(self, unit: Unit, _revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """What is in the file."""
        del no_cache
        return load_manifests((self._folder / "manifests.yaml").read_text(), "manifests.yaml"), unit.revision

    async def list(self) -> Sequence[str]:
        """The one unit."""
        return [self.unit.id]

    async def get(self, _unit_id: str) -> StoredUnit:
        """The unit as the last process left it."""
        return StoredUnit(self.unit, read_status(self._folder))

    async def watch(self) -> AsyncIterator[str]:
        """Nothing changes."""
        await asyncio.Event().wait()
        yield ""

    async def set_status(self, _unit_id: str, status: UnitStatus) -> None:
        """All of it or nothing, whenever the process dies. The waits are turns to die in."""
        written = Written(msgspec.structs.replace(status, inventory={}), pack(status.inventory))
        await asyncio.sleep(0)
        part = self._folder / "status.part"
        part.write_bytes(msgspec.json.encode(written))
        await asyncio.sleep(0)
        part.rename(self._folder / "status.json")
        await asyncio.sleep(0)

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        """The same, when only the operation went on."""
        await self.set_status(unit_id, msgspec.structs.replace(read_status(self._folder), operation=operation))

    def count(self, _event: SyncEvent) -> None:
        """One more task is done."""
        self._tasks += 1
        if self._tasks == self._last_task:
            os.kill(os.getpid(), signal.SIGKILL)

    def look(self, seen: UnitSeen) -> None:
        """Note whether the unit is done."""
        if seen.trouble is None and self._is_done(seen.status):
            self.done.set()

    def _is_done(self, status: UnitStatus) -> bool:
        if self.unit.deleting:
            return status.removed
        operation = status.operation
        succeeded = operation is not None and operation.phase is Phase.SUCCEEDED
        if not all(status.inventory.values()):
            return False  # what was pruned, and waits for a finalizer's owner, is in it without a digest
        return succeeded and bool(status.baseline) and status.applied_revision == self.unit.revision


async def run(folder: Path, cluster: Path, last_task: int) -> None:
    """Run an engine until the unit is done."""
    surroundings = Folder(folder, cluster, last_task)
    limits = Limits(first_retry=0.2, longest_retry=1.0)
    engine = Engine(ReconciliationSettings(), surroundings, surroundings, surroundings, limits=limits)
    engine.on_status(surroundings.look)
    engine.on_sync_event(surroundings.count)
    running = asyncio.create_task(engine.run())
    async with asyncio.timeout(60):
        await surroundings.done.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def main(folder: str, cluster: str, last_turn: str, last_task: str) -> None:
    """Run to the end, or to the last turn or task."""
    selector = Mortal(int(last_turn))
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(run(Path(folder), Path(cluster), int(last_task)))
    print(selector.turns)  # noqa: T201 - this is what it is asked for


if __name__ == "__main__":
    main(*sys.argv[1:])
