"""Switches, ports, links with their loads, and hosts."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, Field

from ...control import LinkLoad
from ...net.topology import Dpid, End, Host, Link, PortNo, Switch, Topology, dpid_text
from . import View

DpidText = Annotated[str, Field(pattern="^[0-9a-f]{16}$", description="Datapath id, 16 hex digits")]

_VERSIONS = {0: "none", 1: "1.0", 2: "1.1", 3: "1.2", 4: "1.3", 5: "1.4", 6: "1.5"}


class EndView(BaseModel):
    """A port of a switch."""

    dpid: DpidText
    port: int
    switch_name: str = Field(description="Empty where the switch is not connected")
    port_name: str

    @staticmethod
    def of(end: End, topology: Topology) -> EndView:
        switch = topology.switches.get(end.dpid)
        port = switch.ports.get(end.port) if switch else None
        return EndView(
            dpid=dpid_text(end.dpid),
            port=end.port,
            switch_name=switch.name if switch else "",
            port_name=port.name if port else "",
        )


class PortView(View):
    """A port as its switch describes it."""

    number: int
    name: str
    mac: str
    up: bool
    speed_bit_s: int = Field(description="0 where the switch does not say")


class SwitchView(BaseModel):
    """A connected switch."""

    dpid: DpidText
    name: str
    openflow: str = Field(
        description="Version of the protocol that is spoken, as 1.3; none: a Linux bridge that mirrors"
    )
    ports: list[PortView]

    @staticmethod
    def of(switch: Switch) -> SwitchView:
        return SwitchView(
            dpid=dpid_text(switch.dpid),
            name=switch.name,
            openflow=_VERSIONS.get(switch.version, str(switch.version)),
            ports=[PortView.of(switch.ports[number]) for number in sorted(switch.ports)],
        )


class HostView(BaseModel):
    """A machine at a switch's port."""

    mac: str
    at: EndView
    addresses: list[str]

    @staticmethod
    def of(host: Host, topology: Topology) -> HostView:
        return HostView(mac=host.mac, at=EndView.of(host.at, topology), addresses=list(host.addresses))


class CableView(BaseModel):
    """A cable between two switches."""

    id: str
    a: EndView
    b: EndView

    @staticmethod
    def of(link: Link, topology: Topology) -> CableView:
        return CableView(id=link_id(link), a=EndView.of(link.a, topology), b=EndView.of(link.b, topology))


class TopologyView(BaseModel):
    """Switches, the links between them, and hosts."""

    switches: list[SwitchView]
    links: list[CableView]
    hosts: list[HostView]

    @staticmethod
    def of(topology: Topology) -> TopologyView:
        return TopologyView(
            switches=[SwitchView.of(topology.switches[dpid]) for dpid in sorted(topology.switches)],
            links=[CableView.of(link, topology) for link in sorted(topology.links)],
            hosts=[HostView.of(topology.hosts[mac], topology) for mac in sorted(topology.hosts)],
        )


class LoadView(BaseModel):
    """What a link carries in one direction."""

    bit_s: float
    rate_bit_s: int = Field(description="0: unknown")
    share: float | None = Field(description="bit_s of rate_bit_s, 0 to 1; null where the rate is unknown")
    bytes: int = Field(description="Since the switch counts")
    dropped_packets: int | None = Field(description="At the sending port; null where it is no switch's")

    @staticmethod
    def sent(load: LinkLoad) -> LoadView:
        return LoadView._of(load.bit_s, load.rate_bit_s, load.sent_bytes, load.dropped_packets)

    @staticmethod
    def received(load: LinkLoad) -> LoadView:
        return LoadView._of(load.received_bit_s, load.rate_bit_s, load.received_bytes, None)

    @staticmethod
    def _of(bit_s: float, rate_bit_s: int, octets: int, dropped: int | None) -> LoadView:
        share = min(bit_s / rate_bit_s, 1.0) if rate_bit_s > 0 else None
        return LoadView(bit_s=bit_s, rate_bit_s=rate_bit_s, share=share, bytes=octets, dropped_packets=dropped)


class LinkView(BaseModel):
    """A link, between switches or to hosts, and its load each way; null where no port was counted yet."""

    id: str = Field(description="For /v1/links/{id}/flows")
    a: EndView
    b: EndView | None = Field(description="null: the link goes to hosts")
    hosts: list[str] = Field(description="MAC addresses behind the link")
    addresses: list[str] = Field(description="The first IP address of each, or its MAC address")
    from_a: LoadView | None
    to_a: LoadView | None


class LinksView(BaseModel):
    """All links."""

    links: list[LinkView]

    @staticmethod
    def of(topology: Topology, loads: tuple[LinkLoad, ...]) -> LinksView:
        by_end = {load.end: load for load in loads}
        links = []
        for link in sorted(topology.links):
            from_a, to_a = by_end.get(link.a), by_end.get(link.b)
            cable = CableView.of(link, topology)
            links.append(
                LinkView(
                    id=cable.id,
                    a=cable.a,
                    b=cable.b,
                    hosts=[],
                    addresses=[],
                    from_a=LoadView.sent(from_a) if from_a else None,
                    to_a=LoadView.sent(to_a) if to_a else None,
                )
            )
        at: dict[End, list[Host]] = {}
        for mac in sorted(topology.hosts):
            at.setdefault(topology.hosts[mac].at, []).append(topology.hosts[mac])
        for end in sorted(at):
            load = by_end.get(end)
            links.append(
                LinkView(
                    id=end_id(end),
                    a=EndView.of(end, topology),
                    b=None,
                    hosts=[host.mac for host in at[end]],
                    addresses=[next(iter(host.addresses), host.mac) for host in at[end]],
                    from_a=LoadView.sent(load) if load else None,
                    to_a=LoadView.received(load) if load else None,
                )
            )
        return LinksView(links=links)


def end_id(end: End) -> str:
    """A port as paths name it."""
    return f"{dpid_text(end.dpid)}:{end.port}"


def link_id(link: Link) -> str:
    """A link between switches as paths name it."""
    return f"{end_id(link.a)}-{end_id(link.b)}"


def parse_link(text: str) -> Link | End:
    """What `link_id` or `end_id` wrote. Raises ValueError."""
    found = re.fullmatch(r"([0-9a-f]{16}):([0-9]{1,10})(?:-([0-9a-f]{16}):([0-9]{1,10}))?", text)
    if found is None:
        raise ValueError(text)
    one = End(Dpid(int(found[1], 16)), PortNo(int(found[2])))
    if found[3] is None:
        return one
    return Link.between(one, End(Dpid(int(found[3], 16)), PortNo(int(found[4]))))
