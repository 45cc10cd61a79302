"""What a command on a host of a standing lab finds: the host's forwarder, and `hdfs` for the host's configuration."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from .. import paths
from ..cluster import DFSADMIN, FSCK, FSSHELL
from .data_center import DataCenter
from .fabric import Fabric, Record

_HDFS = """\
#!/bin/sh
# {host}'s `hdfs`: dfs, dfsadmin and fsck of stock Hadoop with this host's configuration.
case "$1" in
  dfs) main={fsshell} ;;
  dfsadmin) main={dfsadmin} ;;
  fsck) main={fsck} ;;
  *) echo "usage: hdfs dfs|dfsadmin|fsck ..." >&2; exit 2 ;;
esac
shift
exec {java} "$main" "$@"
"""


def write(center: DataCenter, directory: Path) -> None:
    """Writes down what `variables` points at."""
    if center.cluster is None:
        return
    for host in center.cluster.clients:
        path = directory / "bin" / host / "hdfs"
        path.parent.mkdir(parents=True, exist_ok=True)
        java = center.cluster.client_command("MAIN", host=host)
        assert java[-1] == "MAIN"
        path.write_text(
            _HDFS.format(host=host, fsshell=FSSHELL, dfsadmin=DFSADMIN, fsck=FSCK, java=shlex.join(java[:-1]))
        )
        path.chmod(0o755)


def variables(fabric: Fabric, record: Record, host: str) -> dict[str, str]:
    """The environment of a command on a host."""
    found = dict(os.environ)
    folders = [str(paths.DIST / "bin")]
    if directory := record.extra.get("directory"):
        folders.insert(0, str(Path(directory) / "bin" / host))
    found["PATH"] = os.pathsep.join([*folders, found.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")])
    control = fabric.directory / f"{host}.sock"
    if control.exists():
        found["TRUNKLINE_FACE"] = f"unix://{control}"
    return found


def what(pid: int) -> str:
    """A process in a word: of a JVM its main class, of others the command."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return "ended"
    for word in words:
        if word.startswith("org.apache.hadoop."):
            return word.rpartition(".")[2]
    return Path(words[0]).name
