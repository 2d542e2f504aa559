"""What the operators of `${…}` do to a value; their rules stand in `starling.rendering.envsubst`."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from starling.rendering.errors import SubstitutionError
from starling.rendering.globs import prefix_end

__all__ = ["LONGEST", "OPERATORS", "refuse_bomb"]

LONGEST: Final = 8_000_000  # characters; several times what an API server stores


def refuse_bomb(size: int) -> None:
    """Raise a SubstitutionError if a result of this size is more than anyone can want."""
    if size > LONGEST:
        raise SubstitutionError(
            f"what the expressions come to is longer than {LONGEST} characters", hint="shorten the values"
        )


_NUMBER: Final = re.compile(r"[+-]?0*[0-9]{1,19}")


def _is_number(word: str) -> bool:
    return _NUMBER.fullmatch(word) is not None and -(2**63) <= int(word) < 2**63


def _substring(value: str, words: list[str]) -> str:
    """A part of the value in bytes; UnicodeDecodeError if it cuts a character in half."""
    if not all(map(_is_number, words)):
        return value
    data = value.encode()
    start, length = int(words[0]), int(words[1]) if len(words) > 1 else len(data)
    if start < 0:
        start = max(0, len(data) + start)
    end = len(data) + length if length < 0 else start + length
    return data[start : max(start, end)].decode()


def _upper(character: str) -> str:
    """The one letter in upper case; what would become several (ß) stays, as Go has it."""
    return next((each for each in (character.upper(), character.title()) if len(each) == 1), character)


def _lower(character: str) -> str:
    return character.lower()[0]  # only İ becomes several, of which the first is the letter


def _first(change: Callable[[str], str]) -> Callable[[str, list[str]], str]:
    return lambda value, _: change(value[0]) + value[1:] if value else value


def _each(change: Callable[[str], str]) -> Callable[[str, list[str]], str]:
    return lambda value, _: "".join(map(change, value))


def _without_start(*, longest: bool) -> Callable[[str, list[str]], str]:
    return lambda value, words: value[prefix_end(words[0], value, longest=longest) :]


def _without_end(*, longest: bool) -> Callable[[str, list[str]], str]:
    return lambda value, words: value[: len(value) - prefix_end(words[0][::-1], value[::-1], longest=longest)]


def _replaced(value: str, words: list[str], count: int = -1) -> str:
    old, new = words[0], words[1] if len(words) > 1 else ""
    refuse_bomb(len(value) + len(new) * (value.count(old) if count < 0 else 1))
    return value.replace(old, new, count)


def _start_replaced(value: str, words: list[str]) -> str:
    return words[1] + value.removeprefix(words[0]) if len(words) > 1 and value.startswith(words[0]) else value


def _end_replaced(value: str, words: list[str]) -> str:
    return value.removesuffix(words[0]) + words[1] if len(words) > 1 and value.endswith(words[0]) else value


OPERATORS: Final[Mapping[str, Callable[[str, list[str]], str]]] = {
    "length": lambda value, _: str(len(value.encode())),
    ":": _substring,
    "^": _first(_upper),
    "^^": _each(_upper),
    ",": _first(_lower),
    ",,": _each(_lower),
    "#": _without_start(longest=False),
    "##": _without_start(longest=True),
    "%": _without_end(longest=False),
    "%%": _without_end(longest=True),
    "/": lambda value, words: _replaced(value, words, 1),
    "//": _replaced,
    "/#": _start_replaced,
    "/%": _end_replaced,
}
"""What is none of these (no operator, or ^ and , mixed) gives the value as it is."""
