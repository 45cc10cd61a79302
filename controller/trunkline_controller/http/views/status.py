"""How the controller does, what an operator should mend, what dynamic control decided."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from . import View


class AlertView(View):
    """Something that an operator should mend."""

    at_s: float
    what: str
    remedy: str


class StatusView(View):
    """How the controller does."""

    role: str = Field(description="OpenFlow's: master, standby (another controller is master) or none")
    started_s: float
    converged: bool = Field(description="Every connected switch has the flow entries that it should")
    switches: int
    links: int
    hosts: int
    dynamic: bool = Field(description="Whether dynamic control may lift reducers' flows")
    decisions: int = Field(description="Of dynamic control since the start")
    alerts: list[AlertView]


class DecisionView(View):
    """A decision of dynamic control."""

    at_s: float
    job: str
    reducer: str
    host: str
    why: str
    from_queue: str
    to_queue: str


class DecisionsView(BaseModel):
    """Decisions of dynamic control, newest first."""

    dynamic: bool = Field(description="Whether dynamic control is on")
    total: int
    decisions: list[DecisionView]


class HealthView(BaseModel):
    """The server answers."""

    status: Literal["ok"] = "ok"
