"""The yardstick of transfers by name: bytes over one plain TCP socket, and echoes for the round trip.

Run as a script on an emulated host: `rawtcp.py serve PORT FILE`, `rawtcp.py fetch HOST PORT [LOW_WATER]`,
`rawtcp.py echo PORT`, `rawtcp.py ping HOST PORT COUNT PAUSE_MS`. A server prints a line when it listens; the others
print JSON. It imports nothing of the lab, so that it starts fast.
"""

from __future__ import annotations

import json
import socket
import sys
import time

PIECE = 1 << 20
MESSAGE = bytes(64)


def serve(port: int, path: str) -> None:
    """Sends a file to everyone who connects, as the kernel's sendfile does it."""
    with socket.create_server(("", port)) as server:
        print("listening", server.getsockname()[1], flush=True)
        while True:
            peer, _ = server.accept()
            with peer, open(path, "rb") as source:
                peer.sendfile(source)


def fetch(host: str, port: int, low_water: int = 1) -> dict[str, float]:
    """Bytes that came from a `serve`, and seconds, of CPU as well, from before the connection was made to the last.

    The kernel wakes it for each `low_water` bytes (SO_RCVLOWAT).
    """
    buffer, count, began, cpu = bytearray(PIECE), 0, time.perf_counter(), time.process_time()
    with socket.create_connection((host, port)) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)
        while got := peer.recv_into(buffer):
            count += got
    return {"bytes": count, "seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


def echo(port: int) -> None:
    """Sends back what comes, one peer after the other."""
    with socket.create_server(("", port)) as server:
        print("listening", server.getsockname()[1], flush=True)
        while True:
            peer, _ = server.accept()
            with peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while got := peer.recv(len(MESSAGE)):
                    peer.sendall(got)


def ping(host: str, port: int, count: int, pause_ms: float) -> dict[str, float]:
    """Milliseconds of round trips of one small message over a connection that stands."""
    times = []
    with socket.create_connection((host, port)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            began = time.perf_counter()
            peer.sendall(MESSAGE)
            left = len(MESSAGE)
            while left:
                got = len(peer.recv(left))
                if got == 0:
                    raise ConnectionError("the far end closed the connection")
                left -= got
            times.append(1000 * (time.perf_counter() - began))
            time.sleep(pause_ms / 1000)
    return {"count": count, "mean": sum(times) / count, "min": min(times), "p50": sorted(times)[count // 2]}


def main(words: list[str]) -> None:
    match words:
        case ["serve", port, path]:
            serve(int(port), path)
        case ["fetch", host, port, *low_water]:
            print(json.dumps(fetch(host, int(port), *map(int, low_water))))
        case ["echo", port]:
            echo(int(port))
        case ["ping", host, port, count, pause_ms]:
            print(json.dumps(ping(host, int(port), int(count), float(pause_ms))))
        case _:
            ways = "serve PORT FILE | fetch HOST PORT [LOW_WATER] | echo PORT | ping HOST PORT COUNT PAUSE_MS"
            sys.exit(f"usage: rawtcp.py {ways}")


if __name__ == "__main__":
    main(sys.argv[1:])
