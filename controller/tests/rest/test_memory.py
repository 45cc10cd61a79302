"""What strangers send costs the server a bounded amount of memory."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SERVER = """
import sys
from pathlib import Path
from fake_control import FakeControl
from trunkline_controller.http import HttpServer, HttpSettings
server = HttpServer(FakeControl(), HttpSettings(port=0, token_file=Path(sys.argv[1])))
server.start()
print(server.port, flush=True)
sys.stdin.read()
server.stop()
"""
PATIENCE_S = 60.0
CONNECTIONS = 120  # of the 128 that one address may have
SENT_BYTES = 1 << 20  # on each of them
BUDGET_KIB = 32 * 1024  # a quarter of what is sent


class Process:
    """A server in a process of its own, so that its memory is nobody else's."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.pid = process.pid
        assert process.stdout is not None
        self.port = int(process.stdout.readline())

    def peak_kib(self) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])

    def ask(self, method: str, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        finally:
            connection.close()


@pytest.fixture
def server(token_file: Path) -> Iterator[Process]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))}
    command = [sys.executable, "-c", SERVER, str(token_file)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ",
        b"PUT /v1/policy HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/yaml\r\nContent-Length: 200000\r\n\r\n",
        b"PUT /v1/policy HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    ],
    ids=["headers", "body", "chunks", "lies"],
)
def test_connections_full_of_bytes(server: Process, head: bytes):
    before = _settled(server)
    connections = [socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) for _ in range(CONNECTIONS)]
    try:
        for connection in connections:
            connection.settimeout(0.05)
            # It may take what we send, stop reading, or end the connection.
            with contextlib.suppress(OSError):
                connection.sendall(head + b"a" * SENT_BYTES)
        assert server.ask("GET", "/healthz") == 200
        assert server.peak_kib() - before < BUDGET_KIB
    finally:
        for connection in connections:
            connection.close()


def test_requests_for_what_is_not_there(server: Process):
    before = _settled(server)
    for n in range(2000):
        assert server.ask(f"M{n}" if n % 2 else "GET", f"/{n}/{'a' * 1000}") in {404, 405}
        if n % 10 == 0:
            assert server.ask("GET", f"/v1/links/{n}/flows") == 401
    assert server.peak_kib() - before < BUDGET_KIB // 4


def _settled(server: Process) -> int:
    """The peak so far, when all that is imported late has been."""
    for path in ("/", "/openapi.json", "/metrics", "/nothing"):
        server.ask("GET", path)
    return server.peak_kib()
