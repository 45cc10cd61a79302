"""The application served by uvicorn, in a thread of its own."""

from __future__ import annotations

import functools
import logging
import socket
import threading

import uvicorn

from ..listener import Listener
from ..mirror.settings import MirrorSettings
from ..refusal import SettingsError
from .agent import Polls
from .app import Served, create_app
from .connection import MAX_HEADER_BYTES, Connection
from .settings import HttpSettings

log = logging.getLogger(__name__)

STOP_S = 2  # for answers under way when the server stops
LOOKS_PER_SWEEP = 5  # uvicorn looks around ten times a second


class HttpServer:
    """A controller's HTTP server. `start` fails with SettingsError before anything listens; `stop` may be repeated."""

    def __init__(self, control: Served, settings: HttpSettings, mirror: MirrorSettings | None = None) -> None:
        self.settings = settings
        self._mirror = mirror
        self._control = control
        self._polls = Polls()
        self._listener: Listener | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The TCP port that is listened on."""
        if self._listener is None:
            raise RuntimeError("the HTTP server has not been started")
        return self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        """Where the page is."""
        address = self.settings.address
        host = f"[{address}]" if ":" in address else address
        return f"{'https' if self.settings.is_tls else 'http'}://{host}:{self.port}/"

    def start(self) -> None:
        """Listens, and returns when requests are answered."""
        settings = self.settings
        settings.check()
        app = create_app(self._control, settings, self._polls, self._mirror)
        try:
            self._listener = Listener(settings.address, settings.port, settings.max_connections)
        except OSError as error:
            raise SettingsError(
                "http.port",
                f"can't listen on {settings.address} port {settings.port}: {error.strerror}",
                "end the program that has the port, or choose another (0 takes a free one)",
            ) from None
        config = uvicorn.Config(
            app,
            http=functools.partial(Connection, self._listener),  # type: ignore[arg-type]
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=128,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            timeout_graceful_shutdown=STOP_S,
        )
        # What strangers send wrong is answered, not logged.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        config.load()
        config.ssl = settings.tls()
        self._server = _Server(config, self._listener, settings.patience_s)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), name="http", daemon=True)
        self._thread.start()
        self._server.is_up.wait()
        if not self._server.started:
            self.stop()
            raise RuntimeError(f"the HTTP server at {settings.address} port {settings.port} did not start")
        log.info("HTTP at %s%s", self.url, "" if settings.token_file else ", without a token")
        if not settings.is_loopback and not settings.is_tls:
            log.warning(
                "HTTP at %s is not encrypted, so the token can be read on the way; set http.certificate and http.key",
                self.url,
            )

    def stop(self) -> None:
        """Stops listening and ends all connections; answers under way have two seconds."""
        server, thread = self._server, self._thread
        self._server = self._thread = None
        if server is not None and thread is not None:
            self._polls.end()
            server.should_exit = True
            thread.join()
        if self._listener is not None:
            self._listener.close()


class _Server(uvicorn.Server):
    """Says when it listens, and sweeps out connections whose clients have stalled."""

    def __init__(self, config: uvicorn.Config, listener: Listener, patience_s: float) -> None:
        super().__init__(config)
        self.listener = listener
        self.patience_s = patience_s
        self.is_up = threading.Event()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self.is_up.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % LOOKS_PER_SWEEP == 0:
            self.listener.end_late(self.patience_s)
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.end_if_stalled(self.patience_s)
        return await super().on_tick(counter)
