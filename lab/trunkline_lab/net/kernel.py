"""The kernel's network, through pyroute2: namespaces, cables, bridges, shaping and their counters."""

from __future__ import annotations

import array
import contextlib
import fcntl
import ipaddress
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from pyroute2 import IPRoute

from . import namespaces
from .topology import LinkShape

BRIDGE = "br0"
_SIOCETHTOOL, _ETHTOOL_STXCSUM = 0x8946, 0x17
_ROOT = 0xFFFFFFFF  # TC_H_ROOT
_SCOPE_LINK, _PROTO_KERNEL = 253, 2  # of the route that comes with an address
_BURST_BYTES = 128 << 10  # what may leave at once: two of the largest packets that offloading makes


@dataclass(frozen=True)
class Count:
    """What left through one end of a link: bytes as on the wire with all headers, packets, and packets dropped."""

    sent_bytes: int = 0
    packets: int = 0
    drops: int = 0

    def __sub__(self, earlier: Count) -> Count:
        return Count(self.sent_bytes - earlier.sent_bytes, self.packets - earlier.packets, self.drops - earlier.drops)


class Namespace:
    """One namespace and a netlink socket in it; `make` makes it first."""

    def __init__(self, name: str) -> None:
        self.name = name
        with namespaces.inside(name):
            self._route = IPRoute()

    @classmethod
    def make(cls, name: str) -> Namespace:
        """A new one, with loopback up and without IPv6, whose chatter would be counted on idle links."""
        namespaces.make(name)
        with namespaces.inside(name):
            for which in ("all", "default"):
                with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6 has no such switch
                    Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1")
        made = cls(name)
        made._route.link("set", index=made.index("lo"), state="up")
        return made

    def close(self) -> None:
        self._route.close()

    def index(self, interface: str) -> int:
        """The number of an interface."""
        found = self._route.link_lookup(ifname=interface)
        if not found:
            raise RuntimeError(f"namespace {self.name} has no interface {interface}")
        return int(found[0])

    def cable(self, interface: str, far: Namespace, far_interface: str, mtu: int) -> None:
        """A veth pair from here to another namespace, both ends up."""
        with (namespaces.NETNS / far.name).open() as there:
            peer = {"ifname": far_interface, "net_ns_fd": there.fileno()}
            self._route.link("add", ifname=interface, kind="veth", peer=peer)
        for end, name in ((self, interface), (far, far_interface)):
            end._route.link("set", index=end.index(name), mtu=mtu, state="up")

    def bridge(self, ports: list[str]) -> None:
        """A bridge over `ports`."""
        self._route.link("add", ifname=BRIDGE, kind="bridge")
        bridge = self.index(BRIDGE)
        for port in ports:
            self._route.link("set", index=self.index(port), master=bridge)
        self._route.link("set", index=bridge, state="up")

    def address(self, interface: str, address: str, prefix: int) -> None:
        """Gives an interface an address."""
        self._route.addr("add", index=self.index(interface), address=address, prefixlen=prefix)

    def shape(self, interface: str, shape: LinkShape, queue_bytes: int, *, again: bool = False) -> None:
        """What leaves through `interface` goes at the link's rate; `queue_bytes` may wait, the rest is dropped.

        `again` where it is shaped already; counters go on.
        """
        self._route.tc(
            "change" if again else "add",
            "tbf",
            index=self.index(interface),
            handle="1:",
            rate=f"{shape.rate_bit_s}bit",
            burst=max(_BURST_BYTES, shape.rate_bit_s // 8 // 1000),
            limit=queue_bytes,
        )

    def queue_packets(self, interface: str, packets: int) -> None:
        """How many packets wait at most in each queue that is made at `interface` from now on."""
        self._route.link("set", index=self.index(interface), txqlen=packets)

    def without_offload(self, interface: str) -> None:
        """What leaves through `interface` has its checksum, and no more bytes than a frame.

        A switch in user space reads frames as they are, and drops those whose checksum a card was to make.
        """
        command = array.array("B", struct.pack("II", _ETHTOOL_STXCSUM, 0))
        with namespaces.inside(self.name), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = struct.pack("16sP16x", interface.encode(), command.buffer_info()[0])
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)

    def super_segments(self, interface: str, size: int) -> None:
        """TCP hands `interface` that many bytes at once at most, of which frames are made then."""
        self._route.link("set", index=self.index(interface), gso_max_size=size)

    def largest_super_segment(self, interface: str) -> int:
        """How many that are now."""
        (link,) = self._route.get_links(self.index(interface))
        return int(link.get_attr("IFLA_GSO_MAX_SIZE"))

    def congestion_control(self, interface: str, network: ipaddress.IPv4Network, address: str, name: str) -> None:
        """TCP to hosts of the interface's network takes this algorithm, whatever the machine's default is."""
        self._route.route(
            "replace",
            dst=str(network),
            oif=self.index(interface),
            prefsrc=address,
            scope=_SCOPE_LINK,
            proto=_PROTO_KERNEL,
            metrics={"cc_algo": name},
        )

    def route(self, to: str, gateway: str) -> None:
        """A route to one address."""
        self._route.route("add", dst=f"{to}/32", gateway=gateway)

    def counts(self) -> dict[str, Count]:
        """By interface: from the lab's shaper, which unlike the interface's own counter knows the headers of every
        segment that an offloaded packet stands for. Where there is none, a switch in user space sends whole frames,
        which the interface counts; drops are those of the shaper that stands there now."""
        links = {link["index"]: link for link in self._route.get_links()}
        qdiscs = {q["index"]: q for q in self._route.get_qdiscs() if q["parent"] == _ROOT}
        found = {}
        for index, link in links.items():
            qdisc = qdiscs.get(index)
            shaped = qdisc is not None and qdisc.get_attr("TCA_KIND") == "tbf"
            found[link.get_attr("IFLA_IFNAME")] = _count(qdisc) if shaped else _count_of_frames(link, qdisc)
        return found


def _count_of_frames(link: object, qdisc: object | None) -> Count:
    sent = link.get_attr("IFLA_STATS64")  # type: ignore[attr-defined]
    return Count(int(sent["tx_bytes"]), int(sent["tx_packets"]), _count(qdisc).drops if qdisc else 0)


def _count(qdisc: object) -> Count:
    stats = qdisc.get_attr("TCA_STATS2")  # type: ignore[attr-defined]
    basic, queue = stats.get_attr("TCA_STATS_BASIC"), stats.get_attr("TCA_STATS_QUEUE")
    return Count(int(basic["bytes"]), int(basic["packets"]), int(queue["drops"]))
