"""Mirrored segments on real switches: what a client sends to the first replica comes to the others as if from there."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field

import controllers
import openvswitch
import pytest
from openvswitch import until

from trunkline_controller.flows.entry import Owner, cookie
from trunkline_controller.mirror.entries import MARK

pytestmark = [
    pytest.mark.switch,
    pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing()),
]

POOL, BLOCK = "BP-1-10.0.0.1-1790000000000", 1073741825
DSCP = 11
POLICY = f"""\
name: writes
queues: {{ q0: {{ number: 0, dscp: 0 }}, q1: {{ number: 1, dscp: {DSCP} }} }}
default: q0
ports:
  hosts: &all {{ rate: 300mbit, queues: {{ q0: {{ max: 300mbit }}, q1: {{ max: 300mbit }} }} }}
  switches: *all
categories:
  iperf: {{ queue: q1, match: [{{ port: 9866 }}] }}
"""

LISTEN = """
import socket, sys
found = []
for end in [end for end in socket.getaddrinfo(sys.argv[1], 9866, type=socket.SOCK_STREAM)][:1]:
    server = socket.socket(end[0], socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(end[4][:2])
    server.listen()
    print("ready", flush=True)
    connection, _ = server.accept()
    while data := connection.recv(65536):
        print(data.decode(), flush=True)
"""
# Sends each line of its input, after it was told where to.
CONNECT = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
client = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
client.bind(("", port))
client.connect((address, 9866))
print("ready", flush=True)
for line in sys.stdin:
    client.sendall(line.strip().encode())
"""
LOOK = """
import socket
eth0 = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
eth0.bind(("eth0", 0))
print("ready", flush=True)
while True:
    frame, (_, _, kind, *_) = eth0.recvfrom(65536)
    if kind != socket.PACKET_OUTGOING:
        print(frame.hex(), flush=True)
"""
SEND = """
import socket, sys
eth0 = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
eth0.bind(("eth0", 0))
eth0.send(bytes.fromhex(sys.argv[1]))
"""


@dataclass(frozen=True)
class Segment:
    """A TCP segment as it came in."""

    eth_src: str
    eth_dst: str
    source: str
    source_port: int
    destination: str
    destination_port: int
    dscp: int
    payload: str
    checksum_is_right: bool


def segment(frame: bytes) -> Segment | None:
    kind = int.from_bytes(frame[12:14])
    if kind == 0x0800 and frame[23] == 6:
        traffic_class, header = frame[15], (frame[14] & 15) * 4
        packet = frame[14 : 14 + int.from_bytes(frame[16:18])]
        source, destination = packet[12:16], packet[16:20]
    elif kind == 0x86DD and frame[20] == 6:
        traffic_class, header = int.from_bytes(frame[14:16]) >> 4 & 0xFF, 40
        packet = frame[14 : 54 + int.from_bytes(frame[18:20])]
        source, destination = packet[8:24], packet[24:40]
    else:
        return None
    tcp = packet[header:]
    return Segment(
        frame[6:12].hex(":"),
        frame[0:6].hex(":"),
        str(ipaddress.ip_address(source)),
        int.from_bytes(tcp[0:2]),
        str(ipaddress.ip_address(destination)),
        int.from_bytes(tcp[2:4]),
        traffic_class >> 2,
        tcp[(tcp[12] >> 4) * 4 :].decode(errors="replace"),
        _sum(source + destination + struct.pack("!II", len(tcp), 6) + tcp) == 0xFFFF,
    )


def _sum(octets: bytes) -> int:
    octets += b"\0" * (len(octets) % 2)
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass
class Program:
    """A Python program in a host; what it prints is kept."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def say(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def segments(self) -> list[Segment]:
        """Those with payload."""
        found = (segment(bytes.fromhex(line)) for line in self.lines[1:])
        return [one for one in found if one is not None and one.payload.strip("\0")]

    def frame(self, payload: str) -> bytes:
        """The first that carried it."""
        frames = (bytes.fromhex(line) for line in self.lines[1:])
        return next(f for f in frames if (one := segment(f)) is not None and one.payload == payload)


def with_source(frame: bytes, mac: str) -> bytes:
    return frame[:6] + bytes.fromhex(mac.replace(":", "")) + frame[12:]


@contextlib.contextmanager
def program(host: openvswitch.Host, text: str, *words: str):
    pipe = subprocess.PIPE
    process = subprocess.Popen(host.words(sys.executable, "-c", text, *words), stdin=pipe, stdout=pipe, text=True)
    made = Program(process)
    reader = threading.Thread(target=made.read, daemon=True)
    reader.start()
    try:
        until("the program is ready", lambda: made.lines or process.poll() is not None)
        yield made
    finally:
        process.kill()
        process.wait()
        reader.join(openvswitch.GIVE_UP_S)


def ask(controller, method: str, path: str, body: object = None, kind: str = "application/json"):
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{controller.url}{path}", data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=openvswitch.GIVE_UP_S) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Pipeline:
    """A client, its replicas, and the connections between them; only the client's is really there."""

    def __init__(self, hosts: list[openvswitch.Host], ipv6: bool = False, port: int = 40000) -> None:
        self.hosts = hosts
        self.addresses = [six(host) if ipv6 else host.address for host in hosts]
        self.port = port
        self.run = "1"  # of the agents

    def poll(self, controller, position: int, **others: object):
        """As the agent at a replica's host."""
        body = {"run": self.run, "addresses": [self.addresses[position]]} | others
        return ask(controller, "POST", f"v1/mirror-agents/d{position}", body)

    def announce(self, controller, wait_ms: int = 0):
        """With agents at all replicas' hosts."""
        for position in range(1, len(self.hosts)):
            self.poll(controller, position)
        for position in range(1, len(self.hosts)):
            found = ask(
                controller,
                "POST",
                "v1/mirrors",
                {
                    "pool": POOL,
                    "block": BLOCK,
                    "generation": 1001,
                    "position": position,
                    "replicas": len(self.hosts) - 1,
                    "source": {"address": self.addresses[position - 1], "port": self.port + position - 1},
                    "destination": {"address": self.addresses[position], "port": 9866},
                    "client": "DFSClient_1",
                    "wait_ms": wait_ms if position == len(self.hosts) - 1 else 0,
                },
            )
        return found

    def armed(self, controller):
        """Announces it until the network is known well enough."""
        return until("the mirror is armed", lambda: (m := self.renewed(controller, 1000)).get("state") == "armed" and m)

    def renewed(self, controller, wait_ms: int = 0):
        """As `announce`, also at a controller that is not master yet."""
        try:
            return self.announce(controller, wait_ms)
        except urllib.error.HTTPError as error:
            assert error.code == 409
            return json.load(error)

    def expected(self, position: int, payload: str) -> Segment:
        return Segment(
            f"{MARK}:00:00:{position:02x}",
            self.hosts[position].mac,
            self.addresses[position - 1],
            self.port + position - 1,
            self.addresses[position],
            9866,
            DSCP,
            payload,
            True,
        )


def six(host: openvswitch.Host) -> str:
    return f"fd00::{host.address.rpartition('.')[2]}"


def three_racks(net, controller):
    """The client and the first replica in one rack, the two others in racks of their own, behind a fourth switch."""
    for number, name in enumerate(("s1", "s2", "s3", "core"), 1):
        net.switch(name, number, [controller.target()])
    for name in ("s1", "s2", "s3"):
        net.link(name, "core")
    hosts = [net.host(name, at) for name, at in (("c", "s1"), ("d1", "s1"), ("d2", "s2"), ("d3", "s3"))]
    for host in hosts:
        host.run("ip", "address", "add", f"{six(host)}/64", "dev", "eth0", "nodad")
    until("links are known", lambda: controller.status()["links"] == 3)
    until("hosts reach each other", lambda: all(one.pings(two) for one in hosts for two in hosts if one != two))
    until("over IPv6, too", lambda: all(one.pings(six(two)) for one in hosts for two in hosts if one != two))
    return hosts


def mirrors_of(net):
    """Flow entries of pipelines, on all switches; those that keep marks true have no number in their cookies."""
    ours, guards = "cookie=0x74720006", f"cookie={cookie(Owner.MIRROR):#x},"
    return [line for s in net.switches for line in net.flows(s) if line.startswith(ours) and guards not in line]


def begin(sending: Program, *replicas: Program) -> None:
    """Copies come: an armed switch has its entries, but what it has cached of a connection gives way a moment later."""

    def come() -> bool:
        sending.say("begun")
        return all(looking.segments() for looking in replicas)

    until("copies come", come)


def fence(source, target, watched: Program) -> None:
    """What was on its way to the target from before has come."""
    before = len(watched.lines)
    until("a ping", lambda: source.pings(target))
    until("the ping is seen", lambda: len(watched.lines) > before)


@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
def test_a_segment_arrives_at_all_replicas_as_if_it_had_come_down_the_pipeline_until_it_is_closed(tmp_path, ipv6):
    with openvswitch.network(tmp_path) as net, controllers.running(tmp_path / "c", more=ENABLED) as controller:
        client, d1, d2, d3 = hosts = three_racks(net, controller)
        ask(controller, "PUT", "v1/policy", POLICY, "text/yaml")
        until("the policy is in force", lambda: controller.status()["converged"])
        pipeline = Pipeline(hosts, ipv6)
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(program(d1, LISTEN, pipeline.addresses[1]))
            seen = [stack.enter_context(program(host, LOOK)) for host in (d1, d2, d3)]
            sending = stack.enter_context(program(client, CONNECT, pipeline.addresses[1], str(pipeline.port)))

            sending.say("before")
            until("the first replica has it", lambda: "before" in server.lines)
            identity = pipeline.armed(controller)["id"]
            begin(sending, *seen[1:])
            sending.say("mirrored")
            until("the first replica has it", lambda: "mirrored" in "".join(server.lines))

            def mirrored(looking):
                return [one for one in looking.segments() if one.payload == "mirrored"]

            for position, looking in enumerate(seen[1:], 2):
                until("a replica has it", lambda looking=looking: mirrored(looking))
                assert set(mirrored(looking)) == {pipeline.expected(position, "mirrored")}
            assert {one.eth_src for one in mirrored(seen[0])} == {client.mac}
            sent = len(mirrored(seen[0]))
            assert [len(mirrored(looking)) for looking in seen[1:]] == [sent] * 2  # once each time it was sent

            ask(controller, "DELETE", f"v1/mirrors/{identity}")
            until("switches have no entries for it", lambda: not mirrors_of(net))
            sending.say("after")
            until("the first replica has it", lambda: "after" in "".join(server.lines))
            for host, looking in ((d2, seen[1]), (d3, seen[2])):
                fence(client, host, looking)
                assert not {"before", "after"} & {one.payload for one in looking.segments()}
            assert "".join(server.lines[1:]).replace("begun", "") == "beforemirroredafter"


def test_copies_end_when_an_agent_leaves_and_begin_again_when_it_comes(tmp_path):
    with openvswitch.network(tmp_path) as net, controllers.running(tmp_path / "c", more=SHORT_LEASE) as controller:
        client, d1, d2, d3 = hosts = three_racks(net, controller)
        pipeline = Pipeline(hosts)
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(program(d1, LISTEN, pipeline.addresses[1]))
            seen = {host.name: stack.enter_context(program(host, LOOK)) for host in (d2, d3)}
            sending = stack.enter_context(program(client, CONNECT, pipeline.addresses[1], str(pipeline.port)))
            identity = pipeline.armed(controller)["id"]
            had = mirrors_of(net)

            def state():
                (found,) = ask(controller, "GET", "v1/mirrors")["mirrors"]
                return found["state"], found["why"]

            def keeps(*positions):
                """Their agents poll on."""
                for position in positions:
                    pipeline.poll(controller, position)
                return True

            def sends_without_copies(word):
                sending.say(word)
                until("the first replica has it", lambda: keeps(1, 2) and word in "".join(server.lines))
                for host in (d2, d3):
                    fence(client, host, seen[host.name])
                    assert word not in payloads(host)

            def payloads(host):
                return {one.payload for one in seen[host.name].segments()}

            # It says so: when it is told that copies have stopped, the switches have nothing of it any more.
            answer = pipeline.poll(controller, 3, leaving=True, wait_ms=30_000)
            assert (answer["stopped"], mirrors_of(net), state()) == (True, [], ("refused", "no_agent"))
            sends_without_copies("without")
            # It is back, and the pipeline is mirrored by itself.
            pipeline.run = "2"
            keeps(3)
            until("it is armed again", lambda: keeps(1, 2, 3) and state() == ("armed", None))
            assert mirrors_of(net) == had
            (flow,) = pipeline.poll(controller, 3)["flows"]
            assert (flow["id"], flow["position"], flow["lead"], flow["send"]) == (identity, 3, False, None)
            keeps(1, 2, 3)
            begin(sending, *seen.values())
            # It is killed: it says nothing.
            until("its lease is over", lambda: keeps(1, 2) and state() == ("refused", "no_agent"))
            until("switches have no entries for it", lambda: keeps(1, 2) and not mirrors_of(net))
            sends_without_copies("silent")
            keeps(1, 2)
            agents = ask(controller, "GET", "v1/mirror-agents")["agents"]
            assert [agent["name"] for agent in agents] == ["d1", "d2"]


def test_a_mark_that_a_host_made_goes_nowhere(tmp_path):
    with openvswitch.network(tmp_path) as net, controllers.running(tmp_path / "c", more=ENABLED) as controller:
        client, d1, _, d3 = hosts = three_racks(net, controller)
        pipeline = Pipeline(hosts)
        pipeline.armed(controller)
        with contextlib.ExitStack() as stack:
            stack.enter_context(program(d1, LISTEN, pipeline.addresses[1]))
            near, far = (stack.enter_context(program(host, LOOK)) for host in (d1, d3))
            sending = stack.enter_context(program(client, CONNECT, pipeline.addresses[1], str(pipeline.port)))
            begin(sending, far)
            sending.say("whole")
            for looking in (far, near):
                until("it is there", lambda looking=looking: "whole" in {one.payload for one in looking.segments()})
            # As it is in transit, and as it comes out; from the client itself, and from another host of its switch.
            for frame in (near.frame("whole"), far.frame("whole")):
                for number in ("00:00", "00:03"):
                    forged = with_source(frame, f"{MARK}:00:{number}").replace(b"whole", b"false")
                    for host in (client, d1):
                        host.run(sys.executable, "-c", SEND, forged.hex())
            honest = with_source(far.frame("whole"), d1.mac).replace(b"whole", b"plain")
            d1.run(sys.executable, "-c", SEND, honest.hex())
            until("what is not marked comes", lambda: "plain" in {one.payload for one in far.segments()})
            for host, looking in ((d1, near), (d3, far)):
                fence(client, host, looking)
                assert "false" not in {one.payload for one in looking.segments()}


def test_switches_mirror_on_without_a_controller_and_another_one_takes_over_and_sweeps(tmp_path):
    with openvswitch.network(tmp_path) as net, contextlib.ExitStack() as stack:
        controller = stack.enter_context(controllers.running(tmp_path / "c", more=ENABLED))
        client, d1, _, d3 = hosts = three_racks(net, controller)
        pipeline = Pipeline(hosts)
        pipeline.armed(controller)
        stack.enter_context(program(d1, LISTEN, pipeline.addresses[1]))
        seen = stack.enter_context(program(d3, LOOK))
        sending = stack.enter_context(program(client, CONNECT, pipeline.addresses[1], str(pipeline.port)))

        def arrives(word, renewed=True):
            def is_there():
                sending.say(word)
                return (not renewed or pipeline.renewed(controller)) and word in {s.payload for s in seen.segments()}

            until(f"the copy of {word} is there", is_there)

        arrives("one")
        had = mirrors_of(net)
        controller.kill()
        arrives("two", renewed=False)
        controller = stack.enter_context(
            controllers.running(tmp_path / "c2", controller.openflow_port, more=ENABLED + "lease_s = 3\n")
        )
        assert pipeline.armed(controller)["arm_ms"] is not None
        assert mirrors_of(net) == had
        arrives("three")
        # The switch loses all it had, and gets it back.
        net.kill_vswitchd()
        net.start_vswitchd()
        pipeline.armed(controller)
        until("entries are back", lambda: pipeline.armed(controller) and mirrors_of(net) == had)
        arrives("four")
        until("nobody renews it", lambda: not mirrors_of(net))
        assert ask(controller, "GET", "v1/mirrors")["total"] == 0


def test_where_mirroring_is_off_nothing_is_taken(tmp_path):
    with openvswitch.network(tmp_path) as net, controllers.running(tmp_path / "c") as controller:
        net.switch("s1", 1, [controller.target()])
        until("the switch is there", lambda: controller.status()["converged"])
        with pytest.raises(urllib.error.HTTPError) as refused:
            Pipeline([net.host(name, "s1") for name in "abc"]).announce(controller)
        assert refused.value.code == 409
        assert "mirroring is off" in json.load(refused.value)["detail"]
        assert not [line for line in net.flows("s1") if MARK in line]


ENABLED = "[mirror]\nenabled = true\nagent_lease_s = 600\n"
SHORT_LEASE = "[mirror]\nenabled = true\nagent_lease_s = 3\n"
