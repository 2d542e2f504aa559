"""`starling rollout wait` is told by what is recorded, of the target at hand, and of what was last changed."""

from typing import Any

import pytest

from starling.cli.rollouts import Verdict, is_revision, line_of, meant, verdict
from starling.errors import InputError
from tests.unit.cli.fleets import NEW
from tests.unit.cli.rollouts import T1, T2, rolled

ENDINGS: dict[str, tuple[dict[str, Any], Verdict]] = {
    "on its way": ({}, "waits"),
    "ended, and well": ({"phase": "Succeeded", "ended": T2}, "done"),
    "ended, some unwell": ({"phase": "Degraded", "ended": T2}, "done"),
    "ended, and clusters wait": ({"phase": "Waiting", "ended": T2}, "waits"),
    "what was before succeeded": ({"phase": "Succeeded", "ended": T1}, "waits"),
    "said of another generation": ({"phase": "Succeeded", "ended": T2, "observed_generation": 2}, "waits"),
    "failed, said of another generation": (
        {"phase": "Failed", "failed_target": T2, "observed_generation": 2},
        "waits",
    ),
    "never looked at": ({"phase": "Pending", "target": "", "ended": "", "failed_target": ""}, "waits"),
    "failed": ({"phase": "Failed", "failed_target": T2}, "failed"),
    "what was before failed": ({"phase": "Progressing", "failed_target": T1}, "waits"),
    "goes back": ({"phase": "RollingBack", "failed_target": T2, "rollback_to": T1}, "waits"),
    "went back": ({"phase": "RolledBack", "failed_target": T2, "rollback_to": T1}, "failed"),
    "ended once, and taken back": ({"phase": "RolledBack", "failed_target": T2, "ended": T2}, "failed"),
}


@pytest.mark.parametrize(("said", "ending"), ENDINGS.values(), ids=ENDINGS)
def test_whether_it_has_ended(said: dict[str, Any], ending: Verdict) -> None:
    """Only what is said of this target, and since the last change, ends it."""
    assert verdict(rolled(**said)) == ending


@pytest.mark.parametrize(
    ("wanted", "is_it"),
    [
        ("v1.2.0", True),
        (NEW, True),
        (NEW[:7], True),
        (NEW[:4].upper(), True),
        (f"v1.2.0@sha1:{NEW}", True),
        (f"sha1:{NEW}", True),
        (NEW[:3], False),
        ("v1.2", False),
        ("v1.2.0@", False),
        ("", False),
        ("sha1", False),
    ],
)
def test_what_names_a_revision(wanted: str, is_it: bool) -> None:
    """A tag or a commit in full, or the beginning of a commit that is long enough."""
    assert is_revision(f"v1.2.0@sha1:{NEW}", wanted) is is_it


def test_no_revision_is_none() -> None:
    """What has no revision yet is at none that one could name."""
    assert not is_revision("", "v1.2.0")


def test_a_line_says_that_it_is_old() -> None:
    """Where the last change isn't seen yet, the line says so, and it is one line."""
    assert line_of(rolled(stage="eu")) == "Progressing, stage eu: 1 of 3 clusters are at the target"
    assert line_of(rolled(observed_generation=2)).endswith("at the target (said before it was changed last)")
    assert "starling controller" in line_of(rolled(phase="Pending", conditions=(), observed_generation=-1))


@pytest.mark.parametrize("name", ["web", "module/web", "Module/web"])
def test_which_rollout_is_meant(name: str) -> None:
    """A name alone is a Module's."""
    assert str(meant(name, "n")) == "module n/web"


@pytest.mark.parametrize("name", ["pod/web", "module/", "a/b/c"])
def test_what_is_not_rolled_out(name: str) -> None:
    """Another kind is refused, with those that there are."""
    with pytest.raises(InputError) as refused:
        meant(name, "n")
    assert refused.value.hint is not None
    assert "module/NAME" in refused.value.hint
