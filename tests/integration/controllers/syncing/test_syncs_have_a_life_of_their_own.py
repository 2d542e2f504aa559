"""Syncs that users make: they follow Sources, are pruned or orphaned as they say, and are never two of one unit."""

from datetime import UTC, datetime
from typing import Any

import pytest

from starling.api import Source, Sync
from starling.kube import Resource
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.controllers.syncing.stage import Stage, config_map
from tests.integration.engine.traffic import WRITES, Traffic
from tests.waiting import until

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
SECRETS = Resource("", "v1", "Secret", "secrets", namespaced=True)
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  v: "{{ .Values.v }}"
  w: "{{ .Values.w }}"
  version: "{{ .Capabilities.KubeVersion }}"
  ns: "{{ .Release.Namespace }}"
"""


async def put_source(stage: Stage, revision: str) -> None:
    """Have a Source whose controller has found this version."""
    ref = Source.declaration.resource.ref("platform", stage.namespace)
    document: dict[str, Any] = {
        "apiVersion": "starling.dev/v1alpha1", "kind": "Source", "metadata": {"name": "platform"},
    }  # fmt: skip
    spec = {"git": {"url": stage.repository.url, "ref": {"branch": "main"}}}
    await stage.client.apply(ref, document | {"spec": spec}, manager="user")
    if revision:
        now = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
        artifact = {"revision": revision, "digest": "sha256:x", "size": 1, "lastUpdate": now}
        await stage.client.apply(ref.status, document | {"status": {"artifact": artifact}}, manager="source")


async def test_a_source_is_followed_or_pinned(stage: Stage) -> None:
    """A Sync waits for its Source's first version, follows the next ones, and stays where it is pinned."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    second = stage.repository.commit({"web/cm.yaml": config_map("web", v="2")})
    async with stage.agent():
        await stage.put_sync("web", first, source={"name": "platform"})
        await stage.says("web", f"there is no Source {stage.namespace}/platform")
        await put_source(stage, "")
        await stage.says("web", "has no version yet")
        await put_source(stage, f"main@sha1:{first}")
        await stage.ready("web")
        await stage.has("web", {"v": "1"})
        await put_source(stage, f"main@sha1:{second}")
        await stage.has("web", {"v": "2"})
        assert (await stage.ready("web")).status.revision == f"main@sha1:{second}"
        await stage.put_sync("web", first, source={"name": "platform"}, revision=f"main@sha1:{first}")
        await stage.has("web", {"v": "1"})


async def test_charts_take_values_of_the_cluster(stage: Stage) -> None:
    """A chart's values come from a Secret and a ConfigMap of the namespace, and from the Sync, which wins."""
    first = stage.repository.commit({"web/Chart.yaml": CHART, "web/templates/cm.yaml": TEMPLATE})
    metadata = {"name": "values"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"values.yaml": "w: s"}}
    await stage.client.apply(SECRETS.ref("values", stage.namespace), secret)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"values.yaml": "v: c"}}
    await stage.client.apply(CONFIG_MAPS.ref("values", stage.namespace), config)
    references = [{"kind": kind, "name": "values"} for kind in ("Secret", "ConfigMap")]
    async with stage.agent():
        await stage.put_sync("web", first, package={"helm": {"valuesFrom": references, "values": {"v": "own"}}})
        await stage.ready("web")
    live = await stage.live("web")
    assert live is not None
    version = (await stage.client.raw("GET", "/version")).json()["gitVersion"]
    assert live["data"] == {"v": "own", "w": "s", "version": version, "ns": stage.namespace}


@pytest.mark.parametrize(("policy", "stays"), [("Prune", False), ("Orphan", True)])
async def test_a_deleted_sync_goes_as_it_says(stage: Stage, policy: str, stays: bool) -> None:
    """Deleting a Sync takes its objects along, or leaves them without our marks."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    async with stage.agent():
        await stage.put_sync("web", first, deletionPolicy=policy)
        await stage.ready("web")
        await stage.delete_sync("web")
        await stage.gone("web")
        live = await stage.live("web")
    assert (live is not None) is stays
    assert live is None or "annotations" not in live["metadata"]


async def test_a_namespace_that_goes_takes_nothing_along(stage: Stage, client: Any) -> None:
    """A Sync that goes down with its namespace leaves its objects, though its account lost its rights by then."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    async with stage.agent():
        await stage.put_sync("web", first)
        await stage.ready("web")
        await client.delete(NAMESPACES.ref(stage.namespace))
        binding = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", namespaced=True)
        await client.delete(binding.ref("starling", stage.namespace))
        await stage.delete_sync("web")
        await stage.gone("web")
        live = await stage.live("web")
    assert live is not None
    assert "annotations" not in live["metadata"]


async def test_a_unit_is_one_sync_s(stage: Stage) -> None:
    """The second Sync that an Assemblage has for one unit is refused, and has it once the first is gone."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1"), "too/cm.yaml": config_map("too", v="1")})
    one = stage.entry("web", first, "t1:a", deletionPolicy="Orphan")
    two = stage.entry("too", first, "t1:b", unit=one["unit"])
    async with stage.agent():
        await stage.assemble(one)
        await stage.states({"web": ("t1:a", "succeeded")})
        await stage.assemble(one, two)
        await stage.says("too", f"which Sync {stage.namespace}/web is already", "Stalled")
        await stage.states({"web": ("t1:a", "succeeded"), "too": ("t1:b", "failed")})
        assert await stage.live("too") is None
        await stage.assemble(two)
        await stage.states({"too": ("t1:b", "succeeded")})
        assert await stage.live("too") is not None


async def test_a_unit_of_another_namespace_is_refused(stage: Stage) -> None:
    """Nobody is a unit of a namespace that isn't their own."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    async with stage.agent():
        await stage.assemble(stage.entry("web", first, "t1:a", unit="prod/elsewhere/Module.web@c1"))
        await stage.says("web", "which is none of the namespace", "Stalled")
        await stage.states({"web": ("t1:a", "failed")})
        assert await stage.live("web") is None
        await stage.assemble()
        await stage.states({})


async def test_a_restart_that_finds_all_well_writes_nothing(stage: Stage, counted: Traffic) -> None:
    """A new agent reads, compares, and has nothing to write: no object, no status, no Secret."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1"), "own/cm.yaml": config_map("own", v="1")})
    await stage.assemble(stage.entry("web", first, "t1:a"))
    await stage.put_sync("own", first)
    async with stage.agent():
        await stage.states({"web": ("t1:a", "succeeded")})
        await stage.ready("own")
    async with stage.agent(counted.access) as engine:
        seen: set[str] = set()
        engine.on_status(lambda told: seen.add(told.unit_id))
        await until(lambda: len(seen) == 2)
        # What would be written is sent by now, before this is put right.
        await stage.client.merge_patch(CONFIG_MAPS.ref("own", stage.namespace), {"data": {"v": "x"}}, manager="vandal")
        await stage.has("own", {"v": "1"})
        written = [asked for asked in counted.asked if asked.verb in WRITES]
        assert written[0].path == CONFIG_MAPS.ref("own", stage.namespace).path
        assert not [asked for asked in written if asked.name == "web"]


async def test_a_confirmed_plan_is_carried_out(stage: Stage) -> None:
    """A render of nothing is refused until someone confirms that very plan by an annotation."""
    first = stage.repository.commit({"web/cm.yaml": config_map("web", v="1")})
    empty = stage.repository.commit({"web/cm.yaml": "# nothing\n"})
    async with stage.agent():
        await stage.put_sync("web", first)
        await stage.ready("web")
        await stage.put_sync("web", empty)
        sync = await stage.says("web", "starling.dev/confirm", "Stalled")
        assert await stage.live("web") is not None
        confirmed = sync.status.problems[0].hint.partition("starling.dev/confirm: ")[2]
        patch = {"metadata": {"annotations": {"starling.dev/confirm": confirmed}}}
        await stage.client.merge_patch(Sync.declaration.resource.ref("web", stage.namespace), patch, manager="kubectl")
        await stage.has("web", None)
