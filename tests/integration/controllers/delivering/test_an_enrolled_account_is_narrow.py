"""The account that a cluster gets can do what an agent does, and none of what would reach beyond its cluster."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from starling.api import Cluster, Module, ProxyAssemblage
from starling.api.enrolment import account_name, revoked
from starling.controllers.heartbeat import LEASES
from starling.controllers.secrets import SECRETS
from starling.controllers.tokens import request_token
from starling.kube import Client, Forbidden, Unauthorized
from starling.runtime import Key
from tests.integration.controllers.delivering.world import World, entry
from tests.waiting import until

PROXIES = ProxyAssemblage.declaration.resource
CLUSTERS = Cluster.declaration.resource

Attempt = Callable[[Client, str], Awaitable[Any]]

ATTEMPTS: dict[str, Attempt] = {
    "read another's ProxyAssemblage": lambda c, n: c.get(PROXIES.ref("other", n)),
    "list all ProxyAssemblages": lambda c, n: c.raw("GET", PROXIES.path(n)),
    "change its own ProxyAssemblage": lambda c, n: c.merge_patch(PROXIES.ref("c", n), {"spec": {"syncs": []}}),
    "tell another's status": lambda c, n: c.merge_patch(PROXIES.ref("other", n).status, {"status": {"observed": 9}}),
    "read another's credentials": lambda c, n: c.get(SECRETS.ref("starling-cluster-other-credentials", n)),
    "read a git Secret": lambda c, n: c.get(SECRETS.ref("git-creds", n)),
    "list all Secrets": lambda c, n: c.raw("GET", SECRETS.path(n)),
    "write its own credentials": lambda c, n: c.merge_patch(
        SECRETS.ref("starling-cluster-c-credentials", n), {"data": {}}
    ),
    "read its Cluster": lambda c, n: c.get(CLUSTERS.ref("c", n)),
    "change its labels": lambda c, n: c.merge_patch(CLUSTERS.ref("c", n), {"metadata": {"labels": {"ring": "prod"}}}),
    "change its mode": lambda c, n: c.merge_patch(CLUSTERS.ref("c", n), {"spec": {"mode": "Frozen"}}),
    "tell another Cluster's status": lambda c, n: c.merge_patch(
        CLUSTERS.ref("other", n).status, {"status": {"phase": "Ready"}}
    ),
    "read Modules": lambda c, n: c.raw("GET", Module.declaration.resource.path(n)),
    "renew another's Lease": lambda c, n: c.merge_patch(
        LEASES.ref("starling-cluster-other", n), {"spec": {"holderIdentity": "me"}}
    ),
    "get another's token": lambda c, n: request_token(c, Key(n, account_name("other"))),
}


@pytest.fixture
async def enrolled(world: World) -> dict[str, Any]:
    """A cluster's kubeconfig, next to another cluster and secrets that aren't its own."""
    await world.propose(entry("base"))
    await world.propose(entry("base"), cluster="other")
    await world.enrol("other")
    for name in ("starling-cluster-c-credentials", "starling-cluster-other-credentials", "git-creds"):
        await world.put_secret(world.hub, name, {"password": b"x"})
    return await world.enrol()


async def test_what_reaches_beyond_is_refused(world: World, enrolled: dict[str, Any]) -> None:
    """Each attempt is Forbidden, and none of them has changed anything."""
    before = (await world.hub.get(CLUSTERS.ref("c", world.namespace))).decode(Cluster)
    async with world.connect(enrolled) as client:
        allowed = []
        for name, attempt in ATTEMPTS.items():
            try:
                await attempt(client, world.namespace)
                allowed.append(name)
            except Forbidden:
                pass
    assert allowed == []
    after = (await world.hub.get(CLUSTERS.ref("c", world.namespace))).decode(Cluster)
    assert after.metadata.resource_version == before.metadata.resource_version


async def test_a_status_patch_touches_no_label(world: World, enrolled: dict[str, Any]) -> None:
    """Labels sent along with a status stay what they were: the API server ignores them."""
    ref = CLUSTERS.ref("c", world.namespace)
    patch = {"metadata": {"labels": {"ring": "prod"}}, "status": {"agentVersion": "1.0"}}
    async with world.connect(enrolled) as client:
        await client.merge_patch(ref.status, patch)
    cluster = (await world.hub.get(ref)).decode(Cluster)
    assert cluster.metadata.labels == {"ring": "canary"}
    assert cluster.status.agent_version == "1.0"


async def test_a_revoked_cluster_is_known_no_more(world: World, enrolled: dict[str, Any]) -> None:
    """Once what enrolment made is deleted, the token is worth nothing; the Cluster stays."""
    async with world.connect(enrolled) as client:
        await client.get(PROXIES.ref("c", world.namespace))
        for ref in revoked("c", world.namespace):
            await world.hub.delete(ref)

        async def refused() -> bool:
            try:
                await client.get(PROXIES.ref("c", world.namespace))
            except (Unauthorized, Forbidden):
                return True
            return False

        await until(refused)
    await world.hub.get(CLUSTERS.ref("c", world.namespace))
