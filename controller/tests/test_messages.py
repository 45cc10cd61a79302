"""Entries go to a switch and come back as they were, in both versions; what is malformed is refused, and ends."""

import asyncio
import contextlib
import itertools
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_desired import peopled
from test_paths import leaf_spine

from trunkline_controller.flows.desired import Desired
from trunkline_controller.flows.difference import AddGroup, DeleteFlow, DeleteGroup, ModifyGroup
from trunkline_controller.flows.entry import (
    CONTROLLER,
    COOKIE,
    COOKIE_MASK,
    FlowEntry,
    Match,
    Output,
    Owner,
    SelectGroup,
    SetField,
    SetQueue,
    Table,
    ToGroup,
    cookie,
)
from trunkline_controller.mirror.entries import MAX_REPLICAS, Connection, entries, guard
from trunkline_controller.mirror.tree import Paths
from trunkline_controller.openflow import messages, replies
from trunkline_controller.openflow.memory import Budget
from trunkline_controller.openflow.session import Session

VERSIONS = pytest.mark.parametrize("version", messages.VERSIONS)


def as_read(version, flow_mod, packets=7, octets=700):
    """The body of a multipart reply about the entry that a flow mod makes."""
    cookie_, table, idle, hard, priority = struct.unpack_from("!Q8xBxHHH", flow_mod, 8)
    match_length = struct.unpack_from("!H", flow_mod, 50)[0] + 7 & ~7
    match, instructions = flow_mod[48 : 48 + match_length], flow_mod[48 + match_length :]
    if version == messages.V1_3:
        head = struct.pack("!BxIIHHHH4xQQQ", table, 1, 2, priority, idle, hard, 0, cookie_, packets, octets)
        body = head + match + instructions
    else:
        oxs = struct.pack("!HBBQHBBQ", 0x8002, 4 << 1, 8, packets, 0x8002, 5 << 1, 8, octets)
        stats = struct.pack("!HH", 0, 4 + len(oxs)) + oxs
        stats += bytes(-len(stats) % 8)
        head = struct.pack("!2xBxHHHHHQ", table, priority, idle, hard, 0, 0, cookie_)
        body = head + match + stats + instructions
    return struct.pack("!H", len(body) + 2) + body


ENTRIES = [
    FlowEntry(Table.ADMIT, 0, Match(), (), Table.SOURCE_ROLES, cookie(Owner.ADMIT)),
    FlowEntry(Table.ADMIT, 9, Match(eth_type=0x806), (Output(CONTROLLER, 128),), Table.CLASSIFY, cookie(Owner.ADMIT)),
    FlowEntry(Table.FORWARD, 9, Match(in_port=4, eth_dst="01:00:00:00:00:00/01:00:00:00:00:00")),
    FlowEntry(Table.FORWARD, 9, Match(eth_dst="02:00:00:00:00:01", eth_src="02:00:00:00:00:02"), (ToGroup(7),)),
    FlowEntry(
        Table.CLASSIFY,
        65535,
        Match(eth_type=0x800, ip_proto=6, ip_dscp=10, ip_src="10.1.0.0/16", ip_dst="10.0.0.1", l4_src=1, l4_dst=65535),
        (SetField("ip_dscp", 46), SetQueue(3)),
        Table.FORWARD,
        cookie(Owner.POLICY, 0xFFFFFFFF),
        idle_timeout_s=30,
    ),
    FlowEntry(Table.CLASSIFY, 1, Match(eth_type=0x86DD, ip_proto=17, ip_src="fd00::/8", ip_dst="fd00::1", l4_dst=53)),
    FlowEntry(Table.CLASSIFY, 1, Match(eth_type=0x86DD, ip_proto=58, icmpv6_type=135), (Output(1), Output(2))),
    FlowEntry(
        Table.SOURCE_ROLES,
        1,
        Match(eth_type=0x800, ip_src="10.0.0.1", metadata=0x2, metadata_mask=0xFF),
        (),
        Table.DESTINATION_ROLES,
        cookie(Owner.POLICY),
        0,
        (0x10, 0xF0),
    ),
]


@VERSIONS
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_comes_back_as_it_was(version, entry):
    (read,) = replies.flows(version, as_read(version, messages.add_flow(version, entry)))
    assert read.entry == entry
    assert (read.packets, read.bytes) == (7, 700)
    assert read.ours == (entry.cookie != 0)


def by_os_ken(version, entry, **given):
    """The same message as os-ken makes it."""
    parser = messages.PARSER[version]
    instructions = []
    if entry.actions:
        instructions.append(parser.OFPInstructionActions(4, messages.actions(version, entry.actions)))
    if entry.write_metadata:
        instructions.append(parser.OFPInstructionWriteMetadata(*entry.write_metadata))
    if entry.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(int(entry.goto)))
    made = parser.OFPFlowMod(
        messages.DESC[version],
        table_id=int(entry.table),
        priority=entry.priority,
        match=parser.OFPMatch(**messages.oxm(entry.match)),
        **{"cookie": entry.cookie, "idle_timeout": entry.idle_timeout_s, "instructions": instructions} | given,
    )
    made.set_xid(0)
    made.serialize()
    return bytes(made.buf)


@VERSIONS
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_flow_mod_is_as_os_ken_makes_it(version, entry):
    assert messages.add_flow(version, entry) == by_os_ken(version, entry)
    assert messages.add_flow(version, entry, 7) == by_os_ken(version, entry, hard_timeout=7)
    assert messages.delete_flow(version, entry) == by_os_ken(
        version, entry, command=4, cookie=COOKIE, cookie_mask=COOKIE_MASK, idle_timeout=0, instructions=[],
        out_port=messages.ANY, out_group=messages.ANY,
    )  # fmt: skip


@VERSIONS
def test_all_desired_entries_come_back_as_they_were(version):
    for tables in Desired().tables(peopled(leaf_spine(2, 2), [3, 4])).values():
        body = b"".join(as_read(version, messages.add_flow(version, entry)) for entry in tables.flows)
        assert {read.entry for read in replies.flows(version, body)} == tables.flows


@VERSIONS
@pytest.mark.parametrize("address", ["10.0.0.{}", "fd00:ffff:ffff:ffff:ffff:ffff:ffff:{}"])
def test_entries_of_mirrors_come_back_as_they_were_the_longest_too(version, address):
    network = peopled(leaf_spine(2, 2), [3, *[4] * MAX_REPLICAS])
    client, *replicas = network.hosts.values()
    addresses = [address.format(1 + number) for number in range(MAX_REPLICAS + 1)]
    hops = [Connection.of(one, 65535, two, 9866) for one, two in itertools.pairwise(addresses)]
    made = [*entries(Paths(network).tree(client, replicas), hops, 0xFFFFFFFF).items()]
    made += [(dpid, entry) for dpid, kept in guard(network).items() for entry in kept]
    for _, entry in made:
        assert messages.add_flow(version, entry) == by_os_ken(version, entry)
        (read,) = replies.flows(version, as_read(version, messages.add_flow(version, entry)))
        assert read.entry == entry


@given(st.ip_addresses(v=4), st.integers(1, 32), st.integers(0, 2**64 - 1), st.integers(1, 2**64 - 1))
def test_matches_are_written_as_a_switch_writes_them(address, prefix, value, mask):
    match = Match(eth_type=0x800, ip_src=f"{address}/{prefix}", metadata=value, metadata_mask=mask)
    canonical = replies.canonical_match(match)
    entry = FlowEntry(Table.CLASSIFY, 1, canonical)
    for version in messages.VERSIONS:
        (read,) = replies.flows(version, as_read(version, messages.add_flow(version, entry)))
        assert read.entry == entry
    assert replies.canonical_match(canonical) == canonical


@VERSIONS
def test_an_entry_that_does_what_none_of_ours_does_is_read_as_somebody_elses(version):
    flow_mod = messages.add_flow(version, replace(ENTRIES[0], cookie=99))
    (read,) = replies.flows(version, as_read(version, flow_mod))
    assert not read.ours
    meter = struct.pack("!HHI", 6, 8, 1)  # OFPIT_METER, of 1.3
    (read,) = replies.flows(version, as_read(version, flow_mod + meter))
    assert read.entry is None


NAMES = {
    b"eth1": "eth1",
    b"\x1b[2J\x1b]0;owned": "?[2J?]0;owned",
    b"a\nb\r\tc\x7f": "a?b??c?",
    b"\xffeth": "\N{REPLACEMENT CHARACTER}eth",
    "x\N{RIGHT-TO-LEFT OVERRIDE}y".encode(): "x?y",
}


@VERSIONS
def test_names_of_ports_and_switches_are_fit_for_a_terminal(version):
    for raw, text in NAMES.items():
        if version == messages.V1_3:
            body = struct.pack("!I4x6s2x16s8I", 1, bytes(6), raw, *[0] * 8)
        else:
            body = struct.pack("!IH2x6s2x16sII", 1, 40, bytes(6), raw, 0, 0)
        (port,) = replies.ports(version, body)
        assert port.name == text
        session = Session(Described(version, bytes(800) + raw.ljust(256, b"\0"), body))
        asyncio.run(session.describe())
        assert (session.name, session.ports[1].name) == (text, text)
    session = Session(Described(version, bytes(800) + b"x" * 256, body))
    asyncio.run(session.describe())
    assert session.name == "x" * 61 + "..."


class Described:
    """A connection to a switch that describes itself so."""

    def __init__(self, version, *answers):
        self.version, self.dpid, self.answers = version, 1, list(answers)
        self.memory = Budget(1 << 30, lambda _: None).account()

    async def request(self, message):
        return self.answers.pop(0)


@VERSIONS
@given(data=st.data())
def test_mangled_replies_are_refused_or_read_but_end(version, data):
    whole = b"".join(as_read(version, messages.add_flow(version, entry)) for entry in ENTRIES)
    body = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    readers = (replies.flows, replies.groups, replies.ports, replies.port_counts, replies.queue_counts)
    for reader in readers:
        with contextlib.suppress(ValueError):
            list(reader(version, bytes(body)))


@VERSIONS
def test_groups_are_of_type_select_or_indirect_where_there_is_one_port(version):
    kinds = {}
    for ports in ((1,), (1, 2)):
        for change in (AddGroup(SelectGroup(7, ports)), ModifyGroup(SelectGroup(7, ports))):
            message = messages.of_change(version, change)
            kinds[ports] = message[10]
            assert struct.unpack_from("!I", message, 12) == (7,)
    assert kinds == {(1,): 2, (1, 2): 1}
    assert struct.unpack_from("!HBxI", messages.of_change(version, DeleteGroup(7)), 8)[0] == 2


@VERSIONS
def test_deleting_names_the_entry_and_our_cookie(version):
    message = messages.of_change(version, DeleteFlow(ENTRIES[4]))
    cookie_, mask, table, command = struct.unpack_from("!QQBB", message, 8)
    assert (cookie_ & mask, table, command) == (0x7472 << 48, Table.CLASSIFY, 4)


def test_the_highest_version_in_common_is_spoken():
    def hello(version, *bitmaps):
        elements = b"".join(struct.pack("!HHI", 1, 8, bitmap) for bitmap in bitmaps)
        return struct.pack("!BBHI", version, 0, 8 + len(elements), 1) + elements

    assert messages.negotiated(messages.hello()) == messages.V1_5
    assert messages.negotiated(hello(4)) == messages.V1_3
    assert messages.negotiated(hello(5, 1 << 4 | 1 << 5)) == messages.V1_3
    assert messages.negotiated(hello(6, 1 << 4 | 1 << 6)) == messages.V1_5
    assert messages.negotiated(hello(1)) is None
    assert messages.negotiated(hello(5, 1 << 5)) is None
    assert messages.negotiated(hello(6, 0) + b"\0\0\0\0\0\0\0\0") is None


@VERSIONS
def test_packets_are_sent_out_as_os_ken_would_send_them(version):
    wanted = (SetQueue(3), SetField("ip_dscp", 46), Output(7), Output(CONTROLLER, 128))
    parser, desc = messages.PARSER[version], messages.DESC[version]
    made, data = messages.actions(version, wanted), b"a frame"
    if version == messages.V1_3:
        theirs = parser.OFPPacketOut(desc, buffer_id=messages.ANY, in_port=CONTROLLER, actions=made, data=data)
    else:
        match = parser.OFPMatch(in_port=CONTROLLER)
        theirs = parser.OFPPacketOut(desc, buffer_id=messages.ANY, match=match, actions=made, data=data)
    theirs.set_xid(0)
    theirs.serialize()
    assert messages.packet_out(version, data, wanted) == bytes(theirs.buf)
