"""Keeps a cluster the way a folder says: an agent on starling.engine's public surface.

    python agent.py FOLDER [--name NAME] [--namespace NAMESPACE] [--kubeconfig FILE] [--every SECONDS]

What the folder's YAML and JSON files say is applied, what goes from them is pruned, and what others change in the
cluster is put back as soon as the API server tells of it. Its record is the ConfigMap starling-NAME: killed at any
point, the next agent carries on from there.
"""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

from starling.engine import ClusterAccess, ConfigMapStore, Engine, ReconciliationSettings, SyncEvent, Unit
from starling.kube import AccessSource, Client, default_access
from starling.objects import Manifest, digest, load_manifests, refuse_duplicates


class Folder:
    """One cluster (a CredentialsStore) and one folder (a ManifestGenerator). Mutable: what was last read."""

    def __init__(self, path: Path, access: AccessSource) -> None:
        self.path = path
        self.access = access
        self.texts = self.read()
        self.manifests: Sequence[Manifest] = ()

    def read(self) -> dict[str, bytes]:
        """The folder's manifests as they are now."""
        paths = sorted(path for path in self.path.rglob("*") if path.suffix in {".yaml", ".yml", ".json"})
        return {str(path): path.read_bytes() for path in paths}

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """The cluster is always the same."""
        return ClusterAccess(self.access) if name == "this" else None

    async def watch_clusters(self) -> AsyncIterator[str]:
        """It never changes."""
        await asyncio.Event().wait()
        yield "this"

    async def generate(self, unit: Unit, revision: str, *, no_cache: bool) -> tuple[Sequence[Manifest], str]:
        """What the files say, parsed anew only after a change: the engine asks often."""
        del unit, revision
        if no_cache or not self.manifests:
            self.manifests = ()  # should a file be broken, it is so until it is mended
            found = [each for file, text in self.texts.items() for each in load_manifests(text, file)]
            refuse_duplicates(found)
            self.manifests = found
        return self.manifests, digest(sorted(manifest.digest for manifest in self.manifests))


async def follow(folder: Folder, engine: Engine, unit: Unit, every: float) -> None:
    """Have the engine look at the unit whenever something in the folder has changed."""
    while True:
        await asyncio.sleep(every)
        with suppress(FileNotFoundError):  # a file went while we read: the next look shows what is left
            if (texts := folder.read()) != folder.texts:
                folder.texts = texts
                engine.refresh(unit.id)


async def main(options: argparse.Namespace) -> None:
    """Run until told to stop."""
    access = default_access(options.kubeconfig)
    folder = Folder(options.folder, access)
    unit_id = f"agent/{options.namespace}/Folder.{options.name}@this"
    unit = Unit(id=unit_id, cluster="this", default_namespace=options.namespace)
    async with Client(access) as client:
        store = ConfigMapStore(client, options.namespace, [unit])
        engine = Engine(ReconciliationSettings(), folder, folder, store)
        engine.on_before_sync(store.check)
        engine.on_sync_event(tell)
        engine.on_sync_completed(lambda done: print(done.operation.phase, done.operation.message))
        work = asyncio.gather(engine.run(), follow(folder, engine, unit, options.every))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with suppress(asyncio.CancelledError):
            await work


def tell(event: SyncEvent) -> None:
    """Say what became of one object, and why."""
    why = event.problem.message if event.problem else event.task.reason
    print(f"{event.task.key} {event.outcome}: {why}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", default="agent")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--every", type=float, default=2.0)
    asyncio.run(main(parser.parse_args()))
