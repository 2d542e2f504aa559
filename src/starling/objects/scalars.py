r"""What one YAML scalar means, by the rules of Go's sigs.k8s.io/yaml (that is, go-yaml v2 and then JSON).

A scalar that is quoted or a block is a string. A plain one is, in this order:

    null       nothing at all, ~, null, Null, NULL
    boolean    y yes true on, n no false off; each in lower case, Capitalised or UPPER CASE, nothing between
    special    .inf and .nan with an optional sign on .inf, in three spellings; fine as a key, an error as a value
    float      what starts with "." and is a Go float (underscores only between digits)
    integer    what starts with a digit or sign and, all underscores taken out, is decimal, 0x hex, 0o or 0 octal,
               0b binary, within 64 bits (unsigned only without a sign); 0b-1 too
    float      what starts so and reads [sign] digits [. digits] [exponent]: 1e3, 1., 08, and integers past 64 bits
    string     all else: 22:22, 2001-01-01, 0x, 1e999 (too large), <<

A tag decides before the shape does: !!str keeps the text; !!int, !!float, !!bool, !!null, !!timestamp demand that
the shape fits (!!float takes an integer too, a timestamp stays text); !!binary is base64 and becomes text, each byte
that isn't UTF-8 turned into U+FFFD; any other tag keeps the text. Tags of mappings and sequences mean nothing.

A float without a fraction becomes an integer, digit by digit as Go prints it in JSON, up to 1e21.
As a key, numbers and booleans turn into text; floats go through 32 bits, as they do in Go; null is no key.
"""

import base64
import binascii
import calendar
import codecs
import math
import re
import struct
from typing import Final

__all__ = ["AMBIGUOUS", "Scalar", "json_number", "key_text", "resolve_plain", "resolve_tagged"]

Scalar = str | int | float | bool | None


def _spellings(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(_spellings("y", "yes", "true", "on"), True),
    **dict.fromkeys(_spellings("n", "no", "false", "off"), False),
    **dict.fromkeys(["", "~", *_spellings("null")], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **{sign + word: math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}

AMBIGUOUS: Final = frozenset({"", *"+-.0123456789yYnNtTfFoO~"})
"""First characters (or none) of plain scalars that may be other than strings."""

_SIMPLE_INT: Final = re.compile(r"-?[1-9][0-9]{0,17}|0")
_INT: Final = re.compile(
    r"([-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[oO]?(?P<oct>[0-7]+)|0[bB](?P<bin>[01]+)|(?P<dec>0|[1-9][0-9]*))"
)
_SIGN_AFTER_0B: Final = re.compile(r"0b([-+][01]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DOT_FLOAT: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_BASES: Final = {"hex": 16, "oct": 8, "bin": 2, "dec": 10}
_INT64_MAX: Final = 2**63 - 1

_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt](?P<time>[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+](?P<zone>[0-9]{2}:[0-9]{2}))"
    r"| +(?P<bare>[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2})(?:[.,][0-9]+)?)?"
)

_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_TAG: Final = "tag:yaml.org,2002:"


def resolve_plain(text: str) -> Scalar:
    """What a plain scalar without a tag means; a float may be infinite or not a number."""
    first = text[:1]
    if first not in AMBIGUOUS:
        return text
    if _SIMPLE_INT.fullmatch(text):
        return int(text)
    if text in _WORDS:
        return _WORDS[text]
    if first in "+-0123456789":
        return _number(text)
    if first == "." and _DOT_FLOAT.fullmatch(text):
        return _float(text.replace("_", ""), text)
    return text


def resolve_tagged(tag: str, text: str) -> Scalar:
    """What a scalar with an explicit tag means; ValueError if its text doesn't fit the tag."""
    name = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if name == "binary":
        return _binary(text)
    if name not in {"bool", "int", "float", "null", "timestamp"}:
        return text
    value = resolve_plain(text)
    fits = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, float) or (type(value) is int and value <= _INT64_MAX),
        "null": value is None,
        "timestamp": _is_timestamp(text),
    }
    if not fits[name]:
        raise ValueError(f"this is not a !!{name}")  # what it is may be secret
    return float(value) if name == "float" and isinstance(value, int) else value


def json_number(value: float) -> int | float:
    """A float as JSON from Go holds it: an integer where no fraction remains and it is below 1e21."""
    if not math.isfinite(value):
        raise ValueError("JSON has no infinity and no NaN")
    if not value.is_integer() or abs(value) >= 1e21:
        return value
    digits, _, exponent = repr(value).partition("e")
    if not exponent:
        return int(value)
    whole, _, fraction = digits.partition(".")
    return int(whole + fraction + "0" * (int(exponent) - len(fraction)))


def key_text(value: Scalar) -> str:
    """A mapping key as the text that JSON has there; ValueError for null and for integers past 63 bits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float32_text(value)
    if value is None:
        raise ValueError("null can't be a key")
    if value > _INT64_MAX:
        raise ValueError(f"{value} is too large for a key")
    return str(value)


def _number(text: str) -> Scalar:
    plain = text.replace("_", "")
    if (match := _INT.fullmatch(plain)) and len(match["dec"] or "") <= 20:
        base = str(match.lastgroup)
        value = int(match[1] + match[base], _BASES[base])
        if -(2**63) <= value <= _INT64_MAX or (value < 2**64 and not match[1]):
            return value
    if _FLOAT.fullmatch(plain):
        return _float(plain, text)
    if (match := _SIGN_AFTER_0B.fullmatch(plain)) and -(2**63) <= (value := int(match[1], 2)) <= _INT64_MAX:
        return value
    return text


def _float(plain: str, text: str) -> Scalar:
    value = float(plain)
    return text if math.isinf(value) else value


def _float32_text(value: float) -> str:
    """As Go prints a float of 32 bits with %g and just enough digits to tell it apart."""
    if math.isnan(value):
        return ".nan"
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        single = math.copysign(math.inf, value)
    if math.isinf(single):
        return ".inf" if single > 0 else "-.inf"
    tries = (f"{single:.{digits}e}" for digits in range(9))
    shortest = next(text for text in tries if struct.pack("f", float(text)) == struct.pack("f", single))
    mantissa, _, exponent = shortest.partition("e")
    if -4 <= int(exponent) < 6:
        places = max(0, len(mantissa.lstrip("-").replace(".", "")) - 1 - int(exponent))
        return f"{float(shortest):.{places}f}"
    return shortest


def _one_for_each_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd", error.start + 1


codecs.register_error("starling.replace-each-byte", _one_for_each_byte)


def _binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("!!binary is not base64") from None
    return data.decode("utf-8", errors="starling.replace-each-byte")


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return False
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not 1 <= month <= 12:
        return False
    longest = 29 if month == 2 and calendar.isleap(year) else _DAYS[month - 1]
    hour, minute, second = map(int, (match["time"] or match["bare"] or "0:0:0").split(":"))
    zone_hour, zone_minute = map(int, (match["zone"] or "0:0").split(":"))
    clock = hour < 24 and minute < 60 and second < 60 and zone_hour <= 24 and zone_minute <= 60
    return 1 <= day <= longest and clock
