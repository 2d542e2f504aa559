"""An entry's state follows from its Sync, once that is about the entry."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from starling import errors
from starling.api import Condition, ObjectMeta, Sync
from starling.api.v1alpha1 import SyncOperation, SyncProblem, SyncSpec, SyncStatus
from starling.engine import errors as engine_errors
from starling.fleet import TRANSIENT, entry_status
from starling.kube import errors as kube_errors
from starling.rendering import errors as rendering_errors
from starling.sources import errors as source_errors
from tests.unit.fleet.simulated import SOURCE, entry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENTRY = entry("app", "t1:new")
DONE = SyncOperation(digest="d", phase="Succeeded", started_at=NOW)
CURRENT = SyncStatus(
    observed_generation=2, target="t1:new", readiness="Current", operation=DONE, last_applied_revision="v1@sha1:1"
)
FAILED = replace(CURRENT, readiness="Failed")


def sync(status: SyncStatus) -> Sync:
    """The entry's Sync."""
    return Sync(metadata=ObjectMeta(name="app", generation=2), spec=SyncSpec(source=SOURCE), status=status)


def problems(*reasons: str) -> SyncStatus:
    """A Sync that failed for these reasons."""
    return replace(FAILED, problems=tuple(SyncProblem(reason=reason, message=f"about {reason}") for reason in reasons))


@pytest.mark.parametrize(
    ("status", "state"),
    [
        pytest.param(CURRENT, "succeeded", id="current"),
        pytest.param(replace(CURRENT, target="t1:old"), "updating", id="about another target"),
        pytest.param(replace(CURRENT, observed_generation=1), "updating", id="not yet looked at"),
        pytest.param(replace(CURRENT, operation=None), "updating", id="nothing applied yet"),
        pytest.param(replace(CURRENT, operation=replace(DONE, phase="Running")), "updating", id="applying"),
        pytest.param(replace(CURRENT, readiness="InProgress"), "updating", id="in progress"),
        pytest.param(replace(CURRENT, readiness="Unknown"), "updating", id="unknown"),
        pytest.param(FAILED, "failed", id="took too long"),
        pytest.param(replace(FAILED, target="t1:old"), "updating", id="failed at another target"),
        pytest.param(problems("RenderFailed"), "failed", id="for good"),
        pytest.param(problems("Unreachable"), "updating", id="for now"),
        pytest.param(problems("Unreachable", "ServerError"), "updating", id="for now, twice"),
        pytest.param(problems("Unreachable", "Invalid"), "failed", id="for now and for good"),
        pytest.param(problems("Complains"), "failed", id="took too long, and complains"),
        pytest.param(problems("Complains", "TimedOut"), "updating", id="for now, and complains"),
    ],
)
def test_the_state_of_an_entry(status: SyncStatus, state: str) -> None:
    """It succeeds when all is Current, and fails when trying again won't mend it."""
    told = entry_status(ENTRY, sync(status))
    assert (told.name, told.target, told.state) == ("app", "t1:new", state)
    assert (told.readiness, told.revision) == (status.readiness, "v1@sha1:1")


def test_without_a_sync_it_is_on_its_way() -> None:
    """An entry whose Sync isn't there yet is updating."""
    told = entry_status(ENTRY, None)
    assert (told.name, told.target, told.state, told.readiness) == ("app", "t1:new", "updating", "Unknown")


def test_the_message_says_what_matters_most() -> None:
    """What won't mend by itself comes first, then anything else, then the condition; cut to what fits."""
    assert entry_status(ENTRY, sync(problems("Complains", "Unreachable", "Invalid"))).message == "about Invalid"
    ready = Condition(type="Ready", status="False", reason="X", message="y" * 2000, last_transition_time=NOW)
    assert entry_status(ENTRY, sync(replace(FAILED, conditions=(ready,)))).message == "y" * 1024
    assert entry_status(ENTRY, sync(replace(CURRENT, conditions=(ready,)))).message == ""


def test_transient_reasons_are_reasons() -> None:
    """Every one of them is some error's."""
    modules = (errors, engine_errors, kube_errors, rendering_errors, source_errors)
    known = {
        each.reason
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, errors.StarlingError)
    }
    assert known >= TRANSIENT
    assert not TRANSIENT & {"InvalidInput", "RenderFailed", "AccessDenied", "OwnedByAnother", "Vetoed", "Invalid"}
