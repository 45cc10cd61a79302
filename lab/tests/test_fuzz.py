"""Which fuzz targets there are, and how one is run."""

from __future__ import annotations

from trunkline_lab import fuzz, paths


def test_every_project_and_every_target_is_run():
    projects = {path.parent.parent for path in paths.ROOT.glob("*/*/fuzz/Cargo.toml")}
    assert projects == {paths.ROOT / room for room in fuzz.ROOMS}
    files = {path for room in fuzz.ROOMS for path in (paths.ROOT / room / "fuzz" / "fuzz_targets").glob("*.rs")}
    assert files == {target.directory / "fuzz_targets" / f"{target.name}.rs" for target in fuzz.targets()}


def test_a_target_begins_with_the_inputs_in_the_tree():
    for target in fuzz.targets():
        command = target.command(7)
        assert str(target.directory / "seeds" / target.name) in command, target.label
        assert "-max_total_time=7" in command
