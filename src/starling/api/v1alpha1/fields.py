"""The types of fields that several kinds share: durations, shares of a fleet, selectors, references."""

from typing import Annotated, Literal

from msgspec import Meta, field

from starling.api.declaration import ATOMIC_MAP, Rule, checked, doc, matching, rules
from starling.api.meta import Fields

__all__ = [
    "Duration",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LocalSecretReference",
    "NumberOrPercent",
    "PositiveDuration",
    "PositiveNumberOrPercent",
    "Selector",
]

# Go counts nanoseconds in 64 bits, up to 292 years: the longest of these, 999999h999999h99999h, is 239.
DURATION = r"^([0-9]{1,6}(\.[0-9]+)?(ms|s|m|h))+$"
Duration = Annotated[str, Meta(max_length=20), matching(DURATION, "must be a duration such as 0s, 30s, 5m or 1h30m")]
"""How long, in Go's notation: 30s, 5m, 1h30m."""

PositiveDuration = Annotated[
    str,
    Meta(max_length=20),
    matching(
        DURATION,
        "must be a duration such as 30s, 5m or 1h30m, at least 1s",
        unless="duration(self) < duration('1s')",
    ),
]
"""How long, at least a second."""

# The API server takes int-or-string for a string of any length when it estimates what a rule costs: asking its type
# fits a list of up to 31, a regular expression one of 6. The pattern is the check; the rule explains likely mistakes.
_WITHIN_100_PERCENT = "self.endsWith('%') && size(self) <= (self.startsWith('100') ? 4 : 3)"

PositiveNumberOrPercent = Annotated[
    Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=r"^(100|[1-9][0-9]?)%$")],
    checked(
        Rule(
            f"type(self) == int ? self >= 1 : {_WITHIN_100_PERCENT} && !self.startsWith('0')",
            "must be a number of at least 1 (without quotes), or a percentage from 1% to 100%",
        )
    ),
]
"""How many of a set: 3, or 25%; at least one."""

NumberOrPercent = Annotated[
    Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^(100|[1-9]?[0-9])%$")],
    checked(
        Rule(
            f"type(self) == int ? self >= 0 : {_WITHIN_100_PERCENT}",
            "must be a number of at least 0 (without quotes), or a percentage from 0% to 100%",
        )
    ),
]
"""How many of a set: 3, or 25%; possibly none."""

ObjectName = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
_LABEL_KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
LabelKey = Annotated[str, Meta(min_length=1, max_length=317, pattern=_LABEL_KEY)]
LabelValue = Annotated[str, Meta(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$")]


class LocalSecretReference(Fields, frozen=True, kw_only=True):
    """A Secret in the namespace of the object that names it."""

    name: Annotated[ObjectName, doc("The Secret's name.")]


@rules(
    Rule(
        "self.operator in ['In', 'NotIn'] == (has(self.values) && size(self.values) > 0)",
        "In and NotIn take values; Exists and DoesNotExist take none",
        field_path=".values",
    )
)
class LabelSelectorRequirement(Fields, frozen=True, kw_only=True):
    """A condition on one label."""

    key: Annotated[LabelKey, doc("The label's key.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        doc("In, NotIn: the label's value is, is not, among `values`. Exists, DoesNotExist: it is there or not."),
    ]
    values: Annotated[
        tuple[LabelValue, ...], Meta(max_length=64), doc("The values of In and NotIn; none for the others.")
    ] = ()


# A schema has no place for what keys look like, hence the rule. The API server takes keys for empty when it estimates
# what a rule costs: in 16 stages this is 0.3% of the budget (v1.36). The size comes first to bound what it does cost.
_LABEL_KEYS = checked(
    Rule(
        f"self.all(key, size(key) <= 317 && key.matches(r'{_LABEL_KEY}'))",
        "must have keys that labels can have, such as region or example.com/region",
    )
)


class LabelSelector(Fields, frozen=True, kw_only=True):
    """What is picked by labels; all conditions must hold, and an empty selector picks everything."""

    match_labels: Annotated[
        dict[str, LabelValue],
        Meta(max_length=64),
        _LABEL_KEYS,
        doc("Labels that must be there with these values."),
    ] = field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...],
        Meta(max_length=32),
        doc("Conditions on labels, all of which must hold."),
    ] = ()


Selector = Annotated[LabelSelector, ATOMIC_MAP]
"""A label selector that is replaced as a whole: half of one and half of another would select what nobody meant."""
