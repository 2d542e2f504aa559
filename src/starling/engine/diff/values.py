"""What a comparison says: an ObjectDiff and its Changes."""

import enum
from typing import Any

import msgspec

from starling.objects import ObjectKey

__all__ = ["Change", "Effect", "ObjectDiff"]


class Effect(enum.Enum):
    """What would become of an object."""

    UNCHANGED = "Unchanged"
    CREATED = "Created"
    CHANGED = "Changed"
    REMOVED = "Removed"
    REPLACED = "Replaced"
    REFUSED = "Refused"

    def __str__(self) -> str:
        return self.value


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field that differs; UNSET, which JSON leaves out, where it isn't there.

    The pointer of a field that goes leads into the object as it was, any other's into the object as it will be. Where
    a list's items are merely `reordered`, `before` and `after` are the keys of those that stay, in their order.
    """

    path: str
    pointer: str
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET
    reordered: bool = False


class ObjectDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of one object.

    `message` has the server's words for a refusal, or says what isn't known. `needs_force`: it would change what can't
    be, so only deleting and creating anew does; Refused without force, Replaced with it. `ownership`: an apply writes
    the object, since managers of its fields change, even where no value does.
    """

    key: ObjectKey
    effect: Effect
    changes: tuple[Change, ...] = ()
    message: str = ""
    needs_force: bool = False
    ownership: bool = False

    @property
    def different(self) -> bool:
        """Whether there is anything to show."""
        return self.effect is not Effect.UNCHANGED
