"""What people tell a rollout to do: an order, in an annotation, carried out once."""

from typing import Final, Literal

import msgspec

from starling.errors import InputError

__all__ = ["ORDER", "Order", "parse_order"]

ORDER: Final = "starling.dev/order"


class Order(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One order. It holds for one target: whoever gave it hadn't seen another.

    approve   `stage` may start
    retry     a target that failed is tried again
    undo      clusters go back from the target to another one, `to`
    """

    id: str
    verb: Literal["approve", "retry", "undo"]
    target: str
    stage: str = ""
    to: str = ""
    by: str = ""

    def encode(self) -> str:
        """As the annotation has it."""
        return msgspec.json.encode(self).decode()


def parse_order(text: str) -> Order | None:
    """What the annotation says; None if it isn't there."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=Order)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the annotation {ORDER} is no order: {error}", hint="give orders with starling rollout, or remove it"
        ) from error
