"""Upstream: the hub that this cluster dials in to. One connection for each, made from its kubeconfig Secret.

Over it go a Delivery (what to run, and how it stands), heartbeats, the token's renewal, and what the cluster says of
itself in Cluster/status. A hub that is away changes nothing here; the connection comes back by itself, and at once
when the Secret is replaced: by the renewal, or by someone who enrols the cluster again.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from starling import __version__
from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Cluster, ProxyAssemblage, Upstream, conditions
from starling.api.enrolment import account_name, credentials_name
from starling.api.v1alpha1 import UpstreamStatus
from starling.controllers.credentials import Secret, kubeconfig_in
from starling.controllers.delivery import Delivery, DeliverySettings
from starling.controllers.following import Followed, Step, Troubles, identify
from starling.controllers.heartbeat import Heartbeat
from starling.controllers.secrets import SECRETS
from starling.controllers.tokens import Renewal, expires_at, token_in
from starling.controllers.writing import says_the_same, write_status
from starling.errors import StarlingError
from starling.kube import Client, Forbidden, Patience, Unauthorized, kubeconfig_data
from starling.objects import digest
from starling.runtime import Controller, Group, Informer, Key, Result

__all__ = ["MANAGER", "UpstreamController", "UpstreamSettings", "Watched", "status_of"]

LOG = logging.getLogger(__name__)

MANAGER: Final = "starling-agent"
PATIENCE: Final = Patience(attempts=2, longest_wait=2.0, silence=30.0)

_PROXIES: Final = ProxyAssemblage.declaration.resource
_CLUSTERS: Final = Cluster.declaration.resource


class UpstreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds between heartbeats and before a token may be renewed, who the agent is, and how it delivers."""

    heartbeat_every: float = 60.0
    renew_after: float = 30.0
    identity: str = "starling-agent"
    delivery: DeliverySettings = DeliverySettings()


class Watched:
    """The hub's side as an agent reads it: the two objects that it may read, followed. Mutable by what it hears.

    While it is `held`, another cluster may be the one meant, and there is nothing for this one.
    """

    def __init__(
        self,
        hub: Client,
        cluster: Key,
        *,
        troubles: Troubles,
        held: Callable[[], bool] = lambda: False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.introduced = False
        self._held = held
        self._changed: Callable[[bool], None] = lambda _: None

        def changed(back: bool) -> None:
            self._changed(back)

        self.proxies = Followed(
            hub, _PROXIES, ProxyAssemblage, cluster, troubles=troubles, changed=changed, clock=clock
        )
        place = Key(cluster.namespace, credentials_name(cluster.name))
        self.secrets = Followed(hub, SECRETS, Secret, place, troubles=troubles, changed=changed, clock=clock)

    def listen(self, changed: Callable[[bool], None]) -> None:
        """Be told of changes, and with True when the hub is back."""
        self._changed = changed

    async def run(self) -> None:
        """Follow both until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.proxies.run())
            group.create_task(self.secrets.run())

    async def proxy(self) -> ProxyAssemblage | None:
        """As it is known."""
        return None if self._held() else self.proxies.object

    async def fresh(self) -> ProxyAssemblage | None:
        """As it is at the hub now."""
        await self.proxies.read()
        return await self.proxy()

    async def credentials(self) -> Secret | None:
        """As they are known."""
        return self.secrets.object

    def learn(self, proxy: ProxyAssemblage) -> None:
        """See the answer to a write at once."""
        self.proxies.learn(proxy)

    def doubt(self) -> None:
        """The watch tells what is new."""


class _Connection:
    """One hub, connected. Mutable: its troubles, what was last said there, and its task."""

    def __init__(
        self, controller: "UpstreamController", key: Key, upstream: Upstream, kubeconfig: Mapping[str, Any], state: str
    ) -> None:
        self.state = state
        self.token = token_in(kubeconfig)
        self._upstream, self._local = upstream, controller.local
        secret = Key(key.namespace, upstream.spec.kubeconfig_secret.name)
        access = kubeconfig_data(kubeconfig, origin=f"Secret {secret}")
        self._hub = Client(access, patience=PATIENCE, clock=controller.clock)
        self._cluster = cluster = Key(key.namespace, upstream.spec.cluster.name)
        self._said: dict[str, Any] = {}
        self._known_uid = ""
        settings, clock = controller.settings, controller.clock

        self.troubles = Troubles(lambda: controller.look(key))
        self._heartbeat = Heartbeat(
            self._hub,
            cluster,
            identity=settings.identity,
            uid=self._uid,
            period=settings.heartbeat_every,
            troubles=self.troubles,
            changed=self._wake,
            clock=clock,
        )
        self._watched = Watched(self._hub, cluster, troubles=self.troubles, held=self._held, clock=clock)
        self._delivery = Delivery(
            self._hub,
            self._watched,
            self._local,
            cluster,
            manager=MANAGER,
            hub_troubles=self.troubles,
            troubles=self.troubles,
            settings=settings.delivery,
            clock=clock,
        )
        self._announce = Step(
            f"announce {cluster}",
            self._announced,
            first=settings.delivery.first_retry,
            longest=settings.delivery.longest_retry,
            clock=clock,
        )
        self._renewal = Renewal(
            self._hub,
            self._local,
            secret=secret,
            kubeconfig=kubeconfig,
            account=Key(cluster.namespace, account_name(cluster.name)),
            settle=settings.renew_after,
            troubles=self.troubles,
            clock=clock,
        )
        self._watched.listen(lambda back: self._heard(back, controller, key))
        self.task = asyncio.create_task(self._run())

    @property
    def connected(self) -> bool:
        """Whether the hub has told what there is for us."""
        return self._watched.proxies.ready

    async def _run(self) -> None:
        async with self._hub, asyncio.TaskGroup() as group:
            self._announce.wake()
            works = (self._watched, self._delivery, self._announce, self._heartbeat, self._renewal)
            for work in works:
                group.create_task(work.run())

    def _heard(self, back: bool, controller: "UpstreamController", key: Key) -> None:
        self._delivery.wake(at_once=back)
        if back:
            self._heartbeat.wake()
            self._announce.wake(at_once=True)
            controller.look(key)

    def _wake(self) -> None:
        self._announce.wake(at_once=True)
        self._delivery.wake(at_once=True)

    def _held(self) -> bool:
        """Whether it isn't known that the hub means this cluster and no other."""
        return self._heartbeat.contested is not False

    async def _uid(self) -> str:
        """What tells this cluster from others, asked for once."""
        if not self._known_uid:
            self._known_uid = (await identify(self._local.once())).uid
        return self._known_uid

    async def _announced(self) -> None:
        """Have the hub know what this cluster is, and which labels it asks for; only then what runs here."""
        if self._held():
            return
        about = await identify(self._local.once())
        status = {
            "requestedLabels": self._upstream.spec.cluster.labels,
            "uid": about.uid,
            "kubernetesVersion": about.kubernetes_version,
            "agentVersion": __version__,
        }
        if status == self._said:
            return
        declared, ref = Cluster.declaration, _CLUSTERS.ref(self._cluster.name, self._cluster.namespace)
        body = {
            "apiVersion": f"{declared.group}/{declared.version}",
            "kind": declared.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "status": status,
        }
        with self.troubles.of("announce"):
            await self._hub.once().apply(ref.status, body, manager=MANAGER)
        self._said = status
        self._watched.introduced = True
        self._delivery.wake(at_once=True)


class UpstreamController:
    """Keeps a connection for each Upstream, and its status. Mutable: the connections, by Upstream."""

    def __init__(self, local: Client, *, settings: UpstreamSettings | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.local, self.clock = local, clock
        self.settings = settings or UpstreamSettings()
        self._connections: dict[Key, _Connection] = {}

    def join(self, group: Group, upstreams: Informer[Upstream], kubeconfigs: Informer[Secret]) -> None:
        """Run with a group; `kubeconfigs` are the Secrets labelled so."""
        self._upstreams, self._kubeconfigs = upstreams, kubeconfigs
        self._controller = group.controller(Controller("upstream", self.reconcile, clock=self.clock))
        group.task(self.run)
        upstreams.listen(self._upstream_changed)
        kubeconfigs.listen(self._kubeconfig_changed)

    def look(self, key: Key) -> None:
        """Have an Upstream's status compared with how its connection fares."""
        self._controller.add(key)

    async def run(self) -> None:
        """End all connections when this is cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            for key in list(self._connections):
                await self._end(key)

    async def reconcile(self, key: Key) -> Result | None:
        """Have a connection by the kubeconfig that there is now, and say how it fares."""
        upstream = self._upstreams.get(key)
        if upstream is None or upstream.metadata.deletion_timestamp is not None:
            await self._end(key)
            return None
        trouble: StarlingError | None = None
        try:
            await self._connect(key, upstream)
        except StarlingError as error:  # until the Secret changes
            await self._end(key)
            trouble = error
        connection = self._connections.get(key)
        status = status_of(
            upstream,
            connected=connection is not None and connection.connected,
            trouble=trouble or (connection.troubles.first if connection is not None else None),
            expires=expires_at(connection.token) if connection is not None else None,
            now=self.clock.now(),
        )
        if not says_the_same(upstream.status, status):
            self._upstreams.learn(await write_status(self.local, upstream, status))
        return None

    async def _connect(self, key: Key, upstream: Upstream) -> None:
        place = Key(key.namespace, upstream.spec.kubeconfig_secret.name)
        kubeconfig = kubeconfig_in(self._kubeconfigs.get(place), place)
        state = digest([kubeconfig, msgspec.to_builtins(upstream.spec)])
        before = self._connections.get(key)
        if before is not None and before.state == state and not before.task.done():
            return
        await self._end(key)
        connection = _Connection(self, key, upstream, kubeconfig, state)
        self._connections[key] = connection
        connection.task.add_done_callback(lambda task: self._ended(key, task))

    async def _end(self, key: Key) -> None:
        connection = self._connections.pop(key, None)
        if connection is not None:
            connection.task.cancel()
            await asyncio.wait([connection.task])

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        """A connection ends when it is told to; else something is wrong that nobody expected."""
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("upstream %s: an error that nobody expected", key, exc_info=error)
            self._controller.add_after(key, self.settings.delivery.longest_retry)

    def _upstream_changed(self, before: Upstream | None, after: Upstream | None) -> None:
        if (found := after or before) is not None:
            self._controller.add(Key(found.metadata.namespace, found.metadata.name))

    def _kubeconfig_changed(self, before: Secret | None, after: Secret | None) -> None:
        if (secret := after or before) is None:
            return
        for upstream in self._upstreams.items():
            meta = upstream.metadata
            place = (meta.namespace, upstream.spec.kubeconfig_secret.name)
            if place == (secret.metadata.namespace, secret.metadata.name):
                self._controller.add(Key(meta.namespace, meta.name))


def status_of(
    upstream: Upstream, *, connected: bool, trouble: StarlingError | None, expires: datetime | None, now: datetime
) -> UpstreamStatus:
    """How an Upstream fares; times are those of the last change."""
    before, generation = upstream.status, upstream.metadata.generation
    if trouble is not None:
        told = conditions.failed(before.conditions, generation, now, _with_way_out(upstream, trouble))
    elif connected:
        told = conditions.ready(before.conditions, generation, now, "connected", "Connected")
    else:
        told = conditions.reconciling(before.conditions, generation, now, "connecting to the hub", "Connecting")
    after = msgspec.structs.replace(before, observed_generation=generation, conditions=told, token_expires=expires)
    if after == before or not connected or trouble is not None:
        return after
    return msgspec.structs.replace(after, last_contact=now.replace(microsecond=0))


def _with_way_out(upstream: Upstream, error: StarlingError) -> StarlingError:
    """What to do where the hub no longer knows us."""
    if isinstance(error, Unauthorized | Forbidden):
        name, namespace = upstream.spec.cluster.name, upstream.metadata.namespace
        error.hint = f"the hub no longer lets us in; on the hub: starling enrol {name} --namespace {namespace}"
    return error
