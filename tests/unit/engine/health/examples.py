"""The objects in objects.yaml with the health they should have."""

from pathlib import Path
from typing import Any

from starling.engine.health import Health, Readiness
from starling.objects import load_documents

__all__ = ["EXAMPLES"]

_FILE = Path(__file__).parent / "objects.yaml"


def _examples() -> dict[str, tuple[dict[str, Any], Health]]:
    (document,) = load_documents(_FILE.read_bytes(), str(_FILE))
    return {
        f"{readiness}: {group['message']} #{number}": (obj, Health(Readiness(readiness), group["message"]))
        for readiness, groups in document.value.items()
        for group in groups
        for number, obj in enumerate(group["objects"])
    }


EXAMPLES = _examples()
"""An object and its health, by a name for the pair."""
