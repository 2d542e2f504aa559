"""A cluster as the engine keeps it: a client, the cache, and one watch for each kind in use.

Whoever needs kinds says so with `want` and asks whether they are `ready`: nothing here makes a worker wait, and the
listener is told when something has come of it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from starling.aio import Backoff, Clock
from starling.engine.cache import ClusterCache, KindMemory, Seen
from starling.engine.settings import ClusterAccess, Limits, ReconciliationSettings
from starling.engine.uids import packed
from starling.kube import (
    Changed,
    Client,
    Closed,
    Deleted,
    Forbidden,
    Interrupted,
    KubeError,
    NotFound,
    NotServed,
    Resource,
    Resumed,
    Selection,
    Synced,
    Unreachable,
    Waits,
    watch,
)
from starling.objects import GroupVersionKind, ObjectKey

__all__ = ["ANY_VERSION", "Connection"]

LOG = logging.getLogger(__name__)
ANY_VERSION = ""
"""In place of a version: whichever the server prefers."""

ASKED_AGAIN_WITHIN = 30.0
UNSERVED_ASKED_EVERY = 10.0


@dataclass
class _Kind:
    """One kind that is followed. Mutable: whether all of it has been seen, and what is wrong with its watch."""

    resource: Resource
    synced: bool = False
    error: KubeError | None = None
    interruptions: int = 0


@dataclass
class _Answers:
    """What discovery said of the kinds that were asked for. Mutable."""

    resources: dict[GroupVersionKind, Resource] = field(default_factory=dict)
    unserved: dict[GroupVersionKind, NotServed] = field(default_factory=dict)


class Connection:
    """One cluster. Mutable; `start` it in a running loop and `close` it."""

    def __init__(
        self,
        name: str,
        access: ClusterAccess,
        settings: ReconciliationSettings,
        *,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self.name = name
        self.access = access
        self.client = Client(access.source, clock=clock)
        self.cache = ClusterCache(settings.instance_label_key, settings.assess, clock.now)
        self.initialized = False
        self.at_once = limits.per_cluster
        self.slots = asyncio.Semaphore(self.at_once)
        self._clock = clock
        self._listener: Callable[[], None] | None = None
        self._news = asyncio.Event()
        self._wanted: set[GroupVersionKind] = set()
        self._something_wanted = asyncio.Event()
        self._answers = _Answers()
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._there = False
        self._asking_failed: KubeError | None = None
        self._appeared = False
        self._tasks: set[asyncio.Task[None]] = set()

    def listen(self, listener: Callable[[], None]) -> None:
        """Have it called whenever something came of what was wanted, or the connection was lost or is back."""
        self._listener = listener

    def something_new(self) -> asyncio.Event:
        """What is set at the next such occasion, for one who has nothing else to do."""
        return self._news

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
        if self._listener is not None:
            self._listener()

    def start(self) -> None:
        """Begin to find out about kinds."""
        self._spawn(self._ask())
        self._spawn(self._ask_about_unserved())

    async def close(self) -> None:
        """End all watches and connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()

    def want(self, kinds: Iterable[GroupVersionKind]) -> None:
        """Have these kinds found and followed."""
        known = self._answers.resources.keys() | self._answers.unserved.keys()
        if new := set(kinds) - known - self._wanted:
            self._wanted |= new
            self._something_wanted.set()

    def ask_again(self, kinds: Iterable[GroupVersionKind]) -> None:
        """Have those of these kinds asked for again that weren't served."""
        again = set(kinds) & self._answers.unserved.keys()
        for kind in again:
            del self._answers.unserved[kind]
        self.want(again)

    def served(self) -> dict[GroupVersionKind, Resource]:
        """What is known of the kinds that were wanted."""
        return self._answers.resources

    def definitions(self) -> dict[tuple[str, str], str]:
        """The name that a CRD of each of these groups and kinds has."""
        served = self._answers.resources.values()
        return {(each.group, each.kind): f"{each.plural}.{each.group}" for each in served}

    def unserved(self) -> dict[GroupVersionKind, NotServed]:
        """What was said of the kinds that the cluster doesn't serve."""
        return self._answers.unserved

    def unseen(self) -> frozenset[tuple[str, str]]:
        """Groups and kinds whose objects can't be seen for now, though they may be there."""
        return frozenset((kind.group, kind.kind) for kind, error in self._answers.unserved.items() if error.down)

    def ready(self, kinds: Iterable[GroupVersionKind]) -> bool:
        """Whether it is known of each of these kinds that it isn't served, or everything of it was seen.

        None of them: whether the cluster has ever answered. Who is sent to work on one that doesn't only waits for it.
        """
        return self._there and all(kind in self._answers.unserved or self._synced(kind) for kind in kinds)

    def all_ready(self) -> bool:
        """Whether there is an answer to all that was ever wanted."""
        answered = self._kinds or self._answers.unserved
        return bool(answered) and not self._wanted and all(kind.synced for kind in self._kinds.values())

    def kinds_appeared(self) -> bool:
        """Whether, since this was last asked, a kind has come to be served that wasn't."""
        appeared, self._appeared = self._appeared, False
        return appeared

    def _synced(self, kind: GroupVersionKind) -> bool:
        followed = self._kinds.get((kind.group, kind.kind))
        return kind in self._answers.resources and followed is not None and followed.synced

    def trouble(self, kinds: Iterable[GroupVersionKind]) -> KubeError | None:
        """What keeps us from knowing how objects of these kinds stand: a cluster that is away, a right we haven't."""
        theirs = {(kind.group, kind.kind) for kind in kinds}
        for group_kind, followed in self._kinds.items():
            if followed.error is not None and (group_kind in theirs or isinstance(followed.error, Unreachable)):
                return followed.error
        return self._asking_failed

    async def _ask(self) -> None:
        """Answer what is wanted, one question after the other, however long the cluster is away."""
        waits = self._waits()
        while not self._there:
            self._there = await self._answered(self.client.discovery.resources(), waits)
        while True:
            for kind in tuple(self._wanted):
                if await self._answered(self._find(kind), waits):
                    self._wanted.discard(kind)
            if self._wanted:
                continue
            self._tell()
            self._something_wanted.clear()
            await self._something_wanted.wait()

    def _waits(self) -> Waits:
        return Waits(self.client.transport, Backoff(limit=ASKED_AGAIN_WITHIN))

    async def _answered(self, question: Awaitable[object], waits: Waits) -> bool:
        """Whether there is an answer; if there is none, that is told, and some time passes."""
        try:
            await question
        except KubeError as error:
            self._asking_failed = error
            self._tell()
            await waits.after(error)
            return False
        self._asking_failed = None
        waits.reset()
        return True

    async def _ask_about_unserved(self) -> None:
        """See now and then whether what wasn't served is by now: a CRD that someone else brings tells nobody."""
        while True:
            await self._clock.sleep(UNSERVED_ASKED_EVERY)
            for kind in tuple(self._answers.unserved):
                try:
                    await self._look_up(kind)
                except NotServed as error:
                    if kind in self._answers.unserved:
                        self._answers.unserved[kind] = error  # what was down may be away by now, or the reverse
                except KubeError:
                    continue
                else:
                    self._appeared = True
                    self.ask_again((kind,))

    async def _look_up(self, kind: GroupVersionKind) -> Resource:
        discovery = self.client.discovery
        return await discovery.resource(kind) if kind.version else await discovery.preferred(kind.group, kind.kind)

    async def _find(self, kind: GroupVersionKind) -> None:
        try:
            resource = await self._look_up(kind)
        except NotServed as error:
            self._answers.unserved[kind] = error
            return
        self._answers.resources[kind] = resource
        if (kind.group, kind.kind) not in self._kinds:
            followed = self._kinds[kind.group, kind.kind] = _Kind(resource)
            self._spawn(self._follow(followed))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, kind: _Kind) -> None:
        """Keep the cache up to date with one kind, for as long as the cluster serves it."""
        backoff = Backoff(limit=ASKED_AGAIN_WITHIN)
        while True:
            began = self._clock.monotonic()
            try:
                await self._listen(kind)
            except Closed:
                return
            except NotServed:
                self._forget(kind)
                return
            except KubeError as error:
                if isinstance(error, Forbidden):
                    error.hint = (
                        f"the engine lists, watches and gets {kind.resource} in all namespaces: its account must"
                    )
                kind.error = error
                LOG.warning("%s: can't follow %s: %s", self.name, kind.resource, error)
            except Exception as error:
                LOG.exception("%s: following %s, an error that nobody expected", self.name, kind.resource)
                kind.error = KubeError(f"follow {kind.resource}", f"{type(error).__name__}: {error}")
            self._tell()
            if began + ASKED_AGAIN_WITHIN < self._clock.monotonic():
                backoff.reset()
            await self._clock.sleep(backoff.next())

    async def _listen(self, kind: _Kind) -> None:
        memory = KindMemory(self.cache, kind.resource)
        selection = Selection(labels=self.cache.label_key)
        async with aclosing(watch(self.client, kind.resource, Seen, selection, memory=memory)) as events:
            async for event in events:
                match event:
                    case Changed():  # no name for the object: it would keep the whole page alive that it came in
                        self.cache.see(kind.resource, event.object)
                    case Deleted():
                        await self._believe(kind.resource, event)
                    case Interrupted(error=NotServed() as error):
                        raise error
                    case Interrupted(error=error):
                        kind.interruptions += 1
                        if error.history_went_back:
                            self.cache.forget_versions(kind.resource.group, kind.resource.kind)
                        if kind.interruptions > 1 or not isinstance(error, Unreachable):  # once may just be a hiccup
                            kind.error = error
                            self._tell()
                    case Synced() | Resumed():
                        kind.error, kind.interruptions = None, 0
                        kind.synced = kind.synced or isinstance(event, Synced)
                        self._tell()

    async def _believe(self, resource: Resource, deleted: Deleted[Seen]) -> None:
        """Learn of a deletion, after a look: on a watch by label, losing the label looks just the same."""
        key = ObjectKey(resource.group, resource.kind, deleted.namespace, deleted.name)
        record = self.cache.get(key)
        if record is None or record.uid != packed(deleted.uid):
            return
        waits = self._waits()
        while record.manifest:
            try:
                seen = (await self.client.get(resource.ref(key.name, key.namespace))).decode(Seen)
            except NotFound:
                break
            except Unreachable as error:
                await waits.after(error)
            else:
                self.cache.see(resource, seen)
                return
        version = int(deleted.object.metadata.resource_version) if deleted.object is not None else 0
        self.cache.gone(key, deleted.uid, version)

    def _forget(self, kind: _Kind) -> None:
        """The cluster doesn't serve a kind any more: nothing of it is there."""
        group_kind = (kind.resource.group, kind.resource.kind)
        del self._kinds[group_kind]
        for each in [each for each in self._answers.resources if (each.group, each.kind) == group_kind]:
            del self._answers.resources[each]
        for record in list(self.cache.of_kind(*group_kind)):
            self.cache.gone(record.key, record.uid)
        self._tell()
