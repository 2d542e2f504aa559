"""Whose an object is: the two marks that we put on it, how they are read, and who may take it over."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from starling.engine.unit import instance_of, namespace_of, unit_hash
from starling.objects import ObjectKey

__all__ = ["LABEL", "TRACKING", "how_to_move", "mark", "may_take", "owner", "tracking_id"]

LABEL: Final = "starling.dev/sync"
TRACKING: Final = "starling.dev/tracking-id"

# Every object of a unit carries the same label value, and there are few units.
_label_value = lru_cache(maxsize=1024)(unit_hash)


def tracking_id(unit_id: str, key: ObjectKey) -> str:
    """The unit and the very object that it means: `<unit id>:<group>/<kind>:<namespace>/<name>`.

    Names may hold a ":" (RBAC's do), ids of units never: what stands before the first one is the unit.
    """
    return f"{unit_id}:{key.group}/{key.kind}:{key.namespace}/{key.name}"


def owner(
    key: ObjectKey, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None, label_key: str = LABEL
) -> str:
    """The id of the unit that owns an object; "" if none does.

    Both marks must fit: other controllers copy labels to what they make, and a tracking id that was copied along names
    another object than the one it stands on.
    """
    label = (labels or {}).get(label_key)
    tracking = (annotations or {}).get(TRACKING)
    if not label or not tracking:
        return ""
    unit_id = tracking.partition(":")[0]
    # Anyone can write an annotation; what has no instance and namespace can't be an id of ours.
    if unit_id.count("/") < 2 or tracking != tracking_id(unit_id, key):
        return ""
    return unit_id if label == _label_value(unit_id) else ""


def mark(content: dict[str, Any], unit_id: str, key: ObjectKey, label_key: str = LABEL) -> dict[str, Any]:
    """A content that carries both marks. Only the way to them is copied, the rest is shared with the one given."""
    metadata = content["metadata"]
    labels = {**(metadata.get("labels") or {}), label_key: _label_value(unit_id)}
    annotations = {**(metadata.get("annotations") or {}), TRACKING: tracking_id(unit_id, key)}
    return {**content, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def may_take(unit_id: str, owner_id: str, renders: bool) -> str:
    """Why a unit may not take over an object from its owner; "" if it may.

    `renders` is whether the owner still wants the object.
    """
    if owner_id in ("", unit_id):
        return ""
    if instance_of(owner_id) != instance_of(unit_id):
        return f"it belongs to {owner_id}, of another installation of Starling"
    if namespace_of(owner_id) != namespace_of(unit_id):
        return f"it belongs to {owner_id}, of another namespace"
    return f"it belongs to {owner_id}, which still renders it" if renders else ""


def how_to_move(unit_id: str, owner_id: str) -> str:
    """What to do so that a unit gets an object that another has, and nothing is deleted on the way."""
    first = "take it out of that unit's manifests first, or out of these"
    if may_take(unit_id, owner_id, renders=False):
        return f"{first}; annotate it with kustomize.toolkit.fluxcd.io/prune: disabled before, or it will be pruned"
    return f"{first} (who moves it with `starling apply` applies that unit first, without --prune)"
