"""Our kstatus rules against cli-utils' own: same status, same message, over a table and generated objects.

One round is some seventeen hundred objects.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from starling.engine.health import Readiness, assess
from tests.integration.go_programs import GoProgram, go_program
from tests.rounds import ROUNDS
from tests.unit.engine.health.examples import EXAMPLES
from tests.unit.engine.health.objects import mangled_objects, objects

SOURCES = Path(__file__).parent.parent / "gokstatus"

many = settings(max_examples=800 * ROUNDS, deadline=None, suppress_health_check=list(HealthCheck))


class CliUtils:
    """cli-utils' kstatus."""

    def __init__(self, program: GoProgram) -> None:
        self._program = program

    def compute(self, obj: dict[str, Any]) -> dict[str, str]:
        """Status and message, or the error, as cli-utils has them."""
        answer: dict[str, str] = self._program.ask(obj)
        return answer


@pytest.fixture(scope="module")
def cli_utils(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliUtils]:
    """cli-utils' kstatus, built here."""
    with go_program("gokstatus", tmp_path_factory) as program:
        yield CliUtils(program)


def check(cli_utils: CliUtils, obj: dict[str, Any]) -> None:
    """Fail unless both say the same, or cli-utils gives an error and we Unknown."""
    theirs = cli_utils.compute(obj)
    ours = assess(obj, datetime.now(UTC))
    if "error" in theirs:
        assert ours.readiness is Readiness.UNKNOWN, f"{obj}: {ours}, cli-utils: {theirs}"
    else:
        assert (str(ours.readiness), ours.message) == (theirs["status"], theirs["message"]), obj


@pytest.mark.parametrize("obj", [obj for obj, _ in EXAMPLES.values()], ids=EXAMPLES)
def test_every_object_of_the_table(cli_utils: CliUtils, obj: dict[str, Any]) -> None:
    """What the unit tests' table says of an object, cli-utils says too."""
    check(cli_utils, obj)


@pytest.mark.rounds
@many
@given(obj=objects())
def test_objects_in_any_state(cli_utils: CliUtils, obj: dict[str, Any]) -> None:
    """Every kind with rules, and kinds without, in combinations of generations, counts, phases and conditions."""
    check(cli_utils, obj)


@pytest.mark.rounds
@many
@given(obj=mangled_objects())
def test_malformed_objects(cli_utils: CliUtils, obj: dict[str, Any]) -> None:
    """Any JSON value in any place of an object makes the same difference to both."""
    check(cli_utils, obj)
