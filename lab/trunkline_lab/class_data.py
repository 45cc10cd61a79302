"""An archive of the classes that Hadoop's daemons and shell load (JDK class-data sharing), for clusters of tests.

A JVM with such an archive maps classes that are read, checked and laid out already: it starts with less work, and does
the same. Benches and the demo go without, as their users do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import locks, paths
from .cluster import FSSHELL, Cluster, Plane
from .network import pick_loopback
from .procs import ProcessFailed, Stage
from .say import say

DUMP_S = 300
MINI_BYTES = 1 << 20
UNUSED_S = 3 * 86_400  # an archive that nobody has used for so long goes

_failed: set[str] = set()  # what could not be made, so that not every cluster tries again


def archive(plugin: Sequence[Path], jars: Sequence[str]) -> Path | None:
    """The archive for a class path that begins with these jars; made once, None where that does not work."""
    own = [str(jar) for jar in plugin] + list(jars)
    stamp = _stamp(own)
    if stamp in _failed:
        return None
    file = paths.CACHE / "hadoop" / f"classes-{stamp}.jsa"
    with locks.held("classes"):
        try:
            if not file.exists():
                _make(file, plugin, jars, own)
            file.touch()
        except (OSError, RuntimeError, ProcessFailed, subprocess.SubprocessError) as error:
            _failed.add(stamp)
            say(f"no archive of classes, so JVMs start as they do without: {error}")
            return None
    return file


def _stamp(jars: Sequence[str]) -> str:
    """Changes with the JVM and with any of the jars, both of which an archive is checked against."""
    java = subprocess.run([paths.java(), "-version"], capture_output=True, text=True, check=True).stderr
    parts = [java, *(f"{jar} {(found := os.stat(jar)).st_size} {found.st_mtime_ns}" for jar in jars)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _make(file: Path, plugin: Sequence[Path], jars: Sequence[str], own: Sequence[str]) -> None:
    """Has a small cluster say what it loads, and archives that."""
    say("archiving the classes that Hadoop loads, once")
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in file.parent.glob("classes-*.jsa"):
        if time.time() - old.stat().st_mtime > UNUSED_S:
            old.unlink()
    with tempfile.TemporaryDirectory(prefix="trunkline-classes-") as folder:
        directory = Path(folder)
        loaded = directory / "loaded"
        loaded.mkdir()
        # %p is the JVM's process id.
        listing = f"-XX:DumpLoadedClassList={loaded}/%p"
        plane = Plane("tcp", list(plugin))
        with Stage(directory / "logs") as stage:
            cluster = Cluster(stage, directory, pick_loopback().site(1), plane, jars=list(jars), jvm=[listing])
            cluster.start()
            source = directory / "source"
            source.write_bytes(os.urandom(MINI_BYTES))
            cluster.put(source, "/file", replication=1)
            cluster.get("/file", directory / "copy")
            cluster.client(FSSHELL, "-rm", "-skipTrash", "/file", name="rm")
        classes = {line: None for each in sorted(loaded.iterdir()) for line in each.read_text().splitlines()}
        names = directory / "names"
        names.write_text("\n".join(classes) + "\n")
        fresh = directory / "classes.jsa"
        done = subprocess.run(
            [
                *(paths.java(), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={names}"),
                *(f"-XX:SharedArchiveFile={fresh}", "-cp", ":".join(own)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DUMP_S,
            check=False,
        )
        if done.returncode != 0 or not fresh.exists():
            raise RuntimeError(f"java -Xshare:dump ended with {done.returncode}: {done.stderr.strip()[-400:]}")
        beside = file.with_suffix(".new")
        shutil.move(fresh, beside)
        beside.rename(file)
