"""A diff says what an apply then does on a real API server: which fields, or nothing, or why not."""

import copy
import json
import random
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from starling.engine.diff import MASK, MASK_CHANGED, Apply, Change, Effect, diff_object, document, render
from starling.engine.paths import json_pointer
from starling.kube import AccessSource, ApiError, Body, Client, Invalid, NotFound, Ref, Resource, kubeconfig
from starling.local import LocalCluster
from starling.objects import ObjectKey
from tests.integration.config_maps import CONFIG_MAPS, config_map
from tests.integration.engine.edits import (
    ANY_KIND,
    DEPLOYMENTS,
    KINDS,
    SECRETS,
    SERVICES,
    WIDGETS,
    deployment,
    live,
    secret,
    service,
    web_container,
    widget,
    without_book_keeping,
)
from tests.rounds import ROUNDS
from tests.unit.engine.diff.changing import changed

Json = dict[str, Any]


@pytest.mark.rounds
@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_random_edits(client: Client, namespace: str, kind: str, seed: int) -> None:
    """An empty diff means that an apply writes nothing; any other, when made, gives what the apply gives."""
    rng = random.Random(f"{kind} {seed}")
    resource, base, edits = KINDS[kind]
    ref = resource.ref("web", namespace)
    await client.apply(ref, base())
    content, seen = base(), set()
    for _ in range(25):
        if rng.random() < 0.4:
            foreign = copy.deepcopy(await live(client, ref))
            rng.choice([*edits, *ANY_KIND])(foreign, rng)
            foreign["metadata"].pop("managedFields")
            with suppress(Invalid):
                await client.merge_patch(ref, foreign, manager="someone")
        if rng.random() < 0.3:
            content = base()
        for change in rng.choices([*edits, *ANY_KIND], k=rng.randrange(3)):
            change(content, rng)
        seen.add(await check(client, ref, content))
    assert seen - {Effect.REFUSED} == {Effect.CHANGED, Effect.UNCHANGED}


async def check(client: Client, ref: Ref, content: Json) -> Effect:
    """Compare what the diff says with what an apply then does."""
    before = await live(client, ref)
    diff = await diff_object(client, ref, content)
    assert await live(client, ref) == before
    if diff.effect is Effect.REFUSED:
        with pytest.raises(ApiError, match=re.escape(diff.message)):
            await client.apply(ref, content)
        return diff.effect
    await client.apply(ref, content)
    after = await live(client, ref)
    untouched = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert untouched is (not diff.different and not diff.ownership), render([diff])
    if ref.resource is SECRETS:
        names = {*before.get("data", {}), *after.get("data", {})}
        differing = {name for name in names if before.get("data", {}).get(name) != after.get("data", {}).get(name)}
        told = {change.path.removeprefix("data.") for change in diff.changes if change.path.startswith("data")}
        assert told in (differing, {"data"}), render([diff])
    else:
        made = changed(without_book_keeping(before), diff.changes)
        assert made == without_book_keeping(after), render([diff])
    return diff.effect


async def test_a_new_object_is_created(client: Client, namespace: str) -> None:
    """The diff has all of it, with the server's defaults and without its status, and is what an apply then makes."""
    ref = DEPLOYMENTS.ref("web", namespace)
    diff = await diff_object(client, ref, deployment())
    assert (diff.effect, diff.message) == (Effect.CREATED, "")
    with pytest.raises(NotFound):
        await client.get(ref)
    made = without_book_keeping((await client.apply(ref, deployment())).json())
    made.pop("status")
    assert changed({}, diff.changes) == made
    assert made["spec"]["revisionHistoryLimit"] == 10


async def test_a_namespace_that_is_yet_to_come(client: Client) -> None:
    """What goes into it is created as it is written, and the diff says why it knows no more."""
    ref = CONFIG_MAPS.ref("web", "not-yet")
    diff = await diff_object(client, ref, config_map("web", a="1"))
    assert (diff.effect, diff.key) == (Effect.CREATED, ObjectKey("", "ConfigMap", "not-yet", "web"))
    assert diff.message == "namespace not-yet doesn't exist yet; shown as written"
    assert changed({}, diff.changes) == config_map("web", a="1")


async def test_a_namespace_that_nobody_brings(client: Client) -> None:
    """Who knows which namespaces are yet to come hears that this isn't one of them."""
    ref = CONFIG_MAPS.ref("web", "not-yet")
    for namespaces, effect in (({"not-yet"}, Effect.CREATED), (set[str](), Effect.REFUSED)):
        diff = await diff_object(client, ref, config_map("web", a="1"), how=Apply(namespaces=namespaces))
        assert diff.effect is effect
    assert diff.message == "there is no namespace not-yet"


async def test_a_kind_that_is_yet_to_come(client: Client, namespace: str) -> None:
    """An object of a kind that isn't served is created as it is written."""
    nests = Resource("diff.example.org", "v1", "Nest", "nests", namespaced=True)
    diff = await diff_object(client, nests.ref("web", namespace), {**widget(size=1), "kind": "Nest"})
    assert (diff.effect, diff.message) == (
        Effect.CREATED,
        "the cluster doesn't serve Nest.diff.example.org yet; shown as written",
    )


def other_selector() -> Json:
    """The Deployment with a selector and labels of another kind."""
    content = deployment()
    content["spec"]["selector"]["matchLabels"] = content["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    return content


def typed_secret() -> Json:
    """The Secret with another type."""
    return {**secret(password="hunter2"), "type": "example.org/other"}


def with_pods(kind: str, group: str, **spec: Any) -> Json:
    """A workload of another kind with the Deployment's pods."""
    template = copy.deepcopy(deployment()["spec"]["template"])
    template["spec"]["restartPolicy"] = "Never" if kind == "Job" else "Always"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "web"}, "spec": {"template": template, **spec}}


def stateful_set(service_name: str) -> Json:
    """A StatefulSet behind a Service."""
    return with_pods("StatefulSet", "apps/v1", selector=deployment()["spec"]["selector"], serviceName=service_name)


def role_binding(role: str) -> Json:
    """Nobody bound to a role."""
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    return {**kind, "metadata": {"name": "web"}, "roleRef": ref}


STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets", namespaced=True)
JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", namespaced=True)
CANT_CHANGE = {
    "a StatefulSet's spec": (
        STATEFUL_SETS,
        stateful_set("a"),
        stateful_set("b"),
        "updates to statefulset spec .* are forbidden",
    ),
    "a Job's completions": (
        JOBS,
        with_pods("Job", "batch/v1", completions=1),
        with_pods("Job", "batch/v1", completions=2),
        "completions: .*field is immutable",
    ),
    "a binding's role": (ROLE_BINDINGS, role_binding("a"), role_binding("b"), "roleRef: .*cannot change roleRef"),
    "a Deployment's selector": (DEPLOYMENTS, deployment(), other_selector(), "spec.selector: .*field is immutable"),
    "a Secret's type": (SECRETS, secret(password="hunter2"), typed_secret(), "type: .*field is immutable"),
    "an immutable ConfigMap": (
        CONFIG_MAPS,
        {**config_map("web", a="1"), "immutable": True},
        {**config_map("web", a="2"), "immutable": True},
        "data: Forbidden: field is immutable",
    ),
    "a Service's address": (
        SERVICES,
        service(),
        {**service(), "spec": {**service()["spec"], "clusterIP": "10.0.0.77"}},
        "spec.clusterIPs.*may not change once set",
    ),
    "a rule of a CRD": (WIDGETS, widget(fixed="a"), widget(fixed="b"), "spec.fixed: .*Value is immutable"),
}


@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("what", CANT_CHANGE)
async def test_what_cannot_be_changed_needs_force(client: Client, namespace: str, what: str) -> None:
    """The diff has the server's words and says that only creating it anew would do."""
    resource, content, other, words = CANT_CHANGE[what]
    ref = resource.ref("web", namespace)
    await client.apply(ref, content)
    diff = await diff_object(client, ref, other)
    assert (diff.effect, diff.needs_force) == (Effect.REFUSED, True)
    assert re.search(words, diff.message, re.DOTALL)


@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("what", sorted(CANT_CHANGE.keys() - {"a Service's address"}))
async def test_with_force_it_is_made_anew(client: Client, namespace: str, what: str) -> None:
    """The diff has the server's words, and shows what is there when the object was deleted and applied again."""
    resource, content, other, words = CANT_CHANGE[what]
    ref = resource.ref("web", namespace)
    await client.apply(ref, content)
    await client.merge_patch(ref, {"metadata": {"annotations": {"note": "goes along"}}}, manager="someone")
    before = await live(client, ref)
    diff = await diff_object(client, ref, other, how=Apply(force=True))
    assert await live(client, ref) == before
    assert (diff.effect, diff.needs_force) == (Effect.REPLACED, True)
    assert re.search(words, diff.message, re.DOTALL)
    assert "shown as written" not in diff.message
    assert "metadata.annotations" in [change.path for change in diff.changes]
    await client.delete(ref)
    await client.apply(ref, other)
    after = await live(client, ref)
    if resource is not SECRETS:
        told = comparable(changed(without_book_keeping(before), diff.changes))
        # A Job's pods have its uid among their labels; no diff can know that.
        made = json.loads(json.dumps(after).replace(after["metadata"]["uid"], before["metadata"]["uid"]))
        assert told == comparable(without_book_keeping(made)), render([diff])


def comparable(content: Json) -> Json:
    """An object without its status, which isn't compared."""
    return {name: value for name, value in content.items() if name != "status"}


async def test_what_cannot_be_made_anew_is_refused(client: Client, namespace: str) -> None:
    """Where the server refuses another object like it, force deletes nothing, and the diff says why."""
    resource, content, other, _ = CANT_CHANGE["a Service's address"]
    ref = resource.ref("web", namespace)
    await client.apply(ref, content)
    diff = await diff_object(client, ref, other, how=Apply(force=True))
    assert (diff.effect, diff.needs_force) == (Effect.REFUSED, False)
    assert re.search("couldn't be made anew: .*the provided IP .* is not in the valid range", diff.message, re.DOTALL)


async def test_what_is_invalid_is_refused(client: Client, namespace: str) -> None:
    """Wrong values and wrong types are refusals with the server's words; force wouldn't help."""
    ref = DEPLOYMENTS.ref("web", namespace)
    for replicas, words in ((-1, "spec.replicas"), ("many", "spec.replicas: expected numeric")):
        content = deployment()
        content["spec"]["replicas"] = replicas
        diff = await diff_object(client, ref, content)
        assert (diff.effect, diff.needs_force) == (Effect.REFUSED, False)
        assert words in diff.message
        assert not diff.message.startswith("apply")


async def test_a_refusal_does_not_quote_a_secret(client: Client, namespace: str) -> None:
    """The server quotes a value of the wrong type; neither the error nor the diff passes it on."""
    ref = SECRETS.ref("web", namespace)
    content = {**secret(), "stringData": {"pin": 31337}}
    with pytest.raises(ApiError, match="expected string") as refused:
        await client.apply(ref, content, dry_run=True)
    assert "31337" not in str(refused.value)
    diff = await diff_object(client, ref, content)
    assert diff.effect is Effect.REFUSED
    assert "31337" not in repr(diff)
    assert "Secret" in diff.message


async def test_a_secret_is_masked(client: Client, namespace: str) -> None:
    """Changed values are told by name, kubectl's copy included, and nothing of them gets out."""
    ref = SECRETS.ref("web", namespace)
    copied = "kubectl.kubernetes.io/last-applied-configuration"
    live_secret = secret(same="hunter2", other="hunter2")
    live_secret["metadata"]["annotations"] = {copied: json.dumps(live_secret)}
    await client.apply(ref, live_secret)
    content = secret(same="hunter2", other="swordfish")
    content["metadata"]["annotations"] = {copied: json.dumps(content)}
    diff = await diff_object(client, ref, content)
    assert set(diff.changes) == {
        Change("data.other", "/data/other", MASK, MASK_CHANGED),
        Change(
            f"metadata.annotations[{copied}]", json_pointer(["metadata", "annotations", copied]), MASK, MASK_CHANGED
        ),
    }
    out = repr(diff) + render([diff]) + json.dumps(document(diff))
    for value in (*live_secret["data"].values(), *content["data"].values(), "hunter2", "swordfish"):
        assert value not in out


async def test_ignored_fields_are_left_out(client: Client, namespace: str) -> None:
    """What a JSON pointer names may differ; what is beside it may not."""
    ref = DEPLOYMENTS.ref("web", namespace)
    await client.apply(ref, deployment())
    content = deployment()
    content["spec"]["replicas"] = 9
    ignore = ["/spec/replicas", "/spec/template/spec/containers/0/image"]
    assert not (await diff_object(client, ref, content, ignore=ignore)).different
    web_container(content).update(image="web:2", args=["c"])
    diff = await diff_object(client, ref, content, ignore=ignore)
    assert [change.path for change in diff.changes] == [
        "spec.template.spec.containers[name=web].args[0]",
        "spec.template.spec.containers[name=web].args[1]",
    ]


async def test_another_manager_sees_its_own_diff(client: Client, namespace: str) -> None:
    """A field that another manager leaves out stays, since it isn't that manager's to remove."""
    ref = CONFIG_MAPS.ref("web", namespace)
    await client.apply(ref, config_map("web", a="1", b="2"))
    ours = await diff_object(client, ref, config_map("web", a="1"))
    theirs = await diff_object(client, ref, config_map("web", a="1"), how=Apply(manager="someone"))
    assert [change.path for change in ours.changes] == ["data.b"]
    assert (theirs.effect, theirs.ownership) == (Effect.UNCHANGED, True)


class Overtaken(Client):
    """A client after whose first look at an object something happens to it."""

    def __init__(self, source: AccessSource, happening: Callable[[Client], Awaitable[object]]) -> None:
        super().__init__(source)
        self.happenings = [happening]

    async def get(self, ref: Ref) -> Body:
        """Look, and let it happen."""
        try:
            return await super().get(ref)
        finally:
            if self.happenings:
                await self.happenings.pop()(self)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("happening", ["written", "deleted"])
async def test_what_others_do_meanwhile(cluster: LocalCluster, namespace: str, happening: str, there: bool) -> None:
    """What happens between the look and the dry run isn't taken for what our apply would change."""
    ref = CONFIG_MAPS.ref("web", namespace)

    async def happen(client: Client) -> None:
        with suppress(NotFound):
            if happening == "written":
                await client.apply(ref, config_map("web", a="1", other="2"), manager="someone")
            else:
                await client.delete(ref)

    async with Overtaken(kubeconfig(cluster.kubeconfig), happen) as client:
        if there:
            await client.apply(ref, config_map("web", a="1"))
        diff = await diff_object(client, ref, config_map("web", a="3"))
    if happening == "written":
        assert diff.changes == (Change("data.a", "/data/a", "1", "3"),)
    else:
        assert diff.effect is Effect.CREATED
