"""Sizes, payload files, tables, and how other tools' results are read."""

import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from trunkline_lab import guest, hbase, memory, mirror_kernels, payload, report, verbs
from trunkline_lab.suite.count import of_cargo
from trunkline_lab.suite.stages import mount_missing


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


def test_a_table_in_markdown():
    assert report.markdown([["name", "x"], ["a|b", "10"]]) == "| name | x |\n| --- | ---: |\n| a\\|b | 10 |"


def test_cargo_results_are_summed_with_their_reasons():
    lines = [
        "test a::works ... ok",
        "test a::breaks ... FAILED",
        "test b::waits ... ignored, needs a network namespace",
        "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
    ]
    count = of_cargo(lines, 101, "cargo test")
    assert count.line() == "4 passed, 1 failed, 1 skipped"
    assert count.notes == ["failed: a::breaks", "skipped: b::waits: ignored, needs a network namespace"]


def test_a_build_that_broke_is_one_failure():
    assert of_cargo(["error: could not compile"], 101, "cargo test").line() == "0 passed, 1 failed, 0 skipped"


def test_a_guests_checks_are_read_off_its_console():
    console = "guest: 4.79 s: up\r\nok a NIC\r\nFAILED a ping: status 1: no route\r\nok\n"
    assert verbs.results(console)[:2] == [("a NIC", ""), ("a ping", "status 1: no route")]


def test_a_guests_arguments_must_fit_a_kernel_command_line(tmp_path):
    with pytest.raises(ValueError, match="comma"):
        guest.start(None, None, tmp_path, ["a,b"])


def test_a_kernel_package_of_another_contents_is_refused(tmp_path):
    package = tmp_path / "linux-image-5.15.0-25-generic_5.15.0-25.25_amd64.deb"
    package.write_bytes(b"other")
    with pytest.raises(guest.Unavailable, match="SHA-256 differs"):
        guest._check(package, mirror_kernels.UBUNTU_22_04)
    guest._check(package, mirror_kernels.KERNELS["6.12"])


def test_the_test_program_is_found_in_what_cargo_says():
    said = ['{"reason":"x","executable":null}', "", '{"target":{"name":"program"},"executable":"/a/program-1"}']
    assert str(mirror_kernels.test_program(said)) == "/a/program-1"
    with pytest.raises(ValueError, match="no test program"):
        mirror_kernels.test_program(said[:2])


def test_what_a_guest_lacks_is_named_by_package():
    assert "no-such-package" in guest.missing({"no-such-tool": "no-such-package"})


def test_the_hbase_load_is_read_off_its_output():
    line = (
        '{"puts": 300, "seconds": 2.000, "mean_us": 1.0, "p50_us": 2.0, "p95_us": 3.0, "p99_us": 4.0, "max_us": 5.0, '
    )
    puts = hbase.parse("INFO something\n" + line + '"rows_verified": 7}\n')
    assert (puts.per_second, puts.p99_us, puts.rows_verified) == (150.0, 4.0, 7)
    with pytest.raises(RuntimeError, match="no result"):
        hbase.parse("INFO something\n")


def test_without_root_the_mounts_tests_are_told_as_skipped(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert mount_missing() == "not root"


def test_without_a_device_the_mounts_tests_are_told_as_skipped(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("trunkline_lab.suite.stages.FUSE", str(tmp_path / "fuse"))
    assert "No such file" in mount_missing()
    (tmp_path / "fuse").touch()
    assert mount_missing() == ""


@pytest.fixture
def free(monkeypatch):
    """Free memory of a machine of a few MiB, in chunks of one; what is held is missing there."""
    machine = SimpleNamespace(total=20 << 20, taken=0, held=[])

    def populated(size):
        area = memory.mmap.mmap(-1, size)
        machine.held.append(area)
        return area

    def meminfo(field):
        assert field == "MemFree"
        return machine.total - machine.taken - sum(not area.closed for area in machine.held) * memory.CHUNK_BYTES

    monkeypatch.setattr(memory, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(memory, "MARGIN_BYTES", 2 << 20)
    monkeypatch.setattr(memory, "_LOOK_S", 3600)  # only when the test looks
    monkeypatch.setattr(memory, "_populated", populated)
    monkeypatch.setattr(memory, "meminfo", meminfo)
    return machine


def test_memory_held_is_given_up_as_others_take_it(free):
    with memory.Supply(6 << 20) as supply:
        supply.look()
        assert supply.held() == 6 << 20, "the margin is free at once"
        supply.look()
        assert supply.held() == 6 << 20
        free.taken = 4 << 20
        supply.look()
        assert supply.held() == 2 << 20
        free.taken = 12 << 20
        supply.look()
        assert supply.held() == 0
    assert all(area.closed for area in free.held)


def test_memory_is_all_given_back_when_the_block_fails(free):
    with pytest.raises(ZeroDivisionError), memory.Supply(6 << 20):
        raise ZeroDivisionError
    assert free.held and all(area.closed for area in free.held)


def test_memory_is_not_held_where_it_is_scarce(free):
    with memory.Supply((8 << 20) + 1):
        assert not free.held
    with memory.Supply(8 << 20):
        assert free.held


def test_memory_that_a_kernel_cannot_populate_is_not_held(free, monkeypatch):
    def refused(size):
        raise OSError("EINVAL")

    monkeypatch.setattr(memory, "_populated", refused)
    with memory.Supply(6 << 20) as supply:
        assert supply.held() == 0


def test_memory_held_is_really_there():
    area = memory._populated(4 << 20)
    resident = int(Path("/proc/self/smaps_rollup").read_text().split("Rss:")[1].split()[0])
    area.close()
    after = int(Path("/proc/self/smaps_rollup").read_text().split("Rss:")[1].split()[0])
    assert resident - after >= 3 << 10  # the rest of the process grows meanwhile, too


def test_fields_of_the_machines_memory_are_told_apart():
    assert 0 < memory.meminfo("MemFree") < memory.meminfo("MemTotal")
    with pytest.raises(KeyError):
        memory.meminfo("Mem")
