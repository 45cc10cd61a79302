"""Checks of the code that Rust's compiler does not vouch for: Miri.

Miri interprets the shared-memory rings, on memory of the process in the place of a mapped file, with several orders of
the threads' steps; it finds what is undefined, and races as far as those orders show them. It needs nightly Rust.
"""

from __future__ import annotations

import subprocess

SEEDS = 8
INSTALL_MIRI = ["rustup", "component", "add", "miri", "rust-src", "--toolchain", "nightly"]
MIRI = [
    "env",
    f"MIRIFLAGS=-Zmiri-many-seeds=0..{SEEDS}",
    *("cargo", "+nightly", "miri", "test", "-p", "ndn-io", "--lib", "--", "transport::shm"),
]


def miri_missing() -> str:
    """Why Miri can't run here; empty when it can."""
    try:
        found = subprocess.run(["cargo", "+nightly", "miri", "--version"], check=False, capture_output=True)
    except OSError as error:
        return f"cargo: {error.strerror}"
    return "no nightly toolchain with miri and rust-src" if found.returncode else ""
