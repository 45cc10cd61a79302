"""Sends copies of mirrored replication that leave by a switch's ports a second time, late, until standard input ends.

    late_copies.py EVERY DELAY_MS DEVICE...

One in EVERY copies is sent so; it prints a line when it is ready, and at the end how many those were. Where the host
loses the first of two, the late one comes behind copies that were sent after it; else the host gets it twice.
"""

from __future__ import annotations

import collections
import contextlib
import select
import socket
import sys
import time

MARK = bytes.fromhex("024d52")  # the first octets of a copy's source (docs/mirror.md)
ALL, OUTGOING = 3, 4  # ETH_P_ALL, PACKET_OUTGOING
# Before each frame stands whether and how it is a super-segment (struct virtio_net_hdr).
SOL_PACKET, PACKET_VNET_HDR, HEADER = 263, 15, 10
SOURCE = slice(HEADER + 6, HEADER + 9)


def port(device: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    opened.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    opened.bind((device, ALL))
    return opened


def main(every: int, delay_s: float, devices: list[str]) -> int:
    ports = [port(device) for device in devices]
    waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
    seen = sent = 0
    print("ready", flush=True)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([*ports, sys.stdin], [], [], pause)
        if sys.stdin in ready:
            return sent
        for each in ready:
            frame, (_, _, kind, *_) = each.recvfrom(1 << 17)
            if kind == OUTGOING and frame[SOURCE] == MARK:
                seen += 1
                if seen % every == 0:
                    waiting.append((time.monotonic() + delay_s, each, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, to, frame = waiting.popleft()
            with contextlib.suppress(OSError):  # no room in the port's queue
                to.send(frame)
                sent += 1


if __name__ == "__main__":
    print(main(int(sys.argv[1]), float(sys.argv[2]) / 1000, sys.argv[3:]))
