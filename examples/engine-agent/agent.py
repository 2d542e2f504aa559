"""Keeps a cluster the way a folder says: an agent on starling.engine's public surface.

    python agent.py FOLDER [--name NAME] [--namespace NAMESPACE] [--kubeconfig FILE] [--every SECONDS]

What the folder's YAML and JSON files say is applied, what goes from them is pruned, and what others change is put back
at once. Its record is the ConfigMap starling-NAME: killed at any point, the next agent carries on from there.
"""

import argparse
import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from starling.engine import ClusterAccess, ConfigMapStore, Engine, ReconciliationSettings, Unit, UnitSeen
from starling.kube import AccessSource, Client, default_access
from starling.objects import Manifest, digest, load_manifests, refuse_duplicates


class Folder:
    """One cluster (a CredentialsStore) and one folder (a ManifestGenerator). Mutable: what was last read."""

    def __init__(self, path: Path, access: AccessSource) -> None:
        self.path, self.access = path, access
        self.texts, self.manifests = self.read(), list[Manifest]()

    def read(self) -> dict[str, bytes]:
        """The folder's manifests as they are now."""
        found = sorted(each for each in self.path.rglob("*") if each.is_file())
        return {str(file): file.read_bytes() for file in found if file.suffix in {".yaml", ".yml", ".json"}}

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
            self.manifests = []  # should a file be broken, it is so until it is mended
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


def complain(said: list[str], seen: UnitSeen) -> None:
    """Say what is wrong with the unit and the way out, unless that is what was said last."""
    found = [each for each in (*seen.status.problems, seen.trouble) if each is not None]
    wrong = [f"wrong: {each.message}" + f"; {each.hint}" * bool(each.hint) for each in found]
    if wrong != said:
        print(*(wrong or ["nothing is wrong any more"]), sep="\n", flush=True)
        said[:] = wrong


async def main(path: Path, name: str, namespace: str, kubeconfig: Path | None, every: float) -> None:
    """Run until told to stop."""
    folder = Folder(path, default_access(kubeconfig))
    unit = Unit(id=f"agent/{namespace}/Folder.{name}@this", cluster="this", default_namespace=namespace)
    async with Client(folder.access) as client:
        store = ConfigMapStore(client, namespace, [unit])
        engine = Engine(ReconciliationSettings(), folder, folder, store)
        engine.on_before_sync(store.check)
        engine.on_sync_event(lambda done: print(done.task.key, f"{done.outcome}: {done.task.reason}", flush=True))
        engine.on_status(partial(complain, []))
        work = asyncio.gather(engine.run(), follow(folder, engine, unit, every))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        with suppress(asyncio.CancelledError):  # so does Ctrl-C
            await work


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, metavar="folder")
    parser.add_argument("--name", default="agent")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--every", type=float, default=2.0)
    options = parser.parse_args()
    if not options.path.is_dir():
        parser.error(f"there is no folder {options.path}")
    asyncio.run(main(**vars(options)))
