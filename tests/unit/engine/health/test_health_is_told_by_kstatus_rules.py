"""Each rule, by an object for which it decides."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from starling.engine.health import SCHEDULE_WINDOW, Health, Readiness, assess
from tests.unit.engine.health.examples import EXAMPLES

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(("obj", "health"), EXAMPLES.values(), ids=EXAMPLES)
def test_an_object_has_the_health_that_the_table_says(obj: dict[str, Any], health: Health) -> None:
    """Readiness and message are those of the table."""
    assert assess(obj, NOW) == health


@pytest.mark.parametrize(
    ("age", "readiness"),
    [
        (timedelta(0), Readiness.IN_PROGRESS),
        (timedelta(seconds=14), Readiness.IN_PROGRESS),
        (SCHEDULE_WINDOW, Readiness.FAILED),
        (timedelta(days=1), Readiness.FAILED),
        (timedelta(seconds=-1), Readiness.IN_PROGRESS),
    ],
    ids=str,
)
@pytest.mark.parametrize("offset", ["Z", "+00:00", "-00:00"])
def test_a_pod_that_nothing_can_schedule_fails_with_age(age: timedelta, readiness: Readiness, offset: str) -> None:
    """It has fifteen seconds from its creation; then it has failed."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"creationTimestamp": (NOW - age).strftime("%Y-%m-%dT%H:%M:%S") + offset},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }
    assert assess(pod, NOW).readiness is readiness
