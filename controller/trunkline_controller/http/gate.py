"""What every request passes before the application: who asks, how much it sends; and what every answer carries."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import access, problem
from .metrics import Requests
from .tokens import Tokens

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 256 * 1024
"""Of a request. A policy of a few hundred rules is a tenth of it."""

OPEN = frozenset({"/healthz", "/openapi.json"})
"""Answered without a token, as the page's own files are: they tell nothing of the network."""

CALLER = "trunkline.caller"
"""In a request's scope: whose token it carries, of those that need one."""

_CHALLENGES = {401: {"WWW-Authenticate": 'Bearer realm="trunkline-controller"'}}

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

_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_NAMES = frozenset(name for name, _ in _HEADERS)


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens, hosts: Iterable[str], requests: Requests) -> None:
        self.app = app
        self.tokens = tokens
        self.hosts = tuple(hosts)
        self.requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        is_answered = is_whole = False

        async def sent(message: Message) -> None:
            nonlocal is_answered, is_whole
            if message["type"] == "http.response.start":
                is_answered = True
                message["headers"] = _with_ours(message.get("headers", ()))
                self.requests.count(scope, message["status"])
            elif message["type"] == "http.response.body":
                is_whole = not message.get("more_body", False)
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await refused(scope, receive, sent)
            return
        try:
            await self.app(scope, receive, sent)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            if is_answered and not is_whole:
                raise
            if not is_answered:
                await problem.failed()(scope, receive, sent)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = scope["headers"]
        refusal = access.refusal(headers, scope["scheme"], self.hosts)
        if refusal is not None:
            return problem.answer(refusal.status, refusal.what, refusal.remedy)
        if _needs_token(scope["path"]):
            caller = self.tokens.caller(headers, scope["method"], scope["path"])
            if isinstance(caller, access.Refusal):
                return problem.answer(caller.status, caller.what, caller.remedy, _CHALLENGES.get(caller.status))
            scope[CALLER] = caller
        lengths = [value for name, value in headers if name == b"content-length"]
        if any(int(length) > MAX_BODY_BYTES for length in lengths):
            return problem.too_large(MAX_BODY_BYTES)
        return None


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    found = [pair for pair in headers if pair[0].lower() not in _NAMES]
    if not any(name.lower() == b"cache-control" for name, _ in found):
        found.append((b"cache-control", b"no-store"))
    return found + _HEADERS


def _needs_token(path: str) -> bool:
    return path not in OPEN and (path.startswith("/v1") or path == "/metrics")
