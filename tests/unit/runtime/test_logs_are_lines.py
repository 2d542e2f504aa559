"""Logs are JSON or text lines on stderr, bounded, and without what looks like credentials."""

import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.runtime import redacted
from starling.runtime.logs import JsonLines, TextLines

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"sent Authorization: Bearer {JWT}", "sent Authorization: Bearer ***"),
        (f"{{'authorization': 'bearer {JWT}'}}", "{'authorization': 'bearer ***'}"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic ***"),
        ("clone https://user:pw@host/x.git: no", "clone https://***@host/x.git: no"),
        ("https://ghp_token@host/x", "https://***@host/x"),
        ("https://user:p@ss@host/x", "https://***@host/x"),
        ("oci://robot:secret@registry/x", "oci://***@registry/x"),
        ("ssh://git@host/x.git and git@host:x", "ssh://git@host/x.git and git@host:x"),
        ("https://host/a@b, http://host:8080/x", "https://host/a@b, http://host:8080/x"),
        ("a basic idea of a bearer", "a basic idea of a bearer"),
    ],
    ids=["header", "mapping", "basic", "url", "token", "at", "oci", "ssh", "path", "words"],
)
def test_what_looks_like_credentials_is_taken_out(text: str, clean: str) -> None:
    """And nothing else."""
    assert redacted(text) == clean


@given(user=st.text("abc:%-_~!$", max_size=8), password=st.text("abc%-_~!$@:+=", min_size=1))
def test_no_password_stays_in_an_address(user: str, password: str) -> None:
    """Whatever characters it is made of."""
    assert redacted(f"see https://{user}:{password}@host/path now") == "see https://***@host/path now"


def line(message: str, *arguments: object, **fields: Any) -> dict[str, Any]:
    """The JSON line of a record."""
    record = logging.LogRecord("starling.test", logging.WARNING, "file.py", 1, message, arguments, None)
    record.created = 1_767_225_600.25
    vars(record).update(fields)
    text = JsonLines().format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_line_says_when_what_and_where() -> None:
    """Time in UTC, level, logger, message, and the fields that `extra` named."""
    assert line("%s fell\nover", "it", key="ns/a", count=3, other=("x",)) == {
        "time": "2026-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "starling.test",
        "message": "it fell\nover",
        "key": "ns/a",
        "count": 3,
        "other": "('x',)",
    }


def test_extra_fields_are_cleaned_too_and_hide_nothing() -> None:
    """A field can't take the place of the record's own."""
    found = line("hello", url="https://u:p@host/", logger="someone else")
    assert (found["url"], found["logger"]) == ("https://***@host/", "starling.test")


def test_messages_are_cut() -> None:
    """At 8 KiB, after credentials were taken out, so that half of one isn't overlooked."""
    found = line("x" * 8172 + " https://user:secret@host/")
    assert len(found["message"].encode()) <= 8 * 1024 + 3
    assert "secret" not in found["message"]
    assert line("\ud800 é" * 10_000)["message"].endswith("…")


@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()], ids=["json", "text"])
def test_exceptions_are_told_without_credentials(formatter: logging.Formatter) -> None:
    """With the traceback; of a very long one the end."""
    error = ValueError("x" * 20_000 + " https://user:secret@host/ the end")
    record = logging.LogRecord("a", logging.ERROR, "f", 1, "failed", None, (ValueError, error, None))
    text = formatter.format(record)
    assert "the end" in text
    assert "secret" not in text
    assert len(text) < 9000


PROGRAM = """
import logging, sys
from starling.runtime import structured_logs
structured_logs(sys.argv[1], sys.argv[2])
logging.getLogger("starling.x").debug("fine", extra={"key": "a"})
logging.getLogger("aiohttp").info("what a library sends")
logging.getLogger("aiohttp").warning("a library's warning")
"""


@pytest.mark.parametrize(
    ("level", "form", "expected"),
    [("debug", "json", 2), ("info", "json", 1), ("DEBUG", "text", 2)],
    ids=["debug", "info", "text"],
)
def test_a_process_logs_to_stderr_by_level(level: str, form: str, expected: int) -> None:
    """Starling's own from the level on, libraries' from warnings on; stdout stays clean."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, level, form], capture_output=True, text=True, check=True, timeout=120
    )
    lines = done.stderr.splitlines()
    assert (done.stdout, len(lines)) == ("", expected)
    assert "a library's warning" in lines[-1]
    if form == "json":
        assert all(json.loads(each)["logger"] for each in lines)
