"""Which reports go at once: those that a rollout waits for."""

import pytest

from starling.api.v1alpha1 import EntryStatus, ProxyAssemblageStatus
from starling.controllers.delivery import urgent


def status(*entries: tuple[str, str, str]) -> ProxyAssemblageStatus:
    """A report of these names, targets and states."""
    return ProxyAssemblageStatus(
        syncs=tuple(EntryStatus(name=name, target=target, state=state) for name, target, state in entries)  # type: ignore[arg-type] # literals
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([], [("a", "t1", "updating")], False, id="begun"),
        pytest.param([("a", "t1", "updating")], [("a", "t1", "succeeded")], True, id="succeeded"),
        pytest.param([("a", "t1", "updating")], [("a", "t1", "failed")], True, id="failed"),
        pytest.param([("a", "t1", "succeeded")], [("a", "t1", "updating")], False, id="degraded"),
        pytest.param([("a", "t1", "succeeded")], [("a", "t2", "succeeded")], True, id="another target"),
        pytest.param([("a", "t1", "succeeded")], [("a", "t1", "succeeded")], False, id="the same"),
        pytest.param([("a", "t1", "failed")], [], False, id="gone"),
    ],
)
def test_ends_are_urgent(before: list[tuple[str, str, str]], after: list[tuple[str, str, str]], expected: bool) -> None:
    """A state that became succeeded or failed, at this target, doesn't wait for others."""
    assert urgent(status(*before), status(*after)) is expected
