"""Decisions about a fleet of clusters: pure functions of what is recorded, without I/O or a clock.

    selection    which clusters a selector picks
    bindings     the values of a cluster's bindings
    targets      what a rollout moves clusters to, as one digest
    stages       which clusters are in which stage
    windows      when updates may start
    rollout      which clusters may move or be left now        Facts, Members → Decision
    groups       what SyncGroups add to that: several things that move together
    assembly     what one cluster runs                         entries, Claims → entries
    delivery     what its own Assemblage becomes, and what is told of it
    states       how far an entry is there                     Entry, Sync → EntryStatus

How a change goes through: a Module's spec and the content of its paths make a *target*, kept as a `ModuleRevision`.
`decide` admits clusters to it, and that is recorded in the Module before anything else happens. Only then does
`assemble` give an admitted cluster the entry that `make_entry` makes of the revision; any other keeps the target that
it has. `local_spec` carries entries down, `entry_status` and `report` tell how they fare, and `decide` hears of it as
`Member`s. Any step may be done twice, late, or by two at once: what is recorded, and each entry's admission counter,
keep the bounds.
"""

from starling.fleet.assembly import LARGEST, Claim, ModuleRevision, assemble, check_size, make_entry, size_of
from starling.fleet.bindings import BindingError, resolve_bindings
from starling.fleet.delivery import adopt, local_spec, report
from starling.fleet.groups import GROUP, PART, GroupRevision, Part, group_revision, held_parts, part_claim, part_name
from starling.fleet.rollout import Course, Decision, Facts, Member, decide, superseded
from starling.fleet.selection import selects
from starling.fleet.states import COMPLAINS, TRANSIENT, entry_status, ready_of, sync_state
from starling.fleet.targets import paths_used, target_of

__all__ = [
    "COMPLAINS",
    "GROUP",
    "LARGEST",
    "PART",
    "TRANSIENT",
    "BindingError",
    "Claim",
    "Course",
    "Decision",
    "Facts",
    "GroupRevision",
    "Member",
    "ModuleRevision",
    "Part",
    "adopt",
    "assemble",
    "check_size",
    "decide",
    "entry_status",
    "group_revision",
    "held_parts",
    "local_spec",
    "make_entry",
    "part_claim",
    "part_name",
    "paths_used",
    "ready_of",
    "report",
    "resolve_bindings",
    "selects",
    "size_of",
    "superseded",
    "sync_state",
    "target_of",
]
