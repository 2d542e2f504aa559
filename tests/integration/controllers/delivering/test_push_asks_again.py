"""What the hub's side of push knows of a ProxyAssemblage, however it came to know it."""

import msgspec

from starling.api import ProxyAssemblage
from starling.controllers.push import Asked
from starling.controllers.views import Proxy
from starling.runtime import Key
from tests.integration.controllers.delivering.world import World, entry


async def test_a_change_seen_in_the_answer_to_a_write_is_news(world: World) -> None:
    """What is wanted changes, and our status write is answered before the informer tells: it then has no news."""
    woken = 0

    def wake() -> None:
        nonlocal woken
        woken += 1

    await world.put_secret(world.hub, "starling-cluster-c-credentials", {"git-creds": b"old"})
    first = await world.propose(entry("base"))
    asked = Asked(world.hub, Key(world.namespace, "c"), wake)
    assert await asked.proxy() == first
    before = await asked.credentials()
    woken = 0
    await world.put_secret(world.hub, "starling-cluster-c-credentials", {"git-creds": b"new"})
    changed = await world.propose(entry("mesh"))
    ref = ProxyAssemblage.declaration.resource.ref("c", world.namespace).status
    answer = (await world.hub.merge_patch(ref, {"status": {"observed": 1}})).decode(ProxyAssemblage)
    asked.learn(answer)
    assert woken == 1
    assert not asked.hear(msgspec.convert(msgspec.to_builtins(changed), Proxy))
    assert await asked.proxy() == answer
    assert await asked.credentials() != before
    again = (await world.hub.merge_patch(ref, {"status": {"observed": 2}})).decode(ProxyAssemblage)
    asked.learn(again)
    assert woken == 1, "a status of our own isn't"
