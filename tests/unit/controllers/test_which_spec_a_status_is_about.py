"""A status counts for the newest spec only once that is what was tried: an older success isn't a new one."""

import pytest

from starling.controllers.sync_store import Note, was_tried
from starling.engine import Problem, Readiness, Unit, UnitStatus

UNIT = Unit(id="prod/team/Module.web@c1", cluster="here")
HELD = Unit(id=UNIT.id, cluster="here", held="suspended")
NEW, OLD = "main@sha1:a new", "main@sha1:a old"
BAD = Problem("InvalidManifest", "no kind")


def status(revision: str, *problems: Problem, readiness: Readiness = Readiness.CURRENT) -> UnitStatus:
    """A unit that has rendered this."""
    return UnitStatus(revision=revision, readiness=readiness, problems=problems)


@pytest.mark.parametrize(
    ("note", "unit", "said", "tried"),
    [
        pytest.param(Note(wanted=NEW), UNIT, status(NEW), True, id="what is wanted was rendered"),
        pytest.param(Note(wanted=NEW), UNIT, status(OLD), False, id="of the same commit, but another path"),
        pytest.param(Note(wanted=NEW), UNIT, status(NEW, readiness=Readiness.FAILED), True, id="and failed"),
        pytest.param(Note(wanted=NEW, problem=BAD), UNIT, status(OLD), False, id="another stays in force"),
        pytest.param(Note(wanted=NEW), HELD, status(NEW), False, id="held"),
        pytest.param(Note(wanted=NEW), UNIT, status(NEW, readiness=Readiness.UNKNOWN), False, id="out of sight"),
        pytest.param(Note(hopeless=True), UNIT, status(OLD, BAD), True, id="what is wanted can't be"),
        pytest.param(Note(hopeless=True), UNIT, status(OLD), False, id="which the engine hasn't heard"),
        pytest.param(Note(), UNIT, status(OLD, BAD), False, id="it may yet be"),
        pytest.param(Note(), UNIT, status(""), False, id="nothing is known"),
    ],
)
def test_a_status_is_about_what_was_tried(note: Note, unit: Unit, said: UnitStatus, tried: bool) -> None:
    """The mark of what was rendered decides, or that nothing can be."""
    assert was_tried(note, unit, said) is tried
