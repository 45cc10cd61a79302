"""Whom the controller believes: LLDP of its own, hosts that speak for themselves, the senior of two controllers."""

import dataclasses
import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from trunkline_controller.flows.entry import Owner
from trunkline_controller.net import frames
from trunkline_controller.net.alarms import MAX_ALARMS, Alarms
from trunkline_controller.net.topology import End
from trunkline_controller.openflow.leases import Lease, new_identity, senior
from trunkline_controller.openflow.lldp import VALID_S, Lldp
from trunkline_controller.rates import MAX_KEYS, Buckets

END, SOURCE = End(0x1234, 7), "02:00:00:00:00:01"
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


def test_own_lldp_tells_the_port_that_it_was_sent_out_of():
    lldp = Lldp()
    assert lldp.origin(lldp.frame(END, SOURCE, 100.0), 100.2) == END


def test_lldp_of_another_key_or_from_long_ago_is_nobodys():
    lldp = Lldp()
    frame = lldp.frame(END, SOURCE, 100.0)
    assert Lldp().origin(frame, 100.2) is None
    assert lldp.origin(frame, 100.0 + VALID_S + 1) is None
    assert lldp.origin(lldp.frame(END, SOURCE, 200.0), 100.0) is None


@given(st.integers(14, 100), st.integers(1, 255))
def test_lldp_that_was_changed_anywhere_in_what_counts_is_nobodys_and_never_raises(at, change):
    lldp = Lldp(b"k" * 32)
    frame = bytearray(lldp.frame(END, SOURCE, 100.0))
    signed = frame.index(b"\x02\x74\x72\x01")
    if at < len(frame):
        frame[at] ^= change
    assert lldp.origin(bytes(frame), 100.0) in (None, END)
    if signed <= at < signed + 4 + 16 + 16:
        assert lldp.origin(bytes(frame), 100.0) is None


@given(st.binary(max_size=120))
def test_any_bytes_are_a_frame_or_none(data):
    frames.read(data)
    frames.read(b"\xff" * 6 + b"\x02" + bytes(5) + b"\x08\x06" + data)
    Lldp().origin(data, 0.0)


def test_an_arp_reply_speaks_for_the_host_that_was_asked_for():
    read = frames.read(frames.arp_reply(A, "10.0.0.1", B, "10.0.0.2"))
    assert read is not None
    assert (read.destination, read.source, read.address, read.asks_for) == (A, B, "10.0.0.2", None)


def test_a_probe_claims_no_address():
    read = frames.read(frames.probe(A, B, "10.0.0.2"))
    assert read is not None
    assert (read.destination, read.source, read.address, read.asks_for) == (B, A, None, "10.0.0.2")


def test_a_probe_by_ipv6_is_a_valid_neighbour_solicitation():
    frame = frames.probe(A, B, "fd00::2")
    source, target, body = frame[22:38], frame[38:54], frame[54:]
    pseudo = source + target + len(body).to_bytes(4) + (58).to_bytes(4)
    assert frames._checksum(pseudo + body) == 0
    assert ipaddress.IPv6Address(body[8:24]) == ipaddress.IPv6Address("fd00::2")


def test_arp_in_another_ones_name_says_nothing_of_addresses():
    frame = bytearray(frames.arp_reply(A, "10.0.0.1", B, "10.0.0.2"))
    frame[6:12] = bytes.fromhex("020000000066")
    read = frames.read(bytes(frame))
    assert read is not None
    assert read.address is None


def test_of_two_controllers_the_one_that_started_first_is_the_senior_whoever_asks():
    first, second = Lease(1000, new_identity()), Lease(1001, new_identity())
    assert senior(first, [first, second]) is None
    assert senior(second, [first, second]) == first
    twins = Lease(1000, "02:00:00:00:00:01"), Lease(1000, "02:00:00:00:00:02")
    assert [senior(one, twins) for one in twins] == [None, twins[0]]


def test_a_controllers_own_lease_of_an_earlier_life_is_nobody_elses():
    before = Lease(1000, new_identity())
    assert senior(dataclasses.replace(before, started=2000), [before]) is None


def test_a_lease_is_told_from_its_entry():
    lease = Lease(0xFFFFFFFF, new_identity())
    assert Lease.of(lease.entry()) == lease
    assert lease.entry().cookie >> 32 & 0xFFFF == Owner.LEASE


def test_a_bucket_lets_through_its_burst_and_then_its_rate():
    bucket = Buckets(per_s=10, burst=5)
    assert [bucket.take("a", 0.0) for _ in range(7)] == [True] * 5 + [False] * 2
    assert bucket.take("b", 0.0)
    assert [bucket.take("a", 0.25) for _ in range(4)] == [True, True, False, False]


def test_buckets_of_made_up_keys_are_bounded():
    bucket = Buckets(per_s=1, burst=1)
    for key in range(MAX_KEYS + 100):
        bucket.take(key, 0.0)
    assert not bucket.take("one more", 0.0)
    bucket.forget(100.0)
    assert bucket.take("one more", 100.0)


def test_alarms_are_bounded_begin_once_and_end():
    alarms = Alarms()
    for number in range(MAX_ALARMS + 50):
        alarms.sound(f"{number}", f"what {number}", "remedy", float(number), for_s=1000.0)
    assert len(alarms.all()) == MAX_ALARMS
    alarms.sound("0", "what 0", "remedy", 5.0, for_s=1000.0)
    assert alarms.all()[-1].since == 0.0
    alarms.tick(5000.0)
    assert alarms.all() == ()
    assert {what for what, _ in alarms.news()} == {"began", "ended"}
    assert alarms.news() == []
