"""Where the controller listens for HTTP, and who may ask: values, and what must hold between them."""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from ..refusal import SettingsError, secret, token

DEFAULT_PORT = 8181  # where people look for an OpenFlow controller's REST interface


@dataclass(frozen=True)
class HttpSettings:
    """The table `[http]` of the controller's configuration."""

    address: str = "127.0.0.1"
    """IP address to listen on. One that is not of the loopback interface makes `token_file` compulsory."""
    port: int = DEFAULT_PORT
    """TCP port; 0 takes a free one."""
    token_file: Path | None = None
    """File with the bearer token that every request for the network's state must carry."""
    certificate: Path | None = None
    """Certificate chain for TLS, in PEM."""
    key: Path | None = None
    """Private key of the certificate, in PEM."""
    hosts: tuple[str, ...] = ()
    """Names, besides IP addresses and localhost, that clients may call this server by."""
    max_connections: int = 512
    """Connections at once; a quarter of them from one address. When all are there, one amid TLS's handshake gives way
    to a new one."""
    patience_s: float = 15.0
    """How long a client may take for TLS's handshake, to send a request, or to take an answer, in seconds."""

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def is_tls(self) -> bool:
        return self.certificate is not None

    def check(self) -> None:
        """Raises SettingsError unless a server can start with these; reads the files that are named."""
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            raise SettingsError(
                "http.address", f"{self.address!r} is not an IP address", "write one, as 127.0.0.1 or ::1"
            ) from None
        if not 0 <= self.port <= 65535:
            raise SettingsError("http.port", f"{self.port} is not a TCP port", f"write 0 to 65535, as {DEFAULT_PORT}")
        for name in self.hosts:
            if not re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})", name):
                raise SettingsError("http.hosts", f"{name!r} is not a host name", "write names without scheme or port")
        if self.max_connections < 8:
            raise SettingsError("http.max_connections", f"{self.max_connections} is too few", "write 8 or more")
        if not 0 < self.patience_s <= 3600:
            raise SettingsError("http.patience_s", f"{self.patience_s} s is out of range", "write up to 3600 seconds")
        if not self.is_loopback and self.token_file is None:
            raise SettingsError(
                "http.token_file",
                f"is missing, and {self.address} can be reached from other machines",
                "name a file with a secret of 16 bytes or more (openssl rand -hex 32), or listen on 127.0.0.1",
            )
        self.token()
        self.tls()

    def token(self) -> bytes | None:
        """The bearer token, where one is compulsory. Raises SettingsError unless the file keeps it secret."""
        return None if self.token_file is None else token("http.token_file", self.token_file)

    def tls(self) -> ssl.SSLContext | None:
        """What TLS is spoken with, if it is. Raises SettingsError where certificate and key are no pair."""
        if self.certificate is None and self.key is None:
            return None
        if self.certificate is None or self.key is None:
            lacking = "http.certificate" if self.certificate is None else "http.key"
            raise SettingsError(lacking, "is missing", "TLS needs a certificate and its key, each in a PEM file")
        secret("http.key", self.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
            raise SettingsError(
                "http.certificate",
                f"{self.certificate} with {self.key} can't be used: {why}",
                "give a certificate chain in PEM and the unencrypted key that belongs to it",
            ) from None
        return context


def _no_password() -> str:
    raise ValueError("the key is encrypted")
