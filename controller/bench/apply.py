"""How long a policy takes from `PUT /v1/policy` until packets on the wire of ten switches are as it says.

    python controller/bench/apply.py [--switches 10] [--changes 200]

Needs root: the switches are real (Open vSwitch, userspace datapath), a host at each sends a packet every 5 ms to a host
at the next one, and the policies differ in the mark of these packets. A change is over when the last of the flows has
its new mark. Prints a JSON line for each figure, and the distribution to stderr.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import itertools

import controllers
import openvswitch

CLONE_NEWNET = 0x40000000
PORT = 7777
EVERY_S = 0.005
MARKS = (10, 46)
BUCKETS_MS = (5, 10, 20, 30, 50, 75, 100, 150, 200, 500)


def own_network() -> None:
    """As the tests: nothing meets what else runs here, and nothing is left behind."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "a network namespace needs root")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def socket_in(host: openvswitch.Host) -> socket.socket:
    """A UDP socket of a host's."""
    made: list[socket.socket] = []

    def make() -> None:
        with open(f"/run/netns/{host.namespace}") as there:
            if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    thread = threading.Thread(target=make)  # its namespace ends with it
    thread.start()
    thread.join()
    return made[0]


class Wire:
    """Packets from each host to the next, and when which mark came in there."""

    def __init__(self, hosts: list[openvswitch.Host]) -> None:
        self._sockets = [socket_in(host) for host in hosts]
        self._targets = [(hosts[(number + 1) % len(hosts)].address, PORT) for number in range(len(hosts))]
        self._selector = selectors.DefaultSelector()
        self.mark = [-1] * len(hosts)
        self.marked_at = [0.0] * len(hosts)
        self._ended = threading.Event()
        for number, one in enumerate(self._sockets):
            one.bind(("", PORT))
            one.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ, number)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        while not self._ended.wait(EVERY_S):
            for one, target in zip(self._sockets, self._targets, strict=True):
                try:
                    one.sendto(b"packet", target)
                except OSError:
                    continue  # its address is being resolved

    def _receive(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._selector.select(0.1):
                try:
                    _, ancillary, _, _ = key.fileobj.recvmsg(64, 64)  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
                mark = ancillary[0][2][0] >> 2 if ancillary else 0
                if mark != self.mark[key.data]:
                    self.mark[key.data], self.marked_at[key.data] = mark, time.monotonic()

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def policy(mark: int) -> bytes:
    lines = ["queues:", "  rest: {number: 0, dscp: 0}", f"  marked: {{number: 1, dscp: {mark}}}", "default: rest"]
    lines += ["categories:", "  measured:", "    queue: marked", f"    match: [{{protocol: udp, port: {PORT}}}]"]
    return "\n".join(lines).encode()


def apply(controller: controllers.Running, text: bytes) -> None:
    headers = {"Content-Type": "text/yaml"}
    request = urllib.request.Request(f"{controller.url}v1/policy", text, headers, method="PUT")
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def measure(controller: controllers.Running, wire: Wire, changes: int) -> list[float]:
    """Seconds for each change."""
    took = []
    for turn in range(-3, changes):  # the first are not counted
        mark = MARKS[turn % 2]
        begun = time.monotonic()
        apply(controller, policy(mark))
        end = begun + 30
        while any(found != mark for found in wire.mark):
            if time.monotonic() > end:
                raise RuntimeError(f"marks are {wire.mark} 30 s after a policy that says {mark}")
            time.sleep(0.001)
        if turn >= 0:
            took.append(max(wire.marked_at) - begun)
        time.sleep(0.05)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--switches", type=int, default=10)
    parser.add_argument("--changes", type=int, default=200)
    chosen = parser.parse_args()
    if lacks := openvswitch.missing():
        sys.exit(lacks)
    own_network()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with controllers.running(home / "c", quick=False) as controller, openvswitch.network(home) as net:
            names = [f"s{number}" for number in range(1, chosen.switches + 1)]
            for number, name in enumerate(names, 1):
                net.switch(name, number, [controller.target()])
            for one, other in itertools.pairwise(names):
                net.link(one, other)
            hosts = [net.host(f"h{number}", name) for number, name in enumerate(names, 1)]
            links = chosen.switches - 1
            openvswitch.until(
                "the network is known",
                lambda: (s := controller.status())["links"] == links and s["converged"],
            )
            wire = Wire(hosts)
            try:
                took = sorted(measure(controller, wire, chosen.changes))
            finally:
                wire.close()
    for least, most in zip((0, *BUCKETS_MS), (*BUCKETS_MS, float("inf")), strict=True):
        count = sum(least <= t * 1000 < most for t in took)
        if count:
            print(f"{least:>5} to {most:>4} ms: {count:>4} {'#' * (60 * count // len(took))}", file=sys.stderr)
    for name, value in (
        ("p50", statistics.median(took)),
        ("p99", took[min(len(took) - 1, len(took) * 99 // 100)]),
        ("max", took[-1]),
    ):
        print(json.dumps({"name": f"controller.apply.{name}_ms", "value": value * 1000, "unit": "ms"}))


if __name__ == "__main__":
    main()
