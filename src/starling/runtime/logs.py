"""Logs on stderr, one line each: JSON for machines, text for people, and no credentials in either.

That no secret gets into a message is the business of whoever writes it. What looks like one anyway is taken out here.
"""

import logging
import re
from datetime import UTC, datetime
from typing import Literal

import msgspec

__all__ = ["JsonLines", "TextLines", "redacted", "structured_logs"]

MESSAGE_LIMIT = 8 * 1024

_BEARER = re.compile(r"\b(bearer\s+|authorization['\"]?\s*[:=]\s*['\"]?basic\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
# A token may stand for the user in http; elsewhere a lone user (ssh://git@…) is no secret.
_USERINFO = re.compile(r"\b(https?://)[^/\s]+@|\b([a-z][a-z0-9+.-]{0,15}://)[^/\s:]*:[^/\s]*@", re.IGNORECASE)
_OWN_FIELDS = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"))


def redacted(text: str) -> str:
    """The text without what looks like credentials: bearer tokens, and users and passwords in addresses."""
    text = _BEARER.sub(r"\1***", text)
    return _USERINFO.sub(lambda found: f"{found[1] or found[2]}***@", text)


class JsonLines(logging.Formatter):
    """A record as one JSON object: time, level, logger, message, exception, and whatever `extra` named."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(redacted(record.getMessage())),
        }
        if trace := _trace(self, record):
            fields["exception"] = trace
        for name, value in vars(record).items():
            if name not in _OWN_FIELDS:
                fields.setdefault(name, _plain(value))
        return msgspec.json.encode(fields).decode()


class TextLines(logging.Formatter):
    """A record as people read it: time, level, logger and message; an exception's lines follow."""

    def format(self, record: logging.LogRecord) -> str:
        """The lines."""
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {_cut(redacted(record.getMessage()))}"
        trace = _trace(self, record)
        return f"{line}\n{trace}" if trace else line


def structured_logs(level: int | str = logging.INFO, format: Literal["json", "text"] = "json") -> None:  # noqa: A002 - the setting's name
    """Have this process log to stderr from now on, and nowhere else.

    The level is Starling's own; of libraries only warnings are let through: below that some tell what they send.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("starling").setLevel(level.upper() if isinstance(level, str) else level)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The exception's text; of one that is too long the end, which says what it was."""
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    text = redacted(formatter.formatException(record.exc_info)).encode(errors="replace")
    return text[-MESSAGE_LIMIT:].decode(errors="ignore")


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float) else _cut(redacted(str(value)))


def _cut(text: str) -> str:
    raw = text.encode(errors="replace")
    return raw.decode() if len(raw) <= MESSAGE_LIMIT else raw[:MESSAGE_LIMIT].decode(errors="ignore") + "…"
