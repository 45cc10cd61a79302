"""The yardstick of transfers moves every byte and tells honest times."""

import subprocess
import sys

import pytest

from trunkline_lab import rawtcp


@pytest.fixture
def serving():
    """Starts a server of rawtcp on a free port."""
    started = []

    def start(*words):
        command = [sys.executable, "-u", rawtcp.__file__, words[0], "0", *words[1:]]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return int(process.stdout.readline().split()[1])

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_whole_file_comes(serving, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(3_000_001))
    port = serving("serve", str(file))
    for _ in range(2):
        facts = rawtcp.fetch("127.0.0.1", port)
        assert facts["bytes"] == 3_000_001
        assert facts["seconds"] > 0


def test_echoes_are_counted(serving):
    facts = rawtcp.ping("127.0.0.1", serving("echo"), 5, 0)
    assert facts["count"] == 5
    assert 0 < facts["min"] <= facts["p50"]
    assert facts["min"] <= facts["mean"]
