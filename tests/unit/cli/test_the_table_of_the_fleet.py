"""`starling get` puts clusters and Modules in one table, as wide as there is room for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from starling.api import ObjectMeta, conditions
from starling.api.v1alpha1 import RolloutSummary
from starling.cli.fleet import Fleet, Key, parsed_labels
from starling.cli.get import TABLES, What, document, matrix, summary
from starling.cli.standings import since
from starling.errors import InputError
from tests.unit.cli.fleets import cluster, entry, group, module, proxy, status

FLEET = Fleet.of(
    [cluster("eu-1", {"region": "eu"}), cluster("us-1", phase="Unreachable"), cluster("ap-1", mode="Frozen")],
    [module("web"), module("dns", selector={"region": "eu"})],
    [
        proxy("eu-1", entry("web"), status("web"), entry("dns"), status("dns", state="failed"), entry("old")),
        proxy("us-1", entry("web", "v1.1.0"), status("web", target="v1.1.0", applied="v1.1.0")),
    ],
)


def test_clusters_by_modules() -> None:
    """A row for each cluster, a column for each Module, both in order."""
    assert matrix(FLEET, None).splitlines() == [
        "CLUSTER  PHASE        MODE    dns            web",
        "ap-1     Ready        Frozen  -              → v1.2.0 held",
        "eu-1     Ready        Active  v1.2.0 failed  v1.2.0 ok",
        "us-1     Unreachable  Active  -              v1.1.0 unreachable",
    ]


def test_what_has_no_room_is_counted() -> None:
    """One column too few, and each cluster's Modules are counted."""
    width = max(map(len, matrix(FLEET, None).splitlines()))
    assert matrix(FLEET, width) == matrix(FLEET, None)
    assert matrix(FLEET, width - 1).splitlines() == [
        "CLUSTER  PHASE        MODE    STATES",
        "ap-1     Ready        Frozen  1 held",
        "eu-1     Ready        Active  1 ok, 1 failed",
        "us-1     Unreachable  Active  1 unreachable",
    ]


def test_more_columns_if_asked_for() -> None:
    """Every namespace: which; wide: labels."""
    lines = matrix(FLEET, None, everywhere=True, wide=True).splitlines()
    assert lines[0].split() == ["NAMESPACE", "CLUSTER", "PHASE", "MODE", "LABELS", "dns", "web"]
    assert lines[2].split()[:5] == ["n", "eu-1", "Ready", "Active", "region=eu"]


def test_the_last_line() -> None:
    """Everything in numbers, and what no Module claims."""
    assert summary(FLEET) == (
        "3 clusters (2 ready, 1 unreachable); 2 modules (2 progressing); 1 ok, 1 held, 1 unreachable, 1 failed; "
        "1 of no module (starling status cluster names them)"
    )


@pytest.mark.parametrize(
    ("said", "stalled", "row"),
    [
        ({}, False, ["Progressing", "3/3", "v1.2.0"]),
        ({}, True, ["Stalled", "3/3", "v1.2.0"]),
        ({"phase": "Failed", "failed_target": "v1.2.0"}, True, ["Failed", "3/3", "v1.2.0 (failed)"]),
        (
            {"phase": "RolledBack", "failed_target": "v1.2.0", "rollback_to": "v1.1.0"},
            True,
            ["RolledBack", "3/3", "v1.2.0 (taken back)"],
        ),
        ({"failed_target": "v1.1.0"}, False, ["Progressing", "3/3", "v1.2.0"]),
        ({"target": "", "revision": ""}, False, ["Progressing", "3/3", ""]),
    ],
    ids=["on its way", "stalled", "failed", "rolled back", "the one before failed", "none yet"],
)
def test_a_module_in_a_row(said: dict[str, Any], stalled: bool, row: list[str]) -> None:
    """Beside how many are ready stands what they aren't at, if it was left again; and what keeps it, as its phase."""
    web = module("web")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    told = conditions.stalled((), 1, now, "no policy") if stalled else ()
    status = msgspec.structs.replace(web.status, summary=RolloutSummary(ready="3/3"), conditions=told, **said)
    for kind, one in [(What.MODULES, web), (What.SYNCGROUPS, group("a"))]:
        same = msgspec.structs.replace(one.status, **msgspec.structs.asdict(status))
        assert TABLES[kind].row(msgspec.structs.replace(one, status=same), now)[1:4] == row


def test_a_fleet_as_json() -> None:
    """Each cluster with its Modules that go there, and what no Module claims."""
    eu = next(each for each in document(FLEET)["clusters"] if each["name"] == "eu-1")
    assert [(each.name, each.state, each.version) for each in eu["modules"]] == [
        ("dns", "failed", "v1.2.0"),
        ("web", "ok", "v1.2.0"),
    ]
    assert eu["unclaimed"] == ["old"]


def test_modules_of_other_namespaces_are_others() -> None:
    """A Module goes to the clusters of its own namespace only."""
    elsewhere = msgspec.structs.replace(module("web"), metadata=ObjectMeta(name="web", namespace="other"))
    fleet = Fleet(FLEET.clusters, {Key("other", "web"): elsewhere}, FLEET.proxies)
    assert fleet.on(Key("n", "eu-1")) == []
    assert fleet.of_rolled(elsewhere) == []


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0s"), (59, "59s"), (60, "1m"), (7199, "1h"), (7200, "2h"), (90000, "1d"), (-5, "0s")]
)
def test_how_long_ago(seconds: int, told: str) -> None:
    """In the largest unit that fits; a clock that is behind makes it no time at all."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert since(now - timedelta(seconds=seconds), now) == told


def test_labels() -> None:
    """As kubectl writes them; what is none is refused."""
    assert parsed_labels("region=eu, ring=canary,empty=") == {"region": "eu", "ring": "canary", "empty": ""}
    assert parsed_labels("") == {}
    for wrong in ("region", "a=b,=c"):
        with pytest.raises(InputError, match="is no label"):
            parsed_labels(wrong)
    for wrong in ("a b=c", "a=b c", "a=-b", "/a=b", "a=" + "b" * 64):
        with pytest.raises(InputError, match="can't be a label"):
            parsed_labels(wrong)
    assert parsed_labels("example.com/ring=a_b.c-d") == {"example.com/ring": "a_b.c-d"}
