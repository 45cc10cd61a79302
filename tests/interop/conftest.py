"""A running `trunkline fwd` for each test, and the helpers that start and end its processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

STOP_S = 10.0


@dataclass
class Bench:
    """A forwarder on a Unix socket, and whatever a test starts beside it."""

    binary: Path
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def socket_path(self) -> Path:
        return self.folder / "fwd.sock"

    @property
    def face(self) -> str:
        return f"unix://{self.socket_path}"

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"TRUNKLINE_FACE": self.face, "NDN_CLIENT_TRANSPORT": self.face}

    def start(self, *command: str, log: str) -> subprocess.Popen[bytes]:
        """Starts a process that the test leaves running; its output lies in a file."""
        with open(self.folder / log, "wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=self.environment)
        self.processes.append(process)
        return process

    def trunkline(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Runs `trunkline` to its end, which must be a good one."""
        done = subprocess.run(
            [str(self.binary), *arguments], capture_output=True, env=self.environment, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done

    def serve(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts `trunkline put` and waits until it says that it serves."""
        process = self.start(str(self.binary), "put", *arguments, log="put.log")
        self.wait_for(lambda: b"serving" in (self.folder / "put.log").read_bytes(), process)
        return process

    def wait_for(self, condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
        end = time.monotonic() + STOP_S
        while not condition():
            assert process is None or process.poll() is None, self.logs()
            assert time.monotonic() < end, self.logs()
            time.sleep(0.02)

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')}" for path in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def accepts(path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
    except OSError:
        return False
    return True


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    binary = Path(os.environ.get("TRUNKLINE_BIN", "dist/bin/trunkline")).resolve()
    bench = Bench(binary, tmp_path)
    config = tmp_path / "fwd.toml"
    config.write_text(f'[[face]]\nlisten = "{bench.face}"\n')
    try:
        forwarder = bench.start(str(binary), "fwd", "run", "--config", str(config), log="fwd.log")
        bench.wait_for(lambda: accepts(bench.socket_path), forwarder)
        yield bench
    finally:
        bench.stop()
