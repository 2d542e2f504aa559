"""Sync: the engine's adapter. Syncs are its units, sources and rendering its generator.

Its clusters are the one where this is and, on a hub, those that Syncs name.
"""

from typing import Final

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Condition, Sync
from starling.api.v1alpha1 import SyncStatus
from starling.controllers.renders import Renders
from starling.controllers.repositories import Repositories
from starling.controllers.secrets import Secrets
from starling.controllers.sync_clusters import SyncClusters
from starling.controllers.sync_manifests import SyncManifests
from starling.controllers.sync_records import Records
from starling.controllers.sync_status import bare_revision
from starling.controllers.sync_store import SyncStore
from starling.controllers.sync_units import SyncSettings
from starling.controllers.sync_world import SyncWorld
from starling.engine import Engine, Phase, ReconciliationSettings, SyncCompleted
from starling.kube import AccessSource, Client
from starling.runtime import Group, ObjectReference, Recorder

__all__ = ["SyncController", "SyncSettings", "SyncWorld"]

DEFAULTS: Final = SyncSettings()


class SyncController:
    """Keeps what Syncs say. All that changes is in the stores and the engine that it makes."""

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

    def join(self, group: Group, world: SyncWorld) -> Engine:
        """Run with a group, on informers of all namespaces; the engine that will do the work."""
        client, clock, settings = self._client, self._clock, self._settings
        records = Records(client, world.syncs, self._wrote, clock)
        store = SyncStore(client, world, records, settings, let_go=self._let_go, clock=clock)
        renders = Renders(client)

        def connected(cluster: str) -> Client | None:
            return engine.client(cluster)

        manifests = SyncManifests(
            client, store, self._repositories, self._secrets, renders, connected=connected, clock=clock
        )
        engine = Engine(
            ReconciliationSettings(), SyncClusters(self._access, world, clock=clock), manifests, store,
            limits=settings.limits, clock=clock,
        )  # fmt: skip
        engine.on_status(store.seen)
        engine.on_sync_completed(lambda completed: self._completed(store.sync_of(completed.unit.id), completed))

        def forget(before: Sync | None, after: Sync | None) -> None:
            if before is not None and after is None:
                renders.forget(before.metadata.uid)

        async def run() -> None:
            number = self._settings.processors
            await engine.run(status_processors=number, operation_processors=number)

        world.syncs.listen(forget)
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

    def _let_go(self, sync: Sync, message: str) -> None:
        self._tell(sync, "LeftBehind", message, warning=True)

    def _tell(self, sync: Sync, reason: str, message: str, *, warning: bool = False) -> None:
        self._recorder.event(ObjectReference.of(sync), reason, message, warning=warning, action="Sync")


def _stalled(status: SyncStatus) -> Condition | None:
    return next((each for each in status.conditions if each.type == "Stalled"), None)
