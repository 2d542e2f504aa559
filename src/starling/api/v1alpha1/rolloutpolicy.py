"""RolloutPolicy: how fast and how carefully a change may spread."""

from typing import Annotated, Literal

from msgspec import Meta, field

from starling.api.declaration import SET, Column, Rule, checked, doc, kind, matching, rules
from starling.api.meta import Fields, Resource, Status
from starling.api.v1alpha1.fields import (
    Duration,
    LocalSecretReference,
    NumberOrPercent,
    PositiveDuration,
    PositiveNumberOrPercent,
    Selector,
)

__all__ = ["Rollout", "RolloutGate", "RolloutPolicy", "RolloutStage", "RolloutWindow"]

_DAY = "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)"

StageName = Annotated[
    str,
    Meta(min_length=1, max_length=63),
    matching("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "must be lower-case letters, digits and dashes, such as eu-1"),
    checked(
        Rule(
            "self != 'rest'",
            "the name rest is taken: it is the last stage, of the clusters that no stage selects",
        )
    ),
]
GateUrl = Annotated[
    str,
    Meta(min_length=1, max_length=2048),
    checked(
        Rule(
            r"self.matches(r'^https?://[^\s/@]+(/[^\s]*)?$')",
            "must be an http:// or https:// URL without credentials",
        )
    ),
]
Days = Annotated[
    str,
    Meta(max_length=16),
    matching(f"^{_DAY}(-{_DAY})?$", "must be a day or a range of them, such as Sat or Mon-Fri"),
]
TimeOfDay = Annotated[
    str, Meta(max_length=16), matching("^([01][0-9]|2[0-3]):[0-5][0-9]$", "must be a time as HH:MM, such as 09:00")
]
EndOfWindow = Annotated[
    str,
    Meta(max_length=16),
    matching("^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", "must be a time as HH:MM, such as 16:00, or 24:00"),
]
# The API server knows the time zone database, and asking it for the hour somewhere fails where there is no such place.
TimeZone = Annotated[
    str,
    Meta(min_length=1, max_length=64, pattern="^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"),
    checked(
        Rule(
            "self != 'Local' && timestamp('2000-01-01T00:00:00Z').getHours(self) >= 0",
            "must be a time zone of the IANA database, such as UTC or Europe/Berlin",
        )
    ),
]


class RolloutGate(Fields, frozen=True, kw_only=True):
    """A URL that is asked whether a stage may start."""

    url: Annotated[GateUrl, doc("The URL to ask; the stage starts once it answers with a 2xx code.")]
    secret_ref: Annotated[
        LocalSecretReference | None, doc("The Secret with the key that the request is signed with.")
    ] = None
    timeout: Annotated[PositiveDuration, doc("How long to wait for one answer; it is asked again after that.")] = "10s"


class RolloutStage(Fields, frozen=True, kw_only=True):
    """A part of the fleet that is updated after the stages before it are done."""

    name: Annotated[StageName, doc("The stage's name.")]
    selector: Annotated[
        Selector, doc("The clusters of this stage, by label; one in several stages belongs to the first.")
    ]
    max_concurrent: Annotated[
        PositiveNumberOrPercent | None,
        doc("How many of its clusters may be updating at once, such as 3 or 25%; absent: as the policy says."),
    ] = None
    bake: Annotated[Duration, doc("How long the stage must stay well after its last cluster before it is done.")] = "0s"
    approval: Annotated[
        Literal["Automatic", "Manual"],
        doc("Automatic: the stage starts by itself. Manual: when someone approves it."),
    ] = "Automatic"
    gate: Annotated[RolloutGate | None, doc("A URL to ask before the stage starts.")] = None


@rules(Rule("self.from != self.until", "from and until must differ; for whole days leave both out"))
class RolloutWindow(Fields, frozen=True, kw_only=True):
    """A time of the week in which updates may start."""

    days: Annotated[
        tuple[Days, ...],
        Meta(max_length=7),
        SET,
        doc("The days it opens, such as Mon-Fri or Sat; absent: every day."),
    ] = ()
    from_: Annotated[TimeOfDay, doc("When it opens, as HH:MM.")] = field(name="from", default="00:00")
    until: Annotated[EndOfWindow, doc("When it closes, as HH:MM; a time before `from` is on the day after.")] = "24:00"
    timezone: Annotated[TimeZone, doc("The time zone of both, such as Europe/Berlin.")] = "UTC"


# Their order matters, so stages are replaced as a whole: merged by name, those of two writers would form an order that
# nobody wrote.
_NAMES_DIFFER = checked(
    Rule(
        "self.all(stage, self.exists_one(other, other.name == stage.name))",
        "no two stages may have the same name",
    )
)


class Rollout(Fields, frozen=True, kw_only=True):
    """How fast and how carefully a change may spread."""

    stages: Annotated[
        tuple[RolloutStage, ...],
        Meta(max_length=16),
        _NAMES_DIFFER,
        doc('The parts of the fleet, one after the other; clusters that none selects form a last one, "rest".'),
    ] = ()
    max_concurrent: Annotated[
        PositiveNumberOrPercent,
        doc("How many clusters of a stage may be updating at once, such as 3 or 25% (rounded down, at least 1)."),
    ] = "10%"
    max_failures: Annotated[
        NumberOrPercent,
        doc("How many clusters of a stage may fail before onFailure, such as 2 or 5% (rounded down)."),
    ] = 0
    on_failure: Annotated[
        Literal["Pause", "Rollback", "Continue"],
        doc("What too many failures lead to; Rollback returns the touched clusters to the last good version."),
    ] = "Pause"
    supersede: Annotated[
        Literal["Now", "Finish"],
        doc("What a newer version does to a rollout at work: Now replaces it, Finish lets it end first."),
    ] = "Now"
    unreachable: Annotated[
        Literal["Skip", "Wait"],
        doc("What an unreachable cluster does before its turn: Skip lets it catch up on return, Wait holds its stage."),
    ] = "Skip"
    timeout: Annotated[PositiveDuration, doc("A cluster that is updating for longer has failed.")] = "10m"
    jitter: Annotated[Duration, doc("Spread the start of updates over this long, against a stampede.")] = "0s"
    windows: Annotated[
        tuple[RolloutWindow, ...],
        Meta(max_length=32),
        doc("The times in which updates may start, those at work finish; absent: at any time."),
    ] = ()
    paused: Annotated[bool, doc("Whether to start no further updates.")] = False


@kind(
    plural="rolloutpolicies",
    short_names=("rp",),
    columns=(
        Column("Max Concurrent", ".spec.maxConcurrent", "How many clusters of a stage may be updating at once."),
        Column("On Failure", ".spec.onFailure", "What too many failures lead to."),
        Column("Paused", ".spec.paused", "Whether no further updates start.", type="boolean"),
    ),
)
class RolloutPolicy(Resource, frozen=True, kw_only=True):
    """A RolloutPolicy says how fast and how carefully a change may spread."""

    spec: Annotated[Rollout, doc("How fast and how carefully a change may spread.")]
    status: Annotated[Status, doc("Whether the policy makes sense; never written by hand.")] = Status()
