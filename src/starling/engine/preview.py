"""What a sync would do, and a closer look at it: requests that only read, or are dry runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

import msgspec

from starling.engine.adoption import adopted
from starling.engine.apply import replaceable, settled
from starling.engine.diff import Apply, Effect, ObjectDiff, diff_added, diff_object, diff_removed
from starling.engine.order import NAMESPACE
from starling.engine.prepare import Desired, Prepared
from starling.engine.target import Target
from starling.engine.tasks import DOUBTED, MISSING, NEW, Action, Plan, Task
from starling.kube import Forbidden, NotFound
from starling.objects import ObjectKey

__all__ = ["Preview"]

T = TypeVar("T")

AT_ONCE: Final = 16
MOST_NAMED: Final = 3
THERE_ALL_THE_SAME: Final = {
    NEW: "exists already, and will be adopted",
    MISSING: "has lost the label that is our mark",
}
_NOT_CHANGED: Final = frozenset({Effect.REFUSED, Effect.REPLACED})


@dataclass(frozen=True)
class Preview:
    """What a sync would do, from which manifests, and to what."""

    plan: Plan
    prepared: Prepared
    target: Target

    async def diffs(self) -> list[ObjectDiff]:
        """What would become of each object that the plan would write, in its order."""
        found = await _each(self.plan.work, self._diff)
        return [diff for diff in found if diff is not None]

    async def examined(self) -> Plan:
        """The plan as it turns out when what it isn't sure of is looked at.

        What applying wouldn't change is unchanged, and reasons say what was found; an ordinary sync doesn't ask, and
        learns the same by doing.
        """
        looked_at = await _each(self.plan.tasks, self._examine)
        tasks = tuple(task for task in looked_at if task is not None)
        unchanged = self.plan.unchanged + len(looked_at) - len(tasks)
        return replace(self.plan, tasks=tasks, unchanged=unchanged)

    async def _diff(self, task: Task) -> ObjectDiff | None:
        if task.desired is not None:
            return await self._applied(task, task.desired)
        if task.action is Action.PRUNE and task.key is not None:
            try:
                return diff_removed((await self.target.reader.get(await self.target.preferred_ref(task.key))).json())
            except NotFound:
                return None
        return None

    async def _applied(self, task: Task, desired: Desired) -> ObjectDiff:
        key = desired.key
        if desired.resource is None:
            if key.namespace not in self._namespaces and not await self._is_there(key.namespace):
                message = f"there is no namespace {key.namespace}"
                return ObjectDiff(key=key, effect=Effect.REFUSED, message=message)
            return diff_added(
                desired.manifest.content, f"the cluster doesn't serve {desired.manifest.gvk} yet; shown as written"
            )
        takes_over = task.first_contact and task.action is Action.APPLY
        kept = task.record is not None and task.record.kept
        force = self.target.unit.force and replaceable(desired) and not kept
        how = Apply(further=adopted if takes_over else None, force=force, namespaces=self._namespaces)
        ref = desired.resource.ref(key.name, key.namespace)
        content, _ = await settled(self.target, desired, ref)
        diff = await diff_object(self.target.writer, ref, content, how=how)
        return diff if replaceable(desired) and not kept else msgspec.structs.replace(diff, needs_force=False)

    @cached_property
    def _namespaces(self) -> frozenset[str]:
        """Those that the set brings; and none, for what is in none."""
        keys = (each.key for each in self.prepared.desired)
        return frozenset({"", *(key.name for key in keys if (key.group, key.kind) == NAMESPACE)})

    async def _is_there(self, namespace: str) -> bool:
        """Whether there is such a namespace; who may not look takes it for granted."""
        return await self._exists(ObjectKey("", "Namespace", "", namespace)) is not False

    async def _exists(self, key: ObjectKey) -> bool | None:
        """Whether an object is there; None if we aren't told."""
        try:
            await self.target.reader.get(await self.target.preferred_ref(key))
        except NotFound:
            return False
        except Forbidden:
            return None
        return True

    async def _examine(self, task: Task) -> Task | None:
        """The task with what a look at its object gives for a reason; None if it would change nothing."""
        if task.action is not Action.APPLY or task.key is None:
            return task
        if task.reason in THERE_ALL_THE_SAME:
            if not await self._exists(task.key):
                return task
            task = replace(task, reason=THERE_ALL_THE_SAME[task.reason])
        if task.reason == DOUBTED:
            diff = await self._diff(task)
            return replace(task, reason=_found(diff)) if diff and (diff.different or diff.ownership) else None
        if self.target.unit.force and (diff := await self._diff(task)) and diff.effect in _NOT_CHANGED:
            return replace(task, reason=_found(diff))
        return task


async def _each(tasks: tuple[Task, ...], work: Callable[[Task], Awaitable[T]]) -> list[T]:
    """Work on all tasks, some at once."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(task: Task) -> T:
        async with slots:
            return await work(task)

    return await asyncio.gather(*map(one, tasks))


def _found(diff: ObjectDiff) -> str:
    """What a comparison found, in a line."""
    if diff.effect is Effect.REFUSED:
        return f"would be refused: {diff.message}"
    if diff.effect is Effect.REPLACED:
        return f"deleted and created anew: {diff.message}"
    paths = [change.path for change in diff.changes]
    if not paths:
        return "drifted: others own fields of it"
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return f"drifted: {', '.join(paths[:MOST_NAMED])}{more}"
