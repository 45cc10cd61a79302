"""HTTP GET of a service that may be slow, broken or hostile: bounded in time and bytes, redirected nowhere else."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from types import TracebackType
from urllib.parse import urljoin, urlsplit

MOST_REDIRECTS = 3
_OWN_PATHS = ("/ws/v1/cluster/", "/proxy/")  # of a ResourceManager, that it may redirect to
_CHUNK = 1 << 16


class RestError(Exception):
    """No usable answer; says of what and why."""


class Unusable(RestError):
    """An answer came, and is no good: another status, too long, or redirected elsewhere."""


class Rest:
    """Connections to one service, for one caller at a time, for the length of a `with` block.

    All that is asked for in the block together takes `timeout_s` at most, and each answer `max_bytes`.
    """

    def __init__(self, base: str, timeout_s: float, max_bytes: int, tls: ssl.SSLContext | None = None) -> None:
        """`base` is like http://rm:8088. Raises ValueError where it is not."""
        parts = urlsplit(base)
        rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username
        if parts.scheme not in ("http", "https") or not parts.hostname or rest or _origin(base)[2] < 0:
            raise ValueError(f"{base!r} is no address of a ResourceManager; write it as http://rm.example:8088")
        self.base = f"{parts.scheme}://{parts.netloc}"
        self._origin = _origin(self.base)
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._tls = tls
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None  # what an answer is read from, also when the connection let go of it
        self._over = threading.Event()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Rest:
        self._over.clear()
        # A socket's timeout is for each read: a peer that gives a byte a second would never meet it.
        self._timer = threading.Timer(self._timeout_s, self._end)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer:
            self._timer.cancel()
        self._close()

    def get(self, path: str) -> bytes:
        """The body of a 200. Raises RestError."""
        for _ in range(1 + MOST_REDIRECTS):
            status, location, body = self._once(path)
            if status == 200:
                return body
            if status not in (301, 302, 303, 307, 308):
                raise Unusable(f"{self._url(path)} answers {status}")
            path = self._redirected(path, location)
        raise Unusable(f"{self.base} redirects more than {MOST_REDIRECTS} times")

    def _redirected(self, path: str, location: str) -> str:
        try:
            target = urljoin(self.base + path, location)
            parts = urlsplit(target)
            own = _origin(target) == self._origin and parts.path.startswith(_OWN_PATHS) and ".." not in parts.path
        except ValueError:  # no URL at all
            own = False
        if not own:
            raise Unusable(f"{self._url(path)} redirects to {location[:200]!a}, which is not its own")
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def _once(self, path: str) -> tuple[int, str, bytes]:
        """Status, Location and body."""
        try:
            connection = self._connected()
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            body = self._body(path, answer) if answer.status == 200 else b""
            if answer.status != 200:
                self._close()
            return answer.status, answer.headers.get("Location", ""), body
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._close()
            raise RestError(f"{self._url(path)}: {self._why(error)}") from error
        except RestError:
            self._close()
            raise

    def _body(self, path: str, answer: http.client.HTTPResponse) -> bytes:
        if (answer.length or 0) > self._max_bytes:
            raise Unusable(f"{self._url(path)} answers with {answer.length} bytes, above {self._max_bytes}")
        found = bytearray()
        while chunk := answer.read1(_CHUNK):
            found += chunk
            if len(found) > self._max_bytes:
                raise Unusable(f"{self._url(path)} answers with more than {self._max_bytes} bytes")
        if self._over.is_set() or (answer.length or 0) > 0:
            raise RestError(f"{self._url(path)}: its answer broke off")
        answer.close()  # the connection can take the next request
        return bytes(found)

    def _url(self, path: str) -> str:
        """What people are told was asked for."""
        return self.base + path.partition("?")[0]

    def _connected(self) -> http.client.HTTPConnection:
        if self._over.is_set():
            raise TimeoutError
        if self._connection is None or self._connection.sock is None:
            parts = urlsplit(self.base)
            assert parts.hostname is not None
            if parts.scheme == "https":
                tls = self._tls or ssl.create_default_context()
                made: http.client.HTTPConnection = http.client.HTTPSConnection(
                    parts.hostname, parts.port, timeout=self._timeout_s, context=tls
                )
            else:
                made = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self._timeout_s)
            self._connection = made
            made.connect()
            self._socket = made.sock
        return self._connection

    def _why(self, error: Exception) -> str:
        if self._over.is_set() or isinstance(error, TimeoutError):
            return f"no whole answer within {self._timeout_s:g} s"
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return "".join(char if char.isprintable() else "?" for char in said)[:200]

    def _end(self) -> None:
        """Time is up: whoever waits for a byte gets none."""
        self._over.set()
        connection = self._connection
        for waiting in (self._socket, connection.sock if connection else None):
            if waiting is not None:
                with contextlib.suppress(OSError):
                    waiting.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = self._socket = None


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, (parts.hostname or "").lower(), port or {"http": 80, "https": 443}.get(parts.scheme, -1)
