"""Certificates: a CA, the SuperLink's certificate, and a key pair for every SuperNode.

The CA signs one certificate and its own key is then forgotten: there is no key to steal with which
a second SuperLink could be made.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from fedplan.errors import FedplanError, InputError
from files import write_whole
from machine import LINK_ADDRESS

if find_spec("cryptography") is None:
    raise FedplanError(
        "making certificates needs the package cryptography, which is not installed. "
        "Type: pip install '.[flower]' in the checkout."
    )

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

VALID_DAYS = 365
_PEM = serialization.Encoding.PEM
_OPENSSH = serialization.Encoding.OpenSSH
_ALWAYS = (LINK_ADDRESS, "127.0.0.1", "localhost")


class Certificates:
    """The files of one federation, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.crt"
        self.server = folder / "server.crt"
        self.server_key = folder / "server.key"

    def node_key(self, name: str) -> Path:
        """A SuperNode's private key; the public one beside it ends in .pub."""
        return self.folder / "nodes" / name

    def public_key(self, name: str) -> Path:
        """What the SuperLink is told of a SuperNode."""
        return self.folder / "nodes" / f"{name}.pub"

    def make(self, names: Iterable[str], addresses: Sequence[str]) -> list[Path]:
        """Make what is not there yet; what is there is kept, and checked. The files made.

        A certificate made here is for the prototype's own addresses too.
        """
        (self.folder / "nodes").mkdir(parents=True, exist_ok=True)
        files = [self.ca, self.server, self.server_key]
        missing = [path.name for path in files if not path.exists()]
        made: list[Path] = []
        if len(missing) == len(files):
            _make_server(self, list(dict.fromkeys([*_ALWAYS, *addresses])))
            made += files
        elif missing:
            raise InputError(
                f"{self.folder} must hold all of {', '.join(path.name for path in files)} or none, "
                f"but has no {', '.join(missing)}. Bring the missing, or remove the others."
            )
        self.check(addresses)
        for name in names:
            key, public = self.node_key(name), self.public_key(name)
            if not key.exists():
                _make_node_key(key, public)
                made += [key, public]
            elif not public.exists():
                raise InputError(f"{key} is there, but {public} is not. Bring it, or remove both.")
        return made

    def check(self, addresses: Iterable[str]) -> None:
        """Refuse a certificate that is not for these addresses, or not of this time."""
        try:
            certificate = x509.load_pem_x509_certificate(self.server.read_bytes())
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            covered = [str(name.value) for name in names.value]
        except (ValueError, x509.ExtensionNotFound) as error:
            raise InputError(
                f"{self.server} is no certificate for an address ({error})."
            ) from error
        problems = [
            f"{self.server} must be for {address}, but is for {', '.join(covered)}. Remove the "
            f"certificates in {self.folder} to have others made, or bring one that is."
            for address in addresses
            if address not in covered
        ]
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if not start <= datetime.datetime.now(datetime.UTC) < end:
            problems.append(f"{self.server} is valid from {start} to {end}, but not now.")
        if problems:
            raise InputError(problems)


def _make_server(files: Certificates, addresses: Sequence[str]) -> None:
    ca_key, key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    ca_name = _named("fedplan prototype CA")
    ca = (
        _certificate(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
        .sign(ca_key, hashes.SHA384())
    )
    server = (
        _certificate(_named("fedplan prototype SuperLink"), ca_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(map(_general_name, addresses)), critical=False)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA384())
    )
    private = key.private_bytes(
        _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_whole(files.server_key, private, mode=0o600)
    write_whole(files.server, server.public_bytes(_PEM))
    write_whole(files.ca, ca.public_bytes(_PEM))


def _make_node_key(key_file: Path, public_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(
        _PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(_OPENSSH, serialization.PublicFormat.OpenSSH)
    write_whole(public_file, public + b"\n")
    write_whole(key_file, private, mode=0o600)


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        pass
    try:
        return x509.DNSName(address)
    except ValueError as error:
        raise InputError(f"{address!r} is neither an IP address nor a host name.") from error
