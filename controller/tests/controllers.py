"""Controllers as processes of their own, for tests that kill them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openvswitch

ROOM = Path(__file__).parents[1]
QUICK = "[network]\nlldp_interval_s = 0.5\nsettle_s = 0.5\nswitch_hold_s = 2\nadopt_hold_s = 10\n"


@dataclass
class Running:
    """A controller's process; its ports are as it logs them."""

    process: subprocess.Popen[bytes]
    log_file: Path
    openflow_port: int = 0
    url: str = ""

    def log(self) -> str:
        return self.log_file.read_text()

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return json.load(answer)

    def status(self) -> dict[str, Any]:
        return self.get("v1/status")

    def target(self) -> str:
        """As ovs-vsctl takes a controller."""
        return f"tcp:127.0.0.1:{self.openflow_port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Asks it to end; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(openvswitch.GIVE_UP_S)


def start(
    directory: Path, port: int = 0, *, more: str = "", openflow: str = "", lease_s: int = 2, quick: bool = True
) -> Running:
    """A controller with its state in a directory; returns when switches may connect. `quick`: it waits less than it
    would by default. `more` tables for its file, and more lines of table [openflow].
    """
    directory.mkdir(parents=True, exist_ok=True)
    config, log_file = directory / "controller.toml", directory / "log"
    lines = ["[openflow]", f"port = {port}", openflow]
    if quick:
        lines += [f"lease_s = {lease_s}", "poll_s = 0.2"]
    lines += ["[http]", "port = 0", "[state]", f'directory = "{directory}/state"', QUICK if quick else "", more]
    config.write_text("\n".join(lines))
    command = [sys.executable, "-m", "trunkline_controller", "--config", str(config)]
    with log_file.open("wb") as log:
        environment = {**os.environ, "PYTHONPATH": str(ROOM)}
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    running = Running(process, log_file)

    def listens() -> bool:
        text = running.log()
        switches = re.search(r"listening for switches on \S+ port (\d+)", text)
        page = re.search(r"page and REST interface: (\S+)", text)
        assert process.poll() is None, text
        if switches and page:
            running.openflow_port, running.url = int(switches[1]), page[1]
        return bool(running.url)

    try:
        openvswitch.until("the controller listens", listens)
    except BaseException:
        running.kill()
        raise
    return running


@contextlib.contextmanager
def running(
    directory: Path, port: int = 0, *, more: str = "", openflow: str = "", lease_s: int = 2, quick: bool = True
) -> Iterator[Running]:
    """A controller that is killed at the end, if it still runs."""
    controller = start(directory, port, more=more, openflow=openflow, lease_s=lease_s, quick=quick)
    try:
        yield controller
    finally:
        controller.kill()
