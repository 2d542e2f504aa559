"""Private files and locks."""

import asyncio
from pathlib import Path

from starling.files import locked, private_folder, write_private


async def test_one_holder_at_a_time(tmp_path: Path) -> None:
    """Of many who want the lock one has it, even when its holders delete the file; those who wait are told once."""
    path = tmp_path / "lock"
    inside: list[int] = []
    most = 0
    told: list[int] = []

    async def work(number: int) -> None:
        nonlocal most
        async with locked(path, lambda: told.append(number)):
            inside.append(number)
            most = max(most, len(inside))
            await asyncio.sleep(0)
            inside.remove(number)
            if number % 2:
                path.unlink()

    await asyncio.gather(*(work(number) for number in range(10)))
    assert most == 1
    assert len(told) == len(set(told))


def test_only_a_new_folder_is_made_private(tmp_path: Path) -> None:
    """A folder that was there keeps its mode: it may be everybody's."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert private_folder(shared).stat().st_mode & 0o7777 == 0o1777
    assert private_folder(shared / "parent" / "own").stat().st_mode & 0o7777 == 0o700


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    """Replacing a file that others could read gives one that they can't."""
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [path]
