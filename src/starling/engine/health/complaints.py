"""What an object says of itself that kstatus has no rule for: it changes no readiness, but people should see it."""

from collections.abc import Mapping
from typing import Any

__all__ = ["complaint"]


def complaint(obj: Mapping[str, Any]) -> str:
    """Why an object says that it isn't available, as an APIService with nothing behind it does; "" if it doesn't."""
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for condition in conditions if isinstance(conditions, list) else ():
        if not isinstance(condition, Mapping):
            continue
        if (condition.get("type"), condition.get("status")) == ("Available", "False"):
            said = (condition.get("reason"), condition.get("message"))
            return ": ".join(["not available", *(str(words) for words in said if words)])
    return ""
