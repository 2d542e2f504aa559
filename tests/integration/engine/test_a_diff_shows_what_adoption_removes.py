"""At first contact a diff shows what goes along with the tool that made an object, and the apply then does it."""

import copy
import random
from contextlib import suppress

import pytest

from starling.engine.adoption import adopted
from starling.engine.diff import Apply, Effect, diff_object, render
from starling.kube import ApiError, Client, Invalid, NotFound, Ref
from tests.integration.engine.edits import (
    ANY_KIND,
    DEPLOYMENTS,
    KINDS,
    SECRETS,
    Edit,
    Json,
    deployment,
    live,
    web_container,
    without_book_keeping,
)
from tests.integration.managed_objects import take_over
from tests.rounds import ROUNDS
from tests.unit.engine.diff.changing import changed

FIRST_CONTACT = Apply(further=adopted)
MAKERS = ("kubectl-create", "kubectl-client-side-apply", "helm", "argocd-controller", "kubectl", "kustomize-controller")
APPLYING = ("kubectl", "kustomize-controller")
HANDS = ("kubectl-edit", "someone", "helm", "before-first-apply")


async def make(client: Client, ref: Ref, content: Json, manager: str) -> None:
    """Bring an object into the cluster as some tool does, in place of the one there is."""
    with suppress(NotFound):
        await client.delete(ref)
    if manager in APPLYING:
        await client.apply(ref, content, manager=manager)
    else:
        await client.create(ref.resource, content, namespace=ref.namespace, manager=manager)


def edited(base: Json, edits: list[Edit], rng: random.Random) -> Json:
    """A manifest after some random edits, as one of ours is before it is applied."""
    content = copy.deepcopy(base)
    for change in rng.choices([*edits, *ANY_KIND], k=rng.randrange(1, 5)):
        change(content, rng)
    content.pop("stringData", None)
    content.pop("status", None)
    if content["kind"] == "Widget" and content["spec"].get("parts") == []:
        del content["spec"]["parts"]  # the server leaves it where it is, and nothing that we see says so
    return content


@pytest.mark.rounds
@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_random_objects(client: Client, namespace: str, kind: str, seed: int) -> None:
    """Whoever made an object and whoever changed it since: the diff, when made, gives what the take-over gives."""
    rng = random.Random(f"{kind} {seed}")
    resource, base, edits = KINDS[kind]
    ref = resource.ref("web", namespace)
    went = 0
    for _ in range(12):
        with suppress(Invalid):  # there are edits that don't go together; then there is no object
            await make(client, ref, edited(base(), edits, rng), rng.choice(MAKERS))
        if not (await diff_object(client, ref, base())).ownership:
            continue
        for hand in rng.sample(HANDS, k=rng.randrange(3)):
            with suppress(Invalid):
                patch = edited(await live(client, ref), edits, rng)
                patch["metadata"].pop("managedFields")
                await client.merge_patch(ref, patch, manager=hand)
        ours = edited(base(), edits, rng)
        ours["metadata"].setdefault("labels", {})["starling.dev/sync"] = "x"
        went += await check(client, ref, ours)
    assert went


async def check(client: Client, ref: Ref, content: Json) -> bool:
    """Compare what the diff says with what a take-over then does; whether a plain dry run would have said less."""
    before = await live(client, ref)
    diff = await diff_object(client, ref, content, how=FIRST_CONTACT)
    plain = await diff_object(client, ref, content)
    assert await live(client, ref) == before
    if diff.effect is Effect.REFUSED:
        with pytest.raises(ApiError):
            await take_over(client, ref, content)
        return False
    try:
        after = (await take_over(client, ref, content)).json()
    except Invalid as error:
        if 'must be of type array: "null"' in error.message:
            return False  # a custom resource's list that the server has emptied itself is null to it, and invalid
        raise
    if ref.resource is SECRETS:
        names = {*before.get("data", {}), *after.get("data", {})}
        differing = {name for name in names if before.get("data", {}).get(name) != after.get("data", {}).get(name)}
        told = {change.path.removeprefix("data.") for change in diff.changes if change.path.startswith("data")}
        assert told in (differing, {"data"}), render([diff])
    else:
        assert changed(without_book_keeping(before), diff.changes) == without_book_keeping(after), render([diff])
    return diff.changes != plain.changes


@pytest.mark.parametrize("manager", MAKERS)
async def test_what_a_tool_said_besides_goes(client: Client, namespace: str, manager: str) -> None:
    """A variable, a label and a whole container, and none of the defaults that the server had filled in for them."""
    theirs = deployment()
    theirs["metadata"]["labels"]["besides"] = "theirs"
    web_container(theirs)["env"].append({"name": "BESIDES", "value": "theirs"})
    theirs["spec"]["template"]["spec"]["containers"].append({"name": "besides", "image": "theirs"})
    ref = DEPLOYMENTS.ref("web", namespace)
    await make(client, ref, theirs, manager)
    diff = await diff_object(client, ref, deployment(), how=FIRST_CONTACT)
    assert (diff.effect, diff.ownership) == (Effect.CHANGED, True)
    assert [change.path for change in diff.changes] == [
        "metadata.labels.besides",
        "spec.template.spec.containers[name=besides]",
        "spec.template.spec.containers[name=web].env[name=BESIDES]",
    ]
    assert await check(client, ref, deployment())


async def test_what_others_own_stays(client: Client, namespace: str) -> None:
    """What a person or a controller set since, or says along with the tool, isn't the tool's to take along."""
    theirs = deployment()
    theirs["metadata"]["labels"]["besides"] = "theirs"
    web_container(theirs)["env"].append({"name": "BESIDES", "value": "theirs"})
    ref = DEPLOYMENTS.ref("web", namespace)
    await make(client, ref, theirs, "helm")
    await client.merge_patch(ref, {"metadata": {"annotations": {"note": "mine"}}}, manager="someone")
    labelled = {**deployment(), "metadata": {"name": "web", "labels": {"besides": "theirs"}}}
    await client.apply(ref, {name: labelled[name] for name in ("apiVersion", "kind", "metadata")}, manager="someone")
    diff = await diff_object(client, ref, deployment(), how=FIRST_CONTACT)
    assert [change.path for change in diff.changes] == ["spec.template.spec.containers[name=web].env[name=BESIDES]"]


async def test_what_goes_may_be_refused(client: Client, namespace: str) -> None:
    """An immutable field that only the tool said can't go: the first apply would pass, the take-over wouldn't."""
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "immutable": True}
    ref = KINDS["ConfigMap"][0].ref("web", namespace)
    await make(client, ref, {**content, "data": {"a": "1", "b": "2"}}, "helm")
    assert (await diff_object(client, ref, {**content, "data": {"a": "1"}})).effect is not Effect.REFUSED
    diff = await diff_object(client, ref, {**content, "data": {"a": "1"}}, how=FIRST_CONTACT)
    assert (diff.effect, diff.needs_force) == (Effect.REFUSED, True)
    with pytest.raises(Invalid, match="immutable"):
        await take_over(client, ref, {**content, "data": {"a": "1"}})
