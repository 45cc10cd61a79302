"""The application: REST under /v1, /openapi.json, /healthz, /metrics and the page, behind one gate. What is in a hurry
does not pass through the framework.
"""

from __future__ import annotations

from typing import Protocol

from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from prometheus_client import CollectorRegistry, generate_latest
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.types import ASGIApp

from .. import __version__
from ..control import AgentControl, Control, MirrorControl
from ..mirror.settings import MirrorSettings
from . import problem
from .agent import Polls, agent
from .assets import assets
from .gate import MAX_BODY_BYTES, Gate
from .metrics import NetworkCollector, Requests
from .mirror_agents import mirror_agents, quick_mirror_agents
from .mirror_metrics import MirrorCollector
from .mirror_switches import mirror_switches, quick_mirror_switches
from .mirrors import mirrors, quick_mirrors
from .quick import Quick
from .routes import routes
from .settings import HttpSettings
from .tokens import Tokens
from .views.status import HealthView

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Served(Control, AgentControl, MirrorControl, Protocol):
    """What is served: what people, programs, agents at switches and pipelines ask of a controller."""


def create_app(
    control: Served, settings: HttpSettings, polls: Polls | None = None, mirror: MirrorSettings | None = None
) -> ASGIApp:
    """The application on a controller. Raises SettingsError. Who stops it ends the `polls` first. `mirror` says who may
    announce pipelines and be an agent, besides operators.
    """
    mirror = mirror or MirrorSettings()
    tokens = Tokens(settings.token(), mirror.announce_token(), mirror.permitted())
    registry = CollectorRegistry()
    registry.register(NetworkCollector(control))
    registry.register(MirrorCollector(control))
    app = FastAPI(
        title="Trunkline controller",
        version=__version__,
        summary="The OpenFlow controller that knows Hadoop's traffic",
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    problem.install(app, MAX_BODY_BYTES)
    polls = polls or Polls()
    # First what is asked most, and in a hurry: paths are looked through in this order.
    app.include_router(mirrors(control, control.topology))
    app.include_router(mirror_agents(control, polls))
    app.include_router(mirror_switches(control, polls))
    app.include_router(agent(control, polls))
    app.include_router(routes(control))

    @app.get("/healthz", tags=["operation"])
    async def healthz() -> HealthView:
        """Whether the server answers; asks nothing of the network."""
        return HealthView()

    @app.get("/metrics", tags=["operation"], responses=problem.responses(401, 403), response_class=Response)
    def metrics() -> Response:
        """Counters and gauges for Prometheus."""
        return Response(generate_latest(registry), media_type=METRICS_TYPE)

    app.include_router(assets())
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES)
    in_a_hurry = quick_mirrors(control), quick_mirror_agents(control, polls), quick_mirror_switches(control, polls)
    quick = Quick(app, in_a_hurry)
    return Gate(quick, tokens=tokens, hosts=(*settings.hosts, settings.address), requests=Requests(registry))


def _openapi(app: FastAPI) -> dict[str, object]:
    """FastAPI's description, with problems as the answer to what fails and the token as a way in."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        components = schema.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        described = problem.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= described.pop("$defs", {}) | {"Problem": described}
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{}, {"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema
