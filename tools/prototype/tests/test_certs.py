from __future__ import annotations

import socket
import ssl
import threading

import pytest

from certs import Certificates
from fedplan.errors import InputError


@pytest.fixture
def files(tmp_path):
    files = Certificates(tmp_path / "certs")
    files.make(["one", "two"], ["127.0.0.1", "10.77.0.1", "link.example"])
    return files


def greet(files, ca, name):
    """A TLS handshake on loopback, in which the client wants the server to be `name`."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files.server, files.server_key)
    client = ssl.create_default_context(cafile=ca)
    ours, theirs = socket.socketpair()

    def answer():
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except ssl.SSLError:
            theirs.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=name) as connection:
            return connection.version()
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize("name", ["127.0.0.1", "10.77.0.1", "link.example"])
def test_whoever_trusts_the_ca_trusts_the_superlink_at_its_addresses(files, name):
    assert greet(files, files.ca, name) == "TLSv1.3"


def test_other_addresses_and_other_authorities_are_not_trusted(files, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        greet(files, files.ca, "127.0.0.2")
    other = Certificates(tmp_path / "other")
    other.make([], ["127.0.0.1"])
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(files, other.ca, "127.0.0.1")


def test_private_keys_are_the_owners_alone_and_the_cas_is_nowhere(files):
    private = {path for path in files.folder.rglob("*") if b"PRIVATE KEY" in _content(path)}
    assert private == {files.server_key, files.node_key("one"), files.node_key("two")}
    assert {path.stat().st_mode & 0o777 for path in private} == {0o600}


def _content(path):
    return path.read_bytes() if path.is_file() else b""


def test_what_is_there_is_kept_and_new_devices_get_keys(files):
    before = {path: _content(path) for path in files.folder.rglob("*")}
    made = files.make(["one", "two", "three"], ["10.77.0.1"])
    assert made == [files.node_key("three"), files.public_key("three")]
    assert all(_content(path) == content for path, content in before.items())
    assert files.make(["one"], ["127.0.0.1"]) == []


def test_a_certificate_made_for_one_address_serves_a_prototype_too(tmp_path):
    files = Certificates(tmp_path / "certs")
    files.make([], ["link.example"])
    assert files.make([], ["10.77.0.1", "127.0.0.1", "localhost"]) == []


def test_a_certificate_for_another_address_is_refused(files):
    with pytest.raises(InputError, match=r"must be for 10\.9\.9\.9, but is for"):
        files.make([], ["10.9.9.9"])


def test_half_a_set_is_refused(files):
    files.server_key.unlink()
    with pytest.raises(InputError, match=r"but has no server\.key"):
        files.make([], ["127.0.0.1"])


def test_a_private_key_without_its_public_one_is_refused(files):
    files.public_key("one").unlink()
    with pytest.raises(InputError, match=r"one\.pub is not"):
        files.make(["one"], ["127.0.0.1"])


def test_what_is_no_address_is_refused_and_leaves_nothing(tmp_path):
    files = Certificates(tmp_path / "certs")
    with pytest.raises(InputError, match="neither an IP address nor a host name"):
        files.make([], ["löcal"])
    assert not files.ca.exists() and not files.server_key.exists()
