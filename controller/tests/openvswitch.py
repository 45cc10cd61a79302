"""A real Open vSwitch for tests: a database and a daemon of its own, userspace bridges, hosts in namespaces.

    with openvswitch.network(tmp_path) as net:
        net.switch("s1", dpid=1, controllers=["tcp:127.0.0.1:6653"])
        a, b = net.host("a", "s1"), net.host("b", "s1")
        a.run("ping", "-c1", b.address)

Interfaces and namespaces carry the process id in their names, so that two runs don't clash; all is removed at the end,
also after a failure. Nothing of the machine's own Open vSwitch is touched.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

MTU = 1500
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
GIVE_UP_S = 60.0

T = TypeVar("T")

_networks = itertools.count()


def missing() -> str:
    """Why no switch can be started here; empty where one can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [tool for tool in ("ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ip") if not shutil.which(tool)]
    return f"not installed: {', '.join(absent)}" if absent else ""


def until(what: str, ask: Callable[[], T], give_up_s: float = GIVE_UP_S) -> T:
    """Asks until the answer is true, and returns it."""
    end = time.monotonic() + give_up_s
    while not (answer := ask()):
        if time.monotonic() > end:
            raise AssertionError(f"not in {give_up_s:.0f} s: {what}")
        time.sleep(0.05)
    return answer


def run(*words: str, check: bool = True, give_up_s: float = GIVE_UP_S) -> str:
    """What a command prints; AssertionError with its errors where it fails."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=give_up_s
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclass
class Host:
    """A namespace with one interface, eth0, at a port of a switch."""

    name: str
    namespace: str
    switch: str
    port: str  # the switch's end of its cable
    address: str
    mac: str

    def words(self, *words: str) -> list[str]:
        """A command as it is run in the host."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def run(self, *words: str, check: bool = True) -> str:
        return run(*self.words(*words), check=check)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A process that the caller ends."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self.words(*words), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)

    def pings(self, other: Host | str, count: int = 1) -> bool:
        """Whether `count` pings, a tenth of a second apart, were answered each."""
        to = other if isinstance(other, str) else other.address
        words = self.words("ping", "-n", "-q", "-c", str(count), "-i", "0.1", "-W", "1", to)
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


@dataclass
class Network:
    """Switches, hosts and cables of one test."""

    directory: Path
    prefix: str
    hosts: dict[str, Host] = field(default_factory=dict)
    switches: dict[str, int] = field(default_factory=dict)  # bridge to datapath id
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _interfaces: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def database(self) -> str:
        """The database's socket, as ovs-vsctl's --db takes it."""
        return f"unix:{self.directory}/db.sock"

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        run("ovsdb-tool", "create", f"{self.directory}/conf.db", SCHEMA)
        self._daemon("ovsdb-server", f"{self.directory}/conf.db", f"--remote=p{self.database}")
        until("ovsdb-server listens", (self.directory / "db.sock").exists)
        run("ovs-vsctl", f"--db={self.database}", "--no-wait", "init")
        self.start_vswitchd()

    def start_vswitchd(self) -> None:
        self._daemon("ovs-vswitchd", self.database)
        self.vsctl("show")

    def kill_vswitchd(self) -> None:
        """All switches are gone at once, and their flows with them."""
        daemon = self._daemons.pop()
        daemon.kill()
        daemon.wait()
        (self.directory / "ovs-vswitchd.pid").unlink(missing_ok=True)

    def _daemon(self, name: str, *words: str) -> None:
        environment = {
            **os.environ,
            "OVS_RUNDIR": str(self.directory),
            "OVS_LOGDIR": str(self.directory),
            "OVS_DBDIR": str(self.directory),
        }
        command = [name, *words, f"--pidfile={self.directory}/{name}.pid", f"--unixctl={self.directory}/{name}.ctl"]
        with (self.directory / f"{name}.log").open("ab") as log:
            self._daemons.append(
                subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def vsctl(self, *words: str) -> str:
        return run("ovs-vsctl", f"--db={self.database}", "--timeout=30", *words)

    def appctl(self, *words: str) -> str:
        return run("ovs-appctl", "-t", f"{self.directory}/ovs-vswitchd.ctl", *words)

    def ofctl(self, command: str, bridge: str, *words: str, version: str = "OpenFlow13") -> str:
        """ovs-ofctl on a bridge, by its own name here."""
        socket = f"unix:{self.directory}/{self.bridge(bridge)}.mgmt"
        return run("ovs-ofctl", "-O", version, command, socket, *words)

    def bridge(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def switch(
        self, name: str, dpid: int, controllers: Sequence[str] = (), protocols: str = "OpenFlow13,OpenFlow15"
    ) -> None:
        """A bridge that forwards nothing by itself (fail mode secure); `controllers` as ovs-vsctl takes them."""
        bridge = self.bridge(name)
        settings = [
            "datapath_type=netdev",
            "fail_mode=secure",
            f"protocols={protocols}",
            f"other-config:datapath-id={dpid:016x}",
            f"other-config:dp-desc={name}",
            "other-config:disable-in-band=true",
        ]
        self.vsctl("add-br", bridge, "--", "set", "bridge", bridge, *settings)
        self.switches[name] = dpid
        self.control(name, controllers)

    def control(self, name: str, controllers: Sequence[str]) -> None:
        """Sets who controls a switch, and makes it try again soon where nobody answers."""
        bridge = self.bridge(name)
        if not controllers:
            self.vsctl("del-controller", bridge)
            return
        self.vsctl("set-controller", bridge, *controllers)
        for identity in self.vsctl("get", "bridge", bridge, "controller").strip(" []\n").split(", "):
            self.vsctl("set", "controller", identity, "max_backoff=1000", "inactivity_probe=5000")

    def host(self, name: str, switch: str, address: str = "", mac: str = "") -> Host:
        """A host at a new port of a switch. Addresses are 10.0.0.1, 10.0.0.2 … in the order of making, if not given."""
        number = next(self._numbers)
        address = address or f"10.0.{number >> 8}.{number & 255}"
        mac = mac or f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"
        namespace, near = f"{self.prefix}{name}", f"{self.prefix}p{number}"
        run("ip", "netns", "add", namespace)
        host = Host(name, namespace, switch, near, address, mac)
        self.hosts[name] = host
        far = f"{near}h"
        run("ip", "link", "add", near, "mtu", str(MTU), "type", "veth", "peer", "name", far, "address", mac)
        self._interfaces.append(near)
        _quiet(near)
        _no_checksum_offload(far)
        run("ip", "link", "set", far, "netns", namespace, "name", "eth0")
        host.run("sysctl", "-qw", "net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
        host.run("ip", "link", "set", "eth0", "mtu", str(MTU), "up")
        host.run("ip", "link", "set", "lo", "up")
        host.run("ip", "address", "add", f"{address}/16", "dev", "eth0")
        self.vsctl("add-port", self.bridge(switch), near)
        return host

    def link(self, one: str, other: str) -> tuple[str, str]:
        """A cable between two switches; returns the interfaces at its ends."""
        number = next(self._numbers)
        ends = f"{self.prefix}l{number}a", f"{self.prefix}l{number}b"
        run("ip", "link", "add", ends[0], "mtu", str(MTU), "type", "veth", "peer", "name", ends[1], "mtu", str(MTU))
        self._interfaces.append(ends[0])
        for switch, end in zip((one, other), ends, strict=True):
            _quiet(end)
            self.vsctl("add-port", self.bridge(switch), end)
        return ends

    def move(self, host: Host, switch: str) -> None:
        """Takes a host's cable to another switch."""
        self.vsctl("del-port", self.bridge(host.switch), host.port)
        self.vsctl("add-port", self.bridge(switch), host.port)
        host.switch = switch

    def port_number(self, interface: str) -> int:
        """A port's OpenFlow number; waits until it has one."""

        def number() -> int:
            text = self.vsctl("get", "interface", interface, "ofport").strip()
            return int(text) if text.isdigit() else 0

        return until(f"{interface} has an OpenFlow port number", number)

    def flows(self, switch: str) -> list[str]:
        """A switch's flow entries without what counts and ages."""
        lines = self.ofctl("dump-flows", switch, "--no-stats").splitlines()
        return sorted(line.strip() for line in lines if "actions=" in line)

    def close(self) -> None:
        for host in self.hosts.values():
            for pid in run("ip", "netns", "pids", host.namespace, check=False).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            run("ip", "netns", "delete", host.namespace, check=False)
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for interface in [*self._interfaces, *map(self.bridge, self.switches)]:
            run("ip", "link", "delete", interface, check=False)


def _no_checksum_offload(interface: str) -> None:
    """As `ethtool -K … tx off`: the userspace datapath can't hand on checksums that are still to be computed."""
    siocethtool, set_transmit_checksums = 0x8946, 0x17
    value = ctypes.create_string_buffer(struct.pack("=II", set_transmit_checksums, 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, siocethtool, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))


def _quiet(interface: str) -> None:
    """The switch's end of a cable: up, and the machine itself says nothing on it."""
    run("sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1")
    run("ip", "link", "set", interface, "up")


@contextlib.contextmanager
def network(directory: Path) -> Iterator[Network]:
    """A network without switches yet; removed at the end. One at a time: a network namespace has room for one userspace
    datapath.
    """
    # Socket paths are short: 108 bytes is all that the kernel takes.
    net = Network(directory / "ovs", f"{os.getpid() % 100000}{'abcdefghijklmnopqrstuvwxyz'[next(_networks) % 26]}")
    try:
        net.start()
        yield net
    finally:
        net.close()
