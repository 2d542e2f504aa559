"""Agents without clusters: what real ones say to a hub, with the Assemblage in memory and nothing applied.

Each cluster has the real agent's watches on the hub (its ProxyAssemblage and its credentials, by their names), its
heartbeat and what it tells of itself; what it reports is worked out by the code of the real one. What differs: one
process speaks for many, as an administrator and over one client; tokens aren't renewed; and a Sync takes a fixed time.

    python -m benchmarks.simulated_agents KUBECONFIG NAMESPACE FIRST END HEARTBEAT WORK
"""

import asyncio
import random
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, slim_tls_buffers
from starling.api import Assemblage, Cluster, ObjectMeta, ProxyAssemblage
from starling.api.v1alpha1 import AssemblageStatus, Entry, EntryStatus, ProxyAssemblageStatus
from starling.controllers.following import Step, Troubles
from starling.controllers.heartbeat import Heartbeat
from starling.controllers.upstream import MANAGER, Watched
from starling.errors import StarlingError
from starling.fleet.delivery import local_spec, report
from starling.kube import Client, kubeconfig
from starling.runtime import Key

__all__ = ["PREFIX", "begun", "finished"]

PREFIX: Final = "edge"
VERSION: Final = "simulated"
STARTING: Final = 4
"""How many of one process connect at once: a fleet that has run for a while doesn't dial in all together."""

_API_VERSION: Final = "starling.dev/v1alpha1"


def begun(entries: Sequence[Entry], before: AssemblageStatus, generation: int) -> AssemblageStatus:
    """The status of an Assemblage whose Syncs have just been given these entries."""
    known = {each.name: each for each in before.syncs}

    def status(entry: Entry) -> EntryStatus:
        was = known.get(entry.name, EntryStatus(name=entry.name))
        if was.target == entry.target:
            return was
        return EntryStatus(name=entry.name, target=entry.target, revision=was.revision, readiness="InProgress")

    syncs = tuple(status(entry) for entry in entries)
    return AssemblageStatus(observed_generation=generation, agent_version=VERSION, syncs=syncs)


def finished(entries: Sequence[Entry], status: AssemblageStatus) -> AssemblageStatus:
    """The same when all of them have been applied, and are well."""
    syncs = tuple(
        EntryStatus(
            name=each.name, target=each.target, revision=_revision(each), state="succeeded", readiness="Current"
        )
        for each in entries
    )
    return msgspec.structs.replace(status, syncs=syncs)


def _revision(entry: Entry) -> str:
    git = entry.source.git
    return f"{git.tag}@sha1:{git.commit}" if git is not None else ""


class SimulatedAgent:
    """One cluster's. Mutable: its Assemblage, and when what it works on is done."""

    def __init__(self, hub: Client, cluster: Key, heartbeat: float, work: float) -> None:
        self._hub, self._cluster, self._work = hub.once(), cluster, work
        self._heartbeat_every = heartbeat
        troubles = Troubles(lambda: None)
        self._watched = Watched(hub, cluster, troubles=troubles)
        self._step = Step(f"{cluster}", self._look, first=0.2, longest=5.0, clock=SYSTEM_CLOCK)
        self._watched.listen(lambda back: self._step.wake(at_once=back))
        self._heartbeat = Heartbeat(hub, cluster, identity=VERSION, period=heartbeat, troubles=troubles)
        self._uid = str(uuid.uuid4())
        self._local: Assemblage | None = None
        self._done_at: float | None = None

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Be the cluster until the group is cancelled; returns when the hub knows it, and it the hub."""
        await self._announce()
        await self._heartbeat.beat()
        for work in (self._watched.run(), self._step.run(), self._beat()):
            group.create_task(work)
        while not self._watched.proxies.ready:
            await asyncio.sleep(0.05)

    async def _beat(self) -> None:
        """From anywhere in the period on: a fleet doesn't beat in step."""
        await asyncio.sleep(random.uniform(0, self._heartbeat_every))  # noqa: S311 - spreads
        await self._heartbeat.run()

    async def _announce(self) -> None:
        ref = Cluster.declaration.resource.ref(self._cluster.name, self._cluster.namespace)
        status = {"requestedLabels": {}, "uid": self._uid, "kubernetesVersion": VERSION, "agentVersion": VERSION}
        metadata = {"name": ref.name, "namespace": ref.namespace}
        body = {"apiVersion": _API_VERSION, "kind": "Cluster", "metadata": metadata, "status": status}
        await self._hub.apply(ref.status, body, manager=MANAGER)

    async def _look(self) -> float | None:
        """Take in what the hub says, and tell it how that stands; seconds until the work at hand is done."""
        proxy = await self._watched.proxy()
        if proxy is None:
            return None
        local = self._taken(proxy)
        generation = proxy.metadata.generation
        status = report(proxy.spec, generation, local, (generation, local.metadata.generation), proxy.status)
        if status != proxy.status:
            await self._send(proxy, status)
        return None if self._done_at is None else max(0.0, self._done_at - SYSTEM_CLOCK.monotonic())

    def _taken(self, proxy: ProxyAssemblage) -> Assemblage:
        """The Assemblage as delivery and agent have it by now."""
        local, now, wanted = self._local, SYSTEM_CLOCK.monotonic(), local_spec(proxy.spec, self._local)
        if local is not None and self._done_at is not None and self._done_at <= now:
            local = msgspec.structs.replace(local, status=finished(local.spec.syncs, local.status))
            self._done_at = None
        if local is None or local.spec != wanted:
            generation = 1 + (local.metadata.generation if local is not None else 0)
            status = begun(wanted.syncs, local.status if local is not None else AssemblageStatus(), generation)
            meta = ObjectMeta(
                name=wanted.instance, namespace=self._cluster.namespace, uid=self._uid, generation=generation
            )
            local = Assemblage(metadata=meta, spec=wanted, status=status)
            if self._done_at is None and any(each.state == "updating" for each in status.syncs):
                self._done_at = now + self._work
        self._local = local
        return local

    async def _send(self, proxy: ProxyAssemblage, status: ProxyAssemblageStatus) -> None:
        meta, ref = (
            proxy.metadata,
            ProxyAssemblage.declaration.resource.ref(self._cluster.name, self._cluster.namespace),
        )
        body = {
            "apiVersion": _API_VERSION,
            "kind": "ProxyAssemblage",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": msgspec.to_builtins(status),
        }
        answer = await self._hub.apply(ref.status, body, manager=MANAGER)
        self._watched.learn(answer.decode(ProxyAssemblage))


async def patiently(agent: SimulatedAgent, group: asyncio.TaskGroup) -> None:
    """Have it begin, however long the hub takes to answer."""
    while True:
        try:
            return await agent.begin(group)
        except StarlingError as error:
            print(error, file=sys.stderr)
            await asyncio.sleep(1.0)


async def run(path: Path, namespace: str, numbers: range, heartbeat: float, work: float) -> None:
    """Be these clusters until cancelled."""
    slim_tls_buffers()
    left = iter(numbers)
    async with Client(kubeconfig(path)) as client, asyncio.TaskGroup() as group:

        async def starter() -> None:
            for number in left:
                key = Key(namespace, f"{PREFIX}-{number}")
                await patiently(SimulatedAgent(client, key, heartbeat, work), group)

        for _ in range(STARTING):
            group.create_task(starter())


if __name__ == "__main__":
    there, where, first, end, period, takes = sys.argv[1:]
    asyncio.run(run(Path(there), where, range(int(first), int(end)), float(period), float(takes)))
