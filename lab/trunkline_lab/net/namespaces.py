"""Network namespaces by name: to make, to step into, to run commands in, to find the processes of, to remove.

They lie in /run/netns, where `ip netns` looks too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

NETNS = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SHARED, _MNT_DETACH = 4096, 16384, 1 << 20, 2
_libc = ctypes.CDLL(None, use_errno=True)

# In front of a command, after the namespace's path, the file that is its /etc/hosts, and the host's name. Mounts and
# the name live in namespaces of the command's own and end with it.
_ENTER = 'mount --bind "$0" /etc/hosts && echo "$1" > /proc/sys/kernel/hostname && shift && exec "$@"'


def _call(function: str, *arguments: object) -> None:
    """A system call by the C library; the errors are OSError."""
    if getattr(_libc, function)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")


def _setns(descriptor: int) -> None:
    _call("setns", descriptor, _CLONE_NEWNET)


def make(name: str) -> None:
    """A new namespace, kept by a mount on its file; FileExistsError where there is one of this name.

    Not by pyroute2, which forks the whole lab to do it.
    """
    NETNS.mkdir(exist_ok=True)
    _share()
    (NETNS / name).touch(exist_ok=False)
    with open("/proc/thread-self/ns/net") as home:
        _call("unshare", _CLONE_NEWNET)
        try:
            _call("mount", b"/proc/thread-self/ns/net", bytes(NETNS / name), b"none", _MS_BIND, None)
        finally:
            _setns(home.fileno())


def _share() -> None:
    """Has /run/netns be a shared mount, as `ip netns add` does. Where that is the first to do it, it mounts the folder
    over itself, and the namespaces that are there can't be removed any more.
    """
    try:
        _call("mount", b"", bytes(NETNS), b"none", _MS_SHARED | _MS_REC, None)
    except OSError:  # no mount yet
        _call("mount", bytes(NETNS), bytes(NETNS), b"none", _MS_BIND | _MS_REC, None)
        _call("mount", b"", bytes(NETNS), b"none", _MS_SHARED | _MS_REC, None)


def remove(name: str) -> None:
    """Removes a namespace, and with it all links that end there; nothing happens where there is none."""
    path = NETNS / name
    if not path.exists():
        return
    with contextlib.suppress(OSError):  # no mount, where making it was cut short
        _call("umount2", bytes(path), _MNT_DETACH)
    path.unlink(missing_ok=True)


def mount_bpf(path: Path) -> None:
    """A BPF file system of its own at a directory."""
    path.mkdir(parents=True, exist_ok=True)
    _call("mount", b"bpf", bytes(path), b"bpf", 0, None)


def unmount(path: Path) -> None:
    """Takes a mount away; nothing happens where there is none."""
    with contextlib.suppress(OSError):
        _call("umount2", bytes(path), _MNT_DETACH)


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """The calling thread is in the namespace; sockets made in it stay there afterwards."""
    with open("/proc/thread-self/ns/net") as home, (NETNS / name).open() as there:
        _setns(there.fileno())
        try:
            yield
        finally:
            _setns(home.fileno())


def command(name: str, hosts_file: Path, hostname: str, words: list[str]) -> list[str]:
    """`words` as run in the namespace, with an /etc/hosts and a host name of its own."""
    return [
        "nsenter",
        f"--net={NETNS / name}",
        "unshare",
        "--mount",
        "--uts",
        "sh",
        "-c",
        _ENTER,
        str(hosts_file),
        hostname,
        *words,
    ]


def exists(name: str) -> bool:
    return (NETNS / name).exists()


def processes(names: list[str]) -> dict[int, str]:
    """Every process (by pid) that is in one of the namespaces, and in which."""
    inodes = {}
    for name in names:
        with contextlib.suppress(OSError):
            found = (NETNS / name).stat()
            inodes[(found.st_dev, found.st_ino)] = name
    there = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found = (entry / "ns/net").stat()
                if name := inodes.get((found.st_dev, found.st_ino)):
                    there[int(entry.name)] = name
    there.pop(os.getpid(), None)
    return there


def end_processes(names: list[str], grace_s: float = 5.0) -> int:
    """Ends all that runs in the namespaces, SIGTERM first; returns how many there were."""
    first = processes(names)
    for number, limit_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + limit_s
        signalled: set[int] = set()
        while there := processes(names):
            for pid in there.keys() - signalled:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            signalled |= there.keys()
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
    if left := processes(names):
        raise RuntimeError(f"processes {sorted(left)} in {', '.join(sorted(set(left.values())))} do not end")
    return len(first)
