"""What switches answer, as values: their flow entries and groups, ports, and what these counted.

Raises ValueError for what is not as OpenFlow has it; a length that leads nowhere is found before it is followed.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..flows.difference import Key
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
from ..net.topology import Mac, Port, PortNo
from ..text import printable
from .messages import PARSER, V1_3

MAX_NAME = 64  # characters of a switch's name
LONG = 1024  # bytes of match and instructions: longer than any entry of ours
PORTS_END = 0xFFFFFF00  # OFPP_MAX; above it ports are not real
_PORT_DOWN, _LINK_DOWN = 1, 1  # OFPPC_PORT_DOWN, OFPPS_LINK_DOWN


@dataclass(frozen=True)
class ReadFlow:
    """A flow entry on a switch. `entry` is None where it does what none of ours does, `key` where it matches what none
    of ours does.
    """

    table: int
    priority: int
    cookie: int
    entry: FlowEntry | None
    key: Key | None
    packets: int = 0
    bytes: int = 0

    @property
    def ours(self) -> bool:
        return self.cookie & COOKIE_MASK == COOKIE


@dataclass(frozen=True)
class PortCounts:
    received_bytes: int
    sent_bytes: int
    dropped_packets: int  # on their way out


@dataclass(frozen=True)
class QueueCounts:
    sent_bytes: int
    sent_packets: int
    dropped_packets: int


def canonical_match(match: Match) -> Match:
    """As a switch that is asked would write it: addresses without their host bits, full masks left out."""
    changed: dict[str, Any] = {}
    for side in ("ip_src", "ip_dst"):
        value = getattr(match, side)
        if value is not None:
            net = ipaddress.ip_network(value, strict=False)
            changed[side] = str(net.network_address) if net.prefixlen == net.max_prefixlen else str(net)
    if match.metadata_mask is not None:
        full = match.metadata_mask == (1 << 64) - 1
        changed["metadata"] = (match.metadata or 0) & match.metadata_mask
        changed["metadata_mask"] = None if full else match.metadata_mask
    return replace(match, **changed) if changed else match


def _match(version: int, data: bytes, offset: int) -> Match | None:
    """None where it matches on what no entry of ours does."""
    fields: dict[str, Any] = {}
    for name, given in PARSER[version].OFPMatch.parser(data, offset).items():
        value, mask = given if isinstance(given, tuple) else (given, None)
        if name in ("in_port", "eth_type", "ip_proto", "ip_dscp", "icmpv6_type") and mask is None:
            fields[name] = value
        elif name in ("eth_dst", "eth_src"):
            fields[name] = value if mask is None else f"{value}/{mask}"
        elif name in ("ipv4_src", "ipv4_dst", "ipv6_src", "ipv6_dst"):
            try:
                prefix = "" if mask is None else f"/{_prefix(mask)}"
            except ValueError:
                return None
            fields[f"ip_{name[5:]}"] = f"{value}{prefix}"
        elif name in ("tcp_src", "tcp_dst", "udp_src", "udp_dst", "sctp_src", "sctp_dst") and mask is None:
            fields[f"l4_{name[-3:]}"] = value
        elif name == "metadata":
            fields["metadata"], fields["metadata_mask"] = value, mask
        else:
            return None
    return canonical_match(Match(**fields))


def _prefix(mask: str) -> int:
    """Raises ValueError for a mask with holes."""
    address = ipaddress.ip_address(mask)
    bits = int(address) ^ ((1 << address.max_prefixlen) - 1)
    if bits & (bits + 1):
        raise ValueError(mask)
    return address.max_prefixlen - bits.bit_length()


def _actions(made: list[Any]) -> tuple[Action, ...] | None:
    actions: list[Action] = []
    for action in made:
        match type(action).__name__:
            case "OFPActionOutput":
                actions.append(
                    Output(action.port, action.max_len) if action.port == CONTROLLER else Output(action.port)
                )
            case "OFPActionGroup":
                actions.append(ToGroup(action.group_id))
            case "OFPActionSetQueue":
                actions.append(SetQueue(action.queue_id))
            case "OFPActionSetField":
                actions.append(SetField(action.key, action.value))
            case _:
                return None
    return tuple(actions)


def _instruction_list(version: int, data: bytes, offset: int) -> list[Any] | None:
    parser, found = PARSER[version], []
    while offset < len(data):
        if offset + 8 > len(data):
            raise ValueError("an instruction is cut off")
        kind, length = struct.unpack_from("!HH", data, offset)
        if length < 8 or offset + length > len(data):
            raise ValueError(f"an instruction of {length} bytes")
        if kind in (3, 4):  # OFPIT_WRITE_ACTIONS, OFPIT_APPLY_ACTIONS
            _no_empty_action(data, offset + 8, offset + length)
        instruction = parser.OFPInstruction.parser(data, offset)
        if instruction is None:
            return None
        found.append(instruction)
        offset += length
    return found


def _no_empty_action(data: bytes, offset: int, end: int) -> None:
    while offset + 4 <= end:
        _, size = struct.unpack_from("!HH", data, offset)
        if size < 8:
            raise ValueError(f"an action of {size} bytes")
        offset += size


@lru_cache(maxsize=16384)
def _entry(  # noqa: PLR0917 (what it is kept by)
    version: int, table: int, priority: int, idle_s: int, cookie: int, match: bytes, instructions: bytes
) -> FlowEntry | None:
    """Kept: most entries are the same on many switches. None for what is nothing of ours, as what can't be read."""
    try:
        parsed, made = _match(version, match, 0), _instruction_list(version, instructions, 0)
    except Exception:  # os-ken raises what it likes for what it does not know
        return None
    if parsed is None or made is None or table not in list(Table):
        return None
    actions: tuple[Action, ...] | None = ()
    goto, metadata = None, None
    for instruction in made:
        match type(instruction).__name__:
            case "OFPInstructionActions" if instruction.type == 4:
                actions = _actions(instruction.actions)
            case "OFPInstructionGotoTable" if instruction.table_id in list(Table):
                goto = Table(instruction.table_id)
            case "OFPInstructionWriteMetadata":
                metadata = instruction.metadata, instruction.metadata_mask
            case _:
                return None
    if actions is None:
        return None
    return FlowEntry(Table(table), priority, parsed, actions, goto, cookie, idle_s, metadata)


def _key(version: int, table: int, priority: int, match: bytes) -> Key | None:
    """None where no entry of ours can be, as what can't be read is no match of ours."""
    try:
        parsed = _match(version, match, 0)
    except Exception:  # as in _entry
        return None
    return None if parsed is None or table not in list(Table) else (Table(table), priority, parsed)


def _padded(data: bytes, offset: int) -> int:
    """Length of a match or of statistics at `offset`, with what fills it up to a multiple of 8."""
    _, length = struct.unpack_from("!HH", data, offset)
    if length < 4:
        raise ValueError(f"a match of {length} bytes")
    return length + 7 & ~7


def flows(version: int, body: bytes) -> Iterator[ReadFlow]:
    """From the body of a multipart reply of kind MP_FLOW."""
    offset = 0
    try:
        while offset < len(body):
            (length,) = struct.unpack_from("!H", body, offset)
            end = offset + length
            if length < 32 or end > len(body):
                raise ValueError(f"a flow entry of {length} bytes")
            packets = octets = 0
            if version == V1_3:
                table, priority, idle, cookie, packets, octets = struct.unpack_from("!2xBx8xHH2x2x4xQQQ", body, offset)
                match_at = offset + 48
                instructions_at = match_at + _padded(body, match_at)
            else:
                table, priority, idle, cookie = struct.unpack_from("!2x2xBxHH6xQ", body, offset)
                match_at = offset + 24
                stats_at = match_at + _padded(body, match_at)
                instructions_at = stats_at + _padded(body, stats_at)
                packets, octets = _oxs(body, stats_at)
            if instructions_at > end:
                raise ValueError("a flow entry's match is longer than the entry")
            match_end = match_at + _padded(body, match_at)
            entry, key = None, None
            if end - match_at <= LONG:  # what is kept of entries is bounded, each in its size too
                match, instructions = body[match_at:match_end], body[instructions_at:end]
                entry = _entry(version, table, priority, idle, cookie, match, instructions)
                key = entry.key if entry is not None else _key(version, table, priority, match)
            yield ReadFlow(table, priority, cookie, entry, key, packets, octets)
            offset = end
    except struct.error as error:
        raise ValueError(f"not a list of flow entries: {error!r}") from error


def _oxs(body: bytes, offset: int) -> tuple[int, int]:
    """Packets and bytes from OpenFlow extensible statistics (1.5.1, 7.2.4)."""
    _, length = struct.unpack_from("!HH", body, offset)
    packets = octets = 0
    at, end = offset + 4, offset + length
    while at + 4 <= end:
        kind, field, size = struct.unpack_from("!HBB", body, at)
        if kind == 0x8002 and size == 8:
            (value,) = struct.unpack_from("!Q", body, at + 4)
            if field >> 1 == 4:
                packets = value
            elif field >> 1 == 5:
                octets = value
        at += 4 + size
    return packets, octets


def groups(version: int, body: bytes) -> Iterator[SelectGroup]:
    """From a reply of kind MP_GROUP_DESC. Buckets that do anything else than output to one port leave no ports."""
    parser, offset = PARSER[version], 0
    try:
        while offset < len(body):
            (length,) = struct.unpack_from("!H", body, offset)
            if length < 8 or offset + length > len(body):
                raise ValueError(f"a group of {length} bytes")
            _no_empty_bucket(version, body, offset, length)
            desc = parser.OFPGroupDescStats.parser(body, offset)
            ports: list[int] = []
            for bucket in desc.buckets:
                actions = _actions(bucket.actions)
                if actions is not None and len(actions) == 1 and isinstance(actions[0], Output):
                    ports.append(actions[0].port)
            if len(ports) != len(desc.buckets):
                ports = []
            yield SelectGroup(desc.group_id, tuple(sorted(ports)))
            offset += length
    except Exception as error:  # os-ken raises what it likes for what it does not know
        raise ValueError(f"not a list of groups: {error!r}") from error


def _no_empty_bucket(version: int, body: bytes, offset: int, length: int) -> None:
    at = offset + (8 if version == V1_3 else 16)
    end = offset + length
    if version != V1_3:
        end = at + struct.unpack_from("!2x2x4xH", body, offset)[0]
    while at + 2 <= min(end, offset + length):
        (size,) = struct.unpack_from("!H", body, at)
        if size < 8:
            raise ValueError(f"a bucket of {size} bytes")
        at += size


def ports(version: int, body: bytes) -> Iterator[Port]:
    """From a reply of kind MP_PORT_DESC; real ports alone."""
    offset, size = 0, 64
    try:
        while offset < len(body):
            if version != V1_3:
                (size,) = struct.unpack_from("!4xH", body, offset)
            if size < 40 or offset + size > len(body):
                raise ValueError(f"a port of {size} bytes")
            if (made := port(version, body[offset : offset + size])) is not None:
                yield made
            offset += size
    except struct.error as error:
        raise ValueError(f"not a list of ports: {error!r}") from error


def port(version: int, data: bytes) -> Port | None:
    """None for a port that is not real, such as the switch's own."""
    speed_kbit_s = 0
    if version == V1_3:
        number, mac, name, config, state, speed_kbit_s = struct.unpack_from("!I4x6s2x16sII4x4x4x4xI", data)
    else:
        number, _, mac, name, config, state = struct.unpack_from("!IH2x6s2x16sII", data)
        offset = 40
        while offset + 4 <= len(data):
            kind, size = struct.unpack_from("!HH", data, offset)
            if size < 4:
                break
            if kind == 0 and size >= 32 and offset + 32 <= len(data):  # OFPPDPT_ETHERNET
                (speed_kbit_s,) = struct.unpack_from("!I", data, offset + 24)
            offset += size + 7 & ~7
    if number >= PORTS_END:
        return None
    up = not (config & _PORT_DOWN or state & _LINK_DOWN)
    return Port(PortNo(number), name_text(name), Mac(mac.hex(":")), up, speed_kbit_s * 1000)


def name_text(field: bytes) -> str:
    """A name as a switch tells it, in a field that zeros fill; it goes to terminals and logs."""
    return printable(field.split(b"\0", 1)[0].decode(errors="replace").strip(), MAX_NAME)


def port_counts(version: int, body: bytes) -> dict[PortNo, PortCounts]:
    """From a reply of kind MP_PORT_STATS."""
    found, offset, size = {}, 0, 112
    try:
        while offset < len(body):
            if version == V1_3:
                number, *counts = struct.unpack_from("!I4xQQQQ8xQ", body, offset)
            else:
                size, number, *counts = struct.unpack_from("!H2xI8xQQQQ8xQ", body, offset)
                if size < 80:
                    raise ValueError(f"counters of a port of {size} bytes")
            _, _, received_bytes, sent_bytes, dropped = counts
            if number < PORTS_END:
                found[PortNo(number)] = PortCounts(received_bytes, sent_bytes, _known(dropped))
            offset += size
    except struct.error as error:
        raise ValueError(f"not counters of ports: {error!r}") from error
    return found


def _known(count: int) -> int:
    """All ones say that the switch does not count it."""
    return 0 if count == (1 << 64) - 1 else count


def queue_counts(version: int, body: bytes) -> dict[tuple[PortNo, int], QueueCounts]:
    """From a reply of kind MP_QUEUE; by port and queue."""
    found, offset, size = {}, 0, 40
    try:
        while offset < len(body):
            if version == V1_3:
                number, queue, octets, packets, errors = struct.unpack_from("!IIQQQ", body, offset)
            else:
                size, number, queue, octets, packets, errors = struct.unpack_from("!H6xIIQQQ", body, offset)
                if size < 48:
                    raise ValueError(f"counters of a queue of {size} bytes")
            found[PortNo(number), queue] = QueueCounts(_known(octets), _known(packets), _known(errors))
            offset += size
    except struct.error as error:
        raise ValueError(f"not counters of queues: {error!r}") from error
    return found


def flow_count(version: int, body: bytes) -> int:
    """How many entries an MP_AGGREGATE reply is of."""
    try:
        if version == V1_3:
            return struct.unpack_from("!16xI", body)[0]
        return _aggregate_oxs(body)
    except struct.error as error:
        raise ValueError(f"not a sum of flow entries: {error!r}") from error


def _aggregate_oxs(body: bytes) -> int:
    _, length = struct.unpack_from("!HH", body)
    at = 4
    while at + 4 <= length:
        kind, field, size = struct.unpack_from("!HBB", body, at)
        if kind == 0x8002 and field >> 1 == 3 and size == 4:
            return struct.unpack_from("!I", body, at + 4)[0]
        at += 4 + size
    return 0
