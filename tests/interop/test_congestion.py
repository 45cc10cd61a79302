"""What waits for other people's consumers is marked as congestion, wherever on this host it waits:
read with python-ndn's own decoder of NDNLPv2."""

from __future__ import annotations

import os
import socket
import time

from conftest import Bench
from ndn.encoding import Component, InterestParam, Name, make_interest, parse_data
from ndn.encoding import parse_lp_packet_v2 as parse_lp_packet
from ndn.encoding.tlv_var import parse_tl_num

SEGMENT = 8000
# More than the 2 MiB behind which a face marks by default.
FIRST, THEN = 400, 100


def test_marks_reach_a_consumer_that_does_not_keep_up(bench: Bench) -> None:
    source = bench.folder / "source.bin"
    source.write_bytes(os.urandom((FIRST + THEN) * SEGMENT))
    bench.serve("/tl/large", str(source), "--segment-size", str(SEGMENT))
    with socket.socket(socket.AF_UNIX) as face:
        face.settimeout(60)
        face.connect(str(bench.socket_path))
        frames = Frames(face)
        face.sendall(interest([*Name.from_str("/tl/large"), Component.from_str("32=metadata")], prefix=True))
        _, _, versioned, _ = parse_data(bytes(frames.next().fragment))
        name = Name.from_bytes(bytes(versioned))

        def ask(segments: range) -> None:
            face.sendall(b"".join(interest([*name, Component.from_segment(n)]) for n in segments))

        ask(range(FIRST))
        # They are answered meanwhile, and nobody reads.
        time.sleep(1)
        ask(range(FIRST, FIRST + THEN))
        marked = []
        for _ in range(FIRST + THEN):
            packet = frames.next()
            data_name, _, content, _ = parse_data(bytes(packet.fragment))
            assert len(content) == SEGMENT
            if packet.congestion_mark:
                marked.append(Component.to_number(data_name[-1]))
        assert marked


def interest(name: list[bytes], prefix: bool = False) -> bytes:
    parameters = InterestParam(can_be_prefix=prefix, must_be_fresh=prefix, nonce=time.time_ns() & 0xFFFFFFFF)
    return bytes(make_interest(name, parameters))


class Frames:
    """The packets of a stream, one after the other."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.held = b""

    def next(self):
        while True:
            if len(self.held) >= 10:
                _, size_of_type = parse_tl_num(self.held)
                length, size_of_length = parse_tl_num(self.held, size_of_type)
                whole = size_of_type + size_of_length + length
                if len(self.held) >= whole:
                    frame, self.held = self.held[:whole], self.held[whole:]
                    return parse_lp_packet(frame) if frame[0] == 0x64 else Bare(frame)
            came = self.stream.recv(1 << 20)
            assert came, "the forwarder closed the face"
            self.held += came


class Bare:
    """A packet without a link header."""

    congestion_mark = None

    def __init__(self, frame: bytes) -> None:
        self.fragment = frame
