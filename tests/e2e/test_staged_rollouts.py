"""Six clusters in two regions, with canaries: good versions go through the stages, bad ones stop or go back."""

import asyncio
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from tests.e2e.fleets import PLATFORM, Fleet, Repository, config_map, environ
from tests.e2e.staged import (
    BAKE,
    CANARIES,
    CLUSTERS,
    EU,
    HEARTBEAT,
    STAGES,
    US,
    comes_to,
    crashing,
    events,
    everywhere,
    manifests,
    policy,
    push,
    rollout,
    staged_fleet,
    start,
    trail,
    wait,
)
from tests.integration.controllers.hub.gate import Gate, saying

pytestmark = pytest.mark.timeout(600)

MANUAL = {"approval": "Manual"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Iterator[Fleet]:
    """The fleet, with its clusters enrolled and nothing on them."""
    with staged_fleet(tmp_path_factory.mktemp("staged"), {**environ(), **environment}, workloads=True) as fleet:
        yield fleet


async def test_a_good_version_goes_from_canaries_by_approval_to_all(fleet: Fleet, repository: Repository) -> None:
    """The canaries one after the other, their time to bake, someone's approval, one region, the other."""
    await start(fleet, repository, policy("good", eu=MANUAL), manifests("good", "1"))
    commit = push(repository, "good", manifests("good", "2"))
    status = await comes_to(fleet, "good", "Waiting", commit=commit, says="stage eu waits for approval")
    assert await fleet.has("good", everywhere("2", *CANARIES) | everywhere("1", *EU, *US))
    assert "is approved" in await rollout(fleet, "approve", "good")
    code, said = await wait(fleet, "good", commit)
    assert (code, await fleet.has("good", everywhere("2"))) == (0, True), said

    way, target = trail(fleet, "good"), status["target"]
    assert sorted(way.given(target)) == sorted(CLUSTERS)
    assert way.between(target, CANARIES, EU) >= BAKE
    assert way.between(target, EU, US) >= 0
    assert way.most_in_motion(CANARIES, target) == 1
    approved = await fleet.eventually(lambda: events(fleet, "good", "Approved"), "the Event")
    assert approved == [f"admin approved stage eu for {status['revision']}"]


async def test_a_bad_version_stops_at_the_budget(fleet: Fleet, repository: Repository) -> None:
    """One canary may fail; when the second does, nothing more is touched, and who waits is told.

    The next version goes back to the image that was good: that Deployments had failed doesn't count against it.
    """
    await start(fleet, repository, policy("bad", maxFailures=1), manifests("bad", "1"))
    commit = push(repository, "bad", crashing("bad", "2"))
    code, said = await wait(fleet, "bad", commit)
    status = await comes_to(fleet, "bad", "Failed", commit=commit)
    assert (code, status["summary"]["failed"]) == (1, 2), said
    assert "eu-1" in said
    assert trail(fleet, "bad").given(status["target"]) == list(CANARIES)
    assert await fleet.has("bad", everywhere("1", *EU, *US))

    await fleet.apply("hub", policy("bad", maxFailures=0))
    mended = push(repository, "bad", manifests("bad", "3", image="1"))
    code, said = await wait(fleet, "bad", mended)
    assert (code, await fleet.has("bad", everywhere("3"))) == (0, True), said


async def test_a_bad_version_goes_back_by_itself(fleet: Fleet, repository: Repository) -> None:
    """Canaries are well with it and a region isn't: all that have it return to what was good."""
    on_canaries = [{"selector": {"matchLabels": {"ring": "canary"}}, "path": "back-canary"}]
    repository.commit({"back-canary/it.yaml": manifests("back", "1")})
    careful = policy("back", eu={"maxConcurrent": 1}, maxFailures=1, onFailure="Rollback")
    first = await start(fleet, repository, careful, manifests("back", "1"), overrides=on_canaries)
    commit = repository.commit({"back/it.yaml": crashing("back", "2"), "back-canary/it.yaml": manifests("back", "2")})
    code, said = await wait(fleet, "back", commit)
    status = await comes_to(fleet, "back", "RolledBack", commit=commit)
    assert (code, status["rollbackTo"]) == (1, first["target"]), said
    assert trail(fleet, "back").given(status["target"]) == [*CANARIES, *EU]
    assert await fleet.has("back", everywhere("1"))
    assert status["summary"]["succeeded"] == 6
    assert "6: 6 ok" in await rollout(fleet, "status", "back")


async def test_a_newer_version_takes_the_place_of_one_at_work(fleet: Fleet, repository: Repository) -> None:
    """What was skipped starts nowhere any more, and what was approved for it isn't for the newer one."""
    await start(fleet, repository, policy("newer", eu=MANUAL))
    skipped = push(repository, "newer", config_map("newer", version="2"))
    before = await comes_to(fleet, "newer", "", commit=skipped)
    await rollout(fleet, "approve", "newer", "eu")
    commit = push(repository, "newer", config_map("newer", version="3"))
    status = await comes_to(fleet, "newer", "Waiting", commit=commit, says="stage eu waits for approval")
    await rollout(fleet, "approve", "newer")
    code, said = await wait(fleet, "newer", commit)
    assert (code, await fleet.has("newer", everywhere("3"))) == (0, True), said
    way = trail(fleet, "newer")
    newest = next(number for number, each in enumerate(way.steps) if each.target == status["target"])
    assert [each for each in way.steps[newest:] if each.what == "given" and each.target == before["target"]] == []
    assert way.out_of_turn(STAGES, status["target"]) == []


async def test_what_failed_is_retried_when_its_cause_is_gone(fleet: Fleet, repository: Repository) -> None:
    """A version lacks a namespace; once that is there, the same version goes through all stages."""
    await start(fleet, repository, policy("retried"))
    lacking = f"{config_map('retried', version='2')}---\n{config_map('retried', 'lacking', version='2')}"
    commit = push(repository, "retried", lacking)
    assert (await wait(fleet, "retried", commit))[0] == 1
    status = await comes_to(fleet, "retried", "Failed", commit=commit)
    assert trail(fleet, "retried").given(status["target"]) == ["eu-1"]
    for cluster in CLUSTERS:
        await fleet.apply(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lacking"}})
    assert "again" in await rollout(fleet, "retry", "retried")
    code, said = await wait(fleet, "retried", commit)
    assert (code, await fleet.has("retried", everywhere("2"), "lacking")) == (0, True), said


async def test_what_is_undone_goes_back_and_may_be_tried_again(fleet: Fleet, repository: Repository) -> None:
    """A version that went through is taken back from all clusters, and later goes through again."""
    await start(fleet, repository, policy("undone"))
    commit = push(repository, "undone", config_map("undone", version="2"))
    assert (await wait(fleet, "undone", commit))[0] == 0
    assert "goes back" in await rollout(fleet, "undo", "undone")
    code, said = await wait(fleet, "undone", commit)
    assert (code, await fleet.has("undone", everywhere("1"))) == (1, True), said
    await comes_to(fleet, "undone", "RolledBack", commit=commit)
    await rollout(fleet, "retry", "undone")
    code, said = await wait(fleet, "undone", commit)
    assert (code, await fleet.has("undone", everywhere("2"))) == (0, True), said


async def test_a_closed_window_holds(fleet: Fleet, repository: Repository) -> None:
    """Nothing moves while none is open, and it is said when one opens; once one is, all goes on."""
    opens = datetime.now(UTC) + timedelta(hours=2)
    closed = {"from": f"{opens:%H:%M}", "until": f"{opens + timedelta(hours=1):%H:%M}"}
    await start(fleet, repository, policy("window", windows=[closed]))
    commit = push(repository, "window", config_map("window", version="2"))
    until = f"no window is open until {opens:%Y-%m-%d %H:%M} UTC"
    status = await comes_to(fleet, "window", "Waiting", commit=commit, says=until)
    assert trail(fleet, "window").given(status["target"]) == []
    since = opens - timedelta(hours=4)
    await fleet.apply("hub", policy("window", windows=[{**closed, "from": f"{since:%H:%M}"}]))
    code, said = await wait(fleet, "window", commit)
    assert (code, await fleet.has("window", everywhere("2"))) == (0, True), said


async def test_clusters_that_cannot_take_it_catch_up(fleet: Fleet, repository: Repository) -> None:
    """A cordoned, a frozen and an unreachable cluster block no stage, and have it once they can."""
    hub = ("--hub", fleet.config("hub"))
    await asyncio.to_thread(fleet.services["agent-us-2"].stop)
    agent = await asyncio.to_thread(fleet.agent, "us-2", "--heartbeat", "2s")
    await start(fleet, repository, policy("away"))
    await asyncio.to_thread(agent.kill)
    await asyncio.to_thread(fleet.starling, "cluster", "cordon", "us-1", *hub)
    await asyncio.to_thread(fleet.starling, "cluster", "freeze", "eu-2", *hub)
    await fleet.eventually(lambda: frozen(fleet, "eu-2", "away"), "eu-2 having heard that it is frozen")
    await fleet.patch("eu-2", "ConfigMap", "away", {"data": {"version": "hacked"}}, "default")
    try:
        await fleet.eventually(lambda: unreachable(fleet, "us-2"), "us-2 being unreachable")
        commit = push(repository, "away", config_map("away", version="2"))
        code, said = await wait(fleet, "away", commit)
        assert code == 0, said
        status = await comes_to(fleet, "away", "Succeeded", commit=commit, says="1 unreachable, 2 held")
        assert sorted(trail(fleet, "away").given(status["target"])) == ["eu-1", "eu-3", "us-3"]
        assert await fleet.has("away", everywhere("1", "us-1", "us-2") | everywhere("hacked", "eu-2"))
    finally:
        await asyncio.to_thread(fleet.agent, "us-2", "--heartbeat", HEARTBEAT)
        await asyncio.to_thread(fleet.starling, "cluster", "activate", "us-1", "eu-2", *hub)
    await fleet.eventually(lambda: fleet.has("away", everywhere("2")), "all clusters having it")
    await fleet.eventually(lambda: fleet.rolled_out("away"), "the end")


async def frozen(fleet: Fleet, cluster: str, name: str) -> bool:
    """Whether a Sync on a cluster says that nothing may be done there."""
    return "the cluster is frozen" in str((await fleet.get(cluster, "Sync", name))["status"])


async def unreachable(fleet: Fleet, cluster: str) -> bool:
    """Whether the hub knows that it doesn't hear of a cluster."""
    return bool((await fleet.get("hub", "Cluster", cluster))["status"]["phase"] == "Unreachable")


async def test_a_gate_refuses_then_lets_pass(fleet: Fleet, repository: Repository) -> None:
    """It is asked with a signature before the stage starts, its refusal is told, and it is asked again."""
    key = "the gate's own key"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gate", "namespace": PLATFORM}}
    await fleet.apply("hub", {**secret, "stringData": {"key": key}})
    async with Gate(saying(403, "not before lunch")).serving() as gate:
        guarded = {"gate": {"url": f"{gate.url}/ask", "secretRef": {"name": "gate"}}}
        await start(fleet, repository, policy("gated", eu=guarded))
        commit = push(repository, "gated", config_map("gated", version="2"))
        told = f"stage eu waits for its gate: the gate at {gate.url} answered 403: not before lunch"
        status = await comes_to(fleet, "gated", "Waiting", commit=commit, says=told)
        assert sorted(trail(fleet, "gated").given(status["target"])) == list(CANARIES)
        assert all(is_signed(request, body, key) for request, body in gate.asked)
        gate.says = saying(204)
        code, said = await wait(fleet, "gated", commit)
    assert (code, await fleet.has("gated", everywhere("2"))) == (0, True), said
    assert len(gate.asked) >= 2
    assert await events(fleet, "gated", "GatePassed") == [f"the gate of stage eu let {status['revision']} pass"]


def is_signed(request: web.BaseRequest, body: bytes, key: str) -> bool:
    """Whether it was asked by someone who has the key."""
    signed = request.headers["Starling-Timestamp"].encode() + b"." + body
    expected = hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
    return request.headers["Starling-Signature"] == f"v1={expected}"
