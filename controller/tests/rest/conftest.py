"""A served controller without switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import driver, page
from client import TOKEN, Client
from fake_control import FakeControl

from trunkline_controller.http import HttpServer, HttpSettings
from trunkline_controller.mirror.settings import MirrorSettings

__all__ = ["driver", "page"]


@pytest.fixture
def control() -> FakeControl:
    return FakeControl()


@pytest.fixture
def serve(control: FakeControl) -> Iterator[Callable[..., Client]]:
    """Starts servers on free ports with these settings."""
    servers = []

    def start(mirror: MirrorSettings | None = None, **settings: object) -> Client:
        server = HttpServer(control, HttpSettings(port=0, **settings), mirror)
        servers.append(server)
        server.start()
        return Client(server)

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def client(serve: Callable[..., Client]) -> Client:
    return serve()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path
