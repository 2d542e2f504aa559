"""Delivery: one cluster's ProxyAssemblage on the hub → its Assemblage downstream, and back how that stands.

The same code runs on the hub, for clusters that it can reach, and in an agent, for a hub that it can reach; only how
the hub is read differs (`HubSide`). Two steps, each woken by changes and each tried again by itself, so that an error
on one side doesn't stop the other:

    deliver    credentials, then the Assemblage: what fleet.local_spec makes of the proxy and of what is there
    report     ProxyAssemblage/status: what fleet.report makes of the Assemblage

Both on the terms of fleet.terms: an Assemblage is one proxy's at a time, and what is told of it at first it is told
to the one that is recorded there. A proxy that is gone, or can't be read, changes nothing downstream.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Assemblage, ProxyAssemblage
from starling.api.meta import Status
from starling.api.v1alpha1 import AssemblageSpec, ProxyAssemblageStatus
from starling.controllers.credentials import CredentialsCopy, Secret, credentials_used, released
from starling.controllers.following import Followed, Step, Troubles
from starling.controllers.secrets import credentials_name
from starling.errors import StarlingError
from starling.fleet.delivery import Origin, Terms, local_spec, origin_of, report, terms
from starling.kube import FIELD_MANAGER, Client, Conflict, NotFound, NotServed
from starling.runtime import Key

__all__ = ["Delivery", "DeliverySettings", "HubSide", "Undeliverable", "urgent"]

_ASSEMBLAGES: Final = Assemblage.declaration.resource
_PROXIES: Final = ProxyAssemblage.declaration.resource
_API_VERSION: Final = f"{Assemblage.declaration.group}/{Assemblage.declaration.version}"


class Undeliverable(StarlingError):
    """The other side answers, and yet what is to be written doesn't get there."""

    reason = "Undeliverable"


class DeliverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds: the least time between reports, the time between looks without cause, the first and last retry.

    `lost_after` is how long a cluster, or its agent, must not have answered to count as lost.
    """

    report_every: float = 0.5
    look_every: float = 300.0
    first_retry: float = 0.2
    longest_retry: float = 60.0
    lost_after: float = 180.0


class HubSide(Protocol):
    """How the hub is read: asked by the hub itself, watched by an agent."""

    @property
    def introduced(self) -> bool:
        """Whether the hub knows what this cluster is, and may be told what runs there."""
        ...

    async def fresh(self) -> ProxyAssemblage | None:
        """The same as `proxy`, asked for now whatever is known."""
        ...

    async def proxy(self) -> ProxyAssemblage | None:
        """All that the cluster is to run; None: there is no such thing, or it isn't known yet."""
        ...

    async def credentials(self) -> Secret | None:
        """The credentials of what it is to run; None: there are none, or they aren't known yet."""
        ...

    def learn(self, proxy: ProxyAssemblage) -> None:
        """See the answer to a write of our own at once."""
        ...

    def doubt(self) -> None:
        """What is known may be out of date: the next time, read it anew."""
        ...


class _Look(NamedTuple):
    """Both sides as they are known, and how far the one counts for the other."""

    proxy: ProxyAssemblage
    followed: Followed[Assemblage]
    terms: Terms


class Delivery:
    """One cluster's, both ways. Mutable: what is followed downstream, and when it was last reported.

    `wake` says that something on the hub may have changed; `told` hears each state of the Assemblage.
    """

    def __init__(
        self,
        hub: Client,
        side: HubSide,
        downstream: Client,
        key: Key,
        *,
        manager: str = FIELD_MANAGER,
        hub_troubles: Troubles,
        troubles: Troubles,
        told: Callable[[Assemblage], None] = lambda _: None,
        settings: DeliverySettings,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._hub, self._side, self._downstream = hub.once(), side, downstream.once()
        self._following_client = downstream
        self._key, self._manager = key, manager
        self._hub_troubles, self._troubles, self._told = hub_troubles, troubles, told
        self._settings, self._clock = settings, clock
        self._deliver = self._step("deliver", self._delivered)
        self._report = self._step("report", self._reported)
        self._followed: Followed[Assemblage] | None = None
        self._following: asyncio.Task[None] | None = None
        self._copy: CredentialsCopy | None = None
        self._last_report: float | None = None

    def wake(self, *, at_once: bool = False) -> None:
        """Have both sides compared."""
        self._deliver.wake(at_once=at_once)
        self._report.wake(at_once=at_once)

    async def run(self) -> None:
        """Deliver until cancelled."""
        self.wake()
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._deliver.run())
            group.create_task(self._report.run())
            group.create_task(self._look_again())

    # Down

    async def _delivered(self) -> None:
        look = await self._look()
        if look is None:
            return
        if look.terms.rival is not None:
            self._troubles.set("deliver", self._taken_by(look.terms.rival, look.proxy))
            return  # until one of both changes
        local = look.followed.object
        wanted = local_spec(look.terms.spec, local)
        failed: StarlingError | None = None
        try:
            await self._copy_credentials(wanted, local)
        except StarlingError as error:  # what needs none goes on
            failed = error
        with self._troubles.of("deliver"):
            await self._write(look.followed, wanted, look.terms.origin)
        if failed is not None:
            raise failed

    def _taken_by(self, rival: Origin, proxy: ProxyAssemblage) -> Undeliverable:
        namespace, name = self._key.namespace, self._key.name
        if rival.name == name:
            hint = (
                "another hub has it; if that one is no more, have what runs there found anew: "
                f"kubectl --namespace {namespace} delete proxyassemblage {name}"
            )
        else:
            hint = (
                f"delete one of both Clusters; if {rival.name} is no more, on the cluster itself: kubectl --namespace "
                f"{namespace} annotate assemblage {proxy.spec.instance} starling.dev/proxy-"
            )
        other = f"{namespace}/{rival.name}, by the ProxyAssemblage of uid {rival.uid}"
        return Undeliverable(f"cluster {self._key} is also delivered to as {other}", hint=hint)

    async def _copy_credentials(self, wanted: AssemblageSpec, local: Assemblage | None) -> None:
        name = credentials_name(wanted.instance)
        if self._copy is None or self._copy.name != name:
            self._copy = CredentialsCopy(self._downstream, Key(self._key.namespace, name))
        used = credentials_used(name, wanted)
        if not used or released(wanted, local):
            self._hub_troubles.set("read credentials", None)
            with self._troubles.of("credentials"):
                await self._copy.remove()
            return
        with self._hub_troubles.of("read credentials"):
            original = await self._side.credentials()
        if original is not None:
            with self._troubles.of("credentials"), self._explained():
                await self._copy.keep(original, used)

    async def _write(self, followed: Followed[Assemblage], wanted: AssemblageSpec, origin: Origin) -> None:
        """Onto the state that was compared, and nothing else: an Assemblage that we didn't see may hold more."""
        local = followed.object
        if local is None and wanted.released:
            return  # there is nothing to let go
        if local is not None:
            same = local.spec == wanted and origin_of(local) == origin
            if same or local.metadata.deletion_timestamp is not None:
                return
        key = followed.key
        metadata: dict[str, Any] = {"name": key.name, "namespace": key.namespace, "annotations": origin.annotations}
        body = {"apiVersion": _API_VERSION, "kind": "Assemblage", "metadata": metadata, "spec": _whole_spec(wanted)}
        try:
            with self._explained():
                if local is None:
                    answer = await self._downstream.create(_ASSEMBLAGES, body, namespace=key.namespace)
                else:
                    metadata["resourceVersion"] = local.metadata.resource_version
                    answer = await self._downstream.apply(_ASSEMBLAGES.ref(key.name, key.namespace), body)
        except Conflict:
            self._side.doubt()
            await followed.read()
            raise
        written = answer.decode(Assemblage)
        followed.learn(written)
        if written.spec != wanted:
            raise Undeliverable(f"cluster {self._key}: its Assemblage isn't kept as it was written")

    # Up

    async def _reported(self) -> float | None:
        look = await self._look()
        if look is None:
            return None
        proxy, spec = look.proxy, look.terms.spec
        local = look.followed.object if look.terms.rival is None else None  # another's isn't ours to tell of
        generation = proxy.metadata.generation
        if local is not None:
            self._told(local)
        made = local is not None and local.spec == local_spec(spec, local)
        taken = (generation, local.metadata.generation) if local is not None and made else None
        status = report(spec, generation, local, taken, proxy.status)
        adopted = status.assemblage == spec.adopted
        if local is not None and not adopted and not (made and self._may_be_adopted(local, proxy)):
            return None
        if status == proxy.status:
            self._hub_troubles.set("report", None)
            return None
        if (wait := self._too_soon()) > 0 and not urgent(proxy.status, status):
            return wait
        await self._send(proxy, status)
        return None

    def _may_be_adopted(self, local: Assemblage, proxy: ProxyAssemblage) -> bool:
        """Whether the hub may hear what runs there: nobody else changes it any more, and it knows the cluster."""
        origin = origin_of(local)
        return origin is not None and origin.uid == proxy.metadata.uid and self._side.introduced

    def _too_soon(self) -> float:
        if self._last_report is None:
            return 0.0
        return self._last_report + self._settings.report_every - self._clock.monotonic()

    async def _send(self, proxy: ProxyAssemblage, status: ProxyAssemblageStatus) -> None:
        meta, ref = proxy.metadata, _PROXIES.ref(self._key.name, self._key.namespace).status
        body = {
            "apiVersion": _API_VERSION,
            "kind": "ProxyAssemblage",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "status": _whole_status(status),
        }
        try:
            with self._hub_troubles.of("report"):
                answer = await self._hub.apply(ref, body, manager=self._manager)
        except (Conflict, NotFound):
            self._side.doubt()
            raise
        self._last_report = self._clock.monotonic()
        written = answer.decode(ProxyAssemblage)
        self._side.learn(written)
        if written.status != status:
            raise Undeliverable(f"ProxyAssemblage {self._key}: its status isn't kept as it was written")

    # Both

    async def _look(self) -> _Look | None:
        """Both sides; None as long as one isn't known, or there is nothing to deliver."""
        with self._hub_troubles.of("read"):
            proxy = await self._side.proxy()
        if proxy is not None and (followed := self._assemblage(proxy)).ready:
            if terms(proxy, followed.object).behind:  # or is it we who are?
                with self._hub_troubles.of("read"):
                    proxy = await self._side.fresh()
            if proxy is not None and self._assemblage(proxy) is followed:
                return _Look(proxy, followed, terms(proxy, followed.object))
        if proxy is None:
            self._troubles.set("deliver", None)
        return None

    def _assemblage(self, proxy: ProxyAssemblage) -> Followed[Assemblage]:
        """What follows the Assemblage that the proxy stands for; another one if it is another installation's."""
        name = proxy.spec.instance
        if self._followed is None or self._followed.key.name != name:
            if self._following is not None:
                self._following.cancel()
            self._followed = Followed(
                self._following_client,
                _ASSEMBLAGES,
                Assemblage,
                Key(self._key.namespace, name),
                troubles=self._troubles,
                changed=lambda back: self.wake(at_once=back),
                clock=self._clock,
                explain=self._explanation,
            )
            self._following = self._group.create_task(self._followed.run())
        return self._followed

    async def _look_again(self) -> None:
        """Compare both sides now and then without cause: credentials change, and people delete things."""
        while True:
            await self._clock.sleep(self._settings.look_every * random.uniform(0.9, 1.1))  # noqa: S311 - spreads
            self._side.doubt()
            if self._copy is not None:
                self._copy.doubt()
            self.wake()

    def _step(self, name: str, work: Callable[[], Any]) -> Step:
        settings = self._settings
        return Step(
            f"{name} {self._key}",
            work,
            first=settings.first_retry,
            longest=settings.longest_retry,
            clock=self._clock,
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the downstream said so that people know what is missing there."""
        try:
            yield
        except StarlingError as error:
            if (explanation := self._explanation(error)) is not error:
                raise explanation from error
            raise

    def _explanation(self, error: StarlingError) -> StarlingError:
        match error:
            case NotServed():
                return Undeliverable(
                    f"cluster {self._key}: Starling isn't installed there ({error.message})",
                    hint="starling cluster add brings kinds and agent along",
                )
            case NotFound():
                namespace = self._key.namespace
                return Undeliverable(
                    f"cluster {self._key}: there is no namespace {namespace}",
                    hint=f"create it there: kubectl create namespace {namespace}",
                )
            case _:
                return error


def urgent(before: ProxyAssemblageStatus, after: ProxyAssemblageStatus) -> bool:
    """Whether something has come to its end, which a rollout waits for."""
    known = {each.name: (each.target, each.state) for each in before.syncs}
    return any(
        each.state in ("succeeded", "failed") and known.get(each.name) != (each.target, each.state)
        for each in after.syncs
    )


def _whole_spec(spec: AssemblageSpec) -> dict[str, Any]:
    """Every field said, so that none stays that someone else wrote."""
    return _whole(spec)


def _whole_status(status: ProxyAssemblageStatus) -> dict[str, Any]:
    """The same; a cluster may have been another manager's before."""
    found = _whole(status)
    return {name: found[name] for name in found.keys() - _whole(Status()).keys()}


def _whole(value: msgspec.Struct) -> dict[str, Any]:
    names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    return {encoded: msgspec.to_builtins(getattr(value, name)) for encoded, name in names}
