"""What the engine itself refuses to do, besides what API servers refuse."""

from starling.errors import StarlingError

__all__ = ["EngineError", "NotOurs", "RecordTaken", "Refused", "Vetoed"]


class EngineError(StarlingError):
    """A unit couldn't be synced."""

    reason = "SyncFailed"


class NotOurs(EngineError):
    """An object that a unit wants is someone else's."""

    reason = "OwnedByAnother"


class RecordTaken(EngineError):
    """Another process writes the record of a unit that we have in hand."""

    reason = "RecordTaken"


class Refused(EngineError):
    """The API server refused a write, for a cause whose remedy we know."""

    reason = "Refused"


class Vetoed(EngineError):
    """A callback before the sync said no."""

    reason = "Vetoed"
