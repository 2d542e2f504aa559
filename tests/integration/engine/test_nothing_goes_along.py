"""A namespace or a CRD isn't pruned while it would take something along that is to stay."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from starling.kube import Resource
from tests.integration.config_maps import CONFIG_MAPS
from tests.integration.engine.edits import CRDS
from tests.integration.engine.kinds import own_kind
from tests.integration.engine.scene import HOUR, Json, Scene, config_map
from tests.integration.engine.test_namespaces_and_scopes import NAMESPACES, placed
from tests.integration.engine.test_prune_and_its_guard import annotated, bears_no_marks
from tests.integration.engine.world import running_engine, unit_id
from tests.waiting import until


@dataclass(frozen=True)
class Case:
    """Something that holds others, and what is in it."""

    scene: Scene
    holder: Json
    holders: Resource
    held: Callable[[str], Json]
    held_in: tuple[Resource, str]

    def render(self, name: str, *contents: Json, **options: object) -> str:
        """A unit whose objects are where they say; besides these it has one that always stays."""
        stays = config_map(f"{name.rpartition('.')[2].partition('@')[0]}-stays")
        where = {"target_namespace": "", "default_namespace": self.scene.namespace}
        return self.scene.render(name, stays, *contents, interval=HOUR, **where, **options)

    async def its_holder(self) -> Json:
        """The holder as it is."""
        return await self.scene.live(self.holder["metadata"]["name"], self.holders)

    async def is_going(self) -> bool:
        """Whether the holder is being deleted, or gone."""
        live = await self.its_holder()
        return not live or "deletionTimestamp" in live["metadata"]

    async def is_there(self, name: str) -> bool:
        """Whether something in it is, and isn't about to go."""
        resource, namespace = self.held_in
        live = (await self.scene.client.get(resource.ref(name, namespace))).json()
        return "deletionTimestamp" not in live["metadata"] and not await self.is_going()


@pytest.fixture(params=["namespace", "CRD"])
async def case(request: pytest.FixtureRequest, scene: Scene) -> AsyncIterator[Case]:
    """ConfigMaps in a namespace, or Widgets."""
    if request.param == "namespace":
        other = f"{scene.namespace}-held"
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
        yield Case(scene, made, NAMESPACES, lambda name: placed(name, other), (CONFIG_MAPS, other))
        await scene.client.delete(NAMESPACES.ref(other))
        return
    async with own_kind(scene.client, f"{scene.namespace}.test") as kind:
        yield Case(scene, kind.crd(), CRDS, kind.widget, (kind.resource, scene.namespace))


async def test_manifests_that_contradict_themselves(case: Case) -> None:
    """What is in it is still wanted: it stays the unit's, and the unit says what is wrong until that is mended."""
    unit = case.render("web", case.holder, case.held("it"))
    async with running_engine(case.scene):
        await case.scene.synced(unit)
        case.render("web", case.held("it"))
        status = await case.scene.until(unit, lambda status: status.problems)
        assert [problem.reason for problem in status.problems] == ["StillNeeded"]
        assert await case.is_there("it")
        case.render("web", case.holder, case.held("it"))
        await case.scene.until(unit, lambda status: not status.problems)
        assert await case.is_there("it")


async def test_it_moves_to_another_unit(case: Case) -> None:
    """Which renders it from now on, while what is in it stays where it was."""
    old = case.render("old", case.holder, case.held("it"))
    async with running_engine(case.scene):
        await case.scene.synced(old)
        uid = (await case.its_holder())["metadata"]["uid"]
        new = case.render("new", case.holder)
        await case.scene.until(new, lambda status: status.problems)
        case.render("old", case.held("it"))
        await case.scene.synced(new, old)
        assert await case.is_there("it")
        assert (await case.its_holder())["metadata"]["uid"] == uid
        assert (await case.its_holder())["metadata"]["annotations"]["starling.dev/tracking-id"].startswith(f"{new}:")


@pytest.mark.parametrize("end", ["dropped", "deleted"])
async def test_something_in_it_is_to_be_kept(case: Case, end: str) -> None:
    """It is left as well, without our marks."""
    unit = case.render("web", case.holder, annotated(case.held("it"), "helm.sh/resource-policy", "keep"))
    async with running_engine(case.scene):
        await case.scene.synced(unit)
        if end == "dropped":
            case.render("web")
            await case.scene.synced(unit)
        else:
            case.render("web", deleting=True)
            await case.scene.until(unit, lambda status: status.removed)
        assert await case.is_there("it")
        assert bears_no_marks(await case.its_holder())


@pytest.mark.parametrize("moved", [False, True], ids=["all the time", "by now"])
async def test_another_unit_has_something_in_it(case: Case, moved: bool) -> None:
    """It isn't pruned before that is gone, and nobody fails for it."""
    unit = case.render("web", case.holder, *([case.held("it")] if moved else []))
    async with running_engine(case.scene) as engine:
        await case.scene.synced(unit)
        other = case.render("other", case.held("it"))
        if moved:
            await case.scene.until(other, lambda status: status.problems)
        else:
            await case.scene.synced(other)
        case.render("web")
        await case.scene.synced(unit, other)
        assert await case.is_there("it")
        case.render("other")
        await case.scene.synced(other)
        engine.refresh(unit)
        await until(case.is_going)


async def test_nothing_is_known_yet_of_the_unit_that_has_something_in_it(case: Case) -> None:
    """Nobody asked the cluster for the kinds of a unit that is in the store and wasn't told of."""
    unit = case.render("web", case.holder)
    other = unit_id("other", namespace=case.scene.namespace)
    async with running_engine(case.scene):
        await case.scene.synced(unit)
        case.scene.unannounced.add(other)
        case.render(other, case.held("it"))
        case.render("web")
        await case.scene.synced(unit)
        assert not await case.is_going()


async def test_a_unit_that_goes_leaves_what_others_use(case: Case) -> None:
    """Without our marks: it is nobody's from then on."""
    unit = case.render("web", case.holder)
    async with running_engine(case.scene):
        await case.scene.synced(unit)
        other = case.render("other", case.held("it"))
        await case.scene.synced(other)
        case.render("web", deleting=True)
        await case.scene.until(unit, lambda status: status.removed)
        assert await case.is_there("it")
        assert bears_no_marks(await case.its_holder())
