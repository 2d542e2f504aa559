"""Whoever refuses a Secret and quotes its values, at whichever request: nobody is told them."""

import base64
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from starling.kube import ApiError, Resource
from tests.integration.engine.scene import HOUR, Json, Scene
from tests.integration.engine.test_secrets_stay_secret import ENCODED, SECRETS, VALUE, everything_told, secret
from tests.integration.engine.world import running_engine
from tests.waiting import until

GROUP = "admissionregistration.k8s.io"
POLICIES = Resource(GROUP, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(
    GROUP, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)


@asynccontextmanager
async def refused(scene: Scene, operation: str, unless: str = "false") -> AsyncIterator[None]:
    """Have an admission policy refuse Secrets in words that quote them."""
    name = f"{scene.namespace}-{operation.lower()}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["secrets"]}
    quoted = {"expression": unless, "messageExpression": "'I do not like ' + string(object.data.a)"}
    match = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
        "resourceRules": [rule],
    }
    policy: Json = {
        "apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {"failurePolicy": "Fail", "matchConstraints": match, "validations": [quoted]},
    }  # fmt: skip
    binding: Json = {
        "apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }  # fmt: skip
    await scene.client.create(POLICIES, policy)
    await scene.client.create(BINDINGS, binding)
    try:
        yield
    finally:
        await scene.client.delete(BINDINGS.ref(name))
        await scene.client.delete(POLICIES.ref(name))


async def quotes(scene: Scene, probe: Json) -> bool:
    """Whether the API server refuses this Secret by now, and quotes it."""
    try:
        await scene.client.apply(SECRETS.ref(probe["metadata"]["name"], scene.namespace), probe, dry_run=True)
    except ApiError as error:
        return VALUE in error.message or ENCODED in error.message
    return False


async def told_nothing(scene: Scene, unit: str, caplog: pytest.LogCaptureFixture) -> None:
    """Wait for the refusal, and see that it has no value."""
    status = await scene.until(unit, lambda status: status.problems)
    assert "quote the Secret" in status.problems[0].message
    for value in (VALUE, ENCODED):
        assert value not in everything_told(scene)
        assert value not in caplog.text


async def test_when_it_is_created_under_a_generated_name(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """A create is no apply, and is as discreet."""
    caplog.set_level(logging.DEBUG)
    made = {**secret(stringData={"a": VALUE}), "metadata": {"generateName": "s-"}}
    async with refused(scene, "CREATE"):
        await until(lambda: quotes(scene, secret("probe", data={"a": ENCODED})))
        unit = scene.render("web", made, interval=HOUR)
        async with running_engine(scene):
            await told_nothing(scene, unit, caplog)


async def test_when_it_is_to_be_made_anew_by_force(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """The new one would be refused, so the old one isn't deleted."""
    caplog.set_level(logging.DEBUG)
    unit = scene.render("web", secret(stringData={"a": "first"}, immutable=True), interval=HOUR)
    async with running_engine(scene):
        await scene.synced(unit)
        async with refused(scene, "CREATE"):
            await until(lambda: quotes(scene, secret("probe", data={"a": ENCODED})))
            scene.render("web", secret(stringData={"a": VALUE}, immutable=True), force=True, interval=HOUR)
            await told_nothing(scene, unit, caplog)
            assert await scene.names(SECRETS) == {"s"}


async def test_when_fields_are_taken_over(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """The second apply, which drops what the earlier manager had beyond ours, is the one that is refused."""
    caplog.set_level(logging.DEBUG)
    extra = base64.b64encode(b"more").decode()
    theirs = secret(data={"a": ENCODED, "extra": extra})
    ref = SECRETS.ref("s", scene.namespace)
    await scene.client.create(SECRETS, theirs, namespace=scene.namespace, manager="kubectl-client-side-apply")
    keeps = "!has(oldObject.data) || !('extra' in oldObject.data) || 'extra' in object.data"
    async with refused(scene, "UPDATE", unless=keeps):

        async def in_force() -> bool:
            try:
                await scene.client.merge_patch(ref, {"data": {"extra": None}}, manager="someone", dry_run=True)
            except ApiError as error:
                return VALUE in error.message or ENCODED in error.message
            return False

        await until(in_force)
        unit = scene.render("web", secret(stringData={"a": VALUE}), interval=HOUR)
        async with running_engine(scene):
            await told_nothing(scene, unit, caplog)
            assert set((await scene.live("s", SECRETS))["data"]) == {"a", "extra"}
