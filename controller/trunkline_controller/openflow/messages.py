"""OpenFlow messages as bytes, for version 1.3 and 1.5 of the protocol; os-ken knows the wire format.

The transaction id is left 0; who sends a message fills it in (`with_xid`). Messages that many switches get alike are
kept encoded.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser, ofproto_v1_5, ofproto_v1_5_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from ..flows.difference import AddFlow, AddGroup, Change, DeleteFlow, DeleteGroup, ModifyGroup
from ..flows.entry import (
    CONTROLLER,
    COOKIE,
    COOKIE_MASK,
    Action,
    FlowEntry,
    Match,
    Output,
    SelectGroup,
    SetField,
    SetQueue,
    Table,
    ToGroup,
)

V1_3, V1_5 = ofproto_v1_3.OFP_VERSION, ofproto_v1_5.OFP_VERSION
VERSIONS = (V1_3, V1_5)
HEADER = struct.Struct("!BBHI")
_OUTPUT = struct.Struct("!HHIH6x")
# Cookie and its mask, table, command, timeouts, priority, buffer, port and group out, flags.
_FLOW_MOD = struct.Struct("!QQBBHHHIIIH2x")
ANY = 0xFFFFFFFF

# Message types, the same in both versions (1.3.5 section A.1).
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
PACKET_IN, PORT_STATUS, PACKET_OUT, FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY = 10, 12, 13, 14, 18, 19
BARRIER_REQUEST, BARRIER_REPLY, ROLE_REQUEST, ROLE_REPLY, ROLE_STATUS = 20, 21, 24, 25, 30

# Multipart types (A.3.5); 1 has descriptions of flows in 1.5 and flows with their counters in 1.3.
MP_DESC, MP_FLOW, MP_AGGREGATE, MP_PORT_STATS, MP_QUEUE, MP_GROUP_DESC, MP_PORT_DESC = 0, 1, 2, 4, 5, 7, 13

ROLE_NOCHANGE, ROLE_MASTER, ROLE_SLAVE = 0, 2, 3
NO_GENERATION = (1 << 64) - 1

DESC = {V1_3: ProtocolDesc(V1_3), V1_5: ProtocolDesc(V1_5)}
PARSER: dict[int, Any] = {V1_3: ofproto_v1_3_parser, V1_5: ofproto_v1_5_parser}
_L4 = {6: "tcp", 17: "udp", 132: "sctp"}


def with_xid(message: bytes, xid: int) -> bytes:
    return message[:4] + xid.to_bytes(4) + message[8:]


def plain(version: int, kind: int, body: bytes = b"") -> bytes:
    """A message with a body that is given, or none."""
    return HEADER.pack(version, kind, 8 + len(body), 0) + body


def hello() -> bytes:
    """With a bitmap of the versions spoken (1.3.5, 7.5.1)."""
    bitmap = sum(1 << version for version in VERSIONS)
    return plain(max(VERSIONS), HELLO, struct.pack("!HHI", 1, 8, bitmap))


def negotiated(message: bytes) -> int | None:
    """The version to speak with who sent this hello; None if there is none in common."""
    version, _, length, _ = HEADER.unpack_from(message)
    offset = 8
    while offset + 4 <= length:
        kind, size = struct.unpack_from("!HH", message, offset)
        if kind == 1 and size >= 8 and offset + 8 <= length:
            (bitmap,) = struct.unpack_from("!I", message, offset + 4)
            return max((ours for ours in VERSIONS if bitmap >> ours & 1), default=None)
        offset += max(size + 7 & ~7, 8)
    return version if version in VERSIONS else None if version < V1_3 else max(v for v in VERSIONS if v <= version)


def oxm(match: Match) -> dict[str, Any]:
    """Fields by the names that os-ken has for them."""
    fields: dict[str, Any] = {}
    for name in ("in_port", "eth_type", "ip_proto", "ip_dscp", "icmpv6_type"):
        if (value := getattr(match, name)) is not None:
            fields[name] = value
    for name in ("eth_dst", "eth_src"):
        if (value := getattr(match, name)) is not None:
            address, _, mask = value.partition("/")
            fields[name] = (address, mask) if mask else address
    family = "ipv6" if match.eth_type == 0x86DD else "ipv4"
    for side, value in (("src", match.ip_src), ("dst", match.ip_dst)):
        if value is not None:
            fields[f"{family}_{side}"] = value
    for side, value in (("src", match.l4_src), ("dst", match.l4_dst)):
        if value is not None:
            fields[f"{_L4[match.ip_proto or 6]}_{side}"] = value
    if match.metadata is not None:
        fields["metadata"] = match.metadata if match.metadata_mask is None else (match.metadata, match.metadata_mask)
    return fields


def actions(version: int, wanted: tuple[Action, ...]) -> list[Any]:
    parser = PARSER[version]
    made = []
    for action in wanted:
        match action:
            case Output(port, max_len):
                made.append(parser.OFPActionOutput(port, max_len if port == CONTROLLER else 0))
            case ToGroup(group):
                made.append(parser.OFPActionGroup(group))
            case SetQueue(queue):
                made.append(parser.OFPActionSetQueue(queue))
            case SetField(field, value):
                made.append(parser.OFPActionSetField(**{field: value}))
    return made


def _encoded(message: Any) -> bytes:  # noqa: ANN401 (os-ken has no types)
    message.set_xid(0)
    message.serialize()
    return bytes(message.buf)


@lru_cache(maxsize=16384)
def _field(version: int, name: str, value: Any) -> tuple[int, bytes]:  # noqa: ANN401 (as os-ken takes it)
    """A field of a match or an action: its number, by which matches are in order, and its encoding."""
    ofproto, encoded = DESC[version].ofproto, bytearray()
    number, octets, mask = ofproto.oxm_from_user(name, value)
    ofproto.oxm_serialize(number, octets, mask, encoded, 0)
    return number, bytes(encoded)


@lru_cache(maxsize=16384)
def _action(version: int, action: Action) -> bytes:
    if isinstance(action, SetField):  # OFPAT_SET_FIELD (1.3.5, 7.2.5): as a match has it
        _, field = _field(version, action.field, action.value)
        size = 4 + len(field) + 7 & ~7
        return struct.pack("!HH", 25, size) + field + bytes(size - 4 - len(field))
    encoded = bytearray()
    for made in actions(version, (action,)):
        made.serialize(encoded, 0)
    return bytes(encoded)


def _instructions(version: int, entry: FlowEntry) -> bytes:
    made = b""
    if entry.actions:
        applied = b"".join(_action(version, action) for action in entry.actions)
        made += struct.pack("!HH4x", 4, 8 + len(applied)) + applied
    if entry.write_metadata:
        made += struct.pack("!HH4xQQ", 2, 24, *entry.write_metadata)
    if entry.goto is not None:
        made += struct.pack("!HHB3x", 1, 8, int(entry.goto))
    return made


def _flow_mod(version: int, entry: FlowEntry, numbers: tuple[int, ...], instructions: bytes = b"") -> bytes:
    """OFPT_FLOW_MOD (1.3.5, 7.3.4.1; 1.5.1, 7.3.4.2 with importance 0). `numbers` are what comes before the match. Many
    are sent, so not by os-ken's objects; their fields and actions, of which most come again and again, are.
    """
    fields = sorted(_field(version, name, value) for name, value in oxm(entry.match).items())
    match = b"".join(encoded for _, encoded in fields)
    length = 4 + len(match)
    body = _FLOW_MOD.pack(*numbers) + struct.pack("!HH", 1, length) + match + bytes(-length % 8)
    return plain(version, FLOW_MOD, body + instructions)


@lru_cache(maxsize=16384)
def add_flow(version: int, entry: FlowEntry, hard_timeout_s: int = 0) -> bytes:
    numbers = (
        entry.cookie, 0, int(entry.table), 0, entry.idle_timeout_s, hard_timeout_s, entry.priority, ANY, 0, 0, 0,
    )  # fmt: skip
    return _flow_mod(version, entry, numbers, _instructions(version, entry))


def delete_flow(version: int, entry: FlowEntry) -> bytes:
    """This entry alone (OFPFC_DELETE_STRICT), and only while its cookie is ours."""
    return _flow_mod(version, entry, (COOKIE, COOKIE_MASK, int(entry.table), 4, 0, 0, entry.priority, ANY, ANY, ANY, 0))


@lru_cache(maxsize=4096)
def group(version: int, command: int, wanted: SelectGroup) -> bytes:
    """`command`: OFPGC_ADD, MODIFY or DELETE."""
    parser, desc = PARSER[version], DESC[version]
    one = len(wanted.ports) == 1
    buckets = []
    for port in wanted.ports:
        output = actions(version, (Output(port),))
        if version == V1_3:
            buckets.append(parser.OFPBucket(weight=0 if one else 1, actions=output))
        else:
            weight = [] if one else [parser.OFPGroupBucketPropWeight(type_=0, weight=1)]
            buckets.append(parser.OFPBucket(bucket_id=port, actions=output, properties=weight))
    kind = desc.ofproto.OFPGT_INDIRECT if one else desc.ofproto.OFPGT_SELECT
    return _encoded(parser.OFPGroupMod(desc, command=command, type_=kind, group_id=wanted.number, buckets=buckets))


def of_change(version: int, change: Change) -> bytes:
    match change:
        case AddFlow(entry):
            return add_flow(version, entry)
        case DeleteFlow(entry):
            return delete_flow(version, entry)
        case AddGroup(wanted):
            return group(version, 0, wanted)
        case ModifyGroup(wanted):
            return group(version, 1, wanted)
        case DeleteGroup(number):
            return group(version, 2, SelectGroup(number, ()))


def packet_out(version: int, data: bytes, wanted: tuple[Action, ...], in_port: int = CONTROLLER) -> bytes:
    """OFPT_PACKET_OUT without a buffer (1.3.5, 7.3.7; 1.5.1, 7.3.6). Many are sent, so not by os-ken's objects."""
    made = bytearray()
    for action in wanted:
        if isinstance(action, Output):
            made += _OUTPUT.pack(0, 16, action.port, action.max_len if action.port == CONTROLLER else 0)
        else:
            for encoded in actions(version, (action,)):
                encoded.serialize(made, len(made))
    if version == V1_3:
        head = struct.pack("!IIH6x", ANY, in_port, len(made))
    else:
        head = struct.pack("!IH2xHHII4x", ANY, len(made), 1, 12, 0x80000004, in_port)
    return plain(version, PACKET_OUT, head + made + data)


def role(version: int, wanted: int, generation: int) -> bytes:
    """OFPT_ROLE_REQUEST; in 1.5 without a short id."""
    body = struct.pack("!I4xQ", wanted, generation)
    if version == V1_5:
        body = struct.pack("!IHxxQ", wanted, 0xFFFF, generation)
    return plain(version, ROLE_REQUEST, body)


def flows_request(
    version: int, cookie: int = 0, cookie_mask: int = 0, table: Table | None = None, kind: int = MP_FLOW
) -> bytes:
    """Of all flow entries with this cookie, in a table or all: what they are and counted, or (`MP_AGGREGATE`) sums."""
    body = struct.pack("!B3xII4xQQ", 0xFF if table is None else int(table), ANY, ANY, cookie, cookie_mask)
    return multipart(version, kind, body + struct.pack("!HH4x", 1, 4))


def multipart(version: int, kind: int, body: bytes = b"") -> bytes:
    return plain(version, MULTIPART_REQUEST, struct.pack("!HH4x", kind, 0) + body)


def port_stats_request(version: int) -> bytes:
    return multipart(version, MP_PORT_STATS, struct.pack("!I4x", ANY))


def queue_stats_request(version: int, port: int = ANY) -> bytes:
    return multipart(version, MP_QUEUE, struct.pack("!II", port, ANY))


def group_desc_request(version: int) -> bytes:
    return multipart(version, MP_GROUP_DESC, struct.pack("!I4x", 0xFFFFFFFC) if version == V1_5 else b"")


def port_desc_request(version: int) -> bytes:
    return multipart(version, MP_PORT_DESC, struct.pack("!I4x", ANY) if version == V1_5 else b"")
