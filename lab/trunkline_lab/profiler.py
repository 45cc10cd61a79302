"""What JVMs spend their time on: stacks sampled by async-profiler, from inside the JVM, of any number of processes."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import paths, stock
from .procs import Process

POM = paths.LAB / "profiler" / "pom.xml"
MEMBER = "linux-x64/libasyncProfiler.so"
# More often, the samples themselves cost what they are to measure: "wall" has every thread that lives stopped for one.
INTERVAL_MS = {"cpu": 5, "wall": 20}


@dataclass(frozen=True)
class Stack:
    """A stack from its root to its leaf, the thread's name first, and the seconds that it was found for."""

    frames: list[str]
    seconds: float


def library() -> Path:
    """async-profiler's library, resolved by Maven and unpacked on first use."""
    (jar,) = (Path(jar) for jar in stock.classpath(pom=POM) if "async-profiler" in jar)
    unpacked = paths.CACHE / "async-profiler" / jar.stem / Path(MEMBER).name
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        fresh = unpacked.with_suffix(".new")
        with zipfile.ZipFile(jar) as archive:
            fresh.write_bytes(archive.read(MEMBER))
        fresh.rename(unpacked)
    return unpacked


class Profile:
    """One measurement. `event` is "cpu" (threads that run) or "wall" (all threads, whether they run or wait)."""

    def __init__(self, directory: Path, event: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._event, self._library = directory, event, library()

    def _start(self, name: str) -> str:
        file = self._file(name)
        file.unlink(missing_ok=True)
        return f"start,event={self._event},interval={INTERVAL_MS[self._event]}ms,threads,collapsed,file={file}"

    def _file(self, name: str) -> Path:
        return self._directory / f"{self._event}-{name}.collapsed"

    def from_birth(self, name: str) -> list[str]:
        """Options of a JVM that is watched from its first moment to its last."""
        return [f"-agentpath:{self._library}={self._start(name)}"]

    def start(self, process: Process) -> None:
        """Begins to watch a JVM that runs."""
        self._load(process, self._start(process.name))

    def stop(self, process: Process) -> None:
        """Writes down what was seen of a JVM since `start`."""
        self._load(process, f"stop,threads,collapsed,file={self._file(process.name)}")

    def _load(self, process: Process, options: str) -> None:
        """Has the JVM load the agent; an agent that is there already takes the options as a command."""
        words = [paths.java("jcmd"), str(process.pid), "JVMTI.agent_load", str(self._library), f'"{options}"']
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0 or "return code: 0" not in done.stdout:
            raise RuntimeError(
                f"{process.name} does not take the profiler: {done.stdout.strip()} {done.stderr.strip()}"
            )

    def stacks(self, name: str) -> Iterator[Stack]:
        """What was seen of a JVM."""
        file = self._file(name)
        if not file.exists():
            raise RuntimeError(f"the profiler left nothing of {name}: {file} is missing")
        yield from parse(file.read_text(errors="replace"), INTERVAL_MS[self._event])


def parse(collapsed: str, interval_ms: float) -> Iterator[Stack]:
    """Lines of "thread;frame;frame … samples"; a thread's name may have semicolons and spaces of its own."""
    for line in collapsed.splitlines():
        stack, _, samples = line.rpartition(" ")
        yield Stack(stack.split(";"), int(samples) * interval_ms / 1000)
