"""A request is repeated only where that is safe, and not sooner than the server asks."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from starling.aio import SystemClock
from starling.kube import (
    ApiError,
    Client,
    Closed,
    ConfigError,
    Identity,
    NotFound,
    Patience,
    Ref,
    Resource,
    Selection,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Untrusted,
    in_cluster,
    kubeconfig,
    kubeconfig_data,
    watch,
)
from starling.local import LocalCluster
from starling.local.pki import Pki
from tests.integration.clusters import through
from tests.integration.config_maps import CONFIG_MAPS, ConfigMap, config_map
from tests.integration.relay import Relay
from tests.waiting import until

ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
LEVELS = Resource("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
                  "prioritylevelconfigurations", namespaced=False)  # fmt: skip
SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", namespaced=False)


class Patient(SystemClock):
    """A clock that waits for something to be done instead of for time, and remembers how long it was asked to."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.waits: list[float] = []
        self._meanwhile = meanwhile

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        if self._meanwhile is not None:
            await self._meanwhile()


@pytest.fixture
async def relay(cluster: LocalCluster) -> AsyncIterator[Relay]:
    """A way to the shared cluster that breaks on command."""
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
        with pytest.raises(Unreachable, match=f"create ConfigMap {namespace}/made-"):
            await client.create(CONFIG_MAPS, body, namespace=namespace)
        relay.loses_answers = False
        listing = await client.list(CONFIG_MAPS, ConfigMap, Selection(namespace))
    assert len(listing.items) == 1
    assert clock.waits == []


Write = Callable[[Client, Ref], Awaitable[object]]
WRITES: dict[str, Write] = {
    "delete": lambda client, ref: client.delete(ref),
    "merge patch": lambda client, ref: client.merge_patch(ref, {"data": {"x": "1"}}),
    "JSON patch": lambda client, ref: client.json_patch(ref, [{"op": "add", "path": "/data", "value": {"x": "1"}}]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_lost_answers_to_other_writes_are_not_repeated(
    cluster: LocalCluster,
    relay: Relay,
    client: Client,
    namespace: str,
    write: Callable[[Client, Ref], Awaitable[object]],
) -> None:
    """A delete could hit an object made since, a patch could undo a change made since."""
    ref = CONFIG_MAPS.ref("a", namespace)
    await client.apply(ref, config_map("a"))
    clock = Patient()
    async with Client(through(cluster, relay.port), clock=clock) as other:
        await other.raw("GET", "/version")
        relay.loses_answers = True
        with pytest.raises(Unreachable, match="ConfigMap"):
            await write(other, ref)
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
    assert applied.decode(ConfigMap).metadata.name == "a"
    assert len(clock.waits) == 1


async def test_tries_come_to_an_end(cluster: LocalCluster, relay: Relay) -> None:
    """A server that stays away is Unreachable, naming the request and the address."""
    relay.cut()
    clock = Patient()
    async with Client(through(cluster, relay.port), clock=clock, patience=Patience(attempts=4)) as client:
        with pytest.raises(Unreachable, match=rf"GET /version: https://127.0.0.1:{relay.port}: "):
            await client.raw("GET", "/version")
    assert len(clock.waits) == 3


async def test_a_server_that_asks_for_patience_gets_it(cluster: LocalCluster, client: Client, namespace: str) -> None:
    """A 429 is repeated whatever the verb, after at least the server's Retry-After, until it is let through."""
    user = f"throttled-{namespace}"
    await _throttle(client, user)
    await _grant(client, user)
    clock = Patient(lambda: asyncio.sleep(0))
    async with Client(kubeconfig(cluster.kubeconfig), clock=clock, patience=Patience(attempts=10_000)) as other:
        throttled = other.impersonating(Identity(user, ("system:authenticated",)))
        names = [f"n{number}" for number in range(60)]
        creations = [throttled.create(CONFIG_MAPS, config_map(name), namespace=namespace) for name in names]
        await asyncio.gather(*creations)
    listing = await client.list(CONFIG_MAPS, ConfigMap, Selection(namespace))
    assert {item.metadata.name for item in listing.items} == set(names)
    assert clock.waits, "sixty at once through one seat, and none was turned away"
    assert all(wait >= 1.0 for wait in clock.waits), "the server says Retry-After: 1"


async def test_a_longer_wait_than_we_have_patience_for_is_the_callers(
    cluster: LocalCluster, client: Client, namespace: str
) -> None:
    """Where the server asks for more than we would wait, its error is raised, with the wait it asks for."""
    user = f"throttled-{namespace}"
    await _throttle(client, user)
    clock = Patient()
    async with Client(kubeconfig(cluster.kubeconfig), clock=clock, patience=Patience(longest_wait=0.5)) as other:
        throttled = other.impersonating(Identity(user, ("system:authenticated",)))
        refused = await until(lambda: _turned_away(throttled))
    assert all((error.retry_after or 0) >= 1.0 for error in refused)
    assert clock.waits == []


async def _throttle(client: Client, user: str) -> None:
    """Have the API server's own priority and fairness give a user one seat, and reject whoever finds it taken."""
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
            "priorityLevelConfiguration": {"name": user}, "matchingPrecedence": 2,
            "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}], "resourceRules": [everything]}],
        },
    })  # fmt: skip
    async with Client(client.transport.access, patience=Patience(longest_wait=0)) as impatient:
        as_user = impatient.impersonating(Identity(user, ("system:authenticated",)))
        await until(lambda: _turned_away(as_user))  # the API server takes a moment to heed it


async def _turned_away(client: Client) -> list[TooManyRequests]:
    """The 429s among the answers to many questions at once."""
    questions = [client.list(CONFIG_MAPS, ConfigMap, Selection("default")) for _ in range(60)]
    answers = await asyncio.gather(*questions, return_exceptions=True)
    return [answer for answer in answers if isinstance(answer, TooManyRequests)]


async def _grant(client: Client, user: str) -> None:
    bindings = Resource(
        "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
    )
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
            await until(lambda: _is_someone_else(pod, me))
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


async def _is_someone_else(client: Client, name: str) -> bool:
    """Never true; asked again and again, since the API server believes a dead account's token for some seconds."""
    return await _whoami(client) != name


async def test_a_stranger_on_the_servers_address_is_untrusted(cluster: LocalCluster, tmp_path: Path) -> None:
    """A certificate that the kubeconfig's CA didn't sign is refused, at once and with a hint."""
    Pki(tmp_path).ensure({})
    stranger = base64.b64encode(Pki(tmp_path).authority.certificate.read_bytes()).decode()
    data = yaml.safe_load(cluster.kubeconfig.read_text())
    data["clusters"][0]["cluster"]["certificate-authority-data"] = stranger
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


async def test_a_closed_client_stays_closed(cluster: LocalCluster) -> None:
    """After closing, a request is refused and a watch ends; neither opens a connection again."""
    client = Client(kubeconfig(cluster.kubeconfig))
    events = watch(client, CONFIG_MAPS, ConfigMap, Selection("default"))
    await anext(events)
    await client.close()
    with pytest.raises(Closed):
        await client.raw("GET", "/version")
    with pytest.raises(Closed):
        async for _ in events:
            pass


async def test_a_redirect_is_not_followed(cluster: LocalCluster) -> None:
    """An answer that sends us elsewhere is an error that says where to, not a success."""
    async with Client(kubeconfig(cluster.kubeconfig)) as client:
        path = "/openapi/v3/apis/apps/v1"  # whose address changes with its content
        with pytest.raises(ApiError, match=rf"was sent elsewhere, to {path}\?hash=\w+, and didn't go") as caught:
            await client.raw("GET", path, query={"hash": "OUTDATED"})
    assert caught.value.code == 301
