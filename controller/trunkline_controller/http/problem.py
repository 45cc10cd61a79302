"""What goes wrong, said as RFC 9457 has it: problem details in JSON, each with the way out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ..control import NotNow
from ..policy.model import PolicyError

MEDIA_TYPE = "application/problem+json"


class PolicyProblem(BaseModel):
    """One thing wrong with a policy file."""

    file: str
    line: int = Field(description="Counts from 1")
    what: str
    remedy: str


class Problem(BaseModel):
    """Problem details, RFC 9457."""

    type: str = Field("about:blank", description="about:blank: the status says what kind of problem it is")
    title: str = Field(description="The phrase of the HTTP status")
    status: int = Field(description="The HTTP status")
    detail: str = Field(description="What is wrong")
    remedy: str = Field(description="The way out")
    problems: list[PolicyProblem] = Field([], description="Of a refused policy: all that is wrong in it")
    why: str = Field("", description="Of a refused hop or poll: the reason in a word, as mirrors have it")


class Stop(Exception):
    """Ends a request with a problem."""

    def __init__(
        self, status: int, what: str, remedy: str, headers: dict[str, str] | None = None, *, why: str = ""
    ) -> None:
        super().__init__(f"{what}; {remedy}")
        self.why = why
        self.status = status
        self.what = what
        self.remedy = remedy
        self.headers = headers


def answer(
    status: int,
    what: str,
    remedy: str,
    headers: dict[str, str] | None = None,
    problems: tuple[PolicyProblem, ...] = (),
    *,
    why: str = "",
) -> JSONResponse:
    """The answer to a request that failed."""
    title = HTTPStatus(status).phrase
    said = Problem(title=title, status=status, detail=what, remedy=remedy, problems=list(problems), why=why)
    return JSONResponse(said.model_dump(exclude_defaults=True) | {"type": said.type}, status, headers, MEDIA_TYPE)


def of(error: Stop | NotNow) -> JSONResponse:
    """The answer to a request that this ends."""
    if isinstance(error, NotNow):
        return answer(409, error.what, error.remedy, why=error.why)
    return answer(error.status, error.what, error.remedy, error.headers, why=error.why)


def failed() -> JSONResponse:
    """The answer to a request at which the controller itself failed."""
    return answer(500, "the controller failed to answer", "its log says why; please report it")


def too_large(limit: int) -> JSONResponse:
    """The answer to a request whose body is longer than `limit` bytes; the rest of it is not read."""
    return answer(
        413,
        f"the request's body is longer than {limit} bytes",
        "send less at once; a policy is a short file: is it the right one?",
        {"Connection": "close"},
    )


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How OpenAPI describes the answers of these statuses."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in statuses
    }


def install(app: FastAPI, max_body_bytes: int) -> None:
    """Makes what is wrong with a request answer so."""

    @app.exception_handler(Exception)
    async def broken(_request: Request, _: Exception) -> JSONResponse:
        return failed()

    @app.exception_handler(Stop)
    async def stopped(_: Request, error: Stop) -> JSONResponse:
        return of(error)

    @app.exception_handler(PolicyError)
    async def refused_policy(_: Request, error: PolicyError) -> JSONResponse:
        problems = tuple(PolicyProblem(file=p.file, line=p.line, what=p.what, remedy=p.remedy) for p in error.problems)
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        return answer(422, f"the policy has {count}", "mend each; nothing was changed", problems=problems)

    @app.exception_handler(NotNow)
    async def not_now(_: Request, error: NotNow) -> JSONResponse:
        return of(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        kind = request.headers.get("content-type", "")
        if not kind.startswith("application/json") and any(e["loc"][0] == "body" for e in error.errors()):
            return answer(415, f"the Content-Type is {kind or 'missing'!r}", "send Content-Type: application/json")
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:8])
        return answer(422, wrong, "see the parameters of this path in /openapi.json")

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        if error.status_code == 404:
            return answer(404, f"there is nothing at {request.url.path}", "see /openapi.json for what there is")
        if error.status_code == 405:
            remedy = f"use {headers.get('Allow', 'another method')}"
            return answer(405, f"{request.method} does not apply to {request.url.path}", remedy, headers)
        if error.status_code == 413:
            return too_large(max_body_bytes)
        return answer(error.status_code, str(error.detail), "see /openapi.json", headers)
