"""What comes from wires and sockets, whoever sent it: it is read or refused, and neither crashes nor deceives."""

from __future__ import annotations

import asyncio
import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_controller.net import frames
from trunkline_controller.net.topology import Dpid, End, Mac, PortNo
from trunkline_controller.openflow import messages, replies
from trunkline_controller.openflow.connection import Connection
from trunkline_controller.openflow.lldp import VALID_S, Lldp
from trunkline_controller.openflow.memory import Budget

VERSIONS = pytest.mark.parametrize("version", messages.VERSIONS)
HOST = Mac("02:00:00:00:00:01")


def mangled(whole: bytes):
    """The bytes with some of them replaced, taken out or put in."""

    def change(changes):
        found = bytearray(whole)
        for at, taken, put in changes:
            found[at : at + taken] = put
        return bytes(found)

    one = st.tuples(st.integers(0, len(whole)), st.integers(0, 8), st.binary(max_size=8))
    return st.lists(one, min_size=1, max_size=4).map(change)


# LLDP

END = End(Dpid(0x1234), PortNo(7))
NOW = 1000.0
OURS = Lldp(b"k" * 32)
FRAME = OURS.frame(END, HOST, NOW)


@given(st.one_of(st.binary(max_size=120), st.binary(max_size=100).map(lambda tail: FRAME[:14] + tail)))
def test_no_frame_of_a_host_passes_for_lldp_of_ours(data):
    assert OURS.origin(data, NOW) is None


@given(mangled(FRAME))
def test_lldp_that_was_changed_names_its_port_or_none(data):
    assert OURS.origin(data, NOW) in (None, END)


@given(st.floats(-VALID_S * 3, VALID_S * 3), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_lldp_is_believed_for_a_moment_and_under_its_own_key(later, dpid, port):
    frame = OURS.frame(End(Dpid(dpid), PortNo(port)), HOST, NOW)
    found = OURS.origin(frame, NOW + later)
    if 0 <= later <= VALID_S:
        assert found == End(Dpid(dpid), PortNo(port))
    elif later < -0.1 or later > VALID_S + 0.1:  # it counts in tenths
        assert found is None
    assert Lldp(b"l" * 32).origin(frame, NOW) is None


# Ethernet frames of hosts

ARP = frames.arp_reply(HOST, "10.0.0.1", Mac("02:00:00:00:00:02"), "10.0.0.2")
SOLICITATION = frames.probe(HOST, Mac("02:00:00:00:00:02"), "fd00::2")


@given(st.one_of(st.binary(max_size=100), mangled(ARP), mangled(SOLICITATION), mangled(FRAME)))
def test_a_frame_is_read_or_is_none_and_addresses_are_what_hosts_can_have(data):
    frame = frames.read(data)
    assert (frame is None) == (len(data) < 14)
    if frame is None:
        return
    assert frames.mac_bytes(frame.source) == data[6:12]
    for text in (frame.address, frame.asks_for):
        if text is not None:
            address = ipaddress.ip_address(text)
            assert not address.is_unspecified
            assert not address.is_multicast
            assert not address.is_loopback
    if frame.from_a_host and frame.asks_for is not None:  # what is answered
        frames.arp_reply(frame.source, frame.address, HOST, frame.asks_for)


# OpenFlow's connections


class Wire(asyncio.Transport):
    """Notes what is written, until it is ended."""

    def __init__(self):
        super().__init__()
        self.written, self.ended = bytearray(), False

    def get_extra_info(self, name, default=None):
        return ("192.0.2.1", 1)

    def get_write_buffer_size(self):
        return 0

    def write(self, data):
        self.written += data

    def abort(self):
        self.ended = True

    def is_closing(self):
        return self.ended


class Peer:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def connected(self, connection):
        self.told.append(("connected", connection.dpid, connection.version))

    def disconnected(self, connection, why):
        self.told.append(("disconnected", why))

    def refused(self, connection, why):
        self.told.append(("refused", why))

    def packet_in(self, connection, table, in_port, data):
        self.told.append(("packet", table, in_port, data))

    def port_status(self, connection, description, removed):
        self.told.append(("port", description, removed))

    def failed(self, connection, xid, error):
        self.told.append(("failed", xid, error.kind, error.code))

    def role_lost(self, connection):
        self.told.append(("role",))

    def began(self, connection):
        pass


def conversation(version):
    """What a switch says that connects, hands on a packet and has an error."""
    in_port = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, 9)  # a match
    packet = struct.pack("!IHBBQ", messages.ANY, 5, 0, 3, 0) + in_port + b"\0\0" + b"frame"
    said = (
        (messages.HELLO, struct.pack("!HHI", 1, 8, 1 << version)),
        (messages.FEATURES_REPLY, struct.pack("!Q16x", 0x42)),
        (messages.PACKET_IN, packet),
        (messages.ECHO_REQUEST, b"echo"),
        (messages.PORT_STATUS, struct.pack("!B7x", 1) + bytes(64)),
        (messages.MULTIPART_REPLY, struct.pack("!HH4x", messages.MP_DESC, 1) + bytes(40)),
        (messages.ERROR, struct.pack("!HH", 5, 1)),
        (messages.ROLE_STATUS, bytes(16)),
    )
    return b"".join(messages.with_xid(messages.plain(version, kind, body), 77) for kind, body in said)


def heard(parts):
    """Which events come of bytes that arrive so, and why the connection was ended, if it was."""

    async def listen():
        peer, wire, budget = Peer(), Wire(), Budget(1 << 30, lambda _: None)
        connection = Connection(peer, budget)
        connection.connection_made(wire)
        for part in parts:
            if not wire.ended:
                connection.data_received(part)
                assert budget.held == connection.memory.held <= len(b"".join(parts))
        ended = wire.ended
        connection.connection_lost(None)
        assert budget.held == 0
        return peer.told, ended

    return asyncio.run(listen())


@VERSIONS
def test_a_conversation_is_understood(version):
    told, ended = heard([conversation(version)])
    assert not ended
    assert told == [
        ("connected", 0x42, version),
        ("packet", 3, 9, b"frame"),
        ("port", bytes(64), True),
        ("failed", 77, 5, 1),
        ("role",),
        ("disconnected", "the switch closed the connection"),
    ]


@VERSIONS
@given(data=st.data())
def test_no_bytes_of_a_stranger_get_out_of_a_connection_and_how_they_are_cut_is_all_the_same(version, data):
    whole = data.draw(st.one_of(mangled(conversation(version)), st.binary(max_size=60)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    told, ended = heard([whole])
    assert heard(parts) == (told, ended)
    assert told[-1][0] in ("disconnected", "refused")
    if ended:
        assert told[-1][1].startswith(("it sent what is not OpenFlow: ", "it speaks neither OpenFlow 1.3 nor 1.5"))


@VERSIONS
@given(data=st.data())
def test_descriptions_of_ports_and_sums_are_refused_or_read(version, data):
    whole = data.draw(st.one_of(st.binary(max_size=120), mangled(bytes(72)), mangled(struct.pack("!HH16x", 0, 20))))
    for read in (replies.port, replies.flow_count):
        try:
            read(version, whole)
        except (ValueError, struct.error):  # with either the connection is ended
            continue
