"""How ready one object is, and why: a pure function of the object and the time. Imports nothing else of Starling.

    Readiness     Unknown < Missing < Failed < Terminating < InProgress < Current; `least` is that of a set
    Health        a readiness and a message
    Rules         what gives an object's health: any function (object, now) -> Health
    RULES         the sets of rules there are, by the name that `starling health --rules` and settings use
    assess        the default set, kstatus
    complaint     what an object says of itself that kstatus has no rule for

`assess(obj, now)` looks at apiVersion, kind, metadata, spec and status, whatever is in them: malformed objects are
Unknown with a message that says why, and nothing is raised. Status and words are those of kubernetes-sigs/cli-utils,
which a differential test holds us to:

    kstatus        what goes for every kind: deletion, generations, the conditions Reconciling, Stalled and Ready
    kstatus_kinds  the built-in kinds' own rules
    subject        reading fields that may be of any type

The time matters for one thing: a pod that can't be scheduled is InProgress up to SCHEDULE_WINDOW after its creation,
and Failed from then on, without an event that says so.

Another set of rules is another entry of RULES; rules for single kinds are a Rules that asks another for the rest.
"""

from starling.engine.health.complaints import complaint
from starling.engine.health.kstatus import assess
from starling.engine.health.kstatus_kinds import SCHEDULE_WINDOW
from starling.engine.health.readiness import Health, Readiness, least
from starling.engine.health.rules import RULES, Rules

__all__ = ["RULES", "SCHEDULE_WINDOW", "Health", "Readiness", "Rules", "assess", "complaint", "least"]
