"""Source: which exact version a repository is at, fetched and noted."""

import logging
from datetime import datetime
from typing import Final

import msgspec

from starling.aio import SYSTEM_CLOCK, Clock
from starling.api import Source, conditions, seconds
from starling.api.v1alpha1 import SourceArtifact, SourceStatus
from starling.controllers.exact import origin_of
from starling.controllers.secrets import Secrets
from starling.controllers.writing import says_the_same, write_status
from starling.errors import InputError, StarlingError
from starling.kube import Client
from starling.runtime import Controller, Group, Informer, Key, ObjectReference, Recorder, Result
from starling.sources import Artifact, ArtifactStore, GitSource, GitSources, Ref
from starling.sources.following import wait_for

__all__ = ["SourceController", "retry_after", "tidy"]

LOG = logging.getLogger(__name__)
FIRST_RETRY: Final = 5.0
LONGEST_RETRY: Final = 60.0
KEPT_FOR: Final = 6 * 3600.0
TIDY_EVERY: Final = 3600.0


class SourceController:
    """Looks at repositories when they are due. Mutable: how often one failed in a row."""

    def __init__(
        self, client: Client, sources: GitSources, secrets: Secrets, recorder: Recorder, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._client = client
        self._sources = sources
        self._secrets = secrets
        self._recorder = recorder
        self._clock = clock
        self._failures: dict[Key, int] = {}
        self._looked: dict[Key, tuple[int, float]] = {}

    def join(self, group: Group, informer: Informer[Source]) -> None:
        """Run with a group."""
        self._informer = informer
        controller = group.controller(Controller("source", self.reconcile, at_once=16, clock=self._clock))
        informer.listen(lambda _, after: controller.add(_key(after)) if after is not None else None)

    async def reconcile(self, key: Key) -> Result | None:
        """Look at one repository, if it is time, and note what was found or what is wrong."""
        source = self._informer.get(key)
        if source is None or source.metadata.deletion_timestamp is not None:
            self._failures.pop(key, None)
            self._looked.pop(key, None)
            return None
        if source.spec.suspend:
            return None
        if (wait := self._not_yet(key, source)) > 0:
            return Result(wait)
        interval = seconds(source.spec.interval)
        try:
            status, wait = await self._look(source), wait_for(interval)
            self._failures.pop(key, None)
        except StarlingError as error:
            failures = self._failures[key] = 0 if isinstance(error, InputError) else self._failures.get(key, 0) + 1
            status, wait = self._failed(source, error), retry_after(error, interval, failures)
        self._looked[key] = (source.metadata.generation, self._clock.monotonic() + wait)
        if not says_the_same(source.status, status):
            self._informer.learn(await write_status(self._client, source, status))
        return Result(wait)

    def _not_yet(self, key: Key, source: Source) -> float:
        """How long until it is due: our own status write has it looked at again, too."""
        generation, due = self._looked.get(key, (-1, 0.0))
        return max(0.0, due - self._clock.monotonic()) if generation == source.metadata.generation else 0.0

    async def _look(self, source: Source) -> SourceStatus:
        namespace, git = source.metadata.namespace, source.spec.git
        credentials = await self._secrets.credentials(namespace, git.secret_ref)
        keys = await self._secrets.keys(namespace, git.verify.secret_ref) if git.verify is not None else None
        ref = Ref(
            branch=git.ref.branch or "", tag=git.ref.tag or "",
            semver=git.ref.semver or "", commit=git.ref.commit or "",
        )  # fmt: skip
        wanted = GitSource(git.url, ref, submodules=git.submodules, keys=keys, ignore=source.spec.ignore)
        return self._found(source, await self._sources.fetch(wanted, credentials))

    def _found(self, source: Source, artifact: Artifact) -> SourceStatus:
        before, now = source.status, self._clock.now()
        known = before.artifact
        found = (artifact.revision, artifact.digest, origin_of(source))
        if known is None or (known.revision, known.digest, known.origin) != found:
            known = SourceArtifact(
                revision=artifact.revision, digest=artifact.digest, size=artifact.size,
                last_update=_moment(now), origin=origin_of(source),
            )  # fmt: skip
            self._recorder.event(ObjectReference.of(source), "NewVersion", f"fetched {artifact.revision}")
        generation = source.metadata.generation
        return msgspec.structs.replace(
            before,
            observed_generation=generation,
            revision=artifact.revision,
            artifact=known,
            conditions=conditions.ready(before.conditions, generation, now, f"fetched {artifact.revision}", "Fetched"),
        )

    def _failed(self, source: Source, error: StarlingError) -> SourceStatus:
        """What is wrong; the last good version stays in use."""
        before, generation = source.status, source.metadata.generation
        told = conditions.failed(before.conditions, generation, self._clock.now(), error)
        if set(before.conditions) != set(told):
            LOG.warning("Source %s: %s", _key(source), error)
            self._recorder.event(ObjectReference.of(source), error.reason, error.message, warning=True)
        return msgspec.structs.replace(before, observed_generation=generation, conditions=told)


async def tidy(sources: GitSources, store: ArtifactStore, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Take away what nobody has used for long, now and then, for ever; whoever wants it again fetches it again."""
    while True:
        await clock.sleep(TIDY_EVERY)
        try:
            await sources.collect(KEPT_FOR)
            await store.collect((), KEPT_FOR)
        except (StarlingError, OSError) as error:
            LOG.warning("tidying up what was fetched: %s", error)


def retry_after(error: StarlingError, interval: float, failures: int) -> float:
    """Seconds until the next look after failures: twice as long each time, a minute or the interval at most.

    What only a person can mend is looked at with the interval all the same: the mending may be at the other end.
    """
    if isinstance(error, InputError):
        return interval
    return min(FIRST_RETRY * 2.0 ** min(failures - 1, 20), max(interval, LONGEST_RETRY))


def _key(source: Source) -> Key:
    return Key(source.metadata.namespace, source.metadata.name)


def _moment(now: datetime) -> datetime:
    return now.replace(microsecond=0)
