"""What the lab has from PyPI (ruff, pytest, pyroute2, matplotlib) in a virtual environment under .cache/.

Demo, benches and the suite itself need none of it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from . import locks, paths
from .say import say

REQUIREMENTS = paths.LAB / "requirements.txt"


def tool(name: str) -> str:
    """Path of a tool, installed on first use and again when the requirements change."""
    stamp = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    home = paths.CACHE / f"venv-{stamp}"
    ready = home / "ready"
    with locks.held("venv"):
        if not ready.exists():
            say(f"installing {', '.join(REQUIREMENTS.read_text().split())}")
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True, stdin=subprocess.DEVNULL)
            ready.touch()
    return str(Path(home) / "bin" / name)


def run_module(module: str, arguments: list[str]) -> None:
    """Goes on as `python -m module` in the environment; does not return."""
    python = tool("python")
    search = os.pathsep.join(filter(None, [str(paths.LAB), os.environ.get("PYTHONPATH", "")]))
    os.execve(python, [python, "-m", module, *arguments], {**os.environ, "PYTHONPATH": search})
