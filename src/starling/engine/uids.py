"""Uids at half their weight: as text one takes 96 bytes, as a number 48, and there is one for every object."""

import re
from typing import Final

__all__ = ["Uid", "packed", "text"]

Uid = int | str
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def packed(uid: Uid) -> Uid:
    """The number of a UUID, which nearly all uids are; any other as it is."""
    if isinstance(uid, int) or _UUID.fullmatch(uid) is None:
        return uid
    return int(uid.replace("-", ""), 16) or uid


def text(uid: Uid) -> str:
    """A uid as the API server writes it."""
    if isinstance(uid, str):
        return uid
    digits = f"{uid:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
