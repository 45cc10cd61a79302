"""Paths that are asked in a hurry, answered without the framework, which takes many times as long as what is asked.

The models of bodies and answers are the framework's own. A request that is not as it should be is handed on to the
framework's route for the same path, which finds the same, and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..control import NotNow
from . import problem
from .gate import MAX_BODY_BYTES
from .problem import Stop

JSON = "application/json"
_KIND, _LENGTH, _CODING = (b"content-type", JSON.encode()), b"content-length", b"transfer-encoding"


@dataclass(frozen=True)
class QuickRoute:
    """A POST of JSON. `path` is as the framework's route has it; `pattern` matches it, and each of its groups is a
    parameter. `answer` gets these, the body, and the request's scope.
    """

    path: str
    pattern: re.Pattern[str]
    body: type[BaseModel]
    answer: Callable[..., Awaitable[BaseModel]]


class Quick:
    """ASGI middleware around the framework, within the gate, which has looked at the length that a body has."""

    def __init__(self, app: ASGIApp, routes: tuple[QuickRoute, ...]) -> None:
        self.app = app
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route, parameters = self._route(scope)
        if route is None:
            await self.app(scope, receive, send)
            return
        try:
            body = await _read(receive)
        except _TooLarge:
            scope["route"] = route
            await problem.too_large(MAX_BODY_BYTES)(scope, receive, send)
            return
        if body is None:
            return  # the client is gone
        try:
            said: Any = route.body.model_validate_json(body)
        except ValueError:
            await self.app(scope, _again(body, receive), send)
            return
        scope["route"] = route  # as the framework has it: answers are counted by its path
        try:
            view = await route.answer(*parameters, said, scope)
        except (Stop, NotNow) as error:
            answer: Response = problem.of(error)
        else:
            answer = Response(view.model_dump_json(), media_type=JSON)
        await answer(scope, receive, send)

    def _route(self, scope: Scope) -> tuple[QuickRoute | None, tuple[str, ...]]:
        if scope["type"] == "http" and scope["method"] == "POST":
            for route in self.routes:
                if (found := route.pattern.fullmatch(scope["path"])) is not None and _is_json(scope):
                    return route, found.groups()
        return None, ()


def _is_json(scope: Scope) -> bool:
    """And its length is said, and holds: beside Transfer-Encoding it counts for nothing (RFC 9112, 6.3)."""
    headers = scope["headers"]
    names = {name for name, _ in headers}
    return _KIND in headers and _LENGTH in names and _CODING not in names


class _TooLarge(Exception):
    """A body is longer than MAX_BODY_BYTES; the rest of it is not read."""


async def _read(receive: Receive) -> bytes | None:
    """The body, unless the client has gone. Raises _TooLarge."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and what comes after it."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return whole.pop() if whole else await receive()

    return received
