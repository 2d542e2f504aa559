"""A store and sources of one test's own."""

from pathlib import Path

import pytest

from starling.sources import ArtifactStore, FetchSettings, GitSources
from tests.integration.sources.repositories import Repository


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    """An empty store."""
    return ArtifactStore(tmp_path / "store")


@pytest.fixture
def sources(tmp_path: Path, store: ArtifactStore) -> GitSources:
    """Sources that may read this machine's repositories too."""
    return GitSources(tmp_path / "sources", store, FetchSettings(allow_file=True))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one commit."""
    made = Repository(tmp_path / "repositories" / "app.git")
    made.commit({"app/web.yaml": "kind: A\n", "docs/read.md": "hello\n", "run.sh": "#!/bin/sh\n"})
    return made
