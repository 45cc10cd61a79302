"""Labs for tests: made where they can be, gone afterwards; and what hosts in them do."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from trunkline_lab import paths
from trunkline_lab.net import openvswitch
from trunkline_lab.net.fabric import Fabric
from trunkline_lab.net.topology import Topology

GIVE_UP_S = 60
RECEIVE = "import socket; s = socket.create_server(('', 7000)); print('on', flush=True); c, _ = s.accept()\n"
RECEIVE += "n = 0\nwhile b := c.recv(65536): n += len(b)\nprint(n, flush=True)"


@contextlib.contextmanager
def standing(letter: str, topology: Topology) -> Iterator[Fabric]:
    """A lab whose name begins so. Skips the test where this machine can't have one."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if topology.openflow and (lack := openvswitch.missing()):
        pytest.skip(lack)
    fabric = Fabric(f"{letter}{os.getpid() % 10**8}")
    try:
        fabric.up(topology)
    except PermissionError as error:
        pytest.skip(f"no network namespaces here: {error}")
    try:
        yield fabric
    finally:
        fabric.down()


def run(fabric: Fabric, node: str, code: str) -> subprocess.Popen[str]:
    """Python on a node."""
    return subprocess.Popen(
        fabric.command(node, [sys.executable, "-uc", code]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def transfer(fabric: Fabric, start: str, end: str, octets: int) -> None:
    """Sends so many bytes by TCP, all of which arrive."""
    receiver = run(fabric, end, RECEIVE)
    assert receiver.stdout.readline() == "on\n"
    send = f"import socket; s = socket.create_connection(({end!r}, 7000)); s.sendall(bytes({octets}))"
    assert run(fabric, start, send).wait(GIVE_UP_S) == 0
    assert receiver.communicate(timeout=GIVE_UP_S)[0] == f"{octets}\n"


def answered(fabric: Fabric, start: str, end: str, count: int = 3) -> bool:
    """Whether all of so many pings are answered."""
    words = ["ping", "-q", "-c", str(count), "-i", "0.1", "-W", "5", end]
    shown = subprocess.run(fabric.command(start, words), capture_output=True, text=True, check=False).stdout
    return f"{count} packets transmitted, {count} received" in shown


def killed(lab: str, load: str, more: str = "") -> None:
    """Another process makes a lab of this name, of the topology that `load` gives, does `more`, and is killed."""
    code = (
        "import subprocess, time; from pathlib import Path; from trunkline_lab.net import fabric, topology_file\n"
        f"f = fabric.Fabric({lab!r}); f.up({load})\n{more}\nprint('up', flush=True); time.sleep(300)"
    )
    maker = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(paths.LAB)},
    )
    assert maker.stdout.readline() == "up\n"
    maker.send_signal(signal.SIGKILL)
    maker.wait()
