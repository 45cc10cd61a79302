"""Agents of Linux bridges that mirror: what each is to copy, by long polls in which they tell of their network."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.types import Scope

from ..control import MirrorControl
from ..mirror.agents import TooMany
from ..mirror.bridge import BridgePoll, BridgeState, BridgeTold
from ..mirror.bridge_entries import Copies, Copy, Segments
from ..mirror.entries import Connection, address_text
from ..net.topology import Dpid, Mac, Port, PortNo, dpid_text
from ..text import printable
from . import problem
from .agent import Polls, unless_ended
from .mirror_agents import MAX_NAME, MAX_RUN, MAX_WAIT_MS, MAX_WHY, NAME, ConnectionView, Name
from .mirrors import NO_ADDRESS, EndView
from .problem import Stop
from .quick import QuickRoute
from .views.network import DpidText

PATH = "/v1/mirror-switches"
MAX_PORTS = 1024  # a Linux bridge has 1023 at most
MAX_HEARD = 128
MAX_HOSTS = 512  # that are told of at once
MAX_FAILED = 256
MAX_DESTINATIONS = 1024
MAX_LLDP = 256  # bytes of a frame that is reported

PortNumber = Annotated[int, Field(ge=1, lt=1 << 31, description="The interface's number")]
MacText = Annotated[str, Field(pattern="^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")]
Hex = Annotated[str, Field(pattern="^([0-9a-f]{2})*$", description="In hex")]
Address = Annotated[str, Field(max_length=64)]


class BridgePortView(BaseModel):
    """A port of the bridge."""

    number: PortNumber
    name: str = Field(max_length=64)
    mac: MacText
    up: bool = Field(description="The bridge forwards there, and there is somebody at the other end")

    def port(self) -> Port:
        return Port(PortNo(self.number), printable(self.name, 64), Mac(self.mac), self.up)


class HeardView(BaseModel):
    """LLDP of another bridge, as it came in."""

    port: PortNumber
    frame: Annotated[Hex, Field(max_length=2 * MAX_LLDP)]


class BridgeHostView(BaseModel):
    """A host behind a port: that the bridge has learned, or that says so itself."""

    port: PortNumber
    mac: MacText
    address: Address | None = Field(None, description="The IP address that it says to have")


class SegmentsView(BaseModel):
    """Segments of a connection that come in at a port."""

    port: PortNumber
    marked: bool = Field(description="Copies in transit, from another bridge; else the client's own")
    source: EndView
    destination: EndView

    def segments(self) -> Segments:
        """Raises ValueError for what is no IP address."""
        ends = self.source, self.destination
        whole = Connection.of(ends[0].address, ends[0].port, ends[1].address, ends[1].port)
        return Segments(PortNo(self.port), self.marked, whole)

    @staticmethod
    def of(segments: Segments) -> SegmentsView:
        ends = ConnectionView.of(segments.connection)
        return SegmentsView(
            port=segments.port, marked=segments.marked, source=ends.source, destination=ends.destination
        )


class FailedCopiesView(SegmentsView):
    """Segments that can't be copied."""

    why: str = Field(max_length=MAX_WHY, description="For people")


class BridgePollView(BaseModel):
    """What a bridge's agent says."""

    run: str = Field(
        min_length=1, max_length=MAX_RUN, pattern=r"^[A-Za-z0-9._:-]+$", description="Which run of the agent says so"
    )
    dpid: DpidText
    seen: int = Field(0, ge=0, lt=1 << 63, description="The version that its kernel has; 0: none")
    controller: str = Field("", max_length=MAX_RUN, description="The controller's run, as the last answer had it")
    wait_ms: int = Field(0, ge=0, le=MAX_WAIT_MS, description="To wait for news, in milliseconds: half a lease at most")
    ports: list[BridgePortView] | None = Field(
        None, max_length=MAX_PORTS, description="All of them; left out where neither they nor `heard` have changed"
    )
    heard: list[HeardView] | None = Field(None, max_length=MAX_HEARD, description="All of them, with the ports")
    hosts: list[BridgeHostView] = Field(
        default_factory=list, max_length=MAX_HOSTS, description="That are new, or were asked for"
    )
    copies_to: list[Address] = Field(
        default_factory=list,
        max_length=MAX_DESTINATIONS,
        description="Replicas' addresses that entries lead to which another run of the controller wanted",
    )
    failed: list[FailedCopiesView] = Field(default_factory=list, max_length=MAX_FAILED)
    leaving: bool = Field(False, description="It copies nothing more")

    def poll(self, name: str, controller: str) -> BridgePoll:
        """Raises ValueError for what is no IP address."""
        return BridgePoll(
            name,
            self.run,
            Dpid(int(self.dpid, 16)),
            self.seen if self.controller == controller else -1,
            None if self.ports is None else tuple(port.port() for port in self.ports),
            None if self.heard is None else {PortNo(one.port): bytes.fromhex(one.frame) for one in self.heard},
            tuple(
                (PortNo(host.port), Mac(host.mac), None if host.address is None else address_text(host.address))
                for host in self.hosts
            ),
            frozenset(map(address_text, self.copies_to)),
            {failed.segments(): printable(failed.why, MAX_WHY) for failed in self.failed},
            self.leaving,
        )


class CopyView(BaseModel):
    """A copy."""

    port: int = Field(description="That it leaves by")
    position: int = Field(description="Of the replica that it goes to; 0: it stays in transit, with the header it has")
    to: str | None = Field(None, description="Ethernet address of the replica's host")
    connection: ConnectionView | None = Field(None, description="That it enters: its header has these ends")

    @staticmethod
    def of(copy: Copy) -> CopyView:
        hop = None if copy.connection is None else ConnectionView.of(copy.connection)
        return CopyView(port=copy.port, position=copy.position, to=copy.to, connection=hop)


class CopiesView(SegmentsView):
    """Segments, and the copies that are made of each."""

    copies: list[CopyView] = Field(description="Those in transit first")

    @staticmethod
    @lru_cache(maxsize=4096)
    def made(made: Copies) -> CopiesView:
        return CopiesView(**dict(SegmentsView.of(made.of)), copies=[CopyView.of(copy) for copy in made.copies])


class LldpView(BaseModel):
    """What is sent out of a port every two seconds."""

    port: int
    frame: str = Field(description="In hex")


class SendView(BaseModel):
    """What is sent once."""

    ports: list[int]
    frame: str = Field(description="In hex")


class BridgeToldView(BaseModel):
    """What a bridge is to have."""

    controller: str = Field(description="Which run of the controller says so; versions of another are others")
    seen: int = Field(description="The version of this, for the next poll, once the kernel has it")
    lease_s: float = Field(description="An agent that has not polled for so long is taken for gone")
    base: int | None = Field(description="The version of which this is the difference; null: all is named anew")
    purge: bool = Field(description="All are named: entries of before that are not are to be removed")
    admits: list[int] = Field(description="Ports toward other bridges that mirror: marked frames come by these alone")
    entries: list[CopiesView] = Field(description="To be made, or made anew")
    removed: list[SegmentsView]
    lldp: list[LldpView] | None = Field(description="By which other bridges know this one; null: as before")
    send: list[SendView]
    announce: bool = Field(description="It is not known: `ports`, `heard` and all hosts are to be said, now")

    @staticmethod
    def of(told: BridgeTold, controller: str) -> BridgeToldView:
        update = told.update
        lldp = None
        if told.lldp is not None:
            lldp = [LldpView(port=port, frame=frame.hex()) for port, frame in sorted(told.lldp.items())]
        return BridgeToldView(
            controller=controller,
            seen=update.version,
            lease_s=told.lease_s,
            base=update.base,
            purge=update.purge,
            admits=sorted(update.links),
            entries=[CopiesView.made(made) for made in update.made],
            removed=[SegmentsView.of(of) for of in update.removed],
            lldp=lldp,
            send=[SendView(ports=list(ports), frame=frame.hex()) for ports, frame in told.send],
            announce=told.announce,
        )


class MirrorSwitchView(BaseModel):
    """A bridge that mirrors."""

    name: str
    dpid: DpidText
    ports: int
    links: int = Field(description="Ports that lead to other bridges that mirror")
    entries: int = Field(description="Connections whose segments it copies")
    polled_ago_s: float

    @staticmethod
    def of(bridge: BridgeState) -> MirrorSwitchView:
        return MirrorSwitchView(
            name=bridge.name,
            dpid=dpid_text(bridge.dpid),
            ports=bridge.ports,
            links=bridge.links,
            entries=bridge.entries,
            polled_ago_s=round(bridge.polled_ago_s, 3),
        )


class MirrorSwitchesView(BaseModel):
    """All bridges that mirror, by name."""

    switches: list[MirrorSwitchView]


async def _answer(control: MirrorControl, polls: Polls, name: str, said: BridgePollView) -> BridgeToldView:
    """Raises Stop or NotNow."""
    try:
        poll = said.poll(name, polls.run)
    except ValueError as error:
        raise Stop(422, str(error), NO_ADDRESS) from None
    try:
        told = await unless_ended(polls, control.mirror_bridge_poll(poll, said.wait_ms / 1000))
    except TooMany as error:
        raise Stop(503, str(error), "ask again later", {"Retry-After": str(MAX_WAIT_MS // 1000)}) from None
    return BridgeToldView.of(told, polls.run)


def quick_mirror_switches(control: MirrorControl, polls: Polls) -> QuickRoute:
    """Polls: a pipeline is armed when its bridges have said that they have its copies."""

    async def answer(name: str, said: BridgePollView, _: Scope) -> BridgeToldView:
        return await _answer(control, polls, name, said)

    return QuickRoute(f"{PATH}/{{name}}", re.compile(f"{PATH}/({NAME}{{1,{MAX_NAME}}})"), BridgePollView, answer)


def mirror_switches(control: MirrorControl, polls: Polls) -> APIRouter:
    """The paths of bridges' agents."""
    router = APIRouter(prefix=PATH, tags=["mirrors"], responses=problem.responses(401, 403, 422))

    @router.post("/{name}", responses=problem.responses(409, 413, 415, 503))
    async def poll_bridge(name: Name, said: BridgePollView) -> BridgeToldView:
        """Says what a bridge is and has; waits while it has what it should."""
        return await _answer(control, polls, name, said)

    @router.get("")
    def mirror_switches_there() -> MirrorSwitchesView:
        """Bridges that mirror, by name. OpenFlow switches are not among them."""
        there = sorted(control.mirror_bridges(), key=lambda bridge: bridge.name)
        return MirrorSwitchesView(switches=[MirrorSwitchView.of(bridge) for bridge in there])

    return router
