"""A request is repeated only where that is safe, and not sooner than the server asks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from starling.aio import SystemClock
from starling.kube import (
    Client,
    ConfigError,
    Forbidden,
    Identity,
    Metadata,
    NotFound,
    Resource,
    RetryPolicy,
    Selection,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Untrusted,
    in_cluster,
    kubeconfig,
    kubeconfig_data,
)
from starling.local import LocalCluster
from tests.integration.faults import through
from tests.integration.relay import Relay

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
LEVELS = Resource("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
                  "prioritylevelconfigurations", namespaced=False)  # fmt: skip
SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", namespaced=False)


class Named(msgspec.Struct):
    metadata: Metadata


class Patient(SystemClock):
    """A clock that waits for something to be done instead of for time, and remembers how long it was asked to."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.waits: list[float] = []
        self._meanwhile = meanwhile

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self._meanwhile is not None:
            await self._meanwhile()


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.fixture
async def relay(cluster: LocalCluster) -> AsyncIterator[Relay]:
    async with Relay(cluster.port) as relay:
        yield relay


async def test_nothing_sent_is_always_repeated(cluster: LocalCluster, relay: Relay, namespace: str) -> None:
    """Even a create is repeated while no connection could be made: the server knows nothing of it."""
    relay.cut()
    clock = Patient(relay.mend)
    async with Client(through(cluster, relay.port), clock=clock) as client:
        await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
        assert (await client.get(CONFIG_MAPS.ref("a", namespace))).raw
    assert len(clock.waits) == 1


async def test_a_lost_answer_to_a_create_is_not_repeated(cluster: LocalCluster, relay: Relay, namespace: str) -> None:
    """Whether the server acted is unknown, so the caller decides; here it had."""
    clock = Patient()
    async with Client(through(cluster, relay.port), clock=clock) as client:
        await client.raw("GET", "/version")  # so that a connection is there and only the answer can be lost
        relay.loses_answers = True
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
        with pytest.raises(Unreachable, match=f"create ConfigMap in {namespace}"):
            await client.create(CONFIG_MAPS, body, namespace=namespace)
        relay.loses_answers = False
        listing = await client.list(CONFIG_MAPS, Named, Selection(namespace))
    assert len(listing.items) == 1
    assert clock.waits == []


@pytest.mark.parametrize("verb", ["delete", "merge_patch", "json_patch"])
async def test_lost_answers_to_other_writes_are_not_repeated(
    cluster: LocalCluster, relay: Relay, client: Client, namespace: str, verb: str
) -> None:
    """A delete could hit an object made since, a patch could undo a change made since."""
    ref = CONFIG_MAPS.ref("a", namespace)
    await client.apply(ref, config_map("a"))
    clock = Patient()
    async with Client(through(cluster, relay.port), clock=clock) as other:
        await other.raw("GET", "/version")
        relay.loses_answers = True
        with pytest.raises(Unreachable, match="ConfigMap"):
            match verb:
                case "delete":
                    await other.delete(ref)
                case "merge_patch":
                    await other.merge_patch(ref, {"data": {"x": "1"}})
                case _:
                    await other.json_patch(ref, [{"op": "add", "path": "/data", "value": {"x": "1"}}])
    assert clock.waits == []


async def test_a_lost_answer_to_an_apply_is_repeated(cluster: LocalCluster, relay: Relay, namespace: str) -> None:
    """Applying twice is applying once."""

    async def mend() -> None:
        relay.loses_answers = False

    clock = Patient(mend)
    async with Client(through(cluster, relay.port), clock=clock) as client:
        await client.raw("GET", "/version")
        relay.loses_answers = True
        applied = await client.apply(CONFIG_MAPS.ref("a", namespace), config_map("a"))
    assert applied.decode(Named).metadata.name == "a"
    assert len(clock.waits) == 1


async def test_tries_come_to_an_end(cluster: LocalCluster, relay: Relay) -> None:
    """A server that stays away is Unreachable, naming the request and the address."""
    relay.cut()
    clock = Patient()
    async with Client(through(cluster, relay.port), clock=clock, retries=RetryPolicy(attempts=4)) as client:
        with pytest.raises(Unreachable, match=rf"GET /version: https://127.0.0.1:{relay.port}: "):
            await client.raw("GET", "/version")
    assert len(clock.waits) == 3


async def test_a_server_that_asks_for_patience_gets_it(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    """A 429 is repeated whatever the verb, after at least the server's Retry-After."""
    user = f"throttled-{namespace}"
    await _throttle(client, user)
    await _grant(client, user)

    async def lift() -> None:
        if len(clock.waits) == 2:
            await client.delete(SCHEMAS.ref(user))
            await _no_longer_throttled(client, user)

    clock = Patient(lift)
    async with Client(kubeconfig(cluster.kubeconfig), clock=clock) as other:
        throttled = other.impersonating(Identity(user, ("system:authenticated",)))
        await throttled.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    assert len(clock.waits) == 2
    assert all(wait >= 1.0 for wait in clock.waits), "the server says Retry-After: 1"


async def _throttle(client: Client, user: str) -> None:
    """Have the API server's own priority and fairness reject every request of a user."""
    limited = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
               "limitResponse": {"type": "Reject"}}  # fmt: skip
    await client.apply(LEVELS.ref(user), {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": user}, "spec": {"type": "Limited", "limited": limited},
    })  # fmt: skip
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    await client.apply(SCHEMAS.ref(user), {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": user},
        "spec": {
            "priorityLevelConfiguration": {"name": user}, "matchingPrecedence": 1,
            "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}],
        },
    })  # fmt: skip
    await _until_throttled(client, user, throttled=True)


async def _no_longer_throttled(client: Client, user: str) -> None:
    await _until_throttled(client, user, throttled=False)


async def _until_throttled(client: Client, user: str, *, throttled: bool) -> None:
    """The API server takes a moment to heed a change of its flow control."""
    path = CONFIG_MAPS.path("default")
    probe = client.impersonating(Identity(user, ("system:authenticated",)))
    async with asyncio.timeout(30):
        while True:
            try:
                await probe.transport.send(probe._request("GET", path, "probe"), attempts=1)
            except TooManyRequests:
                if throttled:
                    return
            except Forbidden:
                if not throttled:
                    return
            else:
                if not throttled:
                    return
            await asyncio.sleep(0.05)


async def _grant(client: Client, user: str) -> None:
    bindings = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
    await client.apply(bindings.ref(user), {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })  # fmt: skip


async def test_access_is_loaded_anew_when_refused(
    cluster: LocalCluster, client: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod's account whose token was replaced on disk goes on working; one with no good token is Unauthorized."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(cluster.port))
    (tmp_path / "ca.crt").write_bytes(cluster.pki.authority.certificate.read_bytes())
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "token").write_text(await _token(client, namespace, "pod"))
    me = f"system:serviceaccount:{namespace}:pod"
    async with Client(in_cluster(tmp_path)) as pod:
        assert await _whoami(pod) == me
        await client.delete(ACCOUNTS.ref("pod", namespace))  # and with it, every token of its
        with pytest.raises(Unauthorized):
            await _until_refused(pod)
        (tmp_path / "token").write_text(await _token(client, namespace, "pod"))
        assert await _whoami(pod) == me
        assert (await pod.transport.access()).namespace == namespace
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(ConfigError, match="in-cluster account"):
        await in_cluster(tmp_path)()


async def _token(client: Client, namespace: str, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await client.apply(ACCOUNTS.ref(name, namespace), body)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = ACCOUNTS.ref(name, namespace).path + "/token"
    return str((await client.raw("POST", path, body=request)).json()["status"]["token"])


async def _whoami(client: Client) -> str:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.raw("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review)
    return str(answer.json()["status"]["userInfo"]["username"])


async def _until_refused(client: Client) -> None:
    """The API server may believe a dead account's token for some seconds."""
    async with asyncio.timeout(60):
        while True:
            await _whoami(client)
            await asyncio.sleep(0.1)


async def test_a_stranger_on_the_servers_address_is_untrusted(cluster: LocalCluster, tmp_path: Path) -> None:
    """A certificate that the kubeconfig's CA didn't sign is refused, at once and with a hint."""
    import yaml  # noqa: PLC0415 - for this one file

    from starling.local.pki import Pki  # noqa: PLC0415 - a stranger's authority

    Pki(tmp_path).ensure({})
    data = yaml.safe_load(cluster.kubeconfig.read_text())
    data["clusters"][0]["cluster"].pop("certificate-authority-data")
    data["clusters"][0]["cluster"]["certificate-authority"] = str(Pki(tmp_path).authority.certificate)
    clock = Patient()
    async with Client(kubeconfig_data(data), clock=clock) as client:
        with pytest.raises(Untrusted, match="certificate not trusted") as caught:
            await client.raw("GET", "/version")
    assert caught.value.hint is not None
    assert clock.waits == []


async def test_not_found_is_not_repeated(cluster: LocalCluster, namespace: str) -> None:
    """An answer that says no is an answer."""
    clock = Patient()
    async with Client(kubeconfig(cluster.kubeconfig), clock=clock) as client:
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS.ref("absent", namespace))
    assert clock.waits == []
