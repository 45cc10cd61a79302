"""The lab's own tools (ruff, pytest) in a virtual environment under .cache/; experiments need none of them."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from . import paths
from .say import say

REQUIREMENTS = paths.LAB / "requirements-dev.txt"


def tool(name: str) -> str:
    """Path of a tool, installed on first use and again when the requirements change."""
    stamp = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    home = paths.CACHE / f"venv-{stamp}"
    ready = home / "ready"
    if not ready.exists():
        say(f"installing {', '.join(REQUIREMENTS.read_text().split())}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True, stdin=subprocess.DEVNULL)
        ready.touch()
    return str(Path(home) / "bin" / name)
