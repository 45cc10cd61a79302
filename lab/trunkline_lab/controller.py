"""The controller in a lab: `trunkline-controller` at its node, an agent at each OpenFlow switch, and its REST."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import paths, venv
from .net import namespaces, openvswitch
from .net.fabric import Fabric
from .net.topology import CONTROLLER, MANAGEMENT, Topology
from .procs import Process, Stage, wait_all, wait_until

REST_PORT = 8181
TOKEN = "token"  # the file of the REST interface's bearer token
LIMIT_S = 60
SPEAK = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(b'', (sys.argv[1], 9))"  # asks by ARP first
MODES = ("set_queue", "dscp")  # in which a queue has effect

Settings = Mapping[str, Mapping[str, object]]


class Refused(RuntimeError):
    """The controller said no; has its answer."""


class Controller:
    """One controller and its agents, owned by `stage`; the fabric is up and has switches that speak OpenFlow, or
    bridges that mirror, whose agents are others'."""

    def __init__(
        self, stage: Stage, fabric: Fabric, topology: Topology, directory: Path, settings: Settings | None = None
    ) -> None:
        self._stage, self._fabric, self._topology = stage, fabric, topology
        self._directory = directory / "controller"
        self._settings = settings or {}
        self._starts = 0
        self.process: Process | None = None
        self.agents: dict[str, Process] = {}
        self._token = secrets.token_hex(32)

    @property
    def url(self) -> str:
        """Where its REST interface answers, in the management network."""
        return f"http://{MANAGEMENT[1]}:{REST_PORT}"

    @property
    def token_file(self) -> Path:
        """The file of the REST interface's bearer token."""
        return self._directory / TOKEN

    # Life

    def start(self) -> None:
        """Starts controller and agents; returns when every switch and link is known and has its flow entries."""
        self.start_controller()
        for switch in self._topology.openflow:
            self.start_agent(switch)
        self.wait_converged()

    def start_controller(self) -> None:
        """The controller alone, also again after its end."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self.token_file.write_text(self._token + "\n")
        self.token_file.chmod(0o600)
        self._starts += 1
        words = [venv.tool("python"), "-m", "trunkline_controller", "--config", str(self._configuration())]
        name = f"controller-{self._starts}"
        self.process = self._stage.start(name, CONTROLLER, words, env=self._environment())

    def stop_controller(self) -> None:
        """Ends the controller alone; switches forward on by what they have."""
        if self.process is not None:
            self.process.stop()

    def restart(self, settings: Settings) -> None:
        """Other settings: the controller is ended and started with them; the agents wait for it.

        Returns when switches have what they should and, where a policy is in force, each queue of each port is shown
        to have effect again.
        """
        self.stop_controller()
        self._settings = settings
        self.start_controller()
        self.wait_converged()
        if self.ask("/v1/policy")["policy"] is not None:
            self._wait_queues()

    def start_agent(self, switch: str) -> None:
        """A switch's agent, in its namespace."""
        there = self._fabric.switch(self._topology, switch)
        config = self._directory / f"agent-{switch}.toml"
        config.write_text(
            toml(
                {
                    "agent": {
                        "controller": self.url,
                        "token_file": str(self.token_file),
                        "database": there.database,
                        "bridges": [switch],
                        "name": switch,
                    }
                }
            )
        )
        words = [venv.tool("python"), "-m", "trunkline_controller", "agent", "--config", str(config)]
        self.agents[switch] = self._stage.start(f"agent-{switch}", switch, words, env=self._environment())

    @staticmethod
    def _environment() -> dict[str, str]:
        return {"PYTHONPATH": str(paths.CONTROLLER), "PYTHONUNBUFFERED": "1"}

    def _configuration(self) -> Path:
        """The controller's one TOML file."""
        path = self._directory / "controller.toml"
        usual: dict[str, dict[str, object]] = {
            "openflow": {"address": str(MANAGEMENT[1]), "port": openvswitch.OPENFLOW_PORT},
            "http": {"address": str(MANAGEMENT[1]), "port": REST_PORT, "token_file": str(self.token_file)},
            "state": {"directory": str(self._directory / "state")},
        }
        for table, own in self._settings.items():
            usual.setdefault(table, {}).update(own)
        path.write_text(toml(usual))
        return path

    # REST

    def ask(self, path: str, method: str = "GET", body: str | None = None) -> dict[str, Any]:
        """An answer of its REST interface. Raises Refused with the controller's words; OSError: it does not answer."""
        return dict(json.loads(self._open(path, method, body)))

    def _open(self, path: str, method: str = "GET", body: str | None = None) -> bytes:
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else body.encode(),
            method=method,
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "text/yaml", "User-Agent": "lab"},
        )
        try:
            with namespaces.inside(self._fabric.namespace(CONTROLLER)):
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise Refused(f"{method} {path}: {error.code}: {error.read().decode(errors='replace')}") from error

    def mirrors(self) -> list[dict[str, Any]]:
        """The pipelines that DataNodes have announced."""
        return list(self.ask("/v1/mirrors?limit=10000")["mirrors"])

    def mirror_switches(self) -> list[dict[str, Any]]:
        """The bridges that mirror."""
        return list(self.ask("/v1/mirror-switches")["switches"])

    def mirror_agents(self) -> list[dict[str, Any]]:
        """The agents of hosts that are alive."""
        return list(self.ask("/v1/mirror-agents")["agents"])

    def status(self) -> dict[str, Any]:
        """Role, whether it has converged, how many switches, links and hosts it knows, alerts."""
        return self.ask("/v1/status")

    def apply(self, text: str) -> dict[str, Any]:
        """Puts a policy in force; returns when switches have it and each queue of each port is shown to have effect."""
        try:
            for switch in self._switches():
                switch.no_rates()
            applied = self.ask("/v1/policy", "PUT", text)
        except Exception:  # refused, or no answer: links keep their rates
            self._plain_rates()
            raise
        self.wait_converged()
        self._wait_queues()
        return applied

    def clear(self) -> dict[str, Any]:
        """No policy: everything in the default queue, and each port at its link's rate."""
        cleared = self.ask("/v1/policy", "DELETE")
        self.wait_converged()
        for switch in self._switches():
            wait_until(f"the end of {switch.name}'s queues", lambda s=switch: not s.has_rates(), LIMIT_S)
        self._plain_rates()
        return cleared

    def queues(self) -> list[dict[str, Any]]:
        """Queues of all ports: rates, counters, and how they take effect."""
        return list(self.ask("/v1/queues?limit=10000")["queues"])

    def modes(self) -> list[str]:
        """By which means queues take effect, each once; ["dscp"] where all do by marks."""
        return sorted({queue["mode"] for queue in self.queues()})

    def links(self) -> list[dict[str, Any]]:
        """Links with their loads."""
        return list(self.ask("/v1/links")["links"])

    def decisions(self) -> list[dict[str, Any]]:
        """Of dynamic control, newest first."""
        return list(self.ask("/v1/decisions?limit=10000")["decisions"])

    def _switches(self) -> list[openvswitch.Switch]:
        return [self._fabric.switch(self._topology, name) for name in self._topology.openflow]

    def _plain_rates(self) -> None:
        """Links' rates again, at switches that have no queues of a policy."""
        for switch in [switch for switch in self._switches() if not switch.has_rates()]:
            switch.plain_rates(openvswitch.ports(self._topology, switch.name))

    # Waiting

    def wait_converged(self, hosts: int = 0) -> None:
        """Until all switches, the links between them and at least `hosts` hosts are known, and switches have what they
        should."""
        switches = set(self._topology.controlled)
        between = sum(set(link.ends) <= switches for link in self._topology.links)

        def converged() -> bool:
            with contextlib.suppress(OSError):
                now = self.status()
                known = (now["switches"], now["links"]) == (len(switches), between) and now["hosts"] >= hosts
                return known and bool(now["converged"])
            return False

        what = f"{len(switches)} switches and {between} links known to the controller"
        alive = [self.process] if self.process else []
        wait_until(what, converged, LIMIT_S, *alive, pause_s=0.1)

    def introduce(self, hosts: Sequence[str] = ()) -> None:
        """Has hosts speak once, so that the controller knows where they are; all of them where none is named."""
        names = tuple(hosts) or self._topology.hosts
        words = [sys.executable, "-c", SPEAK, self._topology.address(names[0])]
        wait_all([self._stage.start(f"introduce-{host}", host, words) for host in names], LIMIT_S)
        self.wait_converged(len(names))

    def _wait_queues(self) -> None:
        """Until the controller's own probe has seen each queue of each port take effect.

        A port's only queue is told from none by its rate alone, so there the switch's own records must do.
        """
        alive = [process for process in (self.process, *self.agents.values()) if process is not None]
        wait_until("queues that have effect", self._queues_in_force, LIMIT_S, *alive, pause_s=0.2)

    def _queues_in_force(self) -> bool:
        found = self.queues()
        of_port = Counter(_port(queue) for queue in found)
        told_apart = [queue for queue in found if of_port[_port(queue)] > 1]
        in_force = bool(found) and all(queue["mode"] in MODES for queue in told_apart)
        return in_force and all(switch.has_rates() for switch in self._switches())


def _port(queue: dict[str, Any]) -> tuple[str, int]:
    return queue["at"]["dpid"], queue["at"]["port"]


def variables(directory: Path) -> dict[str, str]:
    """What `trunkline qos` at the controller's node finds it by; `directory` is the data centre's."""
    return {
        "TRUNKLINE_CONTROLLER": f"http://{MANAGEMENT[1]}:{REST_PORT}",
        "TRUNKLINE_CONTROLLER_TOKEN_FILE": str(directory / "controller" / TOKEN),
    }


def toml(tables: Settings) -> str:
    """Tables of plain values, as TOML; the table "" is the document's own."""
    lines: list[str] = []
    for name, table in tables.items():
        if name:
            lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"
