"""Sync: the engine's adapter. Syncs are its units, sources and rendering its generator, this cluster its only one."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Assemblage, Condition, Source, Sync
from starling.api.v1alpha1 import SyncStatus
from starling.controllers.renders import Renders
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import Secrets
from starling.controllers.sync_manifests import SyncManifests
from starling.controllers.sync_status import bare_revision
from starling.controllers.sync_store import SyncStore
from starling.controllers.sync_units import HERE, SyncSettings
from starling.engine import ClusterAccess, Engine, Phase, ReconciliationSettings, SyncCompleted
from starling.kube import AccessSource, Client
from starling.runtime import Group, Informer, ObjectReference, Recorder

__all__ = ["SyncController", "SyncSettings"]

DEFAULTS: Final = SyncSettings()


class SyncController:
    """Keeps what this cluster's Syncs say. All that changes is in the store and the engine that it makes."""

    def __init__(
        self,
        client: Client,
        access: AccessSource,
        repositories: Repositories,
        secrets: Secrets,
        recorder: Recorder,
        *,
        settings: SyncSettings = DEFAULTS,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._client = client
        self._access = access
        self._repositories = repositories
        self._secrets = secrets
        self._recorder = recorder
        self._settings = settings
        self._clock = clock

    def join(
        self, group: Group, syncs: Informer[Sync], sources: Informer[Source], assemblages: Informer[Assemblage]
    ) -> Engine:
        """Run with a group, on informers of all namespaces; the engine that will do the work."""
        store = SyncStore(
            self._client, syncs, sources, assemblages, self._settings, wrote=self._wrote, clock=self._clock
        )
        renders = Renders(self._client)
        manifests = SyncManifests(self._client, store, self._repositories, self._secrets, renders, clock=self._clock)
        engine = Engine(
            ReconciliationSettings(), _ThisCluster(self._access), manifests, store,
            limits=self._settings.limits, clock=self._clock,
        )  # fmt: skip
        engine.on_status(store.seen)
        engine.on_sync_completed(lambda completed: self._completed(store.sync_of(completed.unit.id), completed))

        def forget(before: Sync | None, after: Sync | None) -> None:
            if before is not None and after is None:
                renders.forget(before.metadata.uid)

        async def run() -> None:
            number = self._settings.processors
            await engine.run(status_processors=number, operation_processors=number)

        syncs.listen(forget)
        group.task(store.run)
        group.task(run)
        return engine

    def _completed(self, sync: Sync | None, completed: SyncCompleted) -> None:
        operation = completed.operation
        if sync is None:
            return
        if operation.phase is Phase.SUCCEEDED:
            self._tell(sync, "Synced", f"applied {bare_revision(operation.revision)}")
        else:
            self._tell(sync, "SyncFailed", f"{bare_revision(operation.revision)}: {operation.message}", warning=True)

    def _wrote(self, before: Sync, status: SyncStatus) -> None:
        """Tell of drift that was put right, and of what stalls before an operation could fail."""
        for drift in status.drift:
            if drift not in before.status.drift:
                whose = f"changed by {drift.manager}" if drift.manager else "removed by someone"
                message = f"put right {drift.object}: {', '.join(drift.fields) or 'all of it'}, {whose}"
                self._tell(before, "DriftCorrected", message)
        was, now = _stalled(before.status), _stalled(status)
        failed = status.operation is not None and status.operation.phase == "Failed"
        if now is not None and not failed and (was is None or was.message != now.message):
            self._tell(before, now.reason, now.message, warning=True)

    def _tell(self, sync: Sync, reason: str, message: str, *, warning: bool = False) -> None:
        self._recorder.event(ObjectReference.of(sync), reason, message, warning=warning, action="Sync")


def _stalled(status: SyncStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == "Stalled"), None)


class _ThisCluster:
    """The engine's CredentialsStore: one cluster, reached the same way for ever."""

    def __init__(self, access: AccessSource) -> None:
        self._access = ClusterAccess(access)

    async def get_cluster(self, name: str) -> ClusterAccess | None:
        """Access to this cluster; there is no other."""
        return self._access if name == HERE else None

    async def watch_clusters(self) -> AsyncIterator[str]:
        """Nothing, for ever."""
        await asyncio.Event().wait()
        yield HERE
