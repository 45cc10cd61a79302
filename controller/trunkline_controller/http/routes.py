"""The paths under /v1, each a question to `Control` and a view of its answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request

from ..control import Control, FlowState, QueueMode
from ..flows.entry import Output
from ..net.topology import Dpid, End
from . import problem
from .problem import Stop
from .views.flows import FlowsView, FlowView
from .views.network import LinksView, TopologyView, parse_link
from .views.policy import (
    AppliedNowView,
    AppliedTextView,
    AppliedView,
    HistoryView,
    InForceView,
    PolicyView,
    PolicyWarningView,
)
from .views.queues import QueuesView, QueueTotalsView, QueueView
from .views.status import DecisionsView, DecisionView, StatusView

YAML = ("text/yaml", "application/yaml", "text/x-yaml", "application/x-yaml")
MAX_ROWS = 10_000

Limit = Annotated[int, Query(ge=1, le=MAX_ROWS, description="How many rows at most")]
Offset = Annotated[int, Query(ge=0, le=1 << 40, description="Rows to leave out first")]
DpidPath = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="Datapath id, 16 hex digits")]
FileName = Annotated[
    str,
    Query(max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", description="The policy file's name, for messages"),
]

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The policy file, UTF-8",
        "content": {kind: {"schema": {"type": "string"}} for kind in YAML[:2]},
    }
}
_REFUSALS = problem.responses(401, 403, 422)
_TAKES_BODY = problem.responses(400, 413, 415)


async def policy_text(request: Request) -> str:
    """The body of a request that carries a policy file."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in YAML:
        raise Stop(
            415,
            f"the Content-Type is {kind or 'missing'!r}, and a policy is YAML",
            "send Content-Type: text/yaml (curl: -H 'Content-Type: text/yaml' --data-binary @policy.yaml)",
        )
    body = await request.body()
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Stop(400, f"byte {error.start + 1} of the body is not UTF-8", "save the policy file as UTF-8") from None


PolicyText = Annotated[str, Depends(policy_text)]


def who(request: Request) -> str:
    """Who changes the policy, for its history: the client's address, and the program that it says it is."""
    address = request.client.host if request.client else "unknown address"
    agent = request.headers.get("user-agent", "")[:64]
    return f"{address}, {agent}" if agent and agent.isascii() and agent.isprintable() else address


Who = Annotated[str, Depends(who)]


def routes(control: Control) -> APIRouter:
    """All paths under /v1, on this controller."""
    router = APIRouter(prefix="/v1", responses=_REFUSALS)
    _network(router, control)
    _flows(router, control)
    _queues(router, control)
    _policy(router, control)
    return router


def _network(router: APIRouter, control: Control) -> None:
    @router.get("/status", tags=["network"])
    def status() -> StatusView:
        """How the controller does: role, whether switches have what they should, alerts."""
        return StatusView.of(control.status())

    @router.get("/topology", tags=["network"])
    def topology() -> TopologyView:
        """Switches with their ports, links between them, hosts."""
        return TopologyView.of(control.topology())

    @router.get("/links", tags=["network"])
    def links() -> LinksView:
        """All links, between switches and to hosts, with their loads in both directions."""
        return LinksView.of(control.topology(), control.loads())

    @router.get("/decisions", tags=["network"])
    def decisions(limit: Limit = 100) -> DecisionsView:
        """Decisions of dynamic control, newest first: which reducer, why, from which queue to which."""
        status, made = control.status(), control.decisions()
        shown = [DecisionView.of(decision) for decision in made[:limit]]
        return DecisionsView(dynamic=status.dynamic, total=max(status.decisions, len(made)), decisions=shown)


def _flows(router: APIRouter, control: Control) -> None:
    @router.get("/switches/{dpid}/flows", tags=["flows"], responses=problem.responses(404))
    def flows_of_switch(dpid: DpidPath, limit: Limit = 1000, offset: Offset = 0) -> FlowsView:
        """The controller's flow entries on a switch, with their counters."""
        try:
            states = control.flows(Dpid(int(dpid, 16)))
        except KeyError:
            raise Stop(404, f"no switch {dpid} is connected", "see /v1/topology for those that are") from None
        return _page(states, limit, offset)

    @router.get("/links/{link}/flows", tags=["flows"], responses=problem.responses(404))
    def flows_of_link(
        link: Annotated[str, Path(max_length=64, description="The id of a link, from /v1/links")],
        limit: Limit = 1000,
        offset: Offset = 0,
    ) -> FlowsView:
        """The flow entries that send over a link: at both ends, or at the switch's where it goes to hosts."""
        try:
            named = parse_link(link)
            states = _at_port(control, named) if isinstance(named, End) else control.flows_of(named)
        except (ValueError, KeyError):
            raise Stop(404, f"there is no link {link}", "see /v1/links for those that there are") from None
        return _page(states, limit, offset)


def _at_port(control: Control, end: End) -> tuple[FlowState, ...]:
    """Entries that send by a port toward hosts: no group has such a port."""
    if end.port not in control.topology().switches[end.dpid].ports:
        raise KeyError(end)
    return tuple(state for state in control.flows(end.dpid) if Output(end.port) in state.entry.actions)


def _page(states: tuple[FlowState, ...], limit: int, offset: int) -> FlowsView:
    ordered = sorted(states, key=lambda s: (s.dpid, s.entry.table, -s.entry.priority, repr(s.entry.match)))
    return FlowsView(total=len(states), flows=[FlowView.of(state) for state in ordered[offset : offset + limit]])


def _queues(router: APIRouter, control: Control) -> None:
    @router.get("/queues", tags=["queues"])
    def queues(
        dpid: Annotated[str | None, Query(pattern="^[0-9a-f]{16}$", description="Only of this switch")] = None,
        port: Annotated[int | None, Query(ge=0, le=0xFFFFFFFF, description="Only of ports with this number")] = None,
        mode: Annotated[
            list[QueueMode] | None, Query(max_length=len(QueueMode), description="Only where they take effect so")
        ] = None,
        limit: Limit = 1000,
        offset: Offset = 0,
    ) -> QueuesView:
        """The queues of each port, those that send most first: rates, counters, and how they take effect."""
        wanted = None if dpid is None else int(dpid, 16)
        states = [
            state
            for state in control.queues()
            if (wanted is None or state.end.dpid == wanted)
            and (port is None or state.end.port == port)
            and (mode is None or state.mode in mode)
        ]
        states.sort(key=lambda state: (-state.bit_s, state.end, state.number))
        known = control.topology()
        shown = [QueueView.of(state, known) for state in states[offset : offset + limit]]
        return QueuesView(total=len(states), queues=shown)

    @router.get("/queues/totals", tags=["queues"])
    def queue_totals() -> QueueTotalsView:
        """Each queue of the policy, summed over all ports that have it."""
        return QueueTotalsView.of(control.queues(), control.topology())


def _policy(router: APIRouter, control: Control) -> None:
    @router.get("/policy", tags=["policy"])
    def policy() -> InForceView:
        """The policy in force."""
        found = control.policy()
        if found is None:
            return InForceView(policy=None, applied=None)
        return InForceView(policy=PolicyView.of(found[0]), applied=AppliedView.of(found[1]))

    @router.put("/policy", tags=["policy"], openapi_extra=_BODY, responses=_TAKES_BODY | problem.responses(409))
    def apply(text: PolicyText, by: Who, name: FileName = "policy.yaml") -> AppliedNowView:
        """Puts a policy in force on all switches. A wrong one is refused whole, with each problem's line."""
        policy, applied = control.apply(text, name, by)
        return AppliedNowView(**AppliedView.of(applied).model_dump(), warnings=PolicyWarningView.all_of(policy))

    @router.delete("/policy", tags=["policy"], responses=problem.responses(409))
    def clear(by: Who) -> AppliedView:
        """Back to no policy: everything in the default queue."""
        return AppliedView.of(control.clear(by))

    @router.post("/policy/check", tags=["policy"], openapi_extra=_BODY, responses=_TAKES_BODY)
    def check(text: PolicyText, name: FileName = "policy.yaml") -> PolicyView:
        """Checks a policy, against the connected switches too, and changes nothing."""
        return PolicyView.of(control.check(text, name))

    @router.get("/policy/history", tags=["policy"])
    def history(limit: Limit = 100, offset: Offset = 0) -> HistoryView:
        """What was put in force, newest first."""
        before = control.history()
        return HistoryView(total=len(before), history=[AppliedView.of(a) for a in before[offset : offset + limit]])

    @router.get("/policy/history/{version}", tags=["policy"], responses=problem.responses(404))
    def version_of(version: Annotated[int, Path(ge=0, le=1 << 62)]) -> AppliedTextView:
        """One that was put in force, with its file."""
        for applied in control.history():
            if applied.version == version:
                return AppliedTextView.of(applied)
        raise Stop(404, f"no policy of version {version} is kept", "see /v1/policy/history for those that are")
