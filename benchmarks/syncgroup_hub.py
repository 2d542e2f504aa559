"""`python -m benchmarks.syncgroup_hub KUBECONFIG FOLDER`: a hub that rolls SyncGroups out, and nothing else."""

import asyncio
import sys
from pathlib import Path

from starling.controllers.repositories import Repositories
from starling.controllers.secrets import Secrets
from starling.controllers.syncgroup import SyncGroupController
from starling.controllers.world import World
from starling.kube import Client, kubeconfig
from starling.rendering import Cache, Renderer
from starling.runtime import Group, Recorder
from starling.sources import ArtifactStore, FetchSettings, GitSources


async def main() -> None:
    """Run until terminated."""
    folder = Path(sys.argv[2])
    async with Client(kubeconfig(Path(sys.argv[1]))) as client:
        store = ArtifactStore(folder / "artifacts")
        sources = GitSources(folder / "sources", store, FetchSettings())
        repositories = Repositories(sources, store, Renderer(cache=Cache(folder / "renders")))
        recorder = Recorder(client, "starling.dev/controller", "benchmark")
        group = Group("syncgroups")
        group.task(recorder.run)
        world = World.followed(client, group)
        SyncGroupController(client, repositories, Secrets(client), recorder).join(group, world)
        await group.run()


if __name__ == "__main__":
    asyncio.run(main())
