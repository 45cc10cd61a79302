"""What a command on a host of a standing lab finds: the host's forwarder, `hdfs` and `yarn` with its configuration."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from .. import controller, paths
from ..cluster import DFSADMIN, FSCK, FSSHELL
from ..yarn import RUNJAR, YARN_APPLICATION, YARN_NODE
from .data_center import DataCenter
from .fabric import Fabric, Record
from .topology import CONTROLLER

_SCRIPT = """\
#!/bin/sh
# {host}'s `{name}`: {words} of stock Hadoop with this host's configuration.
case "$1" in
{cases}  *) echo "usage: {name} {words} ..." >&2; exit 2 ;;
esac
shift
exec {java} "$main" "$@"
"""


def write(center: DataCenter, directory: Path) -> None:
    """Writes down what `variables` points at."""
    if center.cluster is None:
        return
    tools = {"hdfs": {"dfs": FSSHELL, "dfsadmin": DFSADMIN, "fsck": FSCK}}
    if center.yarn:
        tools["yarn"] = {"jar": RUNJAR, "application": YARN_APPLICATION, "node": YARN_NODE}
    for host in center.cluster.clients:
        folder = directory / "bin" / host
        folder.mkdir(parents=True, exist_ok=True)
        java = center.cluster.client_command("MAIN", host=host)
        assert java[-1] == "MAIN"
        for name, mains in tools.items():
            (folder / name).write_text(script(name, mains, host, shlex.join(java[:-1])))
            (folder / name).chmod(0o755)


def script(name: str, mains: dict[str, str], host: str, java: str) -> str:
    """A command of stock Hadoop: `name WORD …` runs the class of the word."""
    cases = "".join(f"  {word}) main={main} ;;\n" for word, main in mains.items())
    return _SCRIPT.format(name=name, words="|".join(mains), cases=cases, host=host, java=java)


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
    if host == CONTROLLER and directory:
        found |= controller.variables(Path(directory))
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
