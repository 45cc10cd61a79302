"""Agents at the hosts of replicas: what each should do for which connections, by long polls."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field
from starlette.types import Scope

from ..control import MirrorControl
from ..mirror.agents import MAX_ADDRESSES, AgentState, MirroredFlow, NotTaken, Poll, Told, TooMany
from ..mirror.entries import Connection, address_text
from ..mirror.model import Head
from ..text import printable
from . import problem
from .agent import Polls, unless_ended
from .gate import CALLER
from .mirrors import MAX_ID, NO_ADDRESS, EndView, connection_of
from .problem import Stop
from .quick import QuickRoute
from .tokens import Caller

PATH = "/v1/mirror-agents"
NAME, MAX_NAME = "[A-Za-z0-9._-]", 255
MAX_WAIT_MS = 30_000
MAX_HEADS = MAX_FAILED = 1024
MAX_WHY = 255
MAX_RUN = 64


class HeadView(BaseModel):
    """Where the stream begins in a connection whose segments are copied, as its agent has read it there. Of another
    connection than the one that is copied now nothing is taken.
    """

    id: str = Field(max_length=MAX_ID, description="Of the mirror")
    zero: int = Field(ge=0, lt=1 << 32, description="TCP sequence number of the first octet after the set-up")
    source: EndView = Field(description="Of the connection: who opened it, as the flow's `receive` has it")
    destination: EndView

    def head(self) -> Head:
        """Raises ValueError for what is no IP address."""
        return Head(self.id, connection_of(self.source, self.destination), self.zero)


class FailedView(BaseModel):
    """A flow that the agent can't take its part in."""

    id: str = Field(max_length=MAX_ID, description="Of the mirror, which is refused then")
    why: str = Field(max_length=MAX_WHY, description="For people")


class AgentPollView(BaseModel):
    """What an agent says."""

    run: str = Field(
        min_length=1, max_length=MAX_RUN, pattern=r"^[A-Za-z0-9._:-]+$", description="Which run of the agent says so"
    )
    addresses: list[Annotated[str, Field(max_length=64)]] = Field(
        min_length=1, max_length=MAX_ADDRESSES, description="Its host's IP addresses"
    )
    seen: int = Field(0, ge=0, lt=1 << 63, description="The version that the last answer had; 0: none")
    controller: str = Field("", max_length=MAX_RUN, description="The controller's run, as the last answer had it")
    wait_ms: int = Field(
        0,
        ge=0,
        le=MAX_WAIT_MS,
        description="To wait for another version, in milliseconds: half a lease at most",
    )
    heads: list[HeadView] = Field(
        default_factory=list,
        max_length=MAX_HEADS,
        description="Of flows that it leads and knows the start of; while they are listed, as often as it likes",
    )
    failed: list[FailedView] = Field(default_factory=list, max_length=MAX_FAILED)
    leaving: bool = Field(
        False, description="It stops: no copies to its host any more. Waits for the switches to confirm that"
    )

    def poll(self, name: str, controller: str) -> Poll:
        """Raises ValueError for what is no IP address."""
        return Poll(
            name,
            self.run,
            frozenset(map(address_text, self.addresses)),
            self.seen if self.controller == controller else -1,
            tuple(head.head() for head in self.heads),
            {failed.id: printable(failed.why, MAX_WHY) for failed in self.failed},
            self.leaving,
        )


class ConnectionView(BaseModel):
    """A TCP connection, in the direction of the block."""

    source: EndView
    destination: EndView

    @staticmethod
    def of(connection: Connection) -> ConnectionView:
        return ConnectionView(
            source=EndView(address=connection.source, port=connection.source_port),
            destination=EndView(address=connection.destination, port=connection.destination_port),
        )


class MirroredFlowView(BaseModel):
    """A pipeline in which the agent's host has a replica."""

    id: str = Field(description="Of the mirror")
    position: int = Field(description="Of the replica in the pipeline, from 1")
    receive: ConnectionView = Field(description="The connection that brings the block to this replica")
    send: ConnectionView | None = Field(description="To the next replica, which has copies too; null at the last")
    lead: bool = Field(description="`receive` is the connection that is copied: report where its stream begins")
    head: int | None = Field(
        description="Sequence number at which the stream begins in the connection that is copied; null: not known yet, "
        "or this is that connection"
    )

    @staticmethod
    @lru_cache(maxsize=16384)  # an agent is told all of its flows whenever one changes
    def of(flow: MirroredFlow) -> MirroredFlowView:
        return MirroredFlowView(
            id=flow.id,
            position=flow.position,
            receive=ConnectionView.of(flow.receive),
            send=None if flow.send is None else ConnectionView.of(flow.send),
            lead=flow.lead,
            head=flow.head,
        )


class ToldView(BaseModel):
    """All that an agent should take part in: what is no longer in it has ended."""

    controller: str = Field(description="Which run of the controller says so; versions of another are others")
    seen: int = Field(description="The version of this, for the next poll")
    lease_s: float = Field(description="An agent that has not polled for so long is taken for gone")
    flows: list[MirroredFlowView]
    stopped: bool | None = Field(
        None,
        description="Of one that leaves: whether connected switches have confirmed that they send its host no copies",
    )

    @staticmethod
    def of(told: Told, controller: str) -> ToldView:
        return ToldView(
            controller=controller,
            seen=told.version,
            lease_s=told.lease_s,
            flows=[MirroredFlowView.of(flow) for flow in told.flows],
            stopped=told.stopped,
        )


class MirrorAgentView(BaseModel):
    """An agent that is there."""

    name: str
    addresses: list[str]
    pipelines: int = Field(description="Mirrored pipelines that its host has a replica of")
    polled_ago_s: float

    @staticmethod
    def of(agent: AgentState) -> MirrorAgentView:
        return MirrorAgentView(
            name=agent.name,
            addresses=list(agent.addresses),
            pipelines=agent.pipelines,
            polled_ago_s=round(agent.polled_ago_s, 3),
        )


class MirrorAgentsView(BaseModel):
    """All agents that are there, by name."""

    agents: list[MirrorAgentView]


Name = Annotated[str, Path(max_length=MAX_NAME, pattern=f"^{NAME}+$", description="The agent's, as its host's name")]


async def _answer(control: MirrorControl, polls: Polls, name: str, said: AgentPollView, caller: Caller) -> ToldView:
    """Raises Stop or NotNow."""
    try:
        poll = said.poll(name, polls.run)
    except ValueError as error:
        raise Stop(422, str(error), NO_ADDRESS) from None
    _check_claims(poll, caller)
    try:
        return ToldView.of(await _told(control, polls, poll, said.wait_ms / 1000), polls.run)
    except TooMany as error:
        raise Stop(503, str(error), "ask again later", {"Retry-After": str(MAX_WAIT_MS // 1000)}) from None
    except NotTaken as error:
        raise Stop(409, error.what, error.remedy, why=error.why) from None


def quick_mirror_agents(control: MirrorControl, polls: Polls) -> QuickRoute:
    """Polls: of each block those of all of its replicas are answered, while the next one's pipeline is armed."""

    async def answer(name: str, said: AgentPollView, scope: Scope) -> ToldView:
        return await _answer(control, polls, name, said, scope[CALLER])

    return QuickRoute(f"{PATH}/{{name}}", re.compile(f"{PATH}/({NAME}{{1,{MAX_NAME}}})"), AgentPollView, answer)


def mirror_agents(control: MirrorControl, polls: Polls) -> APIRouter:
    """The paths of agents at replicas' hosts."""
    router = APIRouter(prefix=PATH, tags=["mirrors"], responses=problem.responses(401, 403, 422))

    @router.post("/{name}", responses=problem.responses(409, 413, 415, 503))
    async def poll_mirrors(name: Name, said: AgentPollView, request: Request) -> ToldView:
        """Says that an agent is there, and which flows are its; waits while these are as it has seen them."""
        return await _answer(control, polls, name, said, request.scope[CALLER])

    @router.get("")
    def mirror_agents_there() -> MirrorAgentsView:
        """Agents that are there, by name."""
        there = sorted(control.mirror_agents(), key=lambda agent: agent.name)
        return MirrorAgentsView(agents=[MirrorAgentView.of(agent) for agent in there])

    return router


def _check_claims(poll: Poll, caller: Caller) -> None:
    """An agent with a token of its own claims addresses of its own."""
    if caller.agent is not None and (foreign := caller.agent.foreign(poll.addresses)):
        raise Stop(
            403,
            f"agent {poll.name} may not claim {', '.join(foreign)}",
            "add what is missing to its addresses in the file that mirror.agents of the controller names, and restart "
            "that, or leave the interface out of agent.interfaces",
            why="address_not_permitted",
        )


async def _told(control: MirrorControl, polls: Polls, poll: Poll, wait_s: float) -> Told:
    """The controller's answer, unless the server ends before."""
    return await unless_ended(polls, control.mirror_poll(poll, wait_s))
