"""Whether an object has drifted is told by a digest of its managed fields; a dry run of our apply says the same.

What the digest can't see is recognised by `blind`, and listed in docs/drift.md.
"""

import copy
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from subprocess import CompletedProcess

import pytest

from starling.engine.cache import Seen
from starling.engine.diff import Effect, render
from starling.engine.fields import own_entry
from starling.kube import ApiError, Client, NotFound, Ref
from starling.local import LocalCluster
from starling.objects import GroupVersionKind, ManifestError, ObjectKey
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.fuzzing import GADGET_CRD, KINDS, Deed, Json, manifest, meddle
from tests.integration.engine.subjects import Subject, subject
from tests.integration.engine.world import World, running_engine, world
from tests.rounds import ROUNDS
from tests.waiting import until

CASES = 8
"""Objects of each kind in a round."""

WRITES = 30
"""What others do in a round while an engine runs."""


@pytest.fixture(scope="module", autouse=True)
def gadgets(kubectl: Callable[..., CompletedProcess[str]]) -> Iterator[None]:
    """A kind with lists of every sort, and with fields that no schema knows."""
    crd = json.dumps(GADGET_CRD)
    assert kubectl("apply", "--server-side", "-f", "-", input=crd).returncode == 0
    assert kubectl("wait", "--for=condition=Established", "-f", "-", input=crd).returncode == 0
    yield
    assert kubectl("delete", "-f", "-", input=crd).returncode == 0


async def blind(found: Subject, deeds: Sequence[Deed]) -> bool:
    """Whether a difference is of the sort that the digest can't see."""
    return any(deed.how == "apply_as_us" for deed in deeds) or await found.only_order()


@pytest.mark.rounds
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_random_objects_and_random_writes(client: Client, namespace: str, kind: str, seed: int) -> None:
    """What differs has drifted, what has drifted would be written, and one apply later all is quiet."""
    rng = random.Random(f"{kind} {seed}")
    for case in range(CASES):
        try:
            found = await subject(client, manifest(kind, f"{namespace}-{case}", rng), namespace)
            await found.apply()
        except (ApiError, ManifestError):
            continue  # not a valid manifest
        try:
            await judged(found, rng)
        finally:
            await client.merge_patch(found.ref, {"metadata": {"finalizers": None}})
            await client.delete(found.ref)


async def judged(found: Subject, rng: random.Random) -> None:
    """Have others meddle, compare what the record says with what the server says, and put it right."""
    as_us, times = rng.random() < 0.1, rng.choice([1, 1, 2, 3])
    one = partial(meddle, found.client, found.ref, found.content, rng, as_us=as_us)
    deeds = [await one(f"someone-{number}") for number in range(times)]
    drifted, diff = (await found.look()).drifted, await found.diff()
    told = f"{found.desired.key}: {'; '.join(map(str, deeds))}\n{diff}\n{render([diff])}"
    if diff.different and not drifted:
        assert await blind(found, deeds), f"not seen: {told}"
    if drifted:
        assert diff.different or diff.ownership, f"a false alarm: {told}"
    if diff.effect is not Effect.REFUSED:
        await found.apply()
        again = await found.diff()
        assert (again.effect, again.ownership) == (Effect.UNCHANGED, False), told
        assert not (await found.look()).drifted, told


# The blind spots, and what is just beside them


def gadget(name: str) -> Json:
    """A Gadget as many_kinds.yaml has it."""
    content = copy.deepcopy(KINDS["Gadget"])
    content["metadata"]["name"] = name
    return content


@pytest.mark.parametrize(("field", "seen"), [("parts", False), ("tags", False), ("plain", True)])
async def test_reordered_lists(client: Client, namespace: str, field: str, seen: bool) -> None:
    """Order is seen in a list that is one value; in a list by keys, or a set, only the next full apply mends it."""
    found = await subject(client, gadget(field), namespace)
    await found.apply()
    live = await found.live()
    ours = copy.deepcopy(live["spec"])
    live["spec"][field].reverse()
    await client.raw("PUT", found.ref.path, query={"fieldManager": "someone"}, body=live)
    assert (await found.look()).drifted is seen
    assert (await found.diff()).different
    assert await found.only_order()
    await found.apply()
    assert (await found.live())["spec"] == ours


async def test_the_interval_mends_what_cannot_be_seen(client: Client, cluster: LocalCluster, namespace: str) -> None:
    """An engine applies everything again in every interval, and so puts a list back into its order."""
    found = await subject(client, gadget("interval"), namespace)
    here = world(cluster)
    identity = here.put(namespace, json.dumps(found.content), target_namespace=namespace, interval=2.0)
    async with running_engine(here):
        await here.synced(identity)
        live = await found.live()
        ours = [part["name"] for part in live["spec"]["parts"]]
        live["spec"]["parts"].reverse()
        await client.raw("PUT", found.ref.path, query={"fieldManager": "someone"}, body=live)

        async def in_order() -> bool:
            return [part["name"] for part in (await found.live())["spec"]["parts"]] == ours

        await until(in_order)
        await until(lambda: any("due to be applied again" in str(event.task) for event in here.events))


async def test_a_writer_that_calls_itself_starling(client: Client, namespace: str) -> None:
    """His apply of the same fields is told from ours by its time alone, in whole seconds; his update is always seen."""
    found = await subject(client, gadget("impostor"), namespace)
    await found.apply()
    ours = own_entry((await client.get(found.ref)).decode(Seen).metadata.managed_fields or ())
    other = copy.deepcopy(found.content)
    other["spec"]["size"] = 7
    body = await client.apply(found.ref, other)
    theirs = own_entry(body.decode(Seen).metadata.managed_fields or ())
    assert ours is not None
    assert theirs is not None
    assert ours.fields_v1 == theirs.fields_v1
    assert (await found.look()).drifted is (ours.time != theirs.time)
    assert (await found.diff()).different
    await found.apply()
    assert (await found.live())["spec"]["size"] == 1
    await client.merge_patch(found.ref, {"spec": {"size": 7}}, manager="starling")
    assert (await found.look()).drifted


POLICY: Json = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingAdmissionPolicy",
    "spec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["UPDATE"]}
            ]
        },
        "matchConditions": [
            {"name": "theirs", "expression": "request.options.?fieldManager.orValue('') == 'someone'"}
        ],
        "mutations": [
            {
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{data: {'ours': 'changed in passing'}}"},
            }
        ],
    },
}  # fmt: skip


async def policies(client: Client, name: str) -> list[tuple[Ref, Json]]:
    """A policy that changes a field of ours whenever someone else writes, bound to one namespace."""
    binding = {
        "apiVersion": POLICY["apiVersion"],
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
        },
    }
    both = []
    for content in ({**POLICY, "metadata": {"name": name}}, binding):
        kind = GroupVersionKind.from_api_version(content["apiVersion"], content["kind"])
        both.append(((await client.discovery.resource(kind)).ref(name), content))
    return both


async def test_admission_that_rides_on_a_foreign_write(client: Client, namespace: str) -> None:
    """What a policy changes while someone writes another field leaves our entry alone; the next full apply mends it."""
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ridden"}, "data": {"ours": "1"}}
    found = await subject(client, content, namespace)
    await found.apply()
    made = await policies(client, namespace)
    for ref, each in made:
        await client.apply(ref, each)

    async def ridden() -> bool:
        await client.merge_patch(found.ref, {"data": {"theirs": str(random.random())}}, manager="someone")
        return bool((await found.live())["data"]["ours"] != "1")

    try:
        await until(ridden)
        assert not (await found.look()).drifted
        assert [change.path for change in (await found.diff()).changes] == ["data.ours"]
        await found.apply()
        assert (await found.live())["data"]["ours"] == "1"
    finally:
        for ref, _ in made:
            await client.delete(ref)


# The engine itself


async def valid(client: Client, kind: str, name: str, namespace: str, rng: random.Random) -> Subject:
    """A random object of a kind that the server accepts."""
    while True:
        content = manifest(kind, name, rng)
        content["metadata"].pop("finalizers", None)  # nobody is here who would take it off
        with suppress(ManifestError):
            found = await subject(client, content, namespace)
            if (await found.diff()).effect is not Effect.REFUSED:
                return found


async def disturb(found: Subject, rng: random.Random, manager: str) -> Deed:
    """Delete the object, or meddle with it."""
    if rng.random() > 0.1:
        return await meddle(found.client, found.ref, found.content, rng, manager)
    await found.client.delete(found.ref)
    with suppress(NotFound):
        await found.client.merge_patch(found.ref, {"metadata": {"finalizers": None}}, manager=manager)
    return Deed("delete")


async def settled(found: Subject) -> bool:
    """Whether the object is as a dry run says it should be, or differs in a way that the engine can't see or mend."""
    diff = await found.diff()
    return diff.effect in (Effect.UNCHANGED, Effect.REFUSED) or (
        diff.effect is Effect.CHANGED and await found.only_order()
    )


@pytest.mark.rounds
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_an_engine_puts_it_right_and_comes_to_rest(
    client: Client, cluster: LocalCluster, namespace: str, seed: int
) -> None:
    """Whatever others do that can be seen is undone, as the dry run says; and then nothing is written any more."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS if kind != "PersistentVolumeClaim"]  # nobody takes off the finalizer it gets
    subjects = [await valid(client, kind, f"{namespace}-{kind.lower()}", namespace, rng) for kind in kinds]
    here = world(cluster)
    canary = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary"}, "data": {"sings": "yes"}}
    contents = [*(found.content for found in subjects), canary]
    identity = here.put(
        namespace, "---\n".join(json.dumps(each) + "\n" for each in contents), target_namespace=namespace
    )
    try:
        async with running_engine(here):
            await here.until(identity, lambda status: status.baseline)
            deeds = [await undone(rng.choice(subjects), rng, f"someone-{number}") for number in range(WRITES)]
            await at_rest(here, client, subjects, namespace)
        assert len(here.events) <= len(contents) + 3 * WRITES + 10, deeds
    finally:
        for found in subjects:
            await client.merge_patch(found.ref, {"metadata": {"finalizers": None}})
            await client.delete(found.ref)


async def test_a_kind_that_came_in_the_same_run(client: Client, cluster: LocalCluster, namespace: str) -> None:
    """An object is watched whose kind wasn't served until its definition was applied along with it."""
    group = f"{namespace}.example.org"
    definition = json.loads(json.dumps(GADGET_CRD).replace("fuzz.example.org", group))
    content = {**gadget("new"), "apiVersion": f"{group}/v1"}
    here = world(cluster)
    both = f"{json.dumps(definition)}\n---\n{json.dumps(content)}"
    identity = here.put(namespace, both, target_namespace=namespace, allow_empty=True)
    async with running_engine(here):
        await here.synced(identity)
        found = await subject(client, content, namespace)
        await client.merge_patch(found.ref, {"spec": {"size": 7}}, manager="someone")
        await until(partial(settled, found))
        here.put(namespace, "", target_namespace=namespace, allow_empty=True)
        await here.until(identity, lambda status: not status.inventory)


async def undone(found: Subject, rng: random.Random, manager: str) -> Deed:
    """Disturb an object, and wait until the engine has put it right."""
    deed = await disturb(found, rng, manager)
    try:
        await until(partial(settled, found))
    except TimeoutError:
        raise AssertionError(f"not put right: {deed}: {render([await found.diff()])}") from None
    return deed


async def at_rest(here: World, client: Client, subjects: Sequence[Subject], namespace: str) -> None:
    """Disturb one more object until it is put right and nothing else was done meanwhile; it mustn't take long.

    An object may be left so that the server takes no apply to it any more: that is tried again, and does nothing.
    """
    ref, key = CONFIG_MAPS.ref("canary", namespace), ObjectKey("", "ConfigMap", namespace, "canary")
    refused = {found.desired.key for found in subjects if (await found.diff()).effect is Effect.REFUSED}
    sings = partial(_data_is, client, ref, {"sings": "yes"})
    others: list[str] = []
    for number in range(5):  # what was seen last may still be under way
        before, versions = len(here.events), await _versions(subjects)
        await _disturb_canary(client, ref, f"cat-{number}", sings)
        others = [str(event.task) for event in here.events[before:] if event.task.key not in {key, *refused}]
        if not others and versions == await _versions(subjects):
            return
    raise AssertionError(f"no rest: {others}")


async def _versions(subjects: Sequence[Subject]) -> list[str]:
    return [(await found.live())["metadata"]["resourceVersion"] for found in subjects]


async def _disturb_canary(client: Client, ref: Ref, manager: str, sings: Callable[[], Awaitable[bool]]) -> None:
    await client.merge_patch(ref, {"data": {"sings": "no"}}, manager=manager)
    await until(sings)


async def _data_is(client: Client, ref: Ref, data: dict[str, str]) -> bool:
    return bool((await client.get(ref)).json()["data"] == data)
