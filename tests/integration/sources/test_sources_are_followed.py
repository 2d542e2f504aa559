"""A Source that is followed tells each new version and each new trouble once, at intervals that are spread."""

from contextlib import aclosing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starling.sources import Artifact, GitSource, GitSources, Ref, SourceError, follow
from starling.sources.following import wait_for
from tests.integration.sources.repositories import Repository


class Waiting:
    """A clock on which waiting takes no time, and that tells for how long was waited."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def monotonic(self) -> float:
        """How long was waited in all."""
        return sum(self.waits)

    def now(self) -> datetime:
        """Nobody asks."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Be there at once."""
        self.waits.append(seconds)
        if len(self.waits) > 100:
            pytest.fail("nothing new for too long")


@given(interval=st.floats(1, 1e6), chance=st.floats(0, 1))
def test_waits_are_spread_by_a_tenth(interval: float, chance: float) -> None:
    """Sources that were made together drift apart."""
    assert 0.899 * interval <= wait_for(interval, lambda: chance) <= 1.101 * interval


async def test_what_is_new_is_told_once(repository: Repository, sources: GitSources) -> None:
    """Versions, trouble, and that the trouble is over."""
    clock = Waiting()
    source = GitSource(repository.url, Ref(branch="main"))
    async with aclosing(follow(sources, source, interval=60.0, clock=clock)) as news:
        first = await anext(news)
        assert isinstance(first, Artifact)
        assert clock.waits == []
        repository.commit({"a": "1"})
        second = await anext(news)
        assert isinstance(second, Artifact)
        assert second.revision == f"main@sha1:{repository.head()}"
        assert len(clock.waits) == 1
        elsewhere = repository.bare.rename(repository.bare.with_name("elsewhere.git"))
        trouble = await anext(news)
        assert isinstance(trouble, SourceError)
        elsewhere.rename(repository.bare)
        assert await anext(news) == second
        assert all(54.0 <= wait <= 66.0 for wait in clock.waits)
