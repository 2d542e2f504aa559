"""Push: a Delivery for each cluster that the hub itself connects to.

Each has its own connection and its own tasks, so that one that is slow or dead holds up nobody: reconciling only
starts them, and ends those whose Cluster or kubeconfig has changed. A connection is one watch, on one Assemblage, and
short requests when something is to be written.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Assemblage, Cluster, ProxyAssemblage
from starling.api.enrolment import credentials_name
from starling.controllers.credentials import KUBECONFIG, Secret, kubeconfig_in
from starling.controllers.delivery import Delivery, DeliverySettings, Undeliverable
from starling.controllers.following import Step, Troubles, identify, said
from starling.controllers.presence import Presence, Verdict
from starling.controllers.secrets import SECRETS
from starling.controllers.views import Proxy
from starling.errors import StarlingError
from starling.kube import Client, ConfigError, Forbidden, NotFound, Patience, Unauthorized, Untrusted, kubeconfig_data
from starling.objects import digest
from starling.runtime import Controller, Group, Index, Informer, Key, Result

__all__ = ["Asked", "PushController", "kubeconfig_of", "looked_at"]

LOG = logging.getLogger(__name__)

PATIENCE: Final = Patience(attempts=2, longest_wait=2.0, silence=30.0)
LASTING: Final = (Undeliverable, ConfigError, Unauthorized, Forbidden, Untrusted)
"""What a cluster that answers says, or we of it, and what waiting won't mend."""

_PROXIES: Final = ProxyAssemblage.declaration.resource


class Asked:
    """The hub's side as the hub itself reads it: when it has heard that there is something new. Mutable.

    `changed` is called when an answer says that something else is wanted; who tells of that later has no news.
    """

    introduced: Final = True

    def __init__(self, hub: Client, key: Key, changed: Callable[[], None] = lambda: None) -> None:
        self._hub = hub.once()
        self._changed = changed
        self._proxy_ref = _PROXIES.ref(key.name, key.namespace)
        self._secret_ref = SECRETS.ref(credentials_name(key.name), key.namespace)
        self._proxy: ProxyAssemblage | None = None
        self._secret: Secret | None = None
        self._heard = 0
        self._doubted = True
        self._secret_doubted = True
        self._one = asyncio.Lock()

    def hear(self, proxy: Proxy | None) -> bool:
        """An informer tells of a state; whether it is news."""
        if proxy is None:
            self._doubted, self._heard = True, 0
            return True
        self._heard = int(proxy.metadata.resource_version)
        return self._stale

    async def proxy(self) -> ProxyAssemblage | None:
        """The whole object, read again if there is a newer state than the one we have."""
        async with self._one:
            if self._stale:
                self._doubted, doubted = False, self._doubted
                try:
                    self._keep((await self._hub.get(self._proxy_ref)).decode(ProxyAssemblage))
                except NotFound:
                    self._keep(None)
                except BaseException:
                    self._doubted = doubted
                    raise
                self._secret_doubted = True
            return self._proxy

    async def credentials(self) -> Secret | None:
        """The Secret, read again whenever the proxy was."""
        if self._secret_doubted:
            try:
                self._secret = (await self._hub.get(self._secret_ref)).decode(Secret)
            except NotFound:
                self._secret = None
            self._secret_doubted = False
        return self._secret

    async def fresh(self) -> ProxyAssemblage | None:
        """The whole object, read again."""
        self._doubted = True
        return await self.proxy()

    def learn(self, proxy: ProxyAssemblage) -> None:
        """Keep the answer to a write, which may show what someone else has changed meanwhile."""
        self._keep(proxy)

    def doubt(self) -> None:
        """Read both again."""
        self._doubted = self._secret_doubted = True

    def _keep(self, proxy: ProxyAssemblage | None) -> None:
        before, self._proxy = self._proxy, proxy
        if _wanted(before) != _wanted(proxy):
            self._secret_doubted = True
            self._changed()

    @property
    def _stale(self) -> bool:
        known = int(self._proxy.metadata.resource_version) if self._proxy is not None else 0
        return self._doubted or self._heard > known


class _Connection:
    """One cluster, connected. Mutable: the troubles that it has, how it stands by them, and its task."""

    def __init__(self, controller: "PushController", key: Key, kubeconfig: str, client: Client) -> None:
        self.kubeconfig = kubeconfig
        self.asked = Asked(controller.hub, key, self._wake)
        self._key, self._client = key, client
        settings, clock = controller.settings, controller.clock
        self._verdict = Verdict(controller.presence, key, lost_after=settings.lost_after, clock=clock)
        self._troubles = Troubles(self._changed)
        self.delivery = Delivery(
            controller.hub,
            self.asked,
            client,
            key,
            hub_troubles=Troubles(lambda: None),
            troubles=self._troubles,
            told=self._told,
            settings=settings,
            clock=clock,
        )
        first, longest = settings.first_retry, settings.longest_retry
        self._identify = Step(f"connect to {key}", self._identified, first=first, longest=longest, clock=clock)
        self._judge = Step(f"judge {key}", self._judged, first=first, longest=longest, clock=clock)
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._client, asyncio.TaskGroup() as group:
            self._identify.wake()
            group.create_task(self._identify.run())
            group.create_task(self._judge.run())
            group.create_task(self.delivery.run())

    async def _identified(self) -> None:
        """Find out which cluster this is; again whenever it has been away, as it may be another one."""
        with self._troubles.of("connect"):
            about = await identify(self._client.once())
        if self._troubles.first is None:
            self._verdict.seen(uid=about.uid, kubernetes_version=about.kubernetes_version)

    def _wake(self) -> None:
        self.delivery.wake()

    def _changed(self) -> None:
        error = self._troubles.first
        if error is None:
            self._verdict.right("connection")
            self._identify.wake(at_once=True)
        else:
            self._verdict.wrong("connection", said(error), at_once=isinstance(error, LASTING))
        self._judge.wake()

    def _told(self, assemblage: Assemblage) -> None:
        if looked_at(assemblage):
            self._verdict.right("agent")
        else:
            name = f"Assemblage {self._key.namespace}/{assemblage.metadata.name}"
            self._verdict.wrong("agent", f"its agent doesn't answer: it hasn't looked at what {name} says now")
        self._judge.wake()
        if self._troubles.first is None:
            self._verdict.seen(agent_version=assemblage.status.agent_version)

    async def _judged(self) -> float | None:
        return self._verdict.look()


class PushController:
    """Keeps a connection to each push cluster. Mutable: the connections, by cluster."""

    def __init__(
        self, hub: Client, presence: Presence, *, settings: DeliverySettings | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.hub, self.presence, self.clock = hub, presence, clock
        self.settings = settings or DeliverySettings()
        self._connections: dict[Key, _Connection] = {}
        self._users = Index(kubeconfig_of)

    def join(
        self, group: Group, clusters: Informer[Cluster], proxies: Informer[Proxy], kubeconfigs: Informer[Secret]
    ) -> None:
        """Run with a group; `kubeconfigs` are the Secrets labelled so."""
        self._clusters, self._kubeconfigs = clusters, kubeconfigs
        self._controller = group.controller(Controller("push", self.reconcile, at_once=32, clock=self.clock))
        group.task(self.run)
        clusters.listen(self._cluster_changed)
        kubeconfigs.listen(self._kubeconfig_changed)
        proxies.listen(self._proxy_changed)

    async def run(self) -> None:
        """End all connections when this is cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            tasks = [connection.task for connection in self._connections.values()]
            self._connections.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def reconcile(self, key: Key) -> Result | None:
        """Have a connection to the cluster if it is to have one, by the kubeconfig that there is now."""
        cluster = self._clusters.get(key)
        if cluster is None or cluster.spec.push is None:
            if await self._end(key):
                self.presence.forget(key)
            return None
        place = Key(key.namespace, cluster.spec.push.kubeconfig_secret.name)
        secret = self._kubeconfigs.get(place)
        state = digest(secret.entries.get(KUBECONFIG, "") if secret is not None else "")
        before = self._connections.get(key)
        if before is not None and before.kubeconfig == state and not before.task.done():
            return None
        await self._end(key)
        try:
            access = kubeconfig_data(kubeconfig_in(secret, place), origin=f"Secret {place}")
        except StarlingError as error:
            self.presence.lost(key, said(error))
            return None  # until the Secret changes
        connection = _Connection(self, key, state, Client(access, patience=PATIENCE, clock=self.clock))
        self._connections[key] = connection
        connection.task.add_done_callback(lambda task: self._ended(key, task))
        return None

    async def _end(self, key: Key) -> bool:
        connection = self._connections.pop(key, None)
        if connection is None:
            return False
        connection.task.cancel()
        await asyncio.wait([connection.task])
        return True

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        """A connection ends when it is told to; else something is wrong that nobody expected."""
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("push %s: an error that nobody expected", key, exc_info=error)
            self._controller.add_after(key, self.settings.longest_retry)

    def _cluster_changed(self, before: Cluster | None, after: Cluster | None) -> None:
        self._users.change(before, after)
        for key in _keys(before, after):
            self._controller.add(key)

    def _kubeconfig_changed(self, before: Secret | None, after: Secret | None) -> None:
        for place in _keys(before, after):
            for key in self._users.of(place):
                self._controller.add(key)

    def _proxy_changed(self, before: Proxy | None, after: Proxy | None) -> None:
        for key in _keys(before, after):
            connection = self._connections.get(key)
            if connection is not None and connection.asked.hear(after):
                connection.delivery.wake()


def _wanted(proxy: ProxyAssemblage | None) -> tuple[str, int] | None:
    return (proxy.metadata.uid, proxy.metadata.generation) if proxy is not None else None


def looked_at(assemblage: Assemblage) -> bool:
    """Whether the cluster's agent has taken in what is written there; letting go of things may take it a while."""
    meta, status = assemblage.metadata, assemblage.status
    leaving = assemblage.spec.released or meta.deletion_timestamp is not None
    return leaving or status.observed_generation == meta.generation


def kubeconfig_of(cluster: Cluster) -> Key | None:
    """The Secret by whose kubeconfig a cluster is reached; None: it dials in."""
    push = cluster.spec.push
    return Key(cluster.metadata.namespace, push.kubeconfig_secret.name) if push is not None else None


def _key(found: Cluster | Secret | Proxy) -> Key:
    return Key(found.metadata.namespace, found.metadata.name)


def _keys(*states: Cluster | Secret | Proxy | None) -> set[Key]:
    """The one key that states of one object have."""
    return {_key(state) for state in states if state is not None}
