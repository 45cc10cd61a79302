"""The files of the web page, read once at the start: no request ever names a file of the disk."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter, Request, Response

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def assets() -> APIRouter:
    """The page at /, what it is made of beside it."""
    router = APIRouter(include_in_schema=False)
    for file in sorted((files(__package__) / "page").iterdir(), key=lambda found: found.name):
        kind = TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            _serve(router, path, file.read_bytes(), kind)
    return router


def _serve(router: APIRouter, path: str, content: bytes, kind: str) -> None:
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    @router.api_route(path, methods=["GET", "HEAD"])
    async def asset(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)
