"""Drift of every sort is put right when its event comes, with no poll; the report names fields and manager.

Units have an interval of an hour: whatever is put right within a test was put right by an event.
"""

from dataclasses import dataclass

import pytest

from starling.engine import Drift
from starling.engine.ownership import LABEL, TRACKING
from starling.kube import Ref
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.conftest import Kubectl
from tests.integration.engine.edits import DEPLOYMENTS, SECRETS
from tests.integration.engine.scene import HOUR, Json, Scene, config_map, deployment, key_of
from tests.integration.engine.traffic import Traffic
from tests.integration.engine.world import running_engine
from tests.waiting import until

REPLICAS = ("spec.replicas",)
CONTAINER = "spec.template.spec.containers[name=web]"


def essence(live: Json) -> Json:
    """What git says of the Deployment and we put on it; what the server counts and dates is left out."""
    metadata = live["metadata"]
    spec = {name: live["spec"][name] for name in ("replicas", "selector", "template")}
    return {"labels": metadata["labels"], "annotations": metadata["annotations"], "spec": spec}


@dataclass(frozen=True)
class Case:
    """A foreign command, and the report of it: fields and manager; no fields: all of the object."""

    command: tuple[str, ...]
    fields: tuple[str, ...]
    manager: str = ""
    timed: bool = True


def patched(kind: str, patch: str) -> tuple[str, ...]:
    """A patch by `someone`."""
    return ("patch", "deployment/web", f"--type={kind}", f"--patch={patch}", "--field-manager=someone")


def removed(path: str) -> tuple[str, ...]:
    """A JSON patch that takes something away."""
    return patched("json", f'[{{"op": "remove", "path": "{path}"}}]')


LABELS, ANNOTATIONS = "metadata.labels", "metadata.annotations"
CASES = {
    # The server dates no scaling.
    "scale": Case(("scale", "deployment/web", "--replicas=5"), REPLICAS, "kubectl", timed=False),
    "set image": Case(("set", "image", "deployment/web", "web=web:9"), (f"{CONTAINER}.image",), "kubectl-set"),
    "label overwritten": Case(
        ("label", "deployment/web", "tier=back", "--overwrite"), (f"{LABELS}.tier",), "kubectl-label"
    ),
    "annotation overwritten": Case(
        ("annotate", "deployment/web", "note=theirs", "--overwrite"), (f"{ANNOTATIONS}.note",), "kubectl-annotate"
    ),
    "merge patch": Case(patched("merge", '{"spec": {"replicas": 4}}'), REPLICAS, "someone"),
    "env value removed": Case(
        removed("/spec/template/spec/containers/0/env/0/value"), (f"{CONTAINER}.env[name=A].value",)
    ),
    "env removed": Case(
        removed("/spec/template/spec/containers/0/env/0"), (f"{CONTAINER}.env",)
    ),
    "annotation removed": Case(removed("/metadata/annotations/note"), (f"{ANNOTATIONS}.note",)),
    "our label stripped": Case(("label", "deployment/web", f"{LABEL}-"), (f"{LABELS}[{LABEL}]",)),
    "our annotation stripped": Case(("annotate", "deployment/web", f"{TRACKING}-"), (f"{ANNOTATIONS}[{TRACKING}]",)),
    "our label overwritten": Case(
        ("label", "deployment/web", f"{LABEL}=other", "--overwrite"), (f"{LABELS}[{LABEL}]",), "kubectl-label"
    ),
    "our tracking id overwritten": Case(
        ("annotate", "deployment/web", f"{TRACKING}=other", "--overwrite"),
        (f"{ANNOTATIONS}[{TRACKING}]",), "kubectl-annotate",
    ),
    "deleted": Case(("delete", "deployment/web", "--wait=false"), ()),
    "deleted by label": Case(("delete", "deployments", "--selector=tier=front", "--wait=false"), ()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_it_is_put_right_and_reported(scene: Scene, kubectl: Kubectl, case: Case) -> None:
    """The object is as git says again, and the status tells what was changed by whom."""
    manifest = deployment()
    unit = scene.render("web", manifest, interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        before = essence(await scene.live("web", "Deployment"))
        found = kubectl("-n", scene.namespace, *case.command)
        assert found.returncode == 0, found.stderr
        status = await scene.until(unit, lambda status: status.drift)
        (drift,) = status.drift
        assert (drift.key, drift.fields, drift.manager) == (
            key_of(manifest, scene.namespace),
            case.fields,
            case.manager,
        )
        assert bool(drift.time) == (bool(case.manager) and case.timed)
        assert essence(await scene.live("web", "Deployment")) == before
        assert status.baseline


async def test_cleared_managed_fields_are_ours_again(scene: Scene) -> None:
    """What git says becomes ours alone once more: what it drops later goes, though `before-first-apply` had it."""
    unit = scene.render("web", config_map("a", x="1", y="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        ref = CONFIG_MAPS.ref("a", scene.namespace)
        await scene.client.merge_patch(ref, {"metadata": {"managedFields": [{}]}}, manager="someone")
        await scene.until(unit, lambda status: status.drift)
        owners = {entry["manager"] for entry in (await scene.live("a"))["metadata"]["managedFields"]}
        assert "starling" in owners
        scene.render("web", config_map("a", x="1"), interval=HOUR)
        await scene.synced(unit)
        assert await scene.data("a") == {"x": "1"}


async def test_several_at_once_are_told_apart(scene: Scene, traffic: Traffic) -> None:
    """Two managers that took fields of one object are two reports."""
    unit = scene.render("web", deployment(), interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        ref = DEPLOYMENTS.ref("web", scene.namespace)
        patches: list[tuple[str, Json]] = [
            ("one", {"spec": {"replicas": 3}}),
            ("two", {"metadata": {"labels": {"tier": "back"}, "annotations": {"note": "two's"}}}),
        ]
        traffic.events.clear()
        for manager, patch in patches:
            await scene.client.merge_patch(ref, patch, manager=manager)
        await until(lambda: any(b'"manager":"two"' in kept for kept in traffic.kept))
        traffic.events.set()
        status = await scene.until(unit, lambda status: len(status.drift) >= 2)
        assert {(each.manager, each.fields) for each in status.drift} == {
            ("one", REPLICAS),
            ("two", (f"{LABELS}.tier", f"{ANNOTATIONS}.note")),
        }


async def test_a_secrets_key_is_put_right(scene: Scene) -> None:
    """One given as stringData too: its keys are ours by name. No report has a value."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    unit = scene.render("web", secret, interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        before = (await scene.live("s", SECRETS))["data"]
        patch = {"stringData": {"password": "swordfish"}}
        await scene.client.merge_patch(SECRETS.ref("s", scene.namespace), patch, manager="someone")
        status = await scene.until(unit, lambda status: status.drift)
        assert [(each.fields, each.manager) for each in status.drift] == [(("data.password",), "someone")]
        assert (await scene.live("s", SECRETS))["data"] == before


ADDITIONS: dict[str, Json] = {
    "env": {"spec": {"template": {"spec": {"containers": [{"name": "web", "env": [{"name": "B", "value": "2"}]}]}}}},
    "container": {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}},
    "label": {"metadata": {"labels": {"theirs": "too"}}},
    "annotation": {"metadata": {"annotations": {"theirs": "too"}}},
    "field": {"spec": {"minReadySeconds": 3}},
}


@pytest.mark.parametrize("addition", ADDITIONS.values(), ids=ADDITIONS.keys())
async def test_additions_are_not_fought(scene: Scene, traffic: Traffic, addition: Json) -> None:
    """What others add stays, is no drift, and causes no write to the cluster or to the record."""
    marker = deployment("marker")
    unit = scene.render("web", deployment(), marker, interval=HOUR)
    async with running_engine(scene):
        await scene.has_applied(unit)
        await scene.until(unit, lambda status: len(status.objects) == 1)
        traffic.asked.clear()
        scene.history.clear()
        web = DEPLOYMENTS.ref("web", scene.namespace)
        added = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, **addition}
        theirs = (await scene.client.apply(web, added, manager="someone")).json()
        await _put_right(scene, DEPLOYMENTS.ref("marker", scene.namespace))
        assert [(each.verb, each.name) for each in traffic.writes()] == [("apply", "marker")]
        now = await scene.live("web", "Deployment")
        assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
        status = await scene.until(unit, lambda status: status.drift)
        assert [each.key.name for each in status.drift] == ["marker"]
        assert len(scene.history) == 1


async def _put_right(scene: Scene, ref: Ref) -> None:
    """Scale a Deployment, and wait until that is undone: what came before it on the watch has been seen."""
    await scene.client.merge_patch(ref, {"spec": {"replicas": 7}}, manager="marker")

    async def is_right() -> bool:
        live: Json = (await scene.client.get(ref)).json()
        return bool(live["spec"]["replicas"] == 1)

    await until(is_right)


async def test_a_reset_to_what_git_says_is_no_loss(scene: Scene) -> None:
    """Who writes the value that git says owns it with us: nothing drifts."""
    unit = scene.render("web", config_map("a", x="1"), config_map("marker", x="1"), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        await scene.client.merge_patch(CONFIG_MAPS.ref("a", scene.namespace), {"data": {"x": "1"}}, manager="someone")
        await scene.everything_seen("marker")
        status = await scene.until(unit, lambda status: status.drift)
        assert [each.key.name for each in status.drift] == ["marker"]


def test_reports_read_as_promised() -> None:
    """`spec.replicas, by kubectl-scale, 12:03`; a plain removal names nobody."""
    key = key_of(deployment(), "shop")
    by = Drift(key, REPLICAS, "kubectl-scale", "12:03")
    assert str(by).endswith("spec.replicas, by kubectl-scale, 12:03")
    assert str(Drift(key, REPLICAS)).endswith("spec.replicas, removed")
