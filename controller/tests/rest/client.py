"""A client of the controller's HTTP server that says what it likes: right requests and wrong ones."""

from __future__ import annotations

import json
import socket
import ssl
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection
from typing import Any

from trunkline_controller.http import HttpServer

PATIENCE_S = 60.0
TOKEN = "correct-horse-battery-staple"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Client:
    """Asks a server; `headers` go with each request."""

    server: HttpServer
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Answer:
        """Headers are written with underscores for dashes."""
        address, port = self.server.settings.address, self.server.port
        if self.tls is None:
            connection = HTTPConnection(address, port, timeout=PATIENCE_S)
        else:
            connection = HTTPSConnection(address, port, timeout=PATIENCE_S, context=self.tls)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, self.headers | named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def put_policy(self, text: bytes | str, path: str = "/v1/policy", **headers: str) -> Answer:
        method = "POST" if path.startswith("/v1/policy/check") else "PUT"
        return self.ask(method, path, text, **({"Content_Type": "text/yaml"} | headers))

    def connect(self) -> socket.socket:
        """A connection to write bytes on."""
        return socket.create_connection((self.server.settings.address, self.server.port), PATIENCE_S)

    def raw(self, request: bytes) -> bytes:
        """All that comes back for these bytes until the server closes."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found
