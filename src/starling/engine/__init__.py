"""Manifests to clusters: a library for anyone who has the one and the other.

The nouns:

    Unit, UnitStatus, Operation   one thing synced to one cluster; how it stands; its way to a revision
    Engine                        the loop that keeps units synchronised, with its settings, protocols and callbacks
    Plan, Task                    what there is to do, as data, with reasons
    Preview                       a plan without its doing: for dry-runs and diffs
    Readiness, Health             how ready an object is (`starling.engine.health`, which imports alone)

How data goes through: a ManifestGenerator gives manifests, `prepare` makes them what will be applied (namespaces,
marks, order), `plan` compares that with the records of the `cache` (`removals` says what becomes of what isn't wanted
any more, `tasks` has what plans are made of), `execute` does it with `apply` and `prune`, and what came of it is in
the UnitStatus that a SyncStore writes down. A watch for each kind keeps the cache up to date: drift is when the digest
of our managed fields isn't the one that our apply left (`fields` reads them, `adoption` takes over what other tools
made, `ignoring` leaves alone what may differ, `contention` ends quarrels). `connection` is one cluster, `operate` one
unit's operation, `engine` the loop, `preview` a look ahead. `starling.engine.diff` says what an apply would change.

    engine = Engine(ReconciliationSettings(), credentials, generator, store)
    engine.on_sync_completed(print)
    await engine.run()
"""

from starling.engine.cache import Change, Record
from starling.engine.callbacks import BeforeSync, ResourceEvent, SyncCompleted, UnitSeen, Unsubscribe
from starling.engine.configmaps import ConfigMapStore
from starling.engine.engine import Engine
from starling.engine.errors import EngineError, NotOurs, RecordTaken, Refused, Vetoed
from starling.engine.execute import SyncEvent
from starling.engine.health import Health, Readiness
from starling.engine.inventory import pack, unpack
from starling.engine.preview import Preview
from starling.engine.settings import (
    ClusterAccess,
    CredentialsStore,
    Limits,
    ManifestGenerator,
    ReconciliationSettings,
    ResourceOverride,
    ResourcesFilter,
    SyncStore,
)
from starling.engine.tasks import Action, Plan, Task
from starling.engine.unit import (
    Drift,
    IgnoredDifference,
    Operation,
    Phase,
    Problem,
    StoredUnit,
    Unit,
    UnitStatus,
)

__all__ = [
    "Action",
    "BeforeSync",
    "Change",
    "ClusterAccess",
    "ConfigMapStore",
    "CredentialsStore",
    "Drift",
    "Engine",
    "EngineError",
    "Health",
    "IgnoredDifference",
    "Limits",
    "ManifestGenerator",
    "NotOurs",
    "Operation",
    "Phase",
    "Plan",
    "Preview",
    "Problem",
    "Readiness",
    "ReconciliationSettings",
    "Record",
    "RecordTaken",
    "Refused",
    "ResourceEvent",
    "ResourceOverride",
    "ResourcesFilter",
    "StoredUnit",
    "SyncCompleted",
    "SyncEvent",
    "SyncStore",
    "Task",
    "Unit",
    "UnitSeen",
    "UnitStatus",
    "Unsubscribe",
    "Vetoed",
    "pack",
    "unpack",
]
