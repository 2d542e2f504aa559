"""Packed charts are read as Helm reads them, and bombs among them aren't read to their end."""

import gzip
import io
import tarfile

import pytest

from starling.rendering.archives import Budget, archived, packed, repacked


def test_what_is_packed_is_found() -> None:
    """Files are found by name, in charts within charts too; packing the same gives the same."""
    inner = packed("b", [("values.schema.json", b"2"), ("other.json", b"x")])
    outer = packed("a", [("values.schema.json", b"1"), ("charts/b.tgz", inner)])
    found = archived(outer, "values.schema.json")
    assert found == [("a/values.schema.json", b"1"), ("a/charts/b.tgz/b/values.schema.json", b"2")]
    assert outer == packed("a", [("values.schema.json", b"1"), ("charts/b.tgz", inner)])


@pytest.mark.parametrize("name", ["x.json/.", "deep/../x.json", "a\\x.json", "./x.json"])
def test_odd_names_hide_nothing(name: str) -> None:
    """A path that Helm takes for a file's is that file's."""
    assert [text for _, text in archived(packed("a", [(name, b"1")]), "x.json")] == [b"1"]


def test_a_bomb() -> None:
    """Zeros that unpack without end are refused, at little cost."""
    bomb = gzip.compress(b"\0" * (101 << 20), compresslevel=1)
    with pytest.raises(tarfile.TarError, match="unpacks to more than"):
        archived(bomb, "x")


def test_archives_within_archives() -> None:
    """Nesting ends somewhere, and what is nested counts together."""
    nested = packed("a", [("x", b"1")])
    for _ in range(20):
        nested = packed("a", [("charts/a.tgz", nested)])
    with pytest.raises(tarfile.TarError, match="more than 8 deep"):
        archived(nested, "x")
    large = gzip.compress(b"\0" * (30 << 20), compresslevel=1)
    with pytest.raises(tarfile.TarError, match="unpacks to more than"):
        archived(packed("a", [(f"charts/{number}.tgz", large) for number in range(4)]), "x")


@pytest.mark.parametrize("data", [b"", b"x", gzip.compress(b"x" * 600, mtime=0), gzip.compress(b"", mtime=0)[:-3]])
def test_what_is_no_archive(data: bytes) -> None:
    """Damage is one kind of error, whatever it is."""
    with pytest.raises(tarfile.TarError):
        archived(data, "x")


def test_a_file_that_is_too_large() -> None:
    """No file of a chart is larger than Helm lets it be."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as archive:
        member = tarfile.TarInfo("a/x")
        member.size = (5 << 20) + 1
        archive.addfile(member, io.BytesIO(b"\0" * member.size))
    with pytest.raises(tarfile.TarError, match="larger than"):
        archived(content.getvalue(), "x")


def written(*members: tuple[str, bytes, bytes]) -> bytes:
    """An archive of these names, types and contents, whatever the types."""
    content = b""
    for name, kind, text in members:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        header = bytearray(member.tobuf(tarfile.USTAR_FORMAT))
        header[156:157] = kind
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        content += bytes(header) + text + b"\0" * (-len(text) % 512)
    return gzip.compress(content + b"\0" * 1024, mtime=0)


@pytest.mark.parametrize("kind", [b"Z", b"1", b"2", b"3", b"4", b"6"])
def test_what_is_neither_file_nor_folder(kind: bytes) -> None:
    """Helm makes files of whatever type it doesn't know, so they are refused by name."""
    data = written(("a/x.json", kind, b"" if kind != b"Z" else b"1"))
    for read in (lambda: archived(data, "x.json"), lambda: repacked(data)):
        with pytest.raises(tarfile.TarError, match=r"^a/x\.json in it is neither a file nor a folder"):
            read()


def test_folders_and_headers_are_fine() -> None:
    """What git and GNU tar write beside files is no fault."""
    long = "a/" + "deep/" * 30
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        content = io.BytesIO()
        headers = {"comment": "a commit"} if kind == tarfile.PAX_FORMAT else {}
        with tarfile.open(fileobj=content, mode="w:gz", format=kind, pax_headers=headers) as archive:
            folder = tarfile.TarInfo("a/")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            for name in (f"{long}x", "a/\u00e4/x"):
                member = tarfile.TarInfo(name)
                member.size = 1
                archive.addfile(member, io.BytesIO(b"1"))
        assert archived(content.getvalue(), "x") == [(f"{long}x", b"1"), ("a/\u00e4/x", b"1")]
        assert archived(repacked(content.getvalue()), "x") == archived(content.getvalue(), "x")


def two_faced(shown: dict[str, bytes], hidden: dict[str, bytes]) -> bytes:
    """An archive of files that everyone sees, and of such as Go sees alone.

    A size that starts with a zero byte is nothing to Python: to it, what Go takes for a file's content is the header
    of a file that holds all that follows.
    """
    end = 1024
    unseen = gzip.decompress(written(*((name, b"0", text) for name, text in hidden.items())))[:-end]
    cover = gzip.decompress(written(("a/cover", b"0", unseen)))[:512]
    odd = bytearray(gzip.decompress(written(("a/odd", b"0", cover)))[:512])
    odd[124:136] = b"\0%010o\0" % len(cover)
    odd[148:156] = b" " * 8
    odd[148:156] = b"%06o\0 " % sum(odd)
    seen = gzip.decompress(written(*((name, b"0", text) for name, text in shown.items())))[:-end]
    return gzip.compress(seen + bytes(odd) + cover + unseen + b"\0" * end, mtime=0)


def test_what_python_does_not_see_is_not_handed_on() -> None:
    """An archive that shows Python other files than Go becomes one that has a single reading."""
    data = two_faced({"a/x": b"1"}, {"a/values.schema.json": b"2"})
    assert archived(data, "values.schema.json") == []
    names = {"a/x": b"1", "a/odd": b"", "a/cover": gzip.decompress(data)[2048:-1024]}
    assert repacked(data) == packed("a", ((name.removeprefix("a/"), text) for name, text in names.items()))


def test_damage_in_the_middle() -> None:
    """An archive isn't read up to where it is damaged and taken for whole."""
    content = bytearray(gzip.decompress(packed("a", [("x", b"1"), ("y", b"2")])))
    content[1024] ^= 1
    for read in (lambda data: archived(data, "x"), repacked):
        with pytest.raises(tarfile.TarError, match="damaged after 1024 bytes"):
            read(gzip.compress(bytes(content), mtime=0))


def test_a_name_with_an_end_in_it() -> None:
    """A name that goes on after a zero byte would be another one to Go."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("a/x")
        member.pax_headers = {"path": "a/x.json\0y"}
        archive.addfile(member)
    with pytest.raises(tarfile.TarError, match="is no name"):
        repacked(content.getvalue())


def test_other_archives_are_data() -> None:
    """Only in charts/ is a .tgz a chart."""
    outer = packed("a", [("files/data.tgz", b"no archive"), ("x", b"1")])
    assert archived(outer, "x") == [("a/x", b"1")]
    assert archived(repacked(outer), "data.tgz") == [("a/files/data.tgz", b"no archive")]


def test_a_budget_for_several() -> None:
    """Archives that are read with one budget may take so much together."""
    data, budget = packed("a", [("x", b"1" * 5000)]), Budget(25_000)
    for _ in range(2):
        assert len(archived(data, "x", budget)) == 1
    with pytest.raises(tarfile.TarError, match="unpacks to more than"):
        archived(data, "x", budget)
