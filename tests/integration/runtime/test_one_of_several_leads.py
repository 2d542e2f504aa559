"""Of several candidates one leads; another follows when it ends, dies, or can't be heard of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from starling.errors import InputError
from starling.kube import Client
from starling.local import LocalCluster
from starling.runtime import LeaseSettings, lead
from starling.runtime.leading import LEASES
from tests.integration.clusters import through
from tests.integration.relay import Relay
from tests.waiting import until

SHORT = LeaseSettings(duration=6.0, renew_within=4.0, retry=0.2)


@dataclass
class Office:
    """Who leads, as the works themselves know it. Mutable."""

    leaders: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    told: list[bool] = field(default_factory=list)
    ended_at: float = 0.0

    async def work(self, name: str) -> None:
        """Lead until cancelled."""
        self.leaders.append(name)
        self.history.append(name)
        assert self.leaders == [name]
        try:
            await asyncio.Event().wait()
        finally:
            self.leaders.remove(name)
            self.ended_at = asyncio.get_running_loop().time()

    @asynccontextmanager
    async def candidate(self, client: Client, namespace: str, name: str) -> AsyncIterator["asyncio.Task[None]"]:
        """A candidate while the block runs."""
        task = asyncio.create_task(
            lead(client, "test", namespace, name, lambda: self.work(name), SHORT, told=self.told.append)
        )
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def office() -> Office:
    """One that nobody has held yet."""
    return Office()


async def spec(client: Client, namespace: str) -> dict[str, Any]:
    """What the Lease says."""
    found: dict[str, Any] = (await client.get(LEASES.ref("test", namespace))).json()["spec"]
    return found


async def test_one_leads_and_hands_over(client: Client, namespace: str, office: Office) -> None:
    """The second waits while the first renews; when it ends, the lease is given up and taken at once."""
    async with office.candidate(client, namespace, "one") as one:
        await until(lambda: office.leaders == ["one"])
        first = await spec(client, namespace)
        assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("one", 6, 0)
        async with office.candidate(client, namespace, "two"):

            async def renewed() -> bool:
                return bool((await spec(client, namespace))["renewTime"] > first["renewTime"])

            await until(renewed)
            assert office.leaders == ["one"]
            assert (await spec(client, namespace))["acquireTime"] == first["acquireTime"]
            one.cancel()
            await asyncio.gather(one, return_exceptions=True)
            given_up = asyncio.get_running_loop().time()
            await until(lambda: office.leaders == ["two"])
            assert asyncio.get_running_loop().time() - given_up < SHORT.duration - 1
            second = await spec(client, namespace)
            assert (second["holderIdentity"], second["leaseTransitions"]) == ("two", 1)
            assert office.told == [True, False, True]
    assert (await spec(client, namespace))["holderIdentity"] == ""


async def test_of_many_at_once_one_gets_it(client: Client, namespace: str, office: Office) -> None:
    """All see it free and reach for it; the server lets one have it."""
    free = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "test"}}
    await client.create(LEASES, free, namespace=namespace)
    async with AsyncExitStack() as stack:
        all_of_them = [
            await stack.enter_async_context(office.candidate(client, namespace, f"candidate-{number}"))
            for number in range(6)
        ]
        await until(lambda: bool(office.leaders))
        acquired = (await spec(client, namespace))["acquireTime"]

        async def renewed() -> bool:
            return bool((await spec(client, namespace))["renewTime"] > acquired)

        await until(renewed)
        assert len(office.history) == 1
        assert not any(task.done() for task in all_of_them)


async def test_the_lease_of_a_dead_holder_runs_out(
    cluster: LocalCluster, client: Client, namespace: str, office: Office
) -> None:
    """It can't give it up: the other takes it when its time is over, and not before."""
    async with (
        Relay(cluster.port) as relay,
        Client(through(cluster, relay.port)) as behind,
        office.candidate(behind, namespace, "one") as one,
    ):
        await until(lambda: office.leaders == ["one"])
        async with office.candidate(client, namespace, "two"):
            relay.cut()
            one.cancel()
            await asyncio.gather(one, return_exceptions=True)
            last = await spec(client, namespace)
            assert last["holderIdentity"] == "one"
            await until(lambda: office.leaders == ["two"])
            waited = datetime.now(UTC) - datetime.fromisoformat(last["renewTime"])
            assert waited.total_seconds() >= SHORT.duration


async def test_who_can_not_renew_stops_in_time(cluster: LocalCluster, namespace: str, office: Office) -> None:
    """Its work is cancelled before another may take the lease, and begins anew when the server is back."""
    async with Relay(cluster.port) as relay, Client(through(cluster, relay.port)) as behind:
        async with office.candidate(behind, namespace, "one"):
            await until(lambda: office.leaders == ["one"])
            relay.cut()
            cut_at = asyncio.get_running_loop().time()
            await until(lambda: not office.leaders)
            assert office.ended_at - cut_at < SHORT.duration
            await relay.mend()
            await until(lambda: office.history == ["one", "one"])
        assert office.told == [True, False, True, False]


async def test_who_is_replaced_stops_at_once(client: Client, namespace: str, office: Office) -> None:
    """However it came about: a lease in another's name is not ours."""
    async with office.candidate(client, namespace, "one"):
        await until(lambda: office.leaders == ["one"])
        fields = {"holderIdentity": "other", "leaseDurationSeconds": 1}
        await client.merge_patch(LEASES.ref("test", namespace), {"spec": fields})
        await until(lambda: not office.leaders)
        await until(lambda: office.history == ["one", "one"])


async def test_a_lease_that_was_deleted_is_made_again(client: Client, namespace: str, office: Office) -> None:
    """And the work begins anew: someone else may have had it in between."""
    async with office.candidate(client, namespace, "one"):
        await until(lambda: office.leaders == ["one"])
        await client.delete(LEASES.ref("test", namespace))
        await until(lambda: office.history == ["one", "one"])
        assert (await spec(client, namespace))["holderIdentity"] == "one"


async def test_work_that_ends_ends_it(client: Client, namespace: str) -> None:
    """Well or with an error; the lease is given up either way."""

    async def fail() -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        await asyncio.wait_for(lead(client, "test", namespace, "one", fail, SHORT), 60)
    assert (await spec(client, namespace))["holderIdentity"] == ""

    async def end() -> None:
        assert (await spec(client, namespace))["holderIdentity"] == "two"

    await asyncio.wait_for(lead(client, "test", namespace, "two", end, SHORT), 60)
    assert (await spec(client, namespace))["holderIdentity"] == ""
