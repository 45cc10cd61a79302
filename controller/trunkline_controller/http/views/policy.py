"""Policies: in force, checked, and those before."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import BaseModel, Field

from ...policy.model import Policy
from . import View


class PolicyQueueView(View):
    """A queue that each port has."""

    name: str
    number: int
    dscp: int
    priority: int = Field(description="0 is served first, 7 last")


class ShareView(BaseModel):
    """What a queue has of a port."""

    queue: str
    min_bit_s: int
    max_bit_s: int
    min_percent: float | None = Field(description="Of the port's rate; null where bits a second are given")
    max_percent: float | None


class PortClassView(BaseModel):
    """Ports that are treated alike."""

    name: str
    rate_bit_s: int = Field(description="0: as the switch says")
    toward: str | None = Field(description="hosts or switches: the ports whose cables go there")
    ports: list[str] = Field(description="Or ports by name")
    glob: str = Field(description="Or ports whose name it matches: * any text, ? a character, [ab] one of these")
    shares: list[ShareView]


class RuleView(BaseModel):
    """Packets that belong to a category; what is null matches all."""

    category: str
    protocol: str | None
    source_role: str | None
    destination_role: str | None
    source: str | None
    destination: str | None
    source_port: int | None
    destination_port: int | None
    dscp: int | None
    trusted: bool = Field(description="Only from hosts whose marks are believed")


class PolicyWarningView(View):
    """Something in a policy that is allowed, and perhaps not meant."""

    line: int
    what: str
    remedy: str

    @staticmethod
    def all_of(policy: Policy) -> list[PolicyWarningView]:
        return [PolicyWarningView.of(warning) for warning in policy.warnings]


class PolicyView(BaseModel):
    """A checked policy."""

    name: str
    queues: list[PolicyQueueView]
    port_classes: list[PortClassView]
    categories: dict[str, str] = Field(description="The queue of each category")
    rules: list[RuleView] = Field(description="Tried in this order")
    roles: dict[str, list[str]] = Field(description="Addresses of the hosts that have a role")
    default_queue: str
    trusted: list[str] = Field(description="Addresses and prefixes of hosts whose DSCP marks are believed")
    max_entries: int = Field(description="Flow entries that it may cost each switch")
    warnings: list[PolicyWarningView]
    text: str = Field(description="The file as it was written")

    @staticmethod
    def of(policy: Policy) -> PolicyView:
        return PolicyView(
            name=policy.name,
            queues=[PolicyQueueView.of(q) for q in sorted(policy.queues.values(), key=lambda queue: queue.number)],
            port_classes=[
                PortClassView(
                    name=c.name,
                    rate_bit_s=c.rate_bit_s,
                    toward=None if c.toward is None else str(c.toward),
                    ports=list(c.ports),
                    glob=c.glob,
                    shares=[ShareView(queue=queue, **asdict(share)) for queue, share in c.shares.items()],
                )
                for c in policy.port_classes.values()
            ],
            categories=dict(policy.categories),
            rules=[RuleView(**asdict(rule)) for rule in policy.rules],
            roles={str(role): list(addresses) for role, addresses in policy.roles.items()},
            default_queue=policy.default_queue,
            trusted=list(policy.trusted),
            max_entries=policy.max_entries,
            warnings=PolicyWarningView.all_of(policy),
            text=policy.text,
        )


class AppliedView(View):
    """A policy that was put in force."""

    version: int
    name: str = Field(description="Of the policy; empty where it was cleared")
    at_s: float
    by: str
    flows_changed: int = Field(description="On all switches")


class AppliedNowView(AppliedView):
    """A policy that was just put in force, and what in its file is perhaps not meant."""

    warnings: list[PolicyWarningView]


class AppliedTextView(AppliedView):
    """A policy that was put in force, with its file."""

    text: str


class InForceView(BaseModel):
    """The policy in force; null where there is none and everything is in the default queue."""

    policy: PolicyView | None
    applied: AppliedView | None


class HistoryView(BaseModel):
    """What was put in force, newest first."""

    total: int
    history: list[AppliedView]
