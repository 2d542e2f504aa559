"""A cluster's own certificate authority, and the certificates it signs.

Every pair is written key first, certificate last, and the authority before all others: a pair exists if its
certificate does, so being killed half-way leaves nothing to repair.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from starling.files import private_folder, write_private

__all__ = ["Pair", "Pki"]

LIFE = timedelta(days=3650)
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
SERVER_ADDRESSES = ("127.0.0.1", "127.64.0.1")


@dataclass(frozen=True, slots=True)
class Pair:
    """Where a certificate and its key lie, as PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Pki:
    """The folder of one cluster's authority and certificates."""

    folder: Path

    @property
    def authority(self) -> Pair:
        """What signs all the others."""
        return self.pair("ca")

    @property
    def server(self) -> Pair:
        """The API server's certificate."""
        return self.pair("kube-apiserver")

    @property
    def accounts(self) -> Pair:
        """What service account tokens are signed with, and the public key that checks them."""
        return Pair(self.folder / "service-accounts.pub", self.folder / "service-accounts.key")

    def pair(self, name: str) -> Pair:
        """Where the certificate of that name lies."""
        return Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")

    def ensure(self, clients: dict[str, tuple[str, Sequence[str]]]) -> None:
        """Create what is missing: the authority, the server's, and a certificate per client: (user, groups)."""
        private_folder(self.folder)
        if not self.authority.certificate.exists():
            self._create_authority()
        if not self.accounts.certificate.exists():
            self._create_account_key()
        if not self.server.certificate.exists():
            self._sign(self.server, subject("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH)
        for name, (user, groups) in clients.items():
            if not self.pair(name).certificate.exists():
                self._sign(self.pair(name), subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _create_authority(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = subject("starling-local-ca")
        builder = certificate_builder(name, name, key.public_key(), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(key_usage(signs_certificates=True), critical=True)
        write_pair(self.authority, key, builder.sign(key, hashes.SHA256()))

    def _create_account_key(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(self.accounts.key, key_pem(key))
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(self.accounts.certificate, public)

    def _sign(self, pair: Pair, name: x509.Name, usage: x509.ObjectIdentifier) -> None:
        authority = x509.load_pem_x509_certificate(self.authority.certificate.read_bytes())
        authority_key = serialization.load_pem_private_key(self.authority.key.read_bytes(), password=None)
        assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = certificate_builder(name, authority.subject, key.public_key(), authority_key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if usage == ExtendedKeyUsageOID.SERVER_AUTH:
            builder = builder.add_extension(server_names(), critical=False)
        write_pair(pair, key, builder.sign(authority_key, hashes.SHA256()))


def subject(user: str, groups: Sequence[str] = ()) -> x509.Name:
    """Give the name by which Kubernetes knows a user (CN) and the groups it is in (O)."""
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def certificate_builder(
    name: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, issuer_public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Give what all our certificates have in common; strict verifiers want both key identifiers."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_public), critical=False)
    )


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Give the key usage of an authority, or of one that only proves who it is."""
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def server_names() -> x509.SubjectAlternativeName:
    """Give the names and addresses under which the API server is reached."""
    addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in SERVER_ADDRESSES]
    return x509.SubjectAlternativeName([*(x509.DNSName(name) for name in SERVER_NAMES), *addresses])


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Give a private key as Kubernetes' components read it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_pair(pair: Pair, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    """Write the key, then the certificate."""
    write_private(pair.key, key_pem(key))
    write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
