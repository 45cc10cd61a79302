"""What every request passes before the application: who asks, how much it sends; and what every answer carries."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import access, problem
from .metrics import Requests

MAX_BODY_BYTES = 256 * 1024
"""Of a request. A policy of a few hundred rules is a tenth of it."""

OPEN = frozenset({"/healthz", "/openapi.json"})
"""Answered without a token, as the page's own files are: they tell nothing of the network."""

# The page takes scripts, styles and data from here alone, and nobody may frame or embed what is here.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, token: bytes | None, hosts: Iterable[str], requests: Requests) -> None:
        self.app = app
        self.token = token
        self.hosts = tuple(hosts)
        self.requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                self.requests.count(scope, message["status"])
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, sent)
            return
        await _Measured(self.app, receive, sent).run(scope)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = scope["headers"]
        refusal = access.refusal(headers, scope["scheme"], self.hosts)
        if refusal is not None:
            return problem.answer(refusal.status, refusal.what, refusal.remedy)
        if _needs_token(scope["path"]) and not access.is_authorised(headers, self.token):
            return problem.answer(
                401,
                "a bearer token is required",
                "send Authorization: Bearer with what is in the controller's http.token_file"
                " (trunkline qos: --token-file)",
                {"WWW-Authenticate": 'Bearer realm="trunkline-controller"'},
            )
        lengths = [value for name, value in headers if name == b"content-length"]
        if any(int(length) > MAX_BODY_BYTES for length in lengths):
            return _too_large()
        return None


def _needs_token(path: str) -> bool:
    return path not in OPEN and (path.startswith("/v1") or path == "/metrics")


def _too_large() -> ASGIApp:
    return problem.answer(
        413,
        f"the request's body is longer than {MAX_BODY_BYTES} bytes",
        "a policy is a short file: is it the right one?",
        {"Connection": "close"},
    )


class _TooLarge(Exception):
    """More came than a request may have."""


class _Measured:
    """Runs an application whose request stops at the limit, also where no length was announced."""

    def __init__(self, app: ASGIApp, receive: Receive, send: Send) -> None:
        self.app = app
        self._receive = receive
        self._send = send
        self.received = 0
        self.is_answered = False

    async def run(self, scope: Scope) -> None:
        try:
            await self.app(scope, self.receive, self.send)
        except _TooLarge:
            if not self.is_answered:
                await _too_large()(scope, self._receive, self._send)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            if self.received > MAX_BODY_BYTES:
                raise _TooLarge
        return message

    async def send(self, message: Message) -> None:
        self.is_answered = True
        await self._send(message)
