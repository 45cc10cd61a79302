"""What `make dist` packs: the archive must do without the source tree."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

from trunkline_lab import paths


def test_the_archive_carries_every_sample_configuration(tmp_path: Path):
    for name in ("Makefile", "README.md", "LICENSE"):
        shutil.copy(paths.ROOT / name, tmp_path)
    for name in ("docs", "cli", "controller"):
        shutil.copytree(paths.ROOT / name, tmp_path / name)
    program = tmp_path / "dist" / "bin" / "trunkline"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho trunkline 1.2.3\n")
    program.chmod(0o755)
    (tmp_path / "dist" / "lib").mkdir()
    # What is to be packed is built already.
    subprocess.run(["make", "--old-file=build", "dist"], cwd=tmp_path, check=True, timeout=60)
    with tarfile.open(tmp_path / "dist" / "trunkline-1.2.3.tar.gz") as archive:
        packed = set(archive.getnames())
    samples = {str(path.relative_to(paths.ROOT)) for path in paths.ROOT.glob("*/*.sample.*")}
    assert len(samples) >= 4
    assert samples <= packed
    assert {"bin/trunkline", "README.md", "LICENSE", "docs/repo.md"} <= packed
