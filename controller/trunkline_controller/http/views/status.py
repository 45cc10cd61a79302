"""How the controller does, what an operator should mend, what dynamic control decided."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from pydantic import BaseModel, Field

from ...control import Alert, Decision, Status


class AlertView(BaseModel):
    """Something that an operator should mend."""

    at_s: float
    what: str
    remedy: str

    @staticmethod
    def of(alert: Alert) -> AlertView:
        return AlertView(at_s=alert.at_s, what=alert.what, remedy=alert.remedy)


class StatusView(BaseModel):
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

    @staticmethod
    def of(status: Status) -> StatusView:
        return StatusView(
            role=status.role,
            started_s=status.started_s,
            converged=status.converged,
            switches=status.switches,
            links=status.links,
            hosts=status.hosts,
            dynamic=status.dynamic,
            decisions=status.decisions,
            alerts=[AlertView.of(alert) for alert in status.alerts],
        )


class DecisionView(BaseModel):
    """A decision of dynamic control."""

    at_s: float
    job: str
    reducer: str
    host: str
    why: str
    from_queue: str
    to_queue: str

    @staticmethod
    def of(decision: Decision) -> DecisionView:
        return DecisionView(**asdict(decision))


class DecisionsView(BaseModel):
    """Decisions of dynamic control, newest first."""

    dynamic: bool = Field(description="Whether dynamic control is on")
    total: int
    decisions: list[DecisionView]


class HealthView(BaseModel):
    """The server answers."""

    status: Literal["ok"] = "ok"
