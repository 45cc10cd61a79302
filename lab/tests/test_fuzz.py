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


def test_the_plugins_fuzz_tests_are_run_one_by_one():
    targets = fuzz.java_targets()
    classes = {target.class_name for target in targets}
    assert "io.trunkline.hadoop.wire.WireFuzz" in classes and len(targets) > len(classes)
    texts = [path.read_text() for path in (fuzz.PLUGIN_TESTS / "java").rglob("*.java")]
    assert sum(text.count("@FuzzTest\n") for text in texts) == len(targets)
    command = targets[0].command(("mvn",), 7)
    assert "JAZZER_FUZZ=1" in command and "JAZZER_MAX_DURATION=7s" in command
    assert command[-1] == f"-Dtest={targets[0].class_name}#{targets[0].method}"


def test_every_target_has_inputs_in_the_tree():
    for target in fuzz.java_targets():
        assert any(target.seeds.iterdir()), target.label
    for target in fuzz.targets():
        assert any((target.directory / "seeds" / target.name).iterdir()), target.label
