"""A policy as flow entries: whatever the entries do to a packet is what the policy's rules say in words."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_controller.flows.entry import FlowEntry, Match, Owner, SetField, SetQueue, Table, cookie
from trunkline_controller.policy import categories, classify, roles
from trunkline_controller.policy.file import parse
from trunkline_controller.policy.model import Category, Lift, Policy, Queue, Role, Rule

FOURS = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1", "10.0.1.2", "192.168.7.7"]
SIXES = ["fd00::1", "fd00::2", "fd00:1::1"]
PREFIXES = ["10.0.0.0/24", "10.0.0.2/31", "10.0.0.0/8", "fd00::/64", "0.0.0.0/0", *FOURS, *SIXES]
PORTS = [9866, 13562, 8020, 40000, 40001]
MARKS = [0, 3, 11, 18, 46]


@dataclass(frozen=True)
class Packet:
    source: str
    destination: str
    protocol: str
    source_port: int
    destination_port: int
    dscp: int


packets = st.one_of(
    *(
        st.builds(
            Packet,
            st.sampled_from(hosts),
            st.sampled_from(hosts),
            st.sampled_from(["tcp", "udp"]),
            st.sampled_from(PORTS),
            st.sampled_from(PORTS),
            st.sampled_from(MARKS),
        )
        for hosts in (FOURS, SIXES)
    )
)


def or_none(values):
    return st.one_of(st.none(), st.sampled_from(values))


@st.composite
def rules(draw):
    protocol = draw(or_none(["tcp", "udp"]))
    port = or_none(PORTS) if protocol else st.none()
    version = draw(st.sampled_from([4, 6]))
    prefixes = [p for p in PREFIXES if ipaddress.ip_network(p).version == version]
    return Rule(
        draw(st.sampled_from(["shuffle", "replication", "mine", "client-read"])),
        protocol,
        draw(or_none(list(Role))),
        draw(or_none(list(Role))),
        draw(or_none(prefixes)),
        draw(or_none(prefixes)),
        draw(port),
        draw(port),
        draw(or_none([3, 18])),
        draw(st.booleans()),
    )


QUEUES = {name: Queue(name, number, dscp) for name, number, dscp in (("q0", 0, 0), ("q1", 1, 11), ("q2", 2, 3))}
members = st.lists(st.sampled_from(PREFIXES), max_size=4).map(tuple)


@st.composite
def policies(draw):
    names = [*Category, "mine"]
    return Policy(
        "drawn",
        QUEUES,
        {},
        {str(name): draw(st.sampled_from(list(QUEUES))) for name in names},
        tuple(draw(st.lists(rules(), max_size=6))),
        MappingProxyType({role: draw(members) for role in Role}),
        "q0",
        trusted=draw(members),
    )


def holds(prefixes, address):
    there = ipaddress.ip_address(address)
    return any(there in net for net in map(ipaddress.ip_network, prefixes) if net.version == there.version)


def takes(policy: Policy, rule: Rule, packet: Packet) -> bool:
    """What a rule says, in its own words."""
    return (
        rule.protocol in (None, packet.protocol)
        and rule.source_port in (None, packet.source_port)
        and rule.destination_port in (None, packet.destination_port)
        and rule.dscp in (None, packet.dscp)
        and (rule.source is None or holds([rule.source], packet.source))
        and (rule.destination is None or holds([rule.destination], packet.destination))
        and (rule.source_role is None or holds(policy.roles[rule.source_role], packet.source))
        and (rule.destination_role is None or holds(policy.roles[rule.destination_role], packet.destination))
        and (not rule.trusted or holds(policy.trusted, packet.source))
    )


def category(policy: Policy, packet: Packet) -> str:
    return next((rule.category for rule in policy.rules if takes(policy, rule, packet)), "other")


def matches(match: Match, packet: Packet, metadata: int) -> bool:
    version = 6 if ":" in packet.source else 4
    protocol = {"tcp": 6, "udp": 17}[packet.protocol]
    return (
        match.eth_type in (None, {4: 0x0800, 6: 0x86DD}[version])
        and match.ip_proto in (None, protocol)
        and match.ip_dscp in (None, packet.dscp)
        and match.l4_src in (None, packet.source_port)
        and match.l4_dst in (None, packet.destination_port)
        and (match.ip_src is None or holds([match.ip_src], packet.source))
        and (match.ip_dst is None or holds([match.ip_dst], packet.destination))
        and (match.metadata is None or metadata & match.metadata_mask == match.metadata)
    )


def switched(entries: frozenset[FlowEntry], packet: Packet) -> tuple[FlowEntry, Packet]:
    """The entry of CLASSIFY that a packet meets, and the packet as it leaves."""
    table, metadata = Table.SOURCE_ROLES, 0
    while True:
        met = [e for e in entries if e.table == table and matches(e.match, packet, metadata)]
        top = max(entry.priority for entry in met)
        best = [entry for entry in met if entry.priority == top]
        assert len({(entry.actions, entry.goto, entry.write_metadata) for entry in best}) == 1, "ambiguous"
        entry = best[0]
        if entry.write_metadata:
            value, mask = entry.write_metadata
            metadata = metadata & ~mask | value
        if table == Table.CLASSIFY:
            assert entry.goto == Table.FORWARD
            marks = [action.value for action in entry.actions if isinstance(action, SetField)]
            return entry, replace(packet, dscp=marks[0]) if marks else packet
        assert entry.goto is not None
        assert entry.goto > table
        table = entry.goto


def queue(entry: FlowEntry) -> int:
    return next(action.queue for action in entry.actions if isinstance(action, SetQueue))


@given(policies(), st.lists(packets, min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_entries_give_each_packet_the_category_and_queue_that_the_rules_say(policy, some):
    entries = classify.entries(policy)
    assert len({entry.key for entry in entries}) == len(entries)
    for packet in some:
        entry, _ = switched(entries, packet)
        wanted = category(policy, packet)
        assert classify.category_of(policy, entry.cookie) == wanted
        assert queue(entry) == policy.queues[policy.categories[wanted]].number


@given(policies(), st.lists(packets, min_size=1, max_size=20), st.sampled_from(FOURS))
@settings(max_examples=60, deadline=None)
def test_a_lift_takes_only_packets_of_its_category_from_or_to_its_host(policy, some, host):
    plain, lifted = classify.entries(policy), classify.entries(policy, [Lift("shuffle", host, "q2")])
    for packet in some:
        before, _ = switched(plain, packet)
        after, _ = switched(lifted, packet)
        assert classify.category_of(policy, after.cookie) == classify.category_of(policy, before.cookie)
        if after.actions != before.actions or after.cookie != before.cookie:
            assert after.cookie >> 32 & 0xFFFF == Owner.LIFT
            assert queue(after) == 2
            assert category(policy, packet) == "shuffle"
            assert host in (packet.source, packet.destination)


def test_a_lift_takes_a_reducers_fetches_and_not_what_its_host_serves_to_others():
    policy = parse(
        "queues: {a: {number: 0, dscp: 0}, b: {number: 1, dscp: 11}}\ndefault: a\n"
        "roles: {nodemanager: [10.0.0.0/24]}\ncategories: {shuffle: a}\n"
    )
    entries = classify.entries(policy, [Lift("shuffle", "10.0.0.2", "b")])

    def lands(source, destination, source_port, destination_port):
        return queue(switched(entries, Packet(source, destination, "tcp", source_port, destination_port, 0))[0])

    assert lands("10.0.0.1", "10.0.0.2", 13562, 40000) == 1  # a map's output to it
    assert lands("10.0.0.2", "10.0.0.1", 40000, 13562) == 1  # what it says to that
    assert lands("10.0.0.2", "10.0.0.1", 13562, 40000) == 0  # a map's output from it
    assert lands("10.0.0.1", "10.0.0.3", 13562, 40000) == 0
    assert lands("10.0.0.1", "10.0.0.2", 9866, 40000) == 0


def test_lifts_of_what_the_policy_has_not_are_refused():
    policy = parse("queues: {a: {number: 0, dscp: 0}}\ndefault: a\n")
    with pytest.raises(KeyError):
        classify.entries(policy, [Lift("shuffle", "10.0.0.1", "b")])
    with pytest.raises(KeyError):
        classify.entries(policy, [Lift("nothing", "10.0.0.1", "a")])


def test_without_a_policy_packets_pass_through_untouched():
    packet = Packet("10.0.0.1", "10.0.0.2", "tcp", 1, 2, 46)
    entry, after = switched(classify.entries(None), packet)
    assert entry.actions == ()
    assert after == packet


def test_all_ip_gets_a_queue_and_its_mark_and_other_packets_the_default_queue():
    policy = parse("queues: {a: {number: 2, dscp: 5}, b: {number: 1, dscp: 9}}\ndefault: a\ncategories: {shuffle: b}\n")
    classifying = [entry for entry in classify.entries(policy) if entry.table is Table.CLASSIFY]
    queue = {5: (SetQueue(2), SetField("ip_dscp", 5)), 9: (SetQueue(1), SetField("ip_dscp", 9))}
    for entry in classifying:
        assert entry.actions in ((SetQueue(2),),) if entry.match == Match() else entry.actions in queue.values()
    for marked in (0, 46):
        _, after = switched(classify.entries(policy), Packet("10.0.0.1", "10.0.0.2", "udp", 7, 7, marked))
        assert after.dscp == 5  # of no category: the host's mark goes, too


CLUSTER = """
queues: {q0: {number: 0, dscp: 1}, q1: {number: 1, dscp: 11}, q2: {number: 2, dscp: 3}}
default: q0
roles:
  namenode: 10.0.9.1
  resourcemanager: 10.0.9.2
  datanode: [10.0.0.0/24, 10.0.1.0/24]
  nodemanager: [10.0.0.0/24, 10.0.2.0/24]
"""
BOTH, DATANODE, NODEMANAGER, CLIENT = "10.0.0.5", "10.0.1.5", "10.0.2.5", "10.0.8.1"


@pytest.mark.parametrize(
    ("source", "source_port", "destination", "destination_port", "wanted"),
    [
        (CLIENT, 40000, DATANODE, 9866, "client-write"),
        (DATANODE, 9866, CLIENT, 40000, "client-read"),
        (DATANODE, 40000, "10.0.1.6", 9866, "replication"),
        ("10.0.1.6", 9866, DATANODE, 40000, "replication"),
        (BOTH, 40000, "10.0.0.6", 9866, "replication"),
        ("10.0.0.6", 9866, BOTH, 40000, "split"),
        (DATANODE, 9866, NODEMANAGER, 40000, "split"),
        (NODEMANAGER, 40000, DATANODE, 9866, "result"),
        (NODEMANAGER, 40000, BOTH, 13562, "shuffle"),
        (BOTH, 13562, NODEMANAGER, 40000, "shuffle"),
        (DATANODE, 13562, NODEMANAGER, 40000, "other"),  # no NodeManager serves there
        (DATANODE, 40000, "10.0.9.1", 8020, "namenode"),
        ("10.0.9.1", 8020, DATANODE, 40000, "namenode"),
        (NODEMANAGER, 40000, "10.0.9.2", 8031, "resourcemanager"),
        ("10.0.9.2", 8031, NODEMANAGER, 40000, "resourcemanager"),
        (CLIENT, 40000, DATANODE, 22, "other"),
    ],
)
def test_hadoops_connections_are_told_by_port_role_and_direction(
    source, source_port, destination, destination_port, wanted
):
    policy = parse(CLUSTER)
    entry, _ = switched(classify.entries(policy), Packet(source, destination, "tcp", source_port, destination_port, 0))
    assert classify.category_of(policy, entry.cookie) == wanted


def test_ports_of_a_cluster_that_has_other_ones():
    policy = parse(CLUSTER + "services: {datanode-data: 50010, shuffle: [8080, 8081]}\n")
    entries = classify.entries(policy)

    def found(*packet):
        return classify.category_of(policy, switched(entries, Packet(*packet))[0].cookie)

    assert found(CLIENT, DATANODE, "tcp", 40000, 50010, 0) == "client-write"
    assert found(CLIENT, DATANODE, "tcp", 40000, 9866, 0) == "other"
    assert found(BOTH, NODEMANAGER, "tcp", 8081, 40000, 0) == "shuffle"


MARKED = (
    CLUSTER
    + """
marks: {trust: [datanode, nodemanager]}
categories:
  client-read: q1
  split: q2
  voice: {queue: q1, match: [{dscp: ef}]}
"""
)


@given(st.lists(packets, min_size=1, max_size=10))
@settings(max_examples=60, deadline=None)
def test_each_switch_on_the_way_gives_a_packet_the_same_queue(some):
    """Where marks tell the queues apart, the next switch sees this one's mark."""
    policy = parse(MARKED)
    entries = classify.entries(policy)
    for packet in some:
        first, after = switched(entries, packet)
        second, last = switched(entries, after)
        assert queue(first) == queue(second), (first, second)
        assert last == after


def test_marks_of_trusted_hosts_tell_a_clients_read_from_a_tasks():
    policy = parse(MARKED)
    entries = classify.entries(policy)

    def found(source, dscp):
        packet = Packet(source, "10.0.0.6", "tcp", 9866, 40000, dscp)
        return classify.category_of(policy, switched(entries, packet)[0].cookie)

    assert found(BOTH, 0) == "split"
    assert found(BOTH, categories.MARKS[Category.CLIENT_READ]) == "client-read"
    assert found(CLIENT, categories.MARKS[Category.CLIENT_READ]) == "other"  # not trusted


def test_a_host_that_nobody_trusts_cannot_mark_its_way_into_a_queue():
    policy = parse(CLUSTER)
    _, after = switched(classify.entries(policy), Packet(CLIENT, DATANODE, "tcp", 1, 2, 11))
    assert after.dscp == policy.queues["q0"].dscp


def test_entries_grow_with_hosts_and_not_with_their_pairs():
    hosts = [f"10.{n % 8}.{n // 8 % 250}.{(n * 7) % 250 + 1}" for n in range(2000)]
    listed = ", ".join(hosts)
    policy = parse(
        "queues: {a: {number: 0, dscp: 0}}\ndefault: a\n"
        f"roles: {{datanode: [{listed}], nodemanager: [{', '.join(hosts[::2])}]}}\n"
    )
    assert len(set(hosts)) == 2000
    assert len(classify.entries(policy)) < 2 * len(hosts) + 200


def test_neighbouring_hosts_share_an_entry():
    policy = parse(
        "queues: {a: {number: 0, dscp: 0}}\ndefault: a\nroles: {datanode: ["
        + ", ".join(f"10.0.{n >> 8}.{n & 255}" for n in range(2048))
        + "]}\n"
    )
    assert policy.roles[Role.DATANODE] == ("10.0.0.0/21",)
    assert sum(entry.table == Table.SOURCE_ROLES for entry in classify.entries(policy)) == 2


nets = st.sampled_from(["10.0.0.0/30", "10.0.0.0/31", "10.0.0.2/31", *(f"10.0.0.{n}" for n in range(6)), "0.0.0.0/0"])


@given(st.dictionaries(st.sampled_from([1, 2, 4]), st.lists(nets, max_size=5), max_size=3))
@settings(max_examples=100, deadline=None)
def test_the_longest_prefix_of_an_address_has_all_its_roles(held):
    found = roles.prefixes(held)
    for number in range(8):
        address = ipaddress.ip_address(f"10.0.0.{number}")
        around = [net for net in found if address in net]
        said = found[max(around, key=lambda net: net.prefixlen)] if around else 0
        assert said == sum(bit for bit, texts in held.items() if holds(texts, str(address)))


def test_a_category_more_leaves_the_entries_of_others_alone():
    one = parse(CLUSTER)
    more = parse(CLUSTER + "categories: {mine: {queue: q1, match: [{port: 5001}]}}\n")
    plain, grown = classify.entries(one), classify.entries(more)
    assert plain <= grown
    assert {classify.category_of(more, entry.cookie) for entry in grown - plain} == {"mine"}


def test_a_foreign_cookie_is_of_no_category():
    policy = parse(CLUSTER)
    assert classify.category_of(policy, 5) == ""
    assert classify.category_of(policy, cookie(Owner.FORWARD, 1)) == ""
    assert classify.category_of(policy, cookie(Owner.POLICY, 10_000)) == ""
