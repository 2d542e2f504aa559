"""Packed charts are read as Helm reads them, and bombs among them aren't read to their end."""

import gzip
import io
import tarfile

import pytest

from starling.rendering.archives import archived, packed


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
