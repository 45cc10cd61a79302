"""A program of lab/hdfs that runs as a client of a cluster: it takes a line as an order, and answers with a line."""

from __future__ import annotations

import select
import subprocess

from .cluster import Cluster
from .procs import Process, ProcessFailed, tail


class ClientProgram:
    """A JVM on a client's host; `arguments` begin with the program. It has said "ready" when this returns."""

    def __init__(self, cluster: Cluster, host: str, *arguments: str, name: str) -> None:
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process: Process = cluster.start_client(*arguments, name=f"{name}-{host}", host=host, **streams)
        self.read("ready")

    def say(self, order: str) -> None:
        """Gives it an order."""
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.write(f"{order}\n".encode())
        self.process.popen.stdin.flush()

    def read(self, word: str, timeout_s: float = 600) -> str:
        """The line that it answers with; raises ProcessFailed where that begins with another word, or does not come."""
        out = self.process.popen.stdout
        assert out is not None
        # It prints one line for each order: none waits in the buffer.
        ready, _, _ = select.select([out], [], [], timeout_s)
        line = out.readline().decode(errors="replace") if ready else ""
        if not line.startswith(word):
            raise self._failed()
        return line

    def close(self) -> None:
        """Ends it: there is no other order."""
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.close()
        if self.process.wait(60) != 0:
            raise self._failed()

    def _failed(self) -> ProcessFailed:
        process = self.process
        return ProcessFailed(f"{process.name} failed; {process.log} ends:\n{tail(process.log)}")
