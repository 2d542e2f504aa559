"""A unit's record in a ConfigMap: it carries over, is written only when it changes, and never over another's."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from starling.engine import (
    ConfigMapStore,
    Drift,
    EngineError,
    Operation,
    Phase,
    Problem,
    Readiness,
    RecordTaken,
    Unit,
    UnitStatus,
)
from starling.kube import Client, KubeError, NotFound, Resource, ServerError, Unreachable
from starling.local import LocalCluster
from starling.objects import ObjectKey
from tests.integration.engine.traffic import Asked, traffic

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
WEB = Unit(id="cli/team/Unit.web@this", cluster="this")
KEY = ObjectKey("apps", "Deployment", "team", "web")
OPERATION = Operation(digest="sha256:1", revision="r1", wave=3, started_at=datetime(2026, 1, 2, tzinfo=UTC))
STATUS = UnitStatus(
    revision="r2",
    applied_revision="r1",
    inventory={KEY: "0123456789abcdef", ObjectKey("", "ConfigMap", "team", "new"): ""},
    baseline="sha256:2",
    operation=OPERATION,
    drift=(Drift(KEY, ("spec.replicas",), "kubectl-scale", "12:03"),),
    shared=(Drift(KEY, ("spec.paused",), "someone"),),
)


@pytest.fixture
async def store(client: Client, namespace: str) -> ConfigMapStore:
    """A store of one unit."""
    return ConfigMapStore(client, namespace, [WEB])


async def record(client: Client, namespace: str) -> Any:
    """The unit's ConfigMap."""
    return (await client.get(CONFIG_MAPS.ref("starling-web", namespace))).json()


async def status_of(store: ConfigMapStore) -> UnitStatus:
    """What the store says of the unit."""
    stored = await store.get(WEB.id)
    assert stored is not None
    return stored.status


async def test_what_a_new_process_needs_comes_back(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """All that can't be seen in the cluster is in the record, and nothing that can."""
    assert await status_of(store) == UnitStatus()
    problems = (Problem("Failed", "told"),)
    await store.set_status(WEB.id, replace(STATUS, readiness=Readiness.FAILED, message="told", problems=problems))
    assert await status_of(ConfigMapStore(client, namespace, [WEB])) == STATUS
    assert "told" not in str(await record(client, namespace))
    assert list(await store.records()) == [WEB.id]


async def test_an_operation_that_goes_on(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """Only it changes; the rest of the record stays."""
    await status_of(store)
    await store.set_status(WEB.id, STATUS)
    done = Operation(digest="sha256:1", phase=Phase.SUCCEEDED, started_at=OPERATION.started_at)
    await store.set_operation(WEB.id, done)
    found = await status_of(ConfigMapStore(client, namespace, [WEB]))
    assert (found.operation, found.inventory) == (done, STATUS.inventory)


async def test_what_says_nothing_new_is_not_written(cluster: LocalCluster, namespace: str) -> None:
    """Readiness comes and goes without a request; a process that starts with the same status sends none either."""
    async with traffic(cluster) as counted, Client(counted.access) as client:
        stores = [ConfigMapStore(client, namespace, [WEB]) for _ in range(2)]
        for store in stores:
            await status_of(store)
            for readiness in Readiness:
                await store.set_status(WEB.id, replace(STATUS, readiness=readiness))
    assert [each.verb for each in counted.asked] == ["get", "create", "get"]


async def test_two_at_once(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """Whoever didn't see the other's write is refused, at the first write as at any later one; nothing is lost."""
    another = ConfigMapStore(client, namespace, [WEB])
    await status_of(store)
    await status_of(another)
    await store.set_status(WEB.id, STATUS)
    with pytest.raises(RecordTaken, match=r"another process writes the record of cli/team/Unit\.web@this"):
        await another.set_status(WEB.id, UnitStatus(revision="r9"))
    third = ConfigMapStore(client, namespace, [WEB])
    await status_of(third)
    await third.set_status(WEB.id, UnitStatus(revision="r3"))
    await third.check(WEB, ())
    with pytest.raises(RecordTaken):
        await store.check(WEB, ())
    with pytest.raises(RecordTaken):
        await store.set_operation(WEB.id, replace(OPERATION, wave=4))
    with pytest.raises(RecordTaken):
        await store.set_status(WEB.id, UnitStatus(removed=True))
    assert (await status_of(third)).revision == "r3"


@pytest.mark.parametrize("had", [True, False], ids=["with a record", "without one"])
async def test_asking_again_is_no_leave_to_overwrite(client: Client, namespace: str, *, had: bool) -> None:
    """Who reads the other's record, at a refresh say, has still not written the last one: what it holds stays."""
    store, another = (ConfigMapStore(client, namespace, [WEB]) for _ in range(2))
    await status_of(store)
    if had:
        await store.set_status(WEB.id, STATUS)
    await status_of(another)
    await another.set_status(WEB.id, UnitStatus(revision="r3"))
    assert (await status_of(store)).revision == "r3"
    with pytest.raises(RecordTaken):
        await store.check(WEB, ())
    for _ in range(2):
        with pytest.raises(RecordTaken):
            await store.set_status(WEB.id, UnitStatus(revision="r9"))
        assert (await status_of(store)).revision == "r3"
    await another.set_status(WEB.id, UnitStatus(revision="r4"))


Spoilt = Literal["broken", "502"]
SPOILT: dict[Spoilt, type[KubeError]] = {"broken": Unreachable, "502": ServerError}


@pytest.mark.parametrize("first", ["create", "update"])
@pytest.mark.parametrize("how", SPOILT)
async def test_answers_that_were_lost(
    cluster: LocalCluster, client: Client, namespace: str, how: Spoilt, first: str
) -> None:
    """What was written nevertheless is our own: the same goes on, and so does what came after it."""
    async with traffic(cluster) as counted, Client(counted.access) as losing:
        store = ConfigMapStore(losing, namespace, [WEB])
        await status_of(store)
        if first == "update":
            await store.set_status(WEB.id, UnitStatus(revision="r1"))
        for revision in ("r2", "r3"):
            counted.spoilt = how
            with pytest.raises(SPOILT[how]):
                await store.set_status(WEB.id, UnitStatus(revision=revision))
            counted.spoilt = ""
            await store.check(WEB, ())
            await store.set_status(WEB.id, UnitStatus(revision=f"{revision}, later"))
            assert (await status_of(ConfigMapStore(client, namespace, [WEB]))).revision == f"{revision}, later"


async def test_several_answers_lost_one_after_the_other(cluster: LocalCluster, client: Client, namespace: str) -> None:
    """Any of them may have been written; the last that we want is, though it be what we knew at first."""
    async with traffic(cluster) as counted, Client(counted.access) as losing:
        store = ConfigMapStore(losing, namespace, [WEB])
        await store.set_status(WEB.id, UnitStatus(revision="r1"))
        counted.spoilt = "502"
        for revision in ("r2", "r3"):
            with pytest.raises(ServerError):
                await store.set_status(WEB.id, UnitStatus(revision=revision))
        counted.spoilt = ""
        await store.set_status(WEB.id, UnitStatus(revision="r1"))
    assert (await status_of(ConfigMapStore(client, namespace, [WEB]))).revision == "r1"


async def test_an_operation_goes_on_from_what_was_answered(cluster: LocalCluster, namespace: str) -> None:
    """What was sent in between and not answered isn't in it, though it was written."""
    async with traffic(cluster) as counted, Client(counted.access) as losing:
        store = ConfigMapStore(losing, namespace, [WEB])
        await store.set_status(WEB.id, STATUS)
        counted.spoilt = "502"
        with pytest.raises(ServerError):
            await store.set_status(WEB.id, UnitStatus(revision="r3"))
        counted.spoilt = ""
        await store.check(WEB, ())
        await store.set_operation(WEB.id, replace(OPERATION, wave=4))
        assert await status_of(store) == replace(STATUS, operation=replace(OPERATION, wave=4))


async def test_a_lost_answer_is_no_leave_to_overwrite(cluster: LocalCluster, client: Client, namespace: str) -> None:
    """If another wrote after what we sent, its record stands."""
    async with traffic(cluster) as counted, Client(counted.access) as losing:
        store, another = ConfigMapStore(losing, namespace, [WEB]), ConfigMapStore(client, namespace, [WEB])
        counted.spoilt = "broken"
        with pytest.raises(Unreachable):
            await store.set_status(WEB.id, STATUS)
        counted.spoilt = ""
        await status_of(another)
        await another.set_status(WEB.id, UnitStatus(revision="r3"))
        for status in (STATUS, UnitStatus(revision="r9"), UnitStatus(removed=True)):
            with pytest.raises(RecordTaken):
                await store.set_status(WEB.id, status)
        assert (await status_of(another)).revision == "r3"


async def test_many_at_once(client: Client, namespace: str) -> None:
    """Of many that begin at the same time exactly one begins."""
    stores = [ConfigMapStore(client, namespace, [WEB]) for _ in range(8)]
    await asyncio.gather(*map(status_of, stores))
    outcomes = await asyncio.gather(
        *(each.set_status(WEB.id, UnitStatus(revision=f"r{number}")) for number, each in enumerate(stores)),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes].count(type(None)) == 1
    assert [type(each) for each in outcomes].count(RecordTaken) == 7
    assert (await status_of(stores[0])).revision == f"r{outcomes.index(None)}"


async def test_a_label_from_others_is_no_quarrel(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """Someone who labels the record stops nobody, and the label stays."""
    await status_of(store)
    await store.set_status(WEB.id, STATUS)
    ref = CONFIG_MAPS.ref("starling-web", namespace)
    await client.merge_patch(ref, {"metadata": {"labels": {"team": "blue"}}})
    await store.set_status(WEB.id, UnitStatus(revision="r3"))
    found = await record(client, namespace)
    assert found["metadata"]["labels"]["team"] == "blue"
    assert (await status_of(store)).revision == "r3"


async def test_a_deleted_record_is_written_anew(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """Who deletes a record doesn't end the process that keeps it."""
    await status_of(store)
    await store.set_status(WEB.id, STATUS)
    await client.delete(CONFIG_MAPS.ref("starling-web", namespace))
    await store.set_status(WEB.id, UnitStatus(revision="r3"))
    assert (await status_of(store)).revision == "r3"


async def test_a_removed_unit_has_no_record(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """It goes with the unit; that it is gone already is fine."""
    await status_of(store)
    await store.set_status(WEB.id, STATUS)
    for _ in range(2):
        await store.set_status(WEB.id, UnitStatus(removed=True))
        with pytest.raises(NotFound):
            await record(client, namespace)
    assert list(await store.records()) == []


async def test_a_record_whose_making_was_not_answered_goes_too(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    """A unit that is removed before it is known whether it has a record leaves none."""
    async with traffic(cluster) as counted, Client(counted.access) as losing:
        store = ConfigMapStore(losing, namespace, [WEB])
        counted.spoilt = "502"
        with pytest.raises(ServerError):
            await store.set_status(WEB.id, STATUS)
        counted.spoilt = ""
        await store.set_status(WEB.id, UnitStatus(removed=True))
    with pytest.raises(NotFound):
        await record(client, namespace)


@pytest.mark.parametrize("labels", range(5))
async def test_a_record_that_others_label_as_it_goes(
    cluster: LocalCluster, client: Client, namespace: str, labels: int
) -> None:
    """It is deleted however often that takes, within reason, and that is no quarrel."""
    numbers = iter(range(labels))

    async def label(asked: Asked) -> None:
        if asked.verb == "delete" and (number := next(numbers, None)) is not None:
            ref = CONFIG_MAPS.ref("starling-web", namespace)
            await client.merge_patch(ref, {"metadata": {"labels": {"team": f"blue-{number}"}}})

    async with traffic(cluster) as counted, Client(counted.access) as labelled:
        counted.before = label
        store = ConfigMapStore(labelled, namespace, [WEB])
        await store.set_status(WEB.id, STATUS)
        await store.set_status(WEB.id, UnitStatus(removed=True))
        await store.set_status(WEB.id, STATUS)  # it may come back
    assert (await status_of(ConfigMapStore(client, namespace, [WEB]))) == STATUS


async def test_a_record_that_gets_too_large(store: ConfigMapStore) -> None:
    """Refused before the API server would, naming the unit; what was written stays."""
    await status_of(store)
    await store.set_status(WEB.id, STATUS)
    many = {ObjectKey("apps", "Deployment", "team", f"{'x' * 60}-{number}"): "0" * 16 for number in range(9_000)}
    with pytest.raises(EngineError, match=r"the record of cli/team/Unit.web@this would be .* for 9,000 objects"):
        await store.set_status(WEB.id, UnitStatus(inventory=many))
    assert await status_of(store) == STATUS
    fits = dict(list(many.items())[:8_000])
    await store.set_status(WEB.id, UnitStatus(inventory=fits))
    assert (await status_of(store)).inventory == fits


async def test_units_of_others(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """A unit that another process has is known by its record, held, and not among ours; one without is unknown."""
    shop = Unit(id="cli/team/Unit.shop@this", cluster="this")
    await ConfigMapStore(client, namespace, [shop]).set_status(shop.id, STATUS)
    found = await store.get(shop.id)
    assert found is not None
    assert (found.status.inventory, bool(found.unit.held)) == (STATUS.inventory, True)
    assert list(await store.list()) == [WEB.id]
    assert await store.get("cli/team/Unit.nobody@this") is None


async def test_a_record_of_the_same_name(store: ConfigMapStore) -> None:
    """A unit of another installation that is called like ours is unknown here: that is no mistake of ours."""
    await store.set_status(WEB.id, STATUS)
    assert await store.get("hub/team/Sync.web@edge") is None


async def test_a_config_map_that_is_no_record_of_ours(client: Client, namespace: str, store: ConfigMapStore) -> None:
    """Someone else's ConfigMap of that name, or a record that was spoilt, is an error that names it."""
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "starling-web"}, "data": {"state": "{}"}}
    await client.create(CONFIG_MAPS, content, namespace=namespace)
    with pytest.raises(EngineError, match=f"ConfigMap {namespace}/starling-web isn't the record of {WEB.id}"):
        await store.get(WEB.id)
    await client.merge_patch(
        CONFIG_MAPS.ref("starling-web", namespace),
        {"metadata": {"annotations": {"starling.dev/unit": WEB.id}}, "data": {"inventory": "nonsense\n"}},
    )
    with pytest.raises(EngineError, match=f"ConfigMap {namespace}/starling-web isn't a record that we wrote"):
        await store.get(WEB.id)


async def test_no_namespace_for_the_record(client: Client) -> None:
    """Said with the way out."""
    nowhere = ConfigMapStore(client, "nowhere", [WEB])
    assert await status_of(nowhere) == UnitStatus()
    with pytest.raises(EngineError, match="there is no namespace nowhere") as refused:
        await nowhere.set_status(WEB.id, STATUS)
    assert "kubectl create namespace nowhere" in str(refused.value.hint)
