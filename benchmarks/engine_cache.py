"""What an object weighs in the Engine's memory, all told; in processes of their own, after a restart."""

import asyncio
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.idle_watches import resident
from benchmarks.rows import Row
from starling.aio import slim_tls_buffers
from starling.engine import (
    ClusterAccess,
    Engine,
    Limits,
    Operation,
    ReconciliationSettings,
    StoredUnit,
    Unit,
    UnitStatus,
    pack,
    unpack,
)
from starling.kube import Client, kubeconfig
from starling.local import LocalCluster
from starling.objects import GroupVersionKind, Manifest

UNITS = 200
PER_UNIT = 50
NAMESPACES = 20
MOST = 600
QUIET = 1.0


class Folder:
    """The three protocols on a folder: whoever measures keeps nothing of units in memory but their names."""

    def __init__(self, folder: Path, path: Path, units: Iterable[int]) -> None:
        self._folder = folder
        self._access = ClusterAccess(kubeconfig(path))
        self._units = [f"bench/team/Sync.component-{number}@here" for number in units]
        self._asked_for: set[str] = set()

    async def settled(self) -> bool:
        """Whether each unit was planned, and its file says that all of it is as it was left."""
        if len(self._asked_for) < len(self._units):
            return False
        for unit_id in self._units:
            stored = await self.get(unit_id)
            if stored is None or not stored.status.baseline:
                return False
        return True

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """The one cluster."""
        return self._access if name == "here" else None

    async def watch_clusters(self) -> AsyncIterator[str]:
        """Nothing ever changes."""
        await asyncio.Event().wait()
        yield ""

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """A unit's manifests, made anew each time."""
        del no_cache
        self._asked_for.add(unit.id)
        number = int(unit.id.partition("-")[2].partition("@")[0])
        return [small(number, index) for index in range(PER_UNIT)], revision or "first"

    async def list(self) -> Sequence[str]:
        """All units."""
        return self._units

    async def get(self, unit_id: str) -> StoredUnit | None:
        """A unit with what its file says."""
        file = self._file(unit_id)
        status = UnitStatus()
        if await asyncio.to_thread(file.exists):
            status, inventory = msgspec.msgpack.decode(file.read_bytes(), type=tuple[UnitStatus, list[str]])
            status = msgspec.structs.replace(status, inventory=unpack(inventory))
        return StoredUnit(Unit(id=unit_id, cluster="here"), status)

    async def watch(self) -> AsyncIterator[str]:
        """Nothing ever changes."""
        await asyncio.Event().wait()
        yield ""

    async def set_status(self, unit_id: str, status: UnitStatus) -> None:
        """Write a unit's file; the inventory packed, since keys are no names of JSON's."""
        bare = msgspec.structs.replace(status, inventory={})
        self._file(unit_id).write_bytes(msgspec.msgpack.encode((bare, pack(status.inventory))))

    async def set_operation(self, unit_id: str, operation: Operation) -> None:
        """The same for the operation alone."""
        stored = await self.get(unit_id)
        assert stored is not None
        await self.set_status(unit_id, msgspec.structs.replace(stored.status, operation=operation))

    def _file(self, unit_id: str) -> Path:
        return self._folder / unit_id.replace("/", "_")


async def measure(cluster: LocalCluster) -> list[Row]:
    """Restarts with one unit and with all, and what the many weigh more than the one."""
    await make_namespaces(cluster)
    with tempfile.TemporaryDirectory() as folder:
        await in_child("resident", folder, cluster, 1)
        few = [await in_child(how, folder, cluster, 1) for how in ("resident", "traced")]
        await in_child("resident", folder, cluster, UNITS)
        many = [await in_child(how, folder, cluster, UNITS) for how in ("resident", "traced")]
    objects = (UNITS - 1) * PER_UNIT
    grown, traced = ((after - before) / objects for before, after in zip(few, many, strict=True))
    return [
        Row(
            f"{UNITS * PER_UNIT:,} objects of {UNITS} units, bytes of each",
            f"{traced:.0f}",
            f"≤ {MOST}",
            traced <= MOST,
        ),
        Row("  resident memory grown, with all gaps that a restart leaves", f"{grown:.0f}"),
    ]


async def make_namespaces(cluster: LocalCluster) -> None:
    """Make the namespaces that the objects are in."""
    async with Client(kubeconfig(cluster.kubeconfig)) as client:
        resource = await client.discovery.resource(GroupVersionKind("", "v1", "Namespace"))
        for number in range(NAMESPACES):
            name = f"namespace-{number}"
            await client.apply(
                resource.ref(name), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )


def small(unit: int, index: int) -> Manifest:
    """A small object with a name of 25 characters."""
    name = f"component-{unit:04}-setting-{index:02}"
    metadata = {"name": name, "namespace": f"namespace-{unit % NAMESPACES}"}
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}})


async def in_child(how: str, folder: str, cluster: LocalCluster, units: int) -> int:
    """What a fresh Python process measures."""
    arguments = (how, folder, str(cluster.kubeconfig), str(units))
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await child.communicate()
    return int(output)


async def weigh(how: str, folder: Path, path: Path, units: int) -> int:
    """Bytes of this process once an engine has synced that many units and has come to rest."""
    slim_tls_buffers()
    if how == "traced":
        tracemalloc.start()
    owner = Folder(folder, path, range(units))
    engine = Engine(ReconciliationSettings(), owner, owner, owner, limits=Limits())
    running = asyncio.create_task(engine.run())
    await rest(owner)
    gc.collect()
    found = tracemalloc.get_traced_memory()[0] if how == "traced" else resident()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return found


async def rest(owner: Folder) -> None:
    """Wait until every unit is as it should be and this process has hardly worked for a while."""
    used = 0.0
    while time.process_time() - used > QUIET / 10 or not await owner.settled():
        used = time.process_time()
        await asyncio.sleep(QUIET)


if __name__ == "__main__":
    print(asyncio.run(weigh(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))))
