"""`make fmt`, the Python part."""

from __future__ import annotations

import argparse
import subprocess

from . import paths, venv


def add_arguments(_: argparse.ArgumentParser) -> None:
    pass


def main(_: argparse.Namespace) -> int:
    for words in (["check", "--fix-only", "--quiet"], ["format"]):
        subprocess.run([venv.tool("ruff"), *words, str(paths.LAB), str(paths.CONTROLLER)], check=True)
    return 0
