"""What can go wrong with a control plane on this machine."""

from starling.errors import StarlingError

__all__ = ["LocalError", "ToolMissingError"]


class LocalError(StarlingError):
    """A control plane on this machine can't do what was asked."""

    reason = "LocalFailed"


class ToolMissingError(LocalError):
    """A program that this needs isn't on this machine."""

    reason = "ToolMissing"
