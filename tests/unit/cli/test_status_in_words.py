"""`starling status` says where something stands, and why, briefly."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from starling.api import Module, conditions
from starling.cli.fleet import Fleet, Key
from starling.cli.status import Event, cluster_lines, is_ready, latest, rolled_lines
from starling.errors import StarlingError
from tests.unit.cli.fleets import cluster, entry, module, proxy, status

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def said(about: Module, told: conditions.Conditions, observed: int = 1) -> Module:
    """The Module at generation 1 with these conditions."""
    return msgspec.structs.replace(
        about,
        metadata=msgspec.structs.replace(about.metadata, generation=1),
        status=msgspec.structs.replace(about.status, observed_generation=observed, conditions=told),
    )


def test_a_module_with_clusters_in_every_state() -> None:
    """The well ones in a line, the others below it with what they say, the worst first."""
    web = said(module("web"), conditions.reconciling((), 1, NOW, "1 of 3 clusters are at the target"))
    fleet = Fleet.of(
        [cluster("a"), cluster("b"), cluster("c")],
        [web],
        [
            proxy("a", entry("web"), status("web", state="updating", message="waits for\nDeployment web")),
            proxy("b", entry("web"), status("web")),
            proxy("c", entry("web"), status("web", state="failed", message="no such image")),
        ],
    )
    assert list(rolled_lines(web, fleet.of_rolled(web))) == [
        "module n/web",
        "  phase     Progressing",
        "  version   v1.2.0",
        f"  revision  v1.2.0@sha1:{'b' * 40}",
        "  target    v1.2.0",
        "  ready     no (Progressing): 1 of 3 clusters are at the target",
        "  clusters  3: 1 ok, 1 updating, 1 failed",
        "",
        "  ok: b",
        "",
        "  c  v1.2.0 failed    no such image",
        "  a  v1.2.0 updating  waits for Deployment web",
    ]


def test_of_many_twenty_are_told() -> None:
    """The rest is a number."""
    names = [f"c{number:02}" for number in range(25)]
    proxies = [proxy(name, entry("web"), status("web", state="failed")) for name in names]
    fleet = Fleet.of(map(cluster, names), [module("web")], proxies)
    lines = list(rolled_lines(module("web"), fleet.of_rolled(module("web"))))
    assert [line.split()[0] for line in lines[-21:-1]] == names[:20]
    assert lines[-1] == "  and 5 more"


def test_a_cluster_and_all_it_runs() -> None:
    """Modules with what the cluster says of them, then what no Module claims."""
    eu = cluster("eu-1", {"region": "eu"})
    fleet = Fleet.of(
        [eu], [module("web")], [proxy("eu-1", entry("web"), status("web", readiness="Current"), entry("old", "main"))]
    )
    assert list(cluster_lines(fleet, Key("n", "eu-1"), NOW)) == [
        "cluster n/eu-1",
        "  phase       Ready",
        "  mode        Active",
        "  reached by  pull",
        "  labels      region=eu",
        "  ready       unknown: nobody has looked at it yet; is `starling controller` running?",
        "",
        "NAME  STATE      READINESS  MESSAGE",
        "web   v1.2.0 ok  Current",
        "",
        "found on the cluster, of no Module or SyncGroup; `starling cluster release` lets one go:",
        "  old main@bbbbbbb",
    ]


@pytest.mark.parametrize(
    ("told", "observed", "ready"),
    [
        (conditions.ready((), 1, NOW, "all well"), 1, True),
        (conditions.ready((), 1, NOW, "all well"), 0, False),
        (conditions.failed((), 1, NOW, StarlingError("no")), 1, False),
        ((), 1, False),
    ],
    ids=["ready", "said before the last change", "not ready", "nobody looked"],
)
def test_ready_is_what_the_condition_says_of_this_generation(
    told: conditions.Conditions, observed: int, ready: bool
) -> None:
    """A condition about what was before says nothing."""
    assert is_ready(said(module("web"), told, observed)) is ready


def test_the_latest_events() -> None:
    """Five at most, the newest first; one that was repeated counts by its last time."""
    events = [
        msgspec.json.decode(
            msgspec.json.encode({"metadata": {}, "reason": str(age), "eventTime": NOW - timedelta(minutes=age)}),
            type=Event,
        )
        for age in range(1, 8)
    ]
    repeated = {"metadata": {}, "reason": "again", "eventTime": NOW - timedelta(days=1)}
    series = {"series": {"count": 9, "lastObservedTime": NOW}}
    events.append(msgspec.json.decode(msgspec.json.encode(repeated | series), type=Event))
    assert [each.reason for each in latest(events)] == ["again", "1", "2", "3", "4"]
