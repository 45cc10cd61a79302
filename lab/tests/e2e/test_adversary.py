"""What somebody tries on the hosts and links of a cluster with block tokens; each test is named after it.

What is tried on the named network is in the plug-in's AdversaryTest; docs/security.md has the whole list.
"""

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import MIB

from trunkline_lab import paths, planes
from trunkline_lab.cluster import FSSHELL
from trunkline_lab.network import pick_loopback
from trunkline_lab.procs import Stage, wait_until
from trunkline_lab.wiretap import Wiretap

pytestmark = pytest.mark.e2e

TOKENS = {"dfs.block.access.token.enable": "true"}
NOBODY = 65534

# The header of a write, or a read, has its client's name, the block token and its password.
IN_EACH_HEADER = b"DFSClient_NONMAPREDUCE_"

root = pytest.mark.skipif(os.geteuid() != 0, reason="listening on an interface, or acting as somebody else, needs root")


@root
@pytest.mark.planes("ndn", "tcp")
def test_reads_data_and_tokens_off_the_wire(make_bed, tmp_path):
    """By stock TCP all of it can be read, where there are block tokens alone; by name nothing.

    What the NameNode says is hadoop.rpc.protection's to guard, and left out.
    """
    bed = make_bed(extra=TOKENS)
    data = random.Random(4).randbytes(4 * MIB)
    source = tmp_path / "source"
    source.write_bytes(data)
    namenode = bed.cluster.site.namenode[1]
    pieces = [data[at : at + 16] for at in range(0, len(data), 200_003)]
    works = {
        "write": (3, lambda: bed.cluster.put(source, "/file")),
        "read": (1, lambda: bed.read("/file", tmp_path)),
    }
    for work, (copies, do) in works.items():
        with Wiretap(namenode.rpartition(".")[0] + ".", but=(namenode,)) as tap:
            do()
        seen = sum(map(tap.saw, pieces))
        assert tap.passed() > copies * len(data), work  # whatever it looks like, it has passed
        if bed.plane.name == "ndn":
            assert seen == 0, work
            assert not tap.saw(IN_EACH_HEADER), work
        else:
            assert seen > 0, work
            assert tap.saw(IN_EACH_HEADER), work
    assert bed.plane.name != "ndn" or bed.total("secured_connections") > 0
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()


@pytest.mark.planes("ndn")
def test_reads_by_other_users_come_from_the_cache(make_bed, tmp_path):
    """Whoever has a token of his own is served what others were: the router has it sealed, under the block's key."""
    bed = make_bed(extra=TOKENS)
    data = random.Random(5).randbytes(16 * MIB)
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    segments = -(-len(data) // 64512)
    for user in ("alice", "bob"):
        hits, copy = bed.router.cache_hits(), tmp_path / user
        jvm = [f"-DHADOOP_USER_NAME={user}"]
        bed.cluster.client(FSSHELL, "-get", "/file", str(copy), name=f"get-{user}", jvm=jvm)
        assert copy.read_bytes() == data
        assert bed.router.cache_hits() - hits >= segments, user
    assert bed.total("fallback") == 0


def as_nobody(code: str, *arguments: str) -> str:
    """What a program of a user without rights says."""
    command = ["/usr/bin/python3", "-I", "-c", code, *arguments]  # others may not go to where ours is
    done = subprocess.run(
        command, check=False, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip() or done.stderr


CONNECT = """
import socket, sys
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
    print("connected")
except OSError as e:
    print(type(e).__name__)
"""

OPEN = """
import sys
try:
    open(sys.argv[1], "rb").close()
    print("opened")
except OSError as e:
    print(type(e).__name__)
"""


def memories(pid: int) -> list[str]:
    """The ranges of a process's memory that it shares with a neighbour, as /proc names them."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line.split()[0] for line in maps if "/memfd:trunkline-face" in line]


@pytest.fixture
def router(tmp_path):
    """One with its Unix socket in a folder that is open to all, so that the socket alone says no."""
    with Stage(tmp_path / "logs") as stage:
        _, router = planes.set_up("ndn", stage, tmp_path, pick_loopback(), cache_bytes=MIB)
        router.control.parent.chmod(0o755)
        yield router


def erase(face: str, trunkline: Path | None = None, **who) -> subprocess.CompletedProcess[str]:
    command = [trunkline or paths.built(paths.TRUNKLINE), "fwd", "cs", "erase", "/", "--face", face]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=30, **who)


@contextmanager
def nobodys_trunkline() -> Iterator[Path]:
    """The command where others may run it; those may not go to where ours is."""
    with tempfile.TemporaryDirectory(prefix="trunkline-") as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copy(paths.built(paths.TRUNKLINE), folder))


def test_empties_the_cache_of_a_router_from_another_host(router, tmp_path):
    """The face that other hosts have takes no commands, signed or not."""
    source, copy, own = tmp_path / "source", tmp_path / "copy", f"unix://{router.control}"
    source.write_bytes(bytes(MIB))
    trunkline = paths.built(paths.TRUNKLINE)
    routes = router.status()["fib_entries"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([trunkline, "put", "/kept", source, "--face", own], **quiet) as neighbour:
        try:
            wait_until("a route", lambda: router.status()["fib_entries"] > routes, 20)
            subprocess.run(
                [trunkline, "get", "/kept", "-q", "-o", copy, "--face", own], check=True, timeout=30, **quiet
            )
        finally:
            neighbour.kill()
    kept = router.status()["content_store"]["entries"]
    assert kept > 0
    assert erase(router.listen).returncode != 0
    if os.geteuid() == 0:  # a user of this host is no other
        with nobodys_trunkline() as theirs:
            refused = erase(router.listen, theirs, user=NOBODY, group=NOBODY, extra_groups=[])
        assert refused.returncode != 0
    assert router.status()["content_store"]["entries"] == kept
    assert erase(own).returncode == 0
    assert router.status()["content_store"]["entries"] == 0


@root
def test_commands_the_router_of_its_host_as_a_user_without_rights(router):
    """A Unix socket is open to whom its mode says: the daemon's own user, if nobody says another one."""
    assert as_nobody(CONNECT, str(router.control)) == "PermissionError"
    router.control.chmod(0o777)
    assert as_nobody(CONNECT, str(router.control)) == "connected"


@root
def test_looks_into_memory_that_a_router_and_a_neighbour_share(router, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(bytes(MIB))
    command = [paths.built(paths.TRUNKLINE), "put", "/shared", source, "--face", f"unix://{router.control}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as neighbour:
        try:
            pid = router.process.pid
            wait_until("shared memory", lambda: memories(pid), 20)
            doors = [f"/proc/{pid}/mem", *(f"/proc/{pid}/map_files/{memory}" for memory in memories(pid))]
            for door in doors:
                Path(door).open("rb").close()  # its owner may
                assert as_nobody(OPEN, door) == "PermissionError"
        finally:
            neighbour.kill()
