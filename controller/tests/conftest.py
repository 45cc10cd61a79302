"""What all tests share."""

import ctypes
import os
import subprocess

import hypothesis

CLONE_NEWNET = 0x40000000

# Machines differ, so no example has a deadline; runs don't, so that a failure is everybody's.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")


def pytest_configure():
    """The run has a network of its own: a namespace has room for one userspace datapath, and what is left of a failed
    test goes with it.
    """
    if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
