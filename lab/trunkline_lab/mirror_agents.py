"""Agents of mirrored replication in a lab: `trunkline mirror run` at each host with a DataNode, and what they count;
`trunkline mirror switch run` at each bridge, where bridges make the copies."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import paths
from .controller import Controller, Refused, toml
from .net.fabric import Fabric
from .net.kernel import BRIDGE
from .net.topology import Topology
from .procs import Process, ProcessFailed, Stage, wait_until
from .say import say

LIMIT_S = 60
BTF = Path("/sys/kernel/btf/vmlinux")
COUNTS = Path("/proc/sys/kernel/bpf_stats_enabled")


@dataclass(frozen=True)
class ProgramCost:
    """Frames that eBPF programs were asked about, and nanoseconds that it took, as far as the kernel counted."""

    frames: int = 0
    ns: int = 0

    def __add__(self, other: ProgramCost) -> ProgramCost:
        return ProgramCost(self.frames + other.frames, self.ns + other.ns)

    def __sub__(self, earlier: ProgramCost) -> ProgramCost:
        return ProgramCost(self.frames - earlier.frames, self.ns - earlier.ns)


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """The kernel counts what eBPF programs take, on the whole machine."""
    before = COUNTS.read_text()
    COUNTS.write_text("1")
    try:
        yield
    finally:
        COUNTS.write_text(before)


def missing() -> str:
    """Why no agent can run here, and the way out; empty where one can."""
    if not BTF.exists():
        return f"{BTF} is missing, which the eBPF program needs (CONFIG_DEBUG_INFO_BTF)"
    if not paths.TRUNKLINE.exists():
        return "the command is not built; run `make build`"
    shown = subprocess.run([str(paths.TRUNKLINE), "mirror", "--help"], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        return f"this build of the command can't mirror: {shown.stderr.strip()}; install clang and libbpf-dev"
    return ""


class MirrorAgents:
    """The agents of a data centre, owned by `stage`; the controller runs."""

    def __init__(
        self, stage: Stage, fabric: Fabric, topology: Topology, directory: Path, controller: Controller
    ) -> None:
        self._stage, self._fabric, self._topology, self._controller = stage, fabric, topology, controller
        self._directory = directory / "mirror"
        self._starts: dict[str, int] = {}
        self.processes: dict[str, Process] = {}

    def start(self, hosts: Sequence[str] = (), *, fix: bool = False) -> None:
        """Starts them at these hosts, all of those with a DataNode by default; returns when the controller knows
        them. `fix` has the doctor change there what it wants changed."""
        for host in hosts or self._topology.roles.datanodes:
            self.start_one(host)
            if fix:
                say(self.command(host, "doctor", "--fix"))
        self.wait_known(len(self.processes))

    def start_one(self, host: str) -> None:
        """A host's agent, also again after its end; it finds what an earlier one has pinned."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._config(host).write_text(toml(self._settings(host)))
        self._starts[host] = self._starts.get(host, 0) + 1
        words = [str(paths.built(paths.TRUNKLINE)), "mirror", "run", "--config", str(self._config(host))]
        self.processes[host] = self._stage.start(f"mirror-{host}-{self._starts[host]}", host, words)

    def wait_known(self, count: int) -> None:
        """Until as many agents are alive in the controller's eyes."""
        alive = [process for process in self.processes.values() if process.running()]

        def known() -> bool:
            with contextlib.suppress(OSError, Refused):
                return len(self._controller.mirror_agents()) >= count
            return False

        wait_until(f"{count} agents of hosts known to the controller", known, LIMIT_S, *alive)

    def status(self, host: str) -> dict[str, Any]:
        """`trunkline mirror status --json` there."""
        return dict(json.loads(self.command(host, "status", "--json")))

    def command(self, host: str, *words: str) -> str:
        """What `trunkline mirror WORDS` says at a host; raises ProcessFailed where it fails."""
        command = [str(paths.TRUNKLINE), "mirror", *words, "--config", str(self._config(host))]
        done = subprocess.run(
            self._fabric.command(host, command), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ProcessFailed(f"trunkline mirror {' '.join(words)} at {host}: {done.stderr.strip()}")
        return done.stdout

    def counters(self, hosts: Sequence[str] = ()) -> dict[str, int]:
        """The counters of all flows so far, those that have ended too, summed over hosts."""
        total: dict[str, int] = {}
        for host in hosts or self.processes:
            for name, count in self.status(host)["counters"].items():
                total[name] = total.get(name, 0) + int(count)
        return total

    def cost(self) -> ProgramCost:
        """Of all hosts' programs so far."""
        programs = (program for host in self.processes for program in self.status(host)["cost"].values())
        return sum((ProgramCost(program["frames"], program["ns"]) for program in programs), ProgramCost())

    def fallbacks(self) -> dict[str, int]:
        """Flows that gave up mirroring so far by reason, summed over hosts."""
        total: dict[str, int] = {}
        for host in self.processes:
            for reason, count in self.status(host)["fallbacks"].items():
                total[reason] = total.get(reason, 0) + int(count)
        return {reason: count for reason, count in total.items() if count}

    def _config(self, host: str) -> Path:
        return self._directory / f"{host}.toml"

    def _settings(self, host: str) -> dict[str, dict[str, object]]:
        return {
            "agent": {
                "name": host,
                "controller": self._controller.url,
                "token_file": str(self._controller.token_file),
                "interfaces": ["eth0"],
                "pin": str(self._fabric.bpf / host),
            }
        }


class BridgeAgents:
    """The agents of a data centre's bridges, owned by `stage`; the controller runs."""

    def __init__(
        self, stage: Stage, fabric: Fabric, topology: Topology, directory: Path, controller: Controller
    ) -> None:
        self._stage, self._fabric, self._topology, self._controller = stage, fabric, topology, controller
        self._directory = directory / "mirror"
        self._starts: dict[str, int] = {}
        self.processes: dict[str, Process] = {}

    def start(self) -> None:
        """Starts them all; returns when the controller knows the bridges and the links between them."""
        for bridge in self._topology.bridges:
            self.start_one(bridge)
        self._controller.wait_converged()

    def start_one(self, bridge: str) -> None:
        """A bridge's agent, also again after its end; it finds what an earlier one has pinned."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._config(bridge).write_text(toml(self._settings(bridge)))
        self._starts[bridge] = self._starts.get(bridge, 0) + 1
        words = [str(paths.built(paths.TRUNKLINE)), "mirror", "switch", "run", "--config", str(self._config(bridge))]
        self.processes[bridge] = self._stage.start(f"mirror-{bridge}-{self._starts[bridge]}", bridge, words)

    def status(self, bridge: str) -> dict[str, Any]:
        """`trunkline mirror switch status --json` there."""
        words = [str(paths.TRUNKLINE), "mirror", "switch", "status", "--json", "--config", str(self._config(bridge))]
        done = subprocess.run(
            self._fabric.command(bridge, words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ProcessFailed(f"trunkline mirror switch status at {bridge}: {done.stderr.strip()}")
        return dict(json.loads(done.stdout))

    def entries(self) -> int:
        """Whose segments are copied, over all bridges."""
        return sum(len(self.status(bridge)["entries"]) for bridge in self.processes)

    def counters(self) -> dict[str, int]:
        """Summed over bridges."""
        total: dict[str, int] = {}
        for bridge in self.processes:
            for name, count in self.status(bridge)["counters"].items():
                total[name] = total.get(name, 0) + int(count)
        return total

    def _config(self, bridge: str) -> Path:
        return self._directory / f"{bridge}.toml"

    def _settings(self, bridge: str) -> dict[str, dict[str, object]]:
        return {
            "switch": {
                "name": bridge,
                "bridge": BRIDGE,
                "controller": self._controller.url,
                "token_file": str(self._controller.token_file),
                "pin": str(self._fabric.bpf / bridge),
            }
        }
