"""How long a pipeline takes from its last hop's announcement until the answer says that its mirror is armed.

    python controller/bench/mirror.py [--blocks 1000] [--open 50]

Needs root: the switches are real (Open vSwitch, userspace datapath), two leaves under a spine, with six hosts. Blocks
are written one after the other as DataNodes do it: the first announces its client's connection and its own, the second
its own, on connections to the controller that stay open; agents at all hosts poll all the while, and are told of each
block. So many pipelines are open at any time. Prints a JSON line for each figure, and the distribution to stderr.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import controllers
import openvswitch
from apply import own_network

POOL = "BP-1-10.0.0.1-1790000000000"
HOSTS = 6
BUCKETS_MS = (0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 50)
WARM_UPS = 50  # blocks that are not counted


class Http:
    """Someone who asks the controller, on one connection."""

    def __init__(self, url: str) -> None:
        self._at = urllib.parse.urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._at, timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 204):
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text) if text else {}


class Agent:
    """As `trunkline mirror run` asks: always one poll under way, with the starts of what it leads anew."""

    def __init__(self, url: str, name: str, address: str) -> None:
        self._http = Http(url)
        self._path, self._said = f"/v1/mirror-agents/{name}", {"run": "bench", "addresses": [address]}
        self._ended = threading.Event()
        self._led: set[str] = set()
        self.told = 0
        self._poll(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _poll(self, wait_ms: int) -> None:
        told = self._http.ask("POST", self._path, self._said | {"wait_ms": wait_ms})
        led = {flow["id"]: flow["receive"] for flow in told["flows"] if flow["lead"]}
        heads = [{"id": identity, "zero": 1} | led[identity] for identity in led.keys() - self._led]
        self._led = set(led)
        self._said |= {"seen": told["seen"], "controller": told["controller"], "heads": heads}
        self.told += len(told["flows"])

    def _run(self) -> None:
        while not self._ended.is_set():
            self._poll(1000)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


def hop(block: int, position: int, hosts: list[openvswitch.Host], wait_ms: int = 0) -> dict[str, object]:
    return {
        "pool": POOL,
        "block": block,
        "generation": 1001,
        "position": position,
        "replicas": len(hosts) - 1,
        "source": {"address": hosts[position - 1].address, "port": 20000 + block % 40000},
        "destination": {"address": hosts[position].address, "port": 9866},
        "client": "DFSClient_1",
        "wait_ms": wait_ms,
    }


def measure(url: str, hosts: list[openvswitch.Host], blocks: int, most_open: int) -> list[float]:
    """Seconds for each block."""
    first, second = Http(url), Http(url)
    pipelines = [hosts[n:] + hosts[:n] for n in range(len(hosts))]
    there: deque[str] = deque()
    took = []
    for block, chain in zip(range(-WARM_UPS, blocks), itertools.cycle(pipelines), strict=False):
        members = chain[:4]
        for position in (1, 2):
            first.ask("POST", "/v1/mirrors", hop(block + WARM_UPS, position, members))
        begun = time.monotonic()
        answer = second.ask("POST", "/v1/mirrors", hop(block + WARM_UPS, 3, members, 1000))
        ended = time.monotonic()
        if answer["state"] != "armed":
            raise RuntimeError(f"block {block} is {answer['state']}: {answer['what']}")
        if block >= 0:
            took.append(ended - begun)
        there.append(str(answer["id"]))
        if len(there) > most_open:
            first.ask("DELETE", f"/v1/mirrors/{there.popleft()}")
        time.sleep(0.01)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=1000)
    parser.add_argument("--open", type=int, default=50)
    chosen = parser.parse_args()
    if lacks := openvswitch.missing():
        sys.exit(lacks)
    own_network()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        mirror = "[mirror]\nenabled = true\nmax_pipelines_per_host = 4096\nmax_pipelines = 4096\n"
        with (
            controllers.running(home / "c", more=mirror, quick=False) as controller,
            openvswitch.network(home) as net,
        ):
            for number, name in enumerate(("leaf1", "leaf2", "spine"), 1):
                net.switch(name, number, [controller.target()])
            for leaf in ("leaf1", "leaf2"):
                net.link(leaf, "spine")
            hosts = [net.host(f"h{n}", f"leaf{1 + n % 2}") for n in range(HOSTS)]
            openvswitch.until("the links are known", lambda: controller.status()["links"] == 2)
            openvswitch.until(
                "hosts reach each other",
                lambda: all(one.pings(two) for one, two in itertools.permutations(hosts, 2)),
            )
            agents = [Agent(controller.url, host.name, host.address) for host in hosts]
            try:
                took = sorted(measure(controller.url, hosts, chosen.blocks, chosen.open))
            finally:
                for agent in agents:
                    agent.close()
    if not all(agent.told for agent in agents):
        sys.exit("an agent was told of no block")
    for least, most in itertools.pairwise((0, *BUCKETS_MS, float("inf"))):
        count = sum(least <= t * 1000 < most for t in took)
        if count:
            print(f"{least:>5} to {most:>4} ms: {count:>4} {'#' * (60 * count // len(took))}", file=sys.stderr)
    for name, value in (
        ("p50", statistics.median(took)),
        ("p99", took[min(len(took) - 1, len(took) * 99 // 100)]),
        ("max", took[-1]),
    ):
        print(json.dumps({"name": f"mirror.armed.{name}_ms", "value": value * 1000, "unit": "ms"}))


if __name__ == "__main__":
    main()
