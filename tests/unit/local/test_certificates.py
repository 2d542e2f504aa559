"""A cluster's authority and certificates: what they say, and that making them can be cut off anywhere."""

import itertools
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from starling.local.commands import CLIENTS
from starling.local.pki import Pki


def load(path: Path) -> x509.Certificate:
    """Give the certificate in a file."""
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_the_authority_signs_all(tmp_path: Path) -> None:
    """Every certificate is signed by the cluster's own authority, and no key can be read by others."""
    pki = Pki(tmp_path / "pki")
    pki.ensure(CLIENTS)
    authority = load(pki.authority.certificate)
    for pair in (pki.server, *map(pki.pair, CLIENTS)):
        load(pair.certificate).verify_directly_issued_by(authority)
    for path in pki.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_clients_are_who_they_say(tmp_path: Path) -> None:
    """A client's certificate carries user and groups, and can't pass for a server's."""
    pki = Pki(tmp_path / "pki")
    pki.ensure({"someone": ("a-user", ["one", "two"])})
    certificate = load(pki.pair("someone").certificate)
    groups = [group.value for group in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert groups == ["one", "two"]
    assert [user.value for user in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["a-user"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_again_changes_nothing(tmp_path: Path) -> None:
    """What exists is kept: running components go on trusting it."""
    pki = Pki(tmp_path / "pki")
    pki.ensure(CLIENTS)
    before = {path: path.read_bytes() for path in pki.folder.iterdir()}
    pki.ensure(CLIENTS)
    assert {path: path.read_bytes() for path in pki.folder.iterdir()} == before


@pytest.mark.parametrize("kept", range(12))
def test_cut_off_anywhere(tmp_path: Path, kept: int) -> None:
    """Killed after any number of files, the next one completes a set that fits together."""
    whole = Pki(tmp_path / "whole")
    whole.ensure(CLIENTS)
    written = sorted(whole.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(written) == 14
    pki = Pki(tmp_path / "cut")
    pki.folder.mkdir()
    for path in itertools.islice(written, kept):
        (pki.folder / path.name).write_bytes(path.read_bytes())
    pki.ensure(CLIENTS)
    authority = load(pki.authority.certificate)
    for pair in (pki.server, *map(pki.pair, CLIENTS)):
        load(pair.certificate).verify_directly_issued_by(authority)
