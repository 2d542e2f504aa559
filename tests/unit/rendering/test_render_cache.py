"""What was rendered once isn't rendered again, and what is kept is what was rendered."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from starling.objects import Manifest, Origin
from starling.rendering import Cache, Package, Rendered, Request
from starling.rendering.cache import decode, encode
from starling.rendering.render import cache_key
from tests.waiting import until


def rendered(text: str, size: int = 0) -> Rendered:
    """Something that was rendered."""
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": text + "." * size}}
    return Rendered((Manifest(content, Origin("app/a.yaml", 1, 2)),), f"c1:{text}")


class Works:
    """Work that counts how often it was done."""

    def __init__(self) -> None:
        self.done = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    def of(self, text: str, size: int = 0) -> Callable[[], Awaitable[Rendered]]:
        async def work() -> Rendered:
            self.done += 1
            await self.go_on.wait()
            return rendered(text, size)

        return work


def test_what_is_kept_reads_back_the_same() -> None:
    """Content, origin, digest and numbers of any size."""
    numbers = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "n": [1, 1.5, 10**20, -1, 1e300, None, True]}
    given = Rendered((Manifest(numbers, Origin("a", 3, 4)), *rendered("\u00e9\n").manifests), "c1:x")
    assert decode(encode(given)) == given
    assert str(decode(encode(given)).manifests[0].content) == str(numbers)


@pytest.mark.parametrize("on_disk", [False, True])
async def test_once(tmp_path: Path, on_disk: bool) -> None:
    """A second request is answered from what was kept; no_cache works anew, and that is kept then."""
    cache, works = Cache(tmp_path / "cache" if on_disk else None), Works()
    for _ in range(3):
        assert await cache.once("a", works.of("one")) == rendered("one")
    assert works.done == 1
    assert await cache.once("a", works.of("two"), no_cache=True) == rendered("two")
    assert await cache.once("a", works.of("three")) == rendered("two")
    if on_disk:
        assert await Cache(tmp_path / "cache").once("a", works.of("three")) == rendered("two")
    assert works.done == 2


async def test_those_who_come_meanwhile_wait_for_the_same(tmp_path: Path) -> None:
    """200 at once are one piece of work, though the first to ask goes away; so are failures."""
    cache, works = Cache(tmp_path), Works()
    works.go_on.clear()
    asking = [asyncio.create_task(cache.once("a", works.of("one"))) for _ in range(200)]
    await until(lambda: works.done > 0)
    asking[0].cancel()
    works.go_on.set()
    first, *others = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError)
    assert set(map(str, others)) == {str(rendered("one"))}
    assert works.done == 1

    async def fail() -> Rendered:
        works.done += 1
        await asyncio.sleep(0)
        raise ValueError("no")

    failed = await asyncio.gather(*(cache.once("b", fail) for _ in range(200)), return_exceptions=True)
    assert {str(each) for each in failed} == {"no"}
    assert works.done == 2
    assert await cache.once("b", works.of("better")) == rendered("better")  # failures aren't kept


async def test_work_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    """If all who asked go away, so does the work, and the next to ask begins anew."""
    cache, works = Cache(tmp_path), Works()
    ended = asyncio.Event()

    async def work() -> Rendered:
        try:
            return await works.of("one")()
        finally:
            ended.set()

    works.go_on.clear()
    asking = [asyncio.create_task(cache.once("a", work)) for _ in range(3)]
    await until(lambda: works.done == 1)
    for each in asking:
        each.cancel()
    async with asyncio.timeout(10):
        await ended.wait()
    works.go_on.set()
    assert await cache.once("a", works.of("two")) == rendered("two")


async def test_damage_on_disk_is_noticed(tmp_path: Path) -> None:
    """A file that was changed, cut short, or put under another's name is worked out again."""
    works = Works()
    await Cache(tmp_path).once("a", works.of("one"))
    (file,) = tmp_path.glob("*/*")
    good = file.read_bytes()
    for bad in (good[:-1], good.replace(b"one", b"two"), b"", good[:64] + b"{}"):
        file.write_bytes(bad)
        done = works.done
        assert await Cache(tmp_path).once("a", works.of("one")) == rendered("one")
        assert works.done == done + 1
        assert file.read_bytes() == good
    await Cache(tmp_path).once("b", works.of("two"))
    other = next(path for path in tmp_path.glob("*/*") if path != file)
    file.write_bytes(other.read_bytes())
    assert await Cache(tmp_path).once("a", works.of("one")) == rendered("one")


async def test_memory_is_bounded() -> None:
    """What wasn't wanted for longest is forgotten; what is larger than all isn't kept at all."""
    cache, works = Cache(in_memory=3500), Works()
    for key in "abc":
        await cache.once(key, works.of(key, 1000))
    await cache.once("a", works.of("a"))
    await cache.once("d", works.of("d", 1000))
    assert works.done == 4
    await cache.once("a", works.of("a", 1000))
    assert works.done == 4
    await cache.once("b", works.of("b", 1000))
    assert works.done == 5
    await cache.once("huge", works.of("huge", 10_000))
    await cache.once("huge", works.of("huge", 10_000))
    assert works.done == 7
    assert cache._weight == sum(weight for _, weight in cache._kept.values()) <= 3500


async def test_the_disk_is_bounded(tmp_path: Path) -> None:
    """The folder stays within its limit, give or take the share after which it is looked over."""
    cache, works = Cache(tmp_path, in_memory=0, on_disk=50_000), Works()
    for number in range(200):
        await cache.once(str(number), works.of(str(number), 1000))
        assert sum(path.stat().st_size for path in tmp_path.glob("*/*")) < 56_000
    await cache.once("199", works.of("199", 1000))
    assert works.done == 200
    await cache.once("0", works.of("0", 1000))
    assert works.done == 201


async def test_a_disk_that_takes_nothing_costs_the_cache_only(tmp_path: Path) -> None:
    """Where nothing can be written, rendering goes on."""
    (tmp_path / "file").write_text("")
    assert await Cache(tmp_path / "file").once("a", Works().of("one")) == rendered("one")


BASE = Request(path="app", values=[{"a": 1}], settings=["b=1"], api_versions=["v1", "apps/v1"])
OTHERS = {
    "release_name": "x",
    "namespace": "x",
    "values": [{"a": "1"}],
    "settings": ["b=2"],
    "kube_version": "1.30.0",
    "api_versions": ["v1"],
    "allow_remote": True,
}


def key(request: Request, package: Package, digest: str = "d", path: str = "app", program: str = "p") -> str:
    """The key of a request where all else is the same."""
    return cache_key(digest, path, package, request, program)


def test_a_key_is_of_all_that_matters() -> None:
    """For a chart every field counts; for the others only what they are made of, so that clusters share them."""
    changed = [
        Request(**{field: getattr(BASE, field) for field in Request.__slots__} | {name: value})
        for name, value in OTHERS.items()
    ]
    keys = {package: [key(request, package) for request in (BASE, *changed)] for package in Package}
    assert len(set(keys[Package.HELM])) == 1 + len(changed)
    assert len(set(keys[Package.KUSTOMIZE])) == 2
    assert len(set(keys[Package.PLAIN])) == 1
    assert not set.intersection(*map(set, keys.values()))
    plain = Package.PLAIN
    different = [
        key(BASE, plain),
        key(BASE, plain, digest="e"),
        key(BASE, plain, path="x"),
        key(BASE, plain, program="q"),
    ]
    assert len(set(different)) == 4
