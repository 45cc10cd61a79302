"""Sizes, payload files, tables, and how other tools' results are read."""

import zlib

import pytest

from trunkline_lab import payload, report
from trunkline_lab.suite import count_cargo


@pytest.mark.parametrize(
    ("text", "size"),
    [("256MiB", 256 << 20), ("1GB", 10**9), ("64m", 64 << 20), ("1024", 1024), ("1.5 KiB", 1536), ("7B", None)],
)
def test_sizes(text, size):
    if size is None:
        with pytest.raises(ValueError, match="write it as 256MiB"):
            payload.parse_size(text)
    else:
        assert payload.parse_size(text) == size


def test_a_payload_is_half_compressible_and_always_the_same(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    payload.make(a, 4_000_001)
    payload.make(b, 4_000_001)
    assert a.stat().st_size == 4_000_001
    assert payload.sha256(a) == payload.sha256(b)
    assert 0.4 < len(zlib.compress(a.read_bytes(), 1)) / 4_000_001 < 0.75


def test_columns_line_up():
    assert report.table([["name", "x"], ["a", "10"]]) == "name   x\na     10"


def test_cargo_results_are_summed_with_their_reasons():
    lines = [
        "test a::works ... ok",
        "test a::breaks ... FAILED",
        "test b::waits ... ignored, needs a network namespace",
        "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
    ]
    count = count_cargo(lines, 101, "cargo test")
    assert count.line() == "4 passed, 1 failed, 1 skipped"
    assert count.notes == ["failed: a::breaks", "skipped: b::waits: ignored, needs a network namespace"]


def test_a_build_that_broke_is_one_failure():
    assert count_cargo(["error: could not compile"], 101, "cargo test").line() == "0 passed, 1 failed, 0 skipped"
