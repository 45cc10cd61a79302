"""Checks of the code that Rust's compiler does not vouch for, by Miri and AddressSanitizer; both need nightly Rust.

Miri interprets the shared-memory rings, on memory of the process in the place of a mapped file, with several orders of
the threads' steps; it finds what is undefined, and races as far as those orders show them. AddressSanitizer watches the
unit tests of each crate with `unsafe` in it, mapped files and the C of its libraries as they are; what is fuzzed is
built with it, too.
"""

from __future__ import annotations

import platform
import subprocess

SEEDS = 8
INSTALL_NIGHTLY = ["rustup", "toolchain", "install", "nightly", "--profile", "minimal"]
INSTALL_MIRI = ["rustup", "component", "add", "miri", "rust-src", "--toolchain", "nightly"]
MIRI = [
    "env",
    f"MIRIFLAGS=-Zmiri-many-seeds=0..{SEEDS}",
    *("cargo", "+nightly", "miri", "test", "-p", "ndn-io", "--lib", "--", "transport::shm"),
]

UNSAFE = ("ndn-io", "ndn-forwarder", "ndn-repo", "trunkline-native", "trunkline-ucx", "trunkline-mirror")
ASAN = [
    "env",
    "RUSTFLAGS=-Zsanitizer=address",
    "CFLAGS=-fsanitize=address -fno-omit-frame-pointer",
    # What is kept until the process ends (what the JVM would call back into, say) is no fault.
    "ASAN_OPTIONS=detect_leaks=0",
    *("cargo", "+nightly", "test", "--lib", "--no-fail-fast", "--target-dir", "target/asan"),
    *("--target", f"{platform.machine()}-unknown-linux-gnu"),
    *(word for crate in UNSAFE for word in ("-p", crate)),
]


def nightly_missing() -> str:
    """Why AddressSanitizer can't run here; empty when it can."""
    try:
        found = subprocess.run(["cargo", "+nightly", "--version"], check=False, capture_output=True)
    except OSError as error:
        return f"cargo: {error.strerror}"
    return "no nightly toolchain" if found.returncode else ""


def miri_missing() -> str:
    """Why Miri can't run here; empty when it can."""
    try:
        found = subprocess.run(["cargo", "+nightly", "miri", "--version"], check=False, capture_output=True)
    except OSError as error:
        return f"cargo: {error.strerror}"
    return "no nightly toolchain with miri and rust-src" if found.returncode else ""
