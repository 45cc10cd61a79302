"""NDNts as a second witness, where Node.js is there: both ways, and management."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import Bench

NDNTS_DIR = os.environ.get("NDNTS_DIR")

pytestmark = pytest.mark.skipif(
    NDNTS_DIR is None, reason="NDNts is not installed (run.sh installs it where npm is there)"
)


def script(name: str) -> str:
    assert NDNTS_DIR is not None
    return str(Path(NDNTS_DIR) / name)


def node(bench: Bench, name: str, *arguments: str) -> str:
    done = subprocess.run(
        ["node", script(name), *arguments],
        env=bench.environment | {"FWD_SOCKET": str(bench.socket_path)},
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


def test_get_from_ndnts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FWD_SOCKET", str(bench.socket_path))
    source = bench.folder / "source.bin"
    source.write_bytes(os.urandom(1_000_003))
    process = bench.start("node", script("produce.mjs"), "/ts/object", str(source), log="node.log")
    bench.wait_for(lambda: b"serving" in (bench.folder / "node.log").read_bytes(), process)
    bench.wait_for(lambda: b"/ts/object" in bench.trunkline("fwd", "route", "list").stdout)
    assert bench.trunkline("get", "/ts/object").stdout == source.read_bytes()


def test_ndnts_fetches_from_put(bench: Bench) -> None:
    source = bench.folder / "source.bin"
    source.write_bytes(os.urandom(1_000_003))
    bench.serve("/tl/ts", str(source), "--segment-size", "8000")
    target = bench.folder / "target.bin"
    node(bench, "fetch.mjs", "/tl/ts", str(target))
    assert target.read_bytes() == source.read_bytes()


def test_ndnts_manages(bench: Bench) -> None:
    facts = json.loads(node(bench, "manage.mjs"))
    assert facts["set"] == 200
    assert 400 <= facts["refused"] < 500
    assert any(uri.startswith("unix://") or uri.startswith("fd://") for uri in facts["faces"])
    # NDNts writes the type before each component: /8=ndnts/8=m.
    chosen = dict(facts["strategies"])
    assert "multicast" in chosen["/8=ndnts/8=m"]
