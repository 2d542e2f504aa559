"""Why a target failed is asked of the cluster when it fails, and never again."""

from datetime import UTC, datetime

from starling.api.v1alpha1 import ModuleStatus, RolloutFailure
from starling.controllers.rolling import LONGEST_CAUSE, explained

AT = datetime(2026, 1, 1, tzinfo=UTC)
OLD = RolloutFailure(target="t1:old", at=AT, clusters=("a",), message="no image")
NEW = RolloutFailure(target="t1:new", at=AT, clusters=("b", "c"))


async def told(before: tuple[RolloutFailure, ...], after: tuple[RolloutFailure, ...]) -> tuple[list[str], list[str]]:
    """Who was asked, and what the failures say then."""
    asked = []

    async def cause(cluster: str) -> str:
        asked.append(cluster)
        return f"{cluster}:\n  " + "x" * LONGEST_CAUSE

    found = await explained(ModuleStatus(failures=before), ModuleStatus(failures=after), cause)
    return asked, [each.message for each in found.failures]


async def test_the_first_cluster_of_a_new_failure_is_asked() -> None:
    """What it says is one line, no longer than a status takes; what older ones say stays."""
    assert await told((OLD,), (OLD, NEW)) == (["b"], ["no image", ("b: " + "x" * LONGEST_CAUSE)[:LONGEST_CAUSE]])


async def test_nobody_is_asked_again() -> None:
    """Not of what is known, nor of what someone undid, where no cluster failed."""
    assert await told((OLD,), (OLD,)) == ([], ["no image"])
    assert await told((), ()) == ([], [])
    undone = RolloutFailure(target="t1:new", at=AT, by="alice")
    assert await told((OLD,), (OLD, undone)) == ([], ["no image", ""])
