"""The controller against many small OpenFlow switches: time until all have all, memory, changes a second.

    python controller/bench/scale.py [--switches 100] [--hosts 2000] [--seconds 10]

Prints a JSON line for each figure. The switches are in this process, the controller in another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import controllers
import speakers

SPINES = 4
GIVE_UP_S = 120.0
CHANGING_SWITCHES = 10
RULES = 200


def figure(name: str, value: float, unit: str) -> None:
    print(json.dumps({"name": name, "value": value, "unit": unit}), flush=True)


def resident_mib(pid: int, what: str = "VmRSS") -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} is gone")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def converge(controller: controllers.Running, switches: int, hosts: int) -> None:
    """Switches connect, hosts speak; until each switch sends to each host and its groups lead to each other switch."""
    fabric = speakers.leaf_spine(switches - SPINES, SPINES, hosts)
    dpids = list(range(1, switches + 1))
    begun = time.monotonic()
    connecting = asyncio.create_task(speakers.connect(fabric, dpids, controller.openflow_port))
    speak_at = begun + 0.5

    def has_all() -> bool:
        return len(fabric.speakers) == switches and all(
            s.forward == hosts and len(s.groups) == switches - 1 for s in fabric.speakers.values()
        )

    while not has_all():
        await asyncio.sleep(0.01)
        now = time.monotonic()
        if now > begun + GIVE_UP_S:
            least = min(s.forward for s in fabric.speakers.values())
            raise RuntimeError(f"not converged in {GIVE_UP_S:.0f} s: one switch has {least} hosts of {hosts}")
        if now > speak_at:  # as hosts do that want an answer: again each second
            speak_at = now + 1.0
            for speaker in list(fabric.speakers.values()):
                speaker.announce()
    took = fabric.last_at - begun
    cpu = cpu_s(controller.process.pid)
    await connecting
    status = await asyncio.to_thread(controller.status)
    while not status["converged"]:
        await asyncio.sleep(0.2)
        status = await asyncio.to_thread(controller.status)
    if (status["switches"], status["hosts"]) != (switches, hosts):
        raise RuntimeError(f"the controller says {status}")
    figure(f"controller.{hosts}hosts.converge_s", took, "s")
    figure(f"controller.{hosts}hosts.converge_cpu_s", cpu, "CPU-s")
    figure(f"controller.{hosts}hosts.flow_mods", fabric.flow_mods, "messages")
    await asyncio.sleep(5)  # polls and LLDP go on
    figure(f"controller.{hosts}hosts.rss_mib", resident_mib(controller.process.pid), "MiB")
    figure(f"controller.{hosts}hosts.peak_rss_mib", resident_mib(controller.process.pid, "VmHWM"), "MiB")
    for speaker in fabric.speakers.values():
        if speaker.transport:
            speaker.transport.close()


def policy(queue: str) -> bytes:
    """A category a port, all in one queue."""
    lines = ["queues:", "  slow: {number: 0, dscp: 0}", "  fast: {number: 1, dscp: 10}", "default: slow", "categories:"]
    for number in range(RULES):
        lines += [f"  c{number}:", f"    queue: {queue}", f"    match: [{{protocol: tcp, port: {2000 + number}}}]"]
    return "\n".join(lines).encode()


def apply(controller: controllers.Running, text: bytes) -> dict[str, object]:
    request = urllib.request.Request(f"{controller.url}v1/policy", text, {"Content-Type": "text/yaml"}, method="PUT")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


async def changes(controller: controllers.Running, seconds: float) -> None:
    """One policy after the other, as fast as they are taken; flow mods are counted at the switches."""
    fabric = speakers.leaf_spine(CHANGING_SWITCHES - 2, 2, 20)
    await speakers.connect(fabric, list(range(1, CHANGING_SWITCHES + 1)), controller.openflow_port)
    while not (await asyncio.to_thread(controller.status))["converged"]:
        await asyncio.sleep(0.1)
    await asyncio.to_thread(apply, controller, policy("slow"))
    await asyncio.sleep(1)
    fabric.flow_mods, fabric.first_at = 0, 0.0
    end, turn = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        turn += 1
        await asyncio.to_thread(apply, controller, policy(("slow", "fast")[turn % 2]))
    before = -1
    while fabric.flow_mods != before:
        before = fabric.flow_mods
        await asyncio.sleep(1)
    figure("controller.flow_mods_per_s", fabric.flow_mods / (fabric.last_at - fabric.first_at), "changes/s")
    figure("controller.flow_mods.policies_per_s", turn / seconds, "policies/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--switches", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        with controllers.running(Path(directory) / "scale", quick=False) as controller:
            asyncio.run(converge(controller, chosen.switches, chosen.hosts))
        with controllers.running(Path(directory) / "changes", quick=False) as controller:
            asyncio.run(changes(controller, chosen.seconds))


if __name__ == "__main__":
    main()
