"""The artifact store on a real disk: what is put comes out exactly, or is said to be damaged; the rest is collected."""

import asyncio
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from starling.sources import Damaged, Incomplete, NotStored, Refused, StoreError
from starling.sources.pool import try_lock
from starling.sources.store import ArtifactStore, Entry

NOT_TO_BE_FOUND = "sha256:" + "0" * 64


def put_in(store: ArtifactStore, files: dict[str, str], executables: str = "", links: str = "") -> list[Entry]:
    """Add contents and list them; names in the other texts are executable, or links."""
    entries = []
    for path, text in files.items():
        content = text.encode()
        mode = "executable" if path in executables.split() else "link" if path in links.split() else "file"
        entries.append(Entry(path, mode, store.add(content), len(content)))  # type: ignore[arg-type]
    return entries


def found_in(folder: Path) -> dict[str, str]:
    """All that is in a folder: mode and content, or where a link leads."""
    found = {}
    for path in folder.rglob("*"):
        state = path.lstat()
        if stat.S_ISLNK(state.st_mode):
            found[str(path.relative_to(folder))] = f"-> {path.readlink()}"
        elif stat.S_ISREG(state.st_mode):
            found[str(path.relative_to(folder))] = f"{stat.S_IMODE(state.st_mode):o} {path.read_text()}"
    return found


FILES = {"run.sh": "#!/bin/sh\n", "app/web.yaml": "kind: A\n", "app/deep/x": "", "app/link": "../run.sh"}


async def test_what_is_put_comes_out(store: ArtifactStore) -> None:
    """A checkout has exactly the files, their executable bits and links, read-only; again, it is the same folder."""
    artifact = await store.put("main@sha1:1", put_in(store, FILES, executables="run.sh", links="app/link"))
    assert (artifact.revision, artifact.size) == ("main@sha1:1", 27)
    folder = await store.checkout(artifact.digest)
    expected = {
        "run.sh": "555 #!/bin/sh\n",
        "app/web.yaml": "444 kind: A\n",
        "app/deep/x": "444 ",
        "app/link": "-> ../run.sh",
    }
    assert found_in(folder) == expected
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "app", folder / "app/deep")} == {0o555}
    inode = (folder / "run.sh").stat().st_ino
    assert await store.checkout(artifact.digest) == folder
    assert (folder / "run.sh").stat().st_ino == inode
    assert found_in(await store.checkout((await store.put("", [])).digest)) == {}


@pytest.mark.parametrize("umask", ["0", "077"])
async def test_the_same_tree_anywhere(store: ArtifactStore, tmp_path: Path, umask: str) -> None:
    """Another process, with another umask, locale, order and store, comes to the same digest and the same files."""
    script = """
import asyncio, os, sys
from pathlib import Path
from starling.sources.store import ArtifactStore, Entry
os.umask(int(sys.argv[2], 8))
store = ArtifactStore(Path(sys.argv[1]))
entries = [Entry(p, m, store.add(c), len(c)) for p, m, c in
           [("z", "file", b"last"), ("caf\\u00e9", "executable", b"x"), ("a/b", "file", b"first")]]
artifact = asyncio.run(store.put("r", entries))
print(artifact.digest, asyncio.run(store.checkout(artifact.digest)))
"""
    environment = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", script, str(tmp_path / "other"), umask]
    told = await asyncio.to_thread(subprocess.run, command, env=environment, check=True, capture_output=True, text=True)
    digest, folder = told.stdout.split()
    entries = put_in(store, {"a/b": "first", "caf\u00e9": "x", "z": "last"}, executables="caf\u00e9")
    artifact = await store.put("r", entries)
    assert artifact.digest == digest
    assert found_in(Path(folder)) == found_in(await store.checkout(digest))


async def test_one_changed_file_is_one_blob(store: ArtifactStore) -> None:
    """Another version adds what changed, and nothing is lacking but that."""
    before = put_in(store, FILES)
    await store.put("1", before)
    after = [entry for entry in before if entry.path != "run.sh"]
    blobs = set(store.root.glob("blobs/*/*"))
    assert store.lacking([*(entry.digest for entry in before), NOT_TO_BE_FOUND]) == {NOT_TO_BE_FOUND}
    after += put_in(store, {"run.sh": "#!/bin/bash\n"})
    assert (await store.put("2", after)).digest != (await store.put("1", before)).digest
    assert len(set(store.root.glob("blobs/*/*")) - blobs) == 1


async def test_a_tree_without_its_files_is_not_put(store: ArtifactStore) -> None:
    """Who puts a tree whose contents aren't all there is told which; nothing is listed then."""
    entries = [*put_in(store, {"a": "a"}), Entry("b", "file", NOT_TO_BE_FOUND, 1)]
    with pytest.raises(Incomplete, match="b among them") as caught:
        await store.put("r", entries)
    assert caught.value.missing == {NOT_TO_BE_FOUND}
    with pytest.raises(StoreError, match="a is listed with 7 bytes"):
        await store.put("r", [Entry("a", "file", entries[0].digest, 7)])
    assert list(store.root.glob("listings/*")) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "app/link"])
async def test_links_out_are_refused(store: ArtifactStore, target: str) -> None:
    """A link that leads out or in a circle is refused with its name, and nothing of it is listed or written."""
    with pytest.raises(Refused, match="the link app/link leads to"):
        await store.put(
            "r",
            put_in(store, {**FILES, "app/link": f"../{target}" if target == "app/link" else target}, links="app/link"),
        )
    assert list(store.root.glob("listings/*")) == []


def spoil(store: ArtifactStore, digest: str, content: str | None) -> None:
    """Have a blob with another content, or none."""
    blob = store.root / "blobs" / digest[7:9] / digest[9:]
    blob.chmod(0o600)
    if content is None:
        blob.unlink()
    else:
        blob.write_text(content)


@pytest.mark.parametrize("damage", ["kind: B\n", "kind", "", None])
async def test_damage_is_found_named_and_mended(store: ArtifactStore, damage: str | None) -> None:
    """A blob that isn't what was put in fails the checkout by path and digest; adding it again mends it."""
    entries = put_in(store, FILES)
    artifact = await store.put("r", entries)
    digest = entries[1].digest
    spoil(store, digest, damage)
    with pytest.raises(Damaged, match=rf"app/web.yaml: the stored content {digest}"):
        await store.checkout(artifact.digest)
    assert store.lacking([digest]) == {digest}
    with pytest.raises(Incomplete):
        await store.put("r", entries)
    store.add(b"kind: A\n")
    assert (await store.put("r", entries)).digest == artifact.digest
    assert len(found_in(await store.checkout(artifact.digest))) == len(FILES)


async def test_no_artifact_lacks_a_file_that_was_damaged(store: ArtifactStore) -> None:
    """All that name it are gone with it, so that they are fetched again and nothing is built on them; others stay."""
    entries = put_in(store, FILES)
    first = await store.put("1", entries)
    second = await store.put("2", [*entries, *put_in(store, {"more": "more"})])
    other = await store.put("3", put_in(store, {"more": "more", "sha256": entries[1].digest}))
    folder = await store.checkout(other.digest)
    spoil(store, entries[1].digest, "kind: B\n")
    with pytest.raises(Damaged):
        await store.checkout(second.digest)
    assert [store.has(each.digest) for each in (first, second, other)] == [False, False, True]
    with pytest.raises(NotStored):
        await store.amend(first, "4", {"run.sh": None})
    assert await store.checkout(other.digest) == folder


@pytest.mark.parametrize("damage", ["kind", ""])
async def test_a_torn_blob_is_found_when_it_is_put(store: ArtifactStore, damage: str) -> None:
    """As a power failure leaves it: it counts as lacking from then on, and is added anew."""
    entries = put_in(store, FILES)
    artifact = await store.put("r", entries)
    spoil(store, entries[1].digest, damage)
    again = ArtifactStore(store.root)
    with pytest.raises(Incomplete, match=r"app/web\.yaml") as caught:
        await again.put("r", entries)
    assert again.lacking([entries[1].digest]) == caught.value.missing == {entries[1].digest}
    assert not again.has(artifact.digest)
    again.add(b"kind: A\n")
    assert len(found_in(await again.checkout((await again.put("r", entries)).digest))) == len(FILES)


async def test_a_damaged_link_is_found_when_it_is_put(store: ArtifactStore) -> None:
    """A link's content that isn't what its name says is taken away before it decides anything, and is added anew."""
    entries = put_in(store, FILES, links="app/link")
    digest = entries[3].digest
    spoil(store, digest, "/etc/pass")
    with pytest.raises(Incomplete, match="link app/link") as caught:
        await store.put("r", entries)
    assert store.lacking([digest]) == caught.value.missing == {digest}
    await store.put("r", put_in(store, FILES, links="app/link"))


async def test_a_damaged_link_is_found_when_a_tree_is_amended(store: ArtifactStore) -> None:
    """By a process that hasn't read it before; it is taken away like any other damaged file, without waiting."""
    entries = put_in(store, FILES, links="app/link")
    artifact = await store.put("r", entries)
    spoil(store, entries[3].digest, "/etc/pass")
    script = """
import asyncio, sys
from pathlib import Path
from starling.sources import Artifact, ArtifactStore, Incomplete
store = ArtifactStore(Path(sys.argv[1]))
try:
    asyncio.run(store.amend(Artifact("r", sys.argv[2], 27), "s", {"run.sh": None}))
except Incomplete as error:
    print(*error.missing)
"""
    command = [sys.executable, "-c", script, str(store.root), artifact.digest]
    told = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, text=True, timeout=20)
    assert told.stdout.split() == [entries[3].digest]
    assert not store.has(artifact.digest)


async def test_a_damaged_listing_counts_for_nothing(store: ArtifactStore) -> None:
    """A listing that isn't what its name says is taken away, and can be put anew."""
    entries = put_in(store, FILES)
    artifact = await store.put("r", entries)
    path = store.root / "listings" / artifact.digest[7:]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"run.sh", b"../run"))
    with pytest.raises(NotStored):
        await store.checkout(artifact.digest)
    assert not store.has(artifact.digest)
    await store.put("r", entries)
    await store.checkout(artifact.digest)


@pytest.mark.parametrize("change", ["write", "add", "remove", "mode", "marker"])
async def test_a_folder_that_was_changed_is_made_anew(store: ArtifactStore, change: str) -> None:
    """Whatever someone did to the folder, the next checkout has exactly the files again."""
    artifact = await store.put("r", put_in(store, FILES, executables="run.sh"))
    folder = await store.checkout(artifact.digest)
    expected = found_in(folder)
    (folder / "app").chmod(0o700)
    if change == "write":
        (folder / "app/web.yaml").chmod(0o600)
        (folder / "app/web.yaml").write_text("kind: B\n")
    elif change == "add":
        (folder / "app/more.yaml").write_text("kind: C\n")
    elif change == "remove":
        (folder / "app/web.yaml").unlink()
    elif change == "mode":
        (folder / "run.sh").chmod(0o444)
    else:  # as if the machine had been started anew, after which a folder's files may be torn
        (folder / "app").chmod(0o555)
        marker = folder.with_suffix(".lock")
        marker.write_text(marker.read_text().replace("-", "+", 1))
    before = (folder / "app/deep/x").stat().st_ino, (folder / "app/deep/x").stat().st_ctime_ns
    assert found_in(await store.checkout(artifact.digest)) == expected
    assert before != ((folder / "app/deep/x").stat().st_ino, (folder / "app/deep/x").stat().st_ctime_ns)


async def test_a_changed_folder_in_use_by_another_is_left_to_it(store: ArtifactStore) -> None:
    """Who can't have it made anew gets one beside it, which goes like any other; the next finds the right one."""
    artifact = await store.put("r", put_in(store, FILES))
    folder = await store.checkout(artifact.digest)
    expected = found_in(folder)
    folder.chmod(0o700)
    (folder / "more.yaml").write_text("kind: C\n")
    other = ArtifactStore(store.root)
    async with asyncio.timeout(20):
        beside = await other.checkout(artifact.digest)
        assert beside != folder
        assert found_in(beside) == expected != found_in(folder)
        assert await store.checkout(artifact.digest) == await other.checkout(artifact.digest) == folder
    assert found_in(folder) == expected
    await store.collect([artifact.digest], older_than=0)
    assert not beside.exists()
    assert found_in(folder) == expected


async def test_who_makes_a_folder_and_never_ends_is_left_alone(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process keeps its lock; others don't wait for it for ever."""
    monkeypatch.setattr("starling.sources.store.MADE_WITHIN", 0.2)
    artifact = await store.put("r", put_in(store, FILES))
    stopped = try_lock(store.root / "trees" / f"{artifact.digest[7:]}.lock", fcntl.LOCK_EX)
    assert stopped is not None
    try:
        async with asyncio.timeout(20):
            assert len(found_in(await store.checkout(artifact.digest))) == len(FILES)
    finally:
        os.close(stopped)


async def test_a_large_file(store: ArtifactStore) -> None:
    """It is copied in more than one piece."""
    large = os.urandom(3 << 20)
    artifact = await store.put("r", [Entry("large", "file", store.add(large), len(large))])
    assert (await store.checkout(artifact.digest) / "large").read_bytes() == large


async def test_collecting(store: ArtifactStore) -> None:
    """What is kept stays whole; of what isn't, all goes but what is young, or in use by another."""
    kept = await store.put("kept", put_in(store, {"shared": "s", "own": "k"}))
    dropped = await store.put("dropped", put_in(store, {"shared": "s", "other": "d"}))
    await store.checkout(dropped.digest)
    store.add(b"never listed")
    assert (await store.collect([kept.digest], older_than=3600)).blobs == 0
    assert store.has(dropped.digest)

    user = ArtifactStore(store.root)
    folder = await user.checkout(dropped.digest)
    collected = await store.collect([kept.digest], older_than=0)
    assert (collected.artifacts, collected.blobs, collected.size) == (0, 1, len("never listed"))
    assert found_in(folder) == {"shared": "444 s", "other": "444 d"}

    await user.collect([dropped.digest], older_than=3600)
    assert (await store.collect([kept.digest], older_than=0)).artifacts == 0
    await user.collect([kept.digest], older_than=0)
    assert not store.has(dropped.digest)
    assert not folder.exists()
    assert len(found_in(await store.checkout(kept.digest))) == 2
    await store.collect([], older_than=0)
    left = [path for path in store.root.rglob("*") if path.is_file() and path.name not in ("lock", "generation")]
    assert left == []


async def test_nothing_is_listed_while_blobs_are_taken_away(store: ArtifactStore) -> None:
    """Who puts waits for who takes away, and the other way round: else a listing could come to lack a blob."""
    entries = put_in(store, FILES)
    with store._pool.alone():
        putting = asyncio.create_task(store.put("r", entries))
        assert not (await asyncio.wait([putting], timeout=0.3))[0]
    await putting
    store.add(b"never listed")
    with store._pool.shared():
        collecting = asyncio.create_task(store.collect([], older_than=0))
        assert not (await asyncio.wait([collecting], timeout=0.3))[0]
    assert (await collecting).artifacts == 1


async def test_what_is_added_again_is_young_again(store: ArtifactStore) -> None:
    """An old blob or listing that someone adds just now isn't collected as old."""
    entries = put_in(store, {"a": "a"})
    artifact = await store.put("r", entries)
    for path in (*store.root.glob("blobs/*/*"), *store.root.glob("listings/*")):
        os.utime(path, (1, 1))
    put_in(store, {"a": "a"})
    await store.put("r", entries)
    assert await store.collect([], older_than=60) == await store.collect([], older_than=60)
    assert store.has(artifact.digest)


async def test_many_ask_at_once_and_one_makes_it(store: ArtifactStore) -> None:
    """Checkouts of one tree at a time give one folder that is whole; one who is cancelled spoils it for nobody."""
    artifact = await store.put("r", put_in(store, {f"f{n}": str(n) for n in range(300)}))
    stores = [ArtifactStore(store.root) for _ in range(4)]
    asked = [asyncio.create_task(each.checkout(artifact.digest)) for each in stores for _ in range(5)]
    await asyncio.sleep(0)
    asked[0].cancel()
    folders = await asyncio.gather(*asked[1:])
    assert len(set(folders)) == 1
    assert len(found_in(folders[0])) == 300


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "../../etc/passwd", "sha256:" + "A" * 64, "sha256:" + "0" * 63 + "\n"]
)
async def test_digests_lead_nowhere_else(store: ArtifactStore, digest: str) -> None:
    """What isn't a digest, or the digest of nothing, is told as that."""
    for asked in (digest, NOT_TO_BE_FOUND):
        with pytest.raises(NotStored):
            await store.checkout(asked)


async def test_what_the_system_refuses_is_told(tmp_path: Path) -> None:
    """A store that can't be written to says so, with its folder."""
    store = ArtifactStore(tmp_path / "store")
    (tmp_path / "store/partial").rmdir()
    with pytest.raises(StoreError, match=f"the artifact store in {tmp_path}/store: "):
        store.add(b"x")
