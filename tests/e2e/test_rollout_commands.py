"""`starling rollout` on a real API server, where the test writes what the module controller would."""

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from starling.api.orders import ORDER, Order
from starling.kube import Client, Resource, kubeconfig
from starling.local import LocalCluster, LocalClusters
from tests.e2e.conftest import Starling
from tests.e2e.rollouts import COMMITS, T1, T2, Hub
from tests.integration.clusters import kill, revive

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
STAGES = [
    {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}, "bake": "10m"},
    {"name": "eu", "selector": {"matchLabels": {"region": "eu"}}, "approval": "Manual"},
]
SINCE = "2026-01-01T00:00:00Z"

_numbers = itertools.count()

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def server(starling: Starling, environment: dict[str, str]) -> LocalCluster:
    """A hub with Starling's kinds."""
    up = starling("local", "up", "hub")
    assert up.returncode == 0, up.stderr
    assert starling("install", "--kubeconfig", up.stdout.strip()).returncode == 0
    return LocalClusters(Path(environment["STARLING_LOCAL_DIR"])).get("hub")


@pytest.fixture
async def hub(server: LocalCluster, environment: dict[str, str]) -> AsyncIterator[Hub]:
    """A namespace of the hub for one test."""
    name = f"fleet-{next(_numbers)}"
    async with Client(kubeconfig(server.kubeconfig)) as client:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        hub = Hub(client, str(server.kubeconfig), name, environment)
        yield hub
        await hub.end()


async def put_cluster(hub: Hub, name: str, labels: dict[str, str], state: str, message: str = "") -> None:
    """A cluster that has the second target, and says that of it."""
    await hub.put("clusters", name, {"pull": {}}, {"phase": "Ready"}, labels=labels)
    git = {"url": "https://git.example/platform", "commit": COMMITS[T2], "tag": "v1.2.0"}
    entry = {"name": "web", "unit": f"fleet/n/Module.web@{name}", "target": T2, "source": {"git": git}}
    said = {"name": "web", "target": T2, "revision": f"sha1:{COMMITS[T2]}", "state": state, "message": message}
    await hub.put("proxyassemblages", name, {"instance": "fleet", "syncs": [entry]}, {"syncs": [said]})


async def test_where_it_stands(hub: Hub) -> None:
    """Stages by what is recorded, clusters by what they say; text, and the same as JSON."""
    await hub.put_module({"stages": STAGES}, stage="canary", stageStarted=SINCE, bakingSince=SINCE)
    await put_cluster(hub, "c-1", {"ring": "canary"}, "succeeded")
    await put_cluster(hub, "eu-1", {"region": "eu"}, "failed", "ImagePullBackOff")
    code, told, _ = await hub.run("rollout", "status", "web")
    assert code == 0
    lines = told.splitlines()
    assert lines[0] == f"module {hub.namespace}/web"
    assert "  ready      no (Progressing): 1 of 3 clusters are at the target" in lines
    assert [line.split("  ")[0] for line in lines if line.startswith(("canary", "eu "))] == ["canary", "eu"]
    assert "canary  baking until 2026-01-01 00:10:00 UTC  1/1" in lines
    assert "  eu-1  v1.2.0 failed  ImagePullBackOff" in lines
    _, told, _ = await hub.run("rollout", "status", "module/web", "-o", "json")
    document = json.loads(told)
    assert [each["state"] for each in document["stages"]] == ["baking", "to come"]
    assert document["failed"] == [{"cluster": "eu-1", "message": "ImagePullBackOff"}]


async def test_a_policy_by_its_name(hub: Hub) -> None:
    """Stages are those of the RolloutPolicy that is referred to; one that isn't there is told."""
    await hub.put_module(stage="eu", phase="Waiting")
    patch = {"spec": {"rollout": None, "policyRef": {"name": "safe"}}}
    await hub.client.merge_patch(hub.ref(), patch, manager="test")
    code, _, noted = await hub.run("rollout", "status", "web")
    assert (code, noted) == (
        0,
        f"RolloutPolicy.starling.dev {hub.namespace}/safe isn't there; without it no stages are known\n",
    )
    await hub.put("rolloutpolicies", "safe", {"stages": STAGES, "paused": True})
    _, told, _ = await hub.run("rollout", "status", "web")
    assert "eu      waits for approval  0/0" in told.splitlines()
    code, told, noted = await hub.run("rollout", "resume", "web")
    assert (code, told) == (0, f"module {hub.namespace}/web wasn't paused\n")
    assert noted == "its policy says paused: true, so nothing moves until that is changed\n"


async def test_paused_and_resumed(hub: Hub) -> None:
    """spec.suspend is set and taken away; either may be said twice."""
    await hub.put_module()
    who = f"module {hub.namespace}/web"
    assert await hub.run("rollout", "pause", "web") == (0, f"{who} is paused\n", "")
    assert (await hub.get()).spec.suspend
    assert await hub.run("rollout", "pause", "web") == (0, f"{who} was paused already\n", "")
    assert await hub.run("rollout", "resume", "web") == (0, f"{who} goes on\n", "")
    assert not (await hub.get()).spec.suspend


async def test_others_that_pause_it_too_are_named(hub: Hub) -> None:
    """What git says, say, comes back: so who else has set the field is told, and that only."""
    await hub.put_module()
    await hub.client.merge_patch(hub.ref(), {"spec": {"suspend": True}}, manager="argocd")
    other = "argocd sets spec.suspend as well, and may put it back: if that is git, do it there\n"
    assert (await hub.run("rollout", "pause", "web"))[2] == other
    assert (await hub.run("rollout", "resume", "web"))[2] == ""
    assert (await hub.run("rollout", "pause", "web"))[2] == ""


async def test_a_group_is_named_if_it_is_meant(hub: Hub) -> None:
    """A name alone is a Module's; if a SyncGroup has it, the way out is how that is written."""
    await hub.put("syncgroups", "platform", {"syncs": [{"name": "a", "source": {"name": "platform"}}]})
    code, _, noted = await hub.run("rollout", "status", "platform")
    assert code == 2
    assert noted == (
        f"error: there is no module platform in namespace {hub.namespace}\n"
        "hint: there is a syncgroup of that name: syncgroup/platform\n"
    )


async def test_a_stage_is_approved(hub: Hub) -> None:
    """The order names target, stage, and who gave it as the API server knows them; its end is waited for."""
    await hub.put_module({"stages": STAGES}, stage="eu")
    approving = await hub.start("rollout", "approve", "web")
    order = await hub.ordered()
    assert order == Order(id=order.id, verb="approve", target=T2, stage="eu", by="admin")
    await hub.say(order="another")
    approved = {"stage": "eu", "by": order.by, "at": SINCE}
    await hub.say("stage eu has begun", order=order.id, approvals=[approved], stageStarted=SINCE)
    code, told, noted = await approving.ends()
    assert (code, told) == (0, f"stage eu of module {hub.namespace}/web is approved for v1.2.0\n")
    assert noted == "Progressing, stage eu: stage eu has begun\n"
    again, _, noted = await hub.run("rollout", "approve", "web", "eu")
    assert again == 2
    assert "is approved already, by admin" in noted


async def test_a_failed_one_is_tried_again(hub: Hub) -> None:
    """Once the controller has it tried again, that is said; an order that was only noted is a no."""
    await hub.put_module(failedTarget=T2)
    retrying = await hub.start("rollout", "retry", "web")
    order = await hub.ordered()
    assert (order.verb, order.target) == ("retry", T2)
    await hub.say(order=order.id, failedTarget="")
    code, told, _ = await retrying.ends()
    assert (code, told) == (0, f"module {hub.namespace}/web tries v1.2.0 again\n")

    await hub.say(failedTarget=T2)
    in_vain = await hub.start("rollout", "retry", "web")
    await hub.say(order=(await hub.ordered(after=order)).id)
    code, told, _ = await in_vain.ends()
    assert (code, told) == (1, f"module {hub.namespace}/web: nothing came of the order to retry it\n")


@pytest.mark.parametrize(("more", "to"), [((), T1), (("--to", "aaaaaaa"), T1)], ids=["last good", "commit"])
async def test_going_back(hub: Hub, more: tuple[str, ...], to: str) -> None:
    """To the last good one, or to what is named; what another one of its name had is no part of its history."""
    await hub.put_module()
    await hub.put_history(T1, T2)
    undoing = await hub.start("rollout", "undo", "web", *more)
    order = await hub.ordered()
    assert (order.verb, order.target, order.to) == ("undo", T2, to)
    await hub.say(order=order.id, failedTarget=T2, rollbackTo=to, phase="RollingBack")
    code, told, _ = await undoing.ends()
    assert code == 0
    assert told == f"module {hub.namespace}/web goes back from v1.2.0 to v1.1.0 (number 1, t1:111111111111)\n"


async def test_what_was_rolled_out(hub: Hub) -> None:
    """The newest first, with what each is now."""
    await hub.put_module()
    assert await hub.run("rollout", "history", "web") == (0, "", f"module {hub.namespace}/web has no history yet\n")
    await hub.put_history(T1, T2)
    _, told, _ = await hub.run("rollout", "history", "web")
    rows = [line.split() for line in told.splitlines()]
    assert [(row[0], row[1], row[2], row[4:]) for row in rows[1:]] == [
        ("2", "v1.2.0", "t1:222222222222", ["target"]),
        ("1", "v1.1.0", "t1:111111111111", ["last", "good"]),
    ]
    _, told, _ = await hub.run("rollout", "history", "web", "-o", "json")
    assert [each["revision"] for each in json.loads(told)["history"]][1] == f"v1.1.0@sha1:{COMMITS[T1]}"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["approve", "web"], "error: nothing of module {}/web waits for approval"),
        (["retry", "web"], "error: nothing of module {}/web has failed"),
        (["undo", "web"], "error: what the last good target of module {}/web stood for isn't known any more"),
        (["approve", "wbe"], "error: there is no module wbe in namespace {}"),
        (["wait", "pod/web"], "error: 'pod/web' names nothing that is rolled out"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, list) else "",
)
async def test_what_there_is_nothing_to_do_for(hub: Hub, command: list[str], message: str) -> None:
    """It is refused with the way out, and nothing is written."""
    await hub.put_module()
    code, told, noted = await hub.run("rollout", *command)
    assert (code, told) == (2, "")
    assert message.format(hub.namespace) in noted
    assert "hint: " in noted
    assert ORDER not in (await hub.get()).metadata.annotations


async def test_an_order_that_nobody_carries_out(hub: Hub) -> None:
    """Out of time is 4, and the order stands; without waiting it is given, in place of the first."""
    await hub.put_module(failedTarget=T2)
    code, told, noted = await hub.run("rollout", "retry", "web", "--timeout", "500ms")
    assert (code, told) == (4, "")
    assert f"nobody carried out the order to retry module {hub.namespace}/web" in noted
    first = await hub.ordered()
    code, told, noted = await hub.run("rollout", "retry", "web", "--timeout", "0")
    assert (code, told) == (0, f"module {hub.namespace}/web: the order to retry it is given, and not waited for\n")
    assert noted == "in place of an order that nobody has carried out: retry, of admin\n"
    assert (await hub.ordered()).id != first.id


async def test_another_target_meanwhile(hub: Hub) -> None:
    """The order was for what its giver saw: it is an error, though the controller has noted it."""
    await hub.put_module({"stages": STAGES}, stage="eu", target=T1)
    approving = await hub.start("rollout", "approve", "web")
    order = await hub.ordered()
    assert order.target == T1
    await hub.say(target=T2, order=order.id)
    code, told, noted = await approving.ends()
    assert (code, told) == (3, "")
    assert "has another target meanwhile, v1.2.0 (t1:222222222222), for which nothing was ordered" in noted


async def test_another_order_meanwhile(hub: Hub) -> None:
    """Whose order was overwritten is told, and by whom."""
    await hub.put_module(failedTarget=T2)
    retrying = await hub.start("rollout", "retry", "web")
    await hub.ordered()
    other = Order(id="2", verb="undo", target=T2, to=T1, by="bob").encode()
    await hub.client.merge_patch(hub.ref(), {"metadata": {"annotations": {ORDER: other}}}, manager="test")
    code, _, noted = await retrying.ends()
    assert code == 3
    assert "another one took its place: undo, of bob" in noted


async def test_waiting_until_it_is_done(hub: Hub) -> None:
    """A line for each change, and 0 once it has been through all stages."""
    await hub.put_module()
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("waiting: Progressing: 1 of 3 clusters are at the target")
    await hub.say("bakes", phase="Baking", stage="canary")
    await waiting.says("waiting: Baking, stage canary: bakes")
    await hub.say("3 of 3 clusters are at the target", phase="Succeeded", stage="", ended=T2, lastGood=T2)
    code, told, noted = await waiting.ends()
    assert (code, noted) == (0, "")
    assert told == f"module {hub.namespace}/web is rolled out: v1.2.0; 3 of 3 clusters are at the target\n"
    await hub.say("one is unwell", phase="Degraded")
    assert (await hub.run("rollout", "wait", "web"))[0] == 0


async def test_waiting_for_what_fails(hub: Hub) -> None:
    """1 when it stops; when clusters return, 1 once they are back. Those that failed are named."""
    await hub.put_module()
    await put_cluster(hub, "eu-1", {"region": "eu"}, "failed", "ImagePullBackOff")
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("waiting: Progressing")
    await hub.say("stopped", phase="Failed", failedTarget=T2)
    code, told, noted = await waiting.ends()
    assert (code, told) == (1, f"module {hub.namespace}/web isn't rolled out: v1.2.0 Failed; stopped\n")
    assert "  eu-1  v1.2.0 failed  ImagePullBackOff" in noted

    await hub.say("goes back", phase="RollingBack", rollbackTo=T1)
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("waiting: RollingBack: goes back")
    await hub.say("went back", phase="RolledBack")
    code, told, _ = await waiting.ends()
    assert (code, told) == (1, f"module {hub.namespace}/web isn't rolled out: v1.2.0 RolledBack; went back\n")


async def test_waiting_for_too_long(hub: Hub) -> None:
    """4, with where it stands."""
    await hub.put_module()
    code, told, noted = await hub.run("rollout", "wait", "web", "--timeout", "500ms")
    assert (code, told) == (4, "")
    assert "isn't rolled out after 0.5 s: Progressing: 1 of 3 clusters are at the target" in noted
    assert (await hub.run("rollout", "wait", "wbe"))[0] == 2


async def test_waiting_is_not_fooled_by_what_was(hub: Hub) -> None:
    """A success of the Module as it was before its last change ends nothing."""
    await hub.put_module()
    await hub.say(phase="Succeeded", ended=T2)
    await hub.client.merge_patch(hub.ref(), {"spec": {"sync": {"path": "./other"}}}, manager="test")
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("(said before it was changed last)")
    await hub.say("again", phase="Progressing", ended="")
    await waiting.says("waiting: Progressing: again")
    await hub.say("well", phase="Succeeded", ended=T2)
    assert (await waiting.ends())[0] == 0


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        ("v1.2.0", {"target": T2, "ended": T2}),
        (COMMITS[T2], {"target": T2, "ended": T2}),
        ("ccccccc", {"target": T1, "sourceRevision": f"main@sha1:{'c' * 40}"}),
    ],
    ids=["tag", "commit", "equal content"],
)
async def test_waiting_for_a_revision(hub: Hub, wanted: str, seen: dict[str, Any]) -> None:
    """The success of the revision before isn't the one that is waited for; a commit that changes nothing is done."""
    await hub.put_module()
    await hub.say(phase="Succeeded", target=T1, ended=T1)
    waiting = await hub.start("rollout", "wait", "web", "--for-revision", wanted)
    await waiting.says(f"waiting: for {wanted}; it is at v1.1.0@sha1:{COMMITS[T1]} yet")
    await hub.say("well", **seen)
    assert (await waiting.ends())[0] == 0


async def test_waiting_while_the_api_server_is_away(hub: Hub, server: LocalCluster) -> None:
    """It is told, and what happens after it is back is heard."""
    await hub.put_module()
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("waiting: Progressing")
    kill(server)
    await waiting.says("waiting: the API server is away")
    await revive(server)
    await hub.say("well", phase="Succeeded", ended=T2)
    assert (await waiting.ends())[0] == 0


async def test_deleted_meanwhile(hub: Hub) -> None:
    """What isn't there any more never ends: 3."""
    await hub.put_module()
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("waiting: Progressing")
    await hub.client.delete(hub.ref())
    code, _, noted = await waiting.ends()
    assert (code, noted) == (3, f"error: module {hub.namespace}/web was deleted\n")


async def test_watching_until_interrupted(hub: Hub) -> None:
    """A line for each change, and none where nothing did; Ctrl-C is 130 and one word, here and while waiting."""
    await hub.put_module()
    watching = await hub.start("rollout", "watch", "web")
    first = await watching.says("Progressing", on_stdout=True)
    assert first.split("  ", 1)[1] == "v1.2.0  Progressing: 1 of 3 clusters are at the target"
    await hub.say(admission=7)
    await hub.say("bakes", phase="Baking")
    assert (await watching.says("", on_stdout=True)).endswith("v1.2.0  Baking: bakes")
    watching.interrupt()
    assert await watching.ends() == (130, "", "interrupted\n")
    waiting = await hub.start("rollout", "wait", "web")
    await waiting.says("waiting: Baking")
    waiting.interrupt()
    assert await waiting.ends() == (130, "", "interrupted\n")
