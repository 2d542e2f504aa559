"""A process killed at any turn of its loop leaves nothing behind that the next one doesn't put right."""

import asyncio
import random
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from starling.engine.ownership import LABEL, TRACKING
from starling.engine.unit import Unit
from starling.kube import FIELD_MANAGER, Client
from starling.local import LocalCluster
from starling.objects import ObjectKey
from tests.integration.engine.killable import read_status
from tests.integration.engine.revisions import REVISIONS, Json, Place, manifests_of, text
from tests.integration.engine.world import unit_id
from tests.rounds import ROUNDS

REPOSITORY = Path(__file__).parents[3]
TURNS, TASKS = 250, 60
"""About as many as a revision takes; a process that is done earlier is as good."""


@dataclass(frozen=True)
class Life:
    """Processes that follow one another, in one folder and on one cluster."""

    folder: Path
    cluster: LocalCluster
    place: Place

    def put(self, revision: str, unit: Unit) -> None:
        """Have the next process sync this revision."""
        self.put_text(text(revision, self.place.namespace), unit)

    def put_text(self, manifests: str, unit: Unit) -> None:
        """Have the next process sync these manifests."""
        (self.folder / "manifests.yaml").write_text(manifests)
        (self.folder / "unit.json").write_bytes(msgspec.json.encode(unit))

    async def run_into_death(self, rng: random.Random) -> None:
        """Run a process that is killed at a random point, unless it is done before."""
        if rng.random() < 0.5:
            await self.run(last_turn=rng.randrange(1, TURNS))
        else:
            await self.run(last_task=rng.randrange(1, TASKS))

    async def run(self, last_turn: int = 0, last_task: int = 0) -> None:
        """Run a process, to its end unless it is killed before that."""
        command = (sys.executable, "-m", "tests.integration.engine.killable")
        arguments = (str(self.folder), str(self.cluster.kubeconfig), str(last_turn), str(last_task))
        process = await asyncio.create_subprocess_exec(
            *command, *arguments, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        _, complaints = await process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), f"{complaints.decode()}{read_status(self.folder)}"


@pytest.fixture
async def life(client: Client, cluster: LocalCluster, namespace: str, tmp_path: Path) -> Life:
    """A unit that was never synced, where an object waits to be adopted."""
    unit = Unit(id=unit_id(namespace), cluster="here", target_namespace=namespace)
    place = Place(client, namespace, unit)
    await place.prepare()
    return Life(tmp_path, cluster, place)


def uids(found: dict[ObjectKey, Json]) -> dict[ObjectKey, str]:
    """Which object it is that bears a name."""
    return {key: content["metadata"]["uid"] for key, content in found.items()}


def made_anew(before: dict[ObjectKey, str], now: dict[ObjectKey, str]) -> set[ObjectKey]:
    """What isn't the object that it was."""
    return {key for key, uid in now.items() if before.get(key, uid) != uid}


@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(3 * ROUNDS))
async def test_the_next_process_carries_on(life: Life, seed: int) -> None:
    """Whatever was killed when, the end is the last revision and nothing else; what stays was never made anew."""
    rng = random.Random(seed)
    place, unit = life.place, life.place.unit
    foreign = place.foreign(await place.found())
    before: dict[ObjectKey, str] = {}
    for revision in REVISIONS:
        life.put(revision, msgspec.structs.replace(unit, revision=revision))
        wanted = {(each.key.kind, each.key.name) for each in manifests_of(revision, place.namespace)}
        before = {key: uid for key, uid in before.items() if (key.kind, key.name) in wanted}
        for _ in range(rng.choice([1, 1, 2])):
            await life.run_into_death(rng)
            now = uids(await place.found())
            assert made_anew(before, now) == set()
            before |= {key: uid for key, uid in now.items() if (key.kind, key.name) in wanted}
        if revision == REVISIONS[-1] or rng.random() < 0.3:
            await life.run()
            found = await place.check(manifests_of(revision, place.namespace))
            assert made_anew(before, uids(found)) == set()
            assert place.foreign(found) == foreign
            assert read_status(life.folder).inventory.keys() == found.keys() - foreign.keys()
            before = uids(found)
    await removed(life, rng, rng.choice(["Prune", "Orphan"]))
    assert place.foreign(await place.found()) == foreign


STAYS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: stays}}"
FIRST = '{apiVersion: v1, kind: ConfigMap, metadata: {name: first, annotations: {argocd.argoproj.io/sync-wave: "-1"}}}'
GOES = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: goes}, spec: {podSelector: {}}}"


async def test_kinds_that_only_the_record_tells_of(life: Life) -> None:
    """What a killed process made is found by the next, though its manifests have nothing of that kind any more."""
    place, unit = life.place, life.place.unit
    life.put_text(f"{STAYS}\n---\n{GOES}", msgspec.structs.replace(unit, revision="1"))
    await life.run(last_task=2)
    goes = ObjectKey("networking.k8s.io", "NetworkPolicy", place.namespace, "goes")
    assert goes in await place.found()
    life.put_text(STAYS, msgspec.structs.replace(unit, revision="2"))
    await life.run()
    assert goes not in await place.found()


async def test_the_one_thing_that_was_made_is_no_longer_wanted(life: Life) -> None:
    """What a killed process was about to make counts as had, so that the guard takes this for no wrong path."""
    place, unit = life.place, life.place.unit
    foreign = (await place.found()).keys()
    life.put_text(f"{STAYS}\n---\n{FIRST}", msgspec.structs.replace(unit, revision="1"))
    await life.run(last_task=1)
    assert {"first"} == {key.name for key in (await place.found()).keys() - foreign}
    life.put_text(STAYS, msgspec.structs.replace(unit, revision="2"))
    await life.run()
    assert {"stays"} == {key.name for key in (await place.found()).keys() - foreign}


async def removed(life: Life, rng: random.Random, policy: Literal["Prune", "Orphan"]) -> None:
    """Remove the unit, with processes killed on the way, and see what is left."""
    place = life.place
    unit = msgspec.structs.replace(place.unit, revision=REVISIONS[-1], deleting=True, deletion_policy=policy)
    before = await place.found()
    life.put(REVISIONS[-1], unit)
    for _ in range(rng.choice([1, 2])):
        await life.run_into_death(rng)
    await life.run()
    after = await place.found()
    mine = before.keys() - place.foreign(before).keys()
    if policy == "Prune":
        assert not after.keys() & mine
    else:
        in_namespace = {key for key in mine if key.namespace}
        assert after.keys() & mine == in_namespace
        assert {key: uids(after)[key] for key in in_namespace} == {key: uids(before)[key] for key in in_namespace}
        assert [after[key] for key in in_namespace if marked(after[key])] == []
    await place.leave()


def marked(content: Json) -> bool:
    """Whether anything of ours is still on an object."""
    metadata = content["metadata"]
    managers = {entry["manager"] for entry in metadata.get("managedFields", ())}
    return (
        LABEL in metadata.get("labels", {}) or TRACKING in metadata.get("annotations", {}) or FIELD_MANAGER in managers
    )
