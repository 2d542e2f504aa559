"""Which labels a selector picks, as Kubernetes decides it."""

from collections.abc import Mapping

from starling.api.v1alpha1 import LabelSelector, LabelSelectorRequirement

__all__ = ["selects"]


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether all its conditions hold for these labels; an empty selector has none, and picks everything."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(condition, labels) for condition in selector.match_expressions
    )


def _holds(condition: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match condition.operator:
        case "In":
            return condition.key in labels and labels[condition.key] in condition.values
        case "NotIn":  # a label that isn't there has none of the values
            return condition.key not in labels or labels[condition.key] not in condition.values
        case "Exists":
            return condition.key in labels
        case "DoesNotExist":
            return condition.key not in labels
