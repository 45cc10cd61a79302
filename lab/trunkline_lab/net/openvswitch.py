"""An Open vSwitch of the lab's own at a node: userspace datapath, its own daemons, database and directory.

The machine's own Open vSwitch, should there be one, is never asked or touched. The daemons live in the node's
namespace, so that each switch can vanish by itself and all are ended with the lab.

Each port has Open vSwitch's own QoS of type linux-htb with one queue at the link's rate, so that links have their rates
without a controller too. Whoever else makes queues there (a controller's agent) finds none where `no_rates` has taken
them away; `plain_rates` puts them back.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..procs import wait_until
from .topology import CONTROLLER, Topology

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl")
PROTOCOLS = ("OpenFlow13", "OpenFlow15")
OPENFLOW_PORT = 6653
LIMIT_S = 20

# All frames that wait in the queues of all ports count against the one socket that Open vSwitch sends by. With the
# kernel's default, 90 of them in a slow queue would keep every other port from sending.
_SEND_BUFFER_BYTES = 64 << 20
_RECEIVE_BUFFER_BYTES = 4 << 20  # of each port, for as long as the switch waits for a processor
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _PIDFD_GETFD = 32, 33, 438
_libc = ctypes.CDLL(None, use_errno=True)

_BURST_S = 0.004  # with HTB's own, of a packet, fast links stay below their rate
_OURS = "owner=lab"  # in external-ids of rows

# To a group address that no bridge forwards, of the ether type for local experiments.
_A_FRAME = "0180c2000000" + "020000000001" + "88b5" + "00" * 46


class OpenVSwitchFailed(RuntimeError):
    """A command of Open vSwitch failed; says which and why."""


def missing() -> str:
    """Why no Open vSwitch can be started here, and the way out; empty where it can."""
    lack = [tool for tool in TOOLS if shutil.which(tool) is None]
    if not SCHEMA.exists():
        lack.append(str(SCHEMA))
    if lack:
        return f"{', '.join(lack)} is missing; install openvswitch-switch"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing, which Open vSwitch's userspace datapath needs; modprobe tun"
    return ""


@dataclass(frozen=True)
class Port:
    """A port of a switch: the interface's name, its OpenFlow number and its rate."""

    name: str
    number: int
    rate_bit_s: int


class Switch:
    """One switch. `on_node` is what a command becomes in its namespace; `directory` keeps all of its files."""

    def __init__(self, name: str, dpid: int, directory: Path, on_node: Callable[[list[str]], list[str]]) -> None:
        self.name, self.dpid, self.directory = name, dpid, directory
        self._on_node = on_node

    @property
    def database(self) -> str:
        """Where its OVSDB answers, as Open vSwitch's tools write it."""
        return f"unix:{self.directory}/db.sock"

    @property
    def management(self) -> str:
        """Where its own OpenFlow socket listens, for `ovs-ofctl`."""
        return f"unix:{self.directory}/{self.name}.mgmt"

    @property
    def environment(self) -> dict[str, str]:
        """What Open vSwitch's programs find their directories by."""
        where = str(self.directory)
        return dict.fromkeys(("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"), where)

    # Life

    def make(self, ports: Sequence[Port], controller: str) -> None:
        """Starts it with an empty flow table; it drops what no flow takes. `controller` may be there later.

        Its own port (LOCAL) has no address: nothing of the switch itself is in the network that it forwards.
        """
        self.directory.mkdir(parents=True)
        self._run(["ovsdb-tool", "create", str(self.directory / "conf.db"), str(SCHEMA)])
        self._start_database()
        self.vsctl("--no-wait", "init")
        self._start_daemon()
        words = ["add-br", self.name, "--", "set", "bridge", self.name, "datapath_type=netdev", "fail_mode=secure"]
        words += [f"protocols={','.join(PROTOCOLS)}", f"other-config:datapath-id={self.dpid:016x}"]
        words += [f"other-config:dp-desc={self.name}", "other-config:disable-in-band=true"]
        for port in ports:
            words += ["--", "add-port", self.name, port.name]
            words += ["--", "set", "interface", port.name, f"ofport_request={port.number}"]
        words += ["--", "set-controller", self.name, controller]
        words += ["--", "set", "controller", self.name, "connection-mode=out-of-band", "max_backoff=1000"]
        self.vsctl(*words)
        self.plain_rates(ports)
        self._widen_sockets(ports)

    def start(self, ports: Sequence[Port]) -> None:
        """Starts it again after `kill` or `stop`, with its ports and rates as they were and no flows."""
        if not self.pid("ovsdb-server"):
            self._start_database()
        self._start_daemon()
        self._widen_sockets(ports)

    def kill(self) -> None:
        """It vanishes, as by a power cut: nothing is forwarded any more."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """It is shut down."""
        self._end(signal.SIGTERM)

    def _start_database(self) -> None:
        words = ["ovsdb-server", str(self.directory / "conf.db"), f"--remote=p{self.database}"]
        self._run(self._on_node([*words, *self._daemon("ovsdb-server")]))

    def _start_daemon(self) -> None:
        # A switch has a processor of its own where it is one, and would not wait for the hosts'.
        words = ["nice", "-n", "-10", "ovs-vswitchd", self.database, "--disable-system"]
        self._run(self._on_node([*words, *self._daemon("ovs-vswitchd")]))

    def _daemon(self, name: str) -> list[str]:
        log = self.directory / f"{name}.log"
        return ["--detach", "--no-chdir", "--pidfile", f"--log-file={log}", "-vconsole:off", "-vsyslog:off"]

    def _end(self, number: int) -> None:
        for name in ("ovs-vswitchd", "ovsdb-server"):
            if pid := self.pid(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                wait_until(f"the end of {self.name}'s {name}", lambda name=name: not self.pid(name), LIMIT_S)

    def pid(self, daemon: str = "ovs-vswitchd") -> int:
        """The process id of one of its daemons; 0 when it does not run."""
        try:
            pid = int((self.directory / f"{daemon}.pid").read_text())
            command, state = (Path(f"/proc/{pid}") / what for what in ("cmdline", "stat"))
            alive = daemon in command.read_text() and state.read_text().rpartition(")")[2].split()[0] != "Z"
        except (OSError, ValueError):
            return 0
        return pid if alive else 0

    # Commands

    def vsctl(self, *words: str) -> str:
        """`ovs-vsctl` on its database; waits until the switch has done what was said."""
        return self._run(["ovs-vsctl", f"--db={self.database}", f"--timeout={LIMIT_S}", *words])

    def ofctl(self, command: str, *words: str) -> str:
        """`ovs-ofctl` by OpenFlow 1.3 on its own socket, beside any controller."""
        return self._run(["ovs-ofctl", "-O", PROTOCOLS[0], f"--timeout={LIMIT_S}", command, self.management, *words])

    def _run(self, words: list[str]) -> str:
        done = subprocess.run(
            words,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise OpenVSwitchFailed(
                f"switch {self.name}: {' '.join(words)}: status {done.returncode}: {done.stderr.strip()[-2000:]}; "
                f"its logs are in {self.directory}"
            )
        return done.stdout

    def plain_rates(self, ports: Sequence[Port]) -> None:
        """Each port at its link's rate, with one queue for everything."""
        self.no_rates()
        words = []
        for port in ports:
            rate, mark = f"other-config:max-rate={port.rate_bit_s}", f"external-ids:{_OURS}"
            words += ["--", "set", "port", port.name, f"qos=@qos{port.number}"]
            words += ["--", f"--id=@qos{port.number}", "create", "qos", "type=linux-htb", rate, mark]
            words += [f"queues:0=@queue{port.number}"]
            burst = f"other-config:burst={int(port.rate_bit_s * _BURST_S)}"
            words += ["--", f"--id=@queue{port.number}", "create", "queue", rate, burst, mark]
        if words:
            self.vsctl(*words[1:])

    def no_rates(self) -> None:
        """What `plain_rates` made is gone; QoS of anybody else stays."""
        ours = {table: self._find(table) for table in ("qos", "queue")}
        words = []
        for line in self.vsctl("--bare", "--columns=name,qos", "-f", "csv", "list", "port").splitlines():
            name, _, qos = line.partition(",")
            if qos in ours["qos"]:
                words += ["--", "clear", "port", name, "qos"]
        for table, found in ours.items():
            for row in found:
                words += ["--", "destroy", table, row]
        if words:
            self.vsctl(*words[1:])

    def has_rates(self) -> bool:
        """Whether any port has QoS, the lab's or somebody else's."""
        return any(self.vsctl("--bare", "--columns=qos", "list", "port").split())

    def _find(self, table: str) -> list[str]:
        """The rows of a table that are the lab's, by their ids."""
        return self.vsctl("--bare", "--columns=_uuid", "find", table, f"external-ids:{_OURS}").split()

    def _widen_sockets(self, ports: Sequence[Port]) -> None:
        """Gives the daemon's packet sockets room; it makes that for sending when it first sends."""
        if ports:
            action = f"in_port=controller packet={_A_FRAME} actions=output:{ports[0].number}"
            self.ofctl("packet-out", action)
            wait_until(f"{self.name}'s packet sockets", lambda: self._widened() > len(ports), LIMIT_S)

    def _widened(self) -> int:
        """How many sockets were given room."""
        pid, count = self.pid(), 0
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                for entry in os.listdir(f"/proc/{pid}/fd"):
                    count += _widen(handle, int(entry))
            finally:
                os.close(handle)
        return count


def _widen(process: int, descriptor: int) -> bool:
    """Whether a process's descriptor is a packet socket, which it gives room."""
    ours = _libc.syscall(_PIDFD_GETFD, process, descriptor, 0)
    if ours < 0:
        return False
    try:
        their_socket = socket.socket(fileno=ours)
    except OSError:
        os.close(ours)
        return False
    with their_socket:
        if their_socket.family != socket.AF_PACKET:
            return False
        their_socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER_BYTES)
        their_socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
    return True


def ports(topology: Topology, switch: str) -> list[Port]:
    """The ports of an OpenFlow switch, in the order of its links."""
    return [
        Port(f"to-{link.other(switch)}", topology.port(switch, link), link.shape.rate_bit_s)
        for link in topology.links_of(switch)
    ]


def controller_address(topology: Topology) -> str:
    """What switches connect to, as Open vSwitch writes it."""
    return f"tcp:{topology.management[CONTROLLER]}:{OPENFLOW_PORT}"
