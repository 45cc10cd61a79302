"""Other people's traffic: iperf3 from one host of a lab to another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .procs import Process, Stage, wait_until

PORT = 5001
PAYLOAD_BYTES = 1400  # of a datagram: with headers it fits an MTU of 1500
FRAME_BYTES = PAYLOAD_BYTES + 8 + 20 + 14  # with UDP's, IPv4's and Ethernet's headers: what queues count
LIMIT_S = 20

# "1795455843 [  5]   3.00-4.00   sec  4.77 MBytes  40.0 Mbits/sec  0.031 ms  0/3571 (0%)"; a summary ends in a word
_SECOND = re.compile(
    r"^(\d+) \[ *\d+\] +[\d.]+-[\d.]+ +sec +\S+ \S+ +([\d.]+) Mbits/sec(?!.*(?:receiver|sender))", re.M
)


@dataclass(frozen=True)
class Second:
    """What arrived in one second, in Mbit/s of frames; `at_s` is its middle in Unix time, within half a second."""

    at_s: float
    mbit_s: float


@dataclass
class CrossTraffic:
    """`log` is the receiver's."""

    log: Path

    def seconds(self) -> list[Second]:
        """What arrived in each second so far."""
        return arrived(self.log.read_text(errors="replace"))


def arrived(log: str) -> list[Second]:
    """Of each second of an iperf3 server's log that counts datagrams' payload and begins its lines with Unix time.

    A line is written at the end of its second, within the one that it names: that one's beginning is, on average, the
    middle of what the line is about.
    """
    return [Second(float(at), float(rate) * FRAME_BYTES / PAYLOAD_BYTES) for at, rate in _SECOND.findall(log)]


@contextmanager
def flowing(stage: Stage, name: str, *, source: str, target: str, address: str, bit_s: int) -> Iterator[CrossTraffic]:
    """UDP at `bit_s` from one host to another, for the length of the block; `address` is the target's."""
    serve = ["iperf3", "-s", "-1", "-p", str(PORT), "-f", "m", "-i", "1", "--forceflush", "--timestamps=%s "]
    receiver = stage.start(f"{name}-receiver", target, serve)
    running: list[Process] = [receiver]
    try:
        wait_until(
            "iperf3's server", lambda: "listening" in receiver.log.read_text(errors="replace"), LIMIT_S, receiver
        )
        words = ["iperf3", "-c", address, "-p", str(PORT), "-u", "-b", str(bit_s), "-l", str(PAYLOAD_BYTES), "-t", "0"]
        sender = stage.start(f"{name}-sender", source, words)
        running.insert(0, sender)
        traffic = CrossTraffic(receiver.log)
        wait_until("cross traffic", lambda: len(traffic.seconds()) >= 2, LIMIT_S, receiver, sender, pause_s=0.2)
        yield traffic
    finally:
        for process in running:
            process.stop()
