"""Settings that are refused at the start, and TLS."""

import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from client import TOKEN, Client
from fake_control import FakeControl

from trunkline_controller.http import HttpServer, HttpSettings
from trunkline_controller.refusal import SettingsError


def refused(settings: HttpSettings) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        HttpServer(FakeControl(), settings).start()
    assert str(caught.value).startswith(caught.value.setting)
    return caught.value


def test_another_address_needs_a_token(token_file: Path):
    for address in ("0.0.0.0", "192.0.2.1", "::", "2001:db8::1", "::ffff:127.0.0.1"):
        error = refused(HttpSettings(address=address, port=0))
        assert error.setting == "http.token_file"
        assert "openssl rand -hex 32" in error.remedy
    for address in ("127.0.0.1", "127.1.2.3", "::1"):
        HttpSettings(address=address).check()
    HttpSettings(address="0.0.0.0", token_file=token_file).check()


def test_a_token_that_is_no_secret_is_refused(tmp_path: Path, token_file: Path):
    settings = HttpSettings(token_file=token_file)
    assert settings.token() == TOKEN.encode()
    for mode in (0o640, 0o604, 0o660, 0o777):
        token_file.chmod(mode)
        assert f"chmod 600 {token_file}" in str(refused(settings))
    token_file.chmod(0o600)
    for text in ("", "\n", "a" * 15, "  short  \n", "with spaces in the middle", "ä" * 16, "a\nb" * 16, "\0" * 20):
        token_file.write_text(text)
        assert refused(settings).setting == "http.token_file", text
    token_file.write_text("a" * 16)
    assert settings.token() == b"a" * 16
    assert "No such file" in str(refused(HttpSettings(token_file=tmp_path / "none")))
    os.mkfifo(tmp_path / "pipe")  # that nobody writes to
    for path in (tmp_path, tmp_path / "pipe"):
        assert "is not a file" in str(refused(HttpSettings(token_file=path)))


def test_values_out_of_range_are_refused():
    right = HttpSettings(port=0)
    for wrong, setting in (
        (replace(right, address="localhost"), "http.address"),
        (replace(right, address=""), "http.address"),
        (replace(right, port=65536), "http.port"),
        (replace(right, port=-1), "http.port"),
        (replace(right, hosts=("http://a",)), "http.hosts"),
        (replace(right, max_connections=1), "http.max_connections"),
        (replace(right, patience_s=0), "http.patience_s"),
        (replace(right, certificate=Path("/dev/null")), "http.key"),
        (replace(right, key=Path("/dev/null")), "http.certificate"),
    ):
        assert refused(wrong).setting == setting


def test_a_port_that_is_taken_is_named(client: Client):
    error = refused(HttpSettings(port=client.server.port))
    assert (error.setting, str(client.server.port) in error.what) == ("http.port", True)


def test_names_and_addresses_of_its_own_are_answered(serve: Callable[..., Client]):
    client = serve(hosts=("controller.example",))
    assert client.get("/v1/status", Host="controller.example:80").status == 200
    assert client.get("/v1/status", Host="other.example").status == 403
    try:
        client = serve(address="::1")
    except SettingsError:
        pytest.skip("no IPv6 here")
    assert client.server.url.startswith("http://[::1]:")
    assert client.get("/v1/status").status == 200
    assert client.get("/v1/status", Origin=client.server.url.rstrip("/")).status == 200


def test_a_server_may_be_stopped_twice_and_never_started():
    server = HttpServer(FakeControl(), HttpSettings(port=0))
    server.stop()
    server.start()
    assert Client(server).get("/healthz").status == 200
    listened = server.settings.address, server.port
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listened)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def written(folder: Path, authority: trustme.CA, name: str = "localhost") -> dict[str, Path]:
    made = authority.issue_cert(name, "127.0.0.1")
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    key.chmod(0o600)
    return {"certificate": certificate, "key": key}


def test_tls_is_spoken_where_a_certificate_is_given(
    serve: Callable[..., Client], tmp_path: Path, authority: trustme.CA, token_file: Path
):
    client = serve(**written(tmp_path, authority), token_file=token_file)
    assert client.server.url.startswith("https://")
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    client.tls = ssl.create_default_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        client.get("/v1/status")
    authority.configure_trust(client.tls)
    assert client.get("/v1/status").status == 200
    own = f"https://127.0.0.1:{client.server.port}"
    assert client.get("/v1/status", Origin=own).status == 200
    assert client.get("/v1/status", Origin=own.replace("https", "http")).status == 403
    with pytest.warns(DeprecationWarning):
        client.tls.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, OSError)):
        client.get("/v1/status")
    assert client.raw(b"GET / HTTP/1.1\r\n\r\n") == b""


def test_certificates_that_do_not_serve_are_refused(tmp_path: Path, authority: trustme.CA):
    right, other = written(tmp_path, authority), written(tmp_path, authority, "other.example")
    HttpSettings(**right).check()
    assert refused(HttpSettings(**(right | {"key": other["key"]}))).setting == "http.certificate"
    right["key"].chmod(0o644)
    assert "chmod 600" in str(refused(HttpSettings(**right)))
    right["key"].chmod(0o600)
    right["certificate"].write_text("nonsense")
    assert refused(HttpSettings(**right)).setting == "http.certificate"
