"""An Upstream's status: connected, connecting, or why not; written again only when something has changed."""

from datetime import UTC, datetime, timedelta

import msgspec

from starling.api import ObjectMeta, Upstream
from starling.api.v1alpha1 import LocalSecretReference, UpstreamCluster, UpstreamSpec, UpstreamStatus
from starling.controllers.upstream import status_of
from starling.errors import InputError, StarlingError
from starling.kube import Unauthorized, Unreachable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
UPSTREAM = Upstream(
    metadata=ObjectMeta(name="hub", namespace="fleet", generation=3),
    spec=UpstreamSpec(
        kubeconfig_secret=LocalSecretReference(name="starling-upstream"), cluster=UpstreamCluster(name="edge-7")
    ),
)


def after(
    before: UpstreamStatus, trouble: StarlingError | None = None, *, connected: bool = True, minutes: int = 0
) -> UpstreamStatus:
    """The next status."""
    upstream = msgspec.structs.replace(UPSTREAM, status=before)
    now = NOON + timedelta(minutes=minutes)
    return status_of(upstream, connected=connected, trouble=trouble, expires=None, now=now)


def told(status: UpstreamStatus) -> dict[str, tuple[str, str]]:
    """Conditions by type."""
    return {each.type: (each.status, each.reason) for each in status.conditions}


def test_a_connection_that_lasts_is_no_news() -> None:
    """Connected is written once, with when that was."""
    connecting = after(UpstreamStatus(), connected=False)
    assert told(connecting) == {"Ready": ("False", "Connecting"), "Reconciling": ("True", "Connecting")}
    assert connecting.last_contact is None
    connected = after(connecting)
    assert told(connected) == {"Ready": ("True", "Connected")}
    assert connected.last_contact == NOON
    assert after(connected, minutes=5) == connected


def test_a_hub_that_is_away_leaves_when_it_was_last_there() -> None:
    """The reason is the error's, and trying again is under way."""
    connected = after(UpstreamStatus())
    away = after(connected, Unreachable("watch ProxyAssemblage", "connection refused"), minutes=5)
    assert told(away) == {"Ready": ("False", "Unreachable"), "Reconciling": ("True", "Unreachable")}
    assert away.last_contact == NOON
    assert after(away, Unreachable("watch ProxyAssemblage", "connection refused"), minutes=9) == away
    assert after(away, minutes=10).last_contact == NOON + timedelta(minutes=10)


def test_a_refused_token_names_the_one_command() -> None:
    """Unauthorized says how to enrol again."""
    refused = after(UpstreamStatus(), Unauthorized("patch Lease", "Unauthorized", code=401))
    assert "starling enrol edge-7 --namespace fleet" in refused.conditions[0].message


def test_what_only_people_can_mend_is_stalled() -> None:
    """A Secret that isn't there is not tried again by itself."""
    assert "Stalled" in told(after(UpstreamStatus(), InputError("there is no Secret fleet/starling-upstream")))
