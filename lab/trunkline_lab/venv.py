"""What the lab and the controller have from PyPI, in one virtual environment under .cache/.

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

REQUIREMENTS = (
    paths.LAB / "requirements.txt",
    paths.CONTROLLER / "requirements.txt",
    paths.CONTROLLER / "requirements-test.txt",
)


def tool(name: str) -> str:
    """Path of a tool, installed on first use and again when the requirements change."""
    texts = [path.read_text() for path in REQUIREMENTS]
    stamp = hashlib.sha256("".join(texts).encode()).hexdigest()[:12]
    home = paths.CACHE / f"venv-{stamp}"
    ready = home / "ready"
    with locks.held("venv"):
        if not ready.exists():
            say(f"installing {', '.join(sorted({word for text in texts for word in text.split()}))}")
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            files = [word for path in REQUIREMENTS for word in ("-r", str(path))]
            subprocess.run([*pip, *files], check=True, stdin=subprocess.DEVNULL)
            ready.touch()
    return str(Path(home) / "bin" / name)


def run_module(module: str, arguments: list[str]) -> None:
    """Goes on as `python -m module` in the environment; does not return."""
    python = tool("python")
    search = os.pathsep.join(filter(None, [str(paths.LAB), os.environ.get("PYTHONPATH", "")]))
    os.execve(python, [python, "-m", module, *arguments], {**os.environ, "PYTHONPATH": search})
