"""Pages that are made from programs stand as the programs would make them now (`make docs`)."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from trunkline_lab import docs, paths, stock
from trunkline_lab.cluster import QUICK_TO_START

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("page", docs.PAGES, ids=lambda page: page.name)
def test_page_is_up_to_date(page):
    assert (paths.ROOT / "docs" / page.name).read_text() == page.made(), "run `make docs`"


def test_every_command_in_the_operators_page_exists():
    text = (paths.ROOT / "docs" / "operate.md").read_text() + (paths.ROOT / "README.md").read_text()
    for words in docs.commands(text):
        shown = subprocess.run([str(paths.TRUNKLINE), *words, "--help"], capture_output=True, text=True, check=False)
        assert shown.returncode == 0, f"trunkline {' '.join(words)}: {shown.stderr}"


@pytest.mark.parametrize("options", [["ndn", "--secure", "--large-segments", "--face", "unix:///run/r.sock"], ["ucx"]])
def test_hadoop_heeds_what_is_pasted_into_the_files_it_is_for(options: list[str], tmp_path: Path) -> None:
    command = [str(paths.TRUNKLINE), "hadoop", "conf", *options]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Each file's part, as an operator copies it.
    _, *parts = re.split(r"^(?=<!-- (\S+-site\.xml), )", printed, flags=re.MULTILINE)
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(files) == ["core-site.xml", "hdfs-site.xml"]
    for file, part in files.items():
        (tmp_path / file).write_text(f"<configuration>\n{part}</configuration>\n")
    listed = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    wanted = {key: value for own in listed.values() for key, value in own.items()}
    # Those that Hadoop has defaults of its own for, and one that it has not.
    asked = [key for key in wanted if not key.startswith("trunkline.")] + ["trunkline.transport"]
    jars = os.pathsep.join([str(tmp_path), *stock.classpath()])
    get = [paths.java(), *QUICK_TO_START, "-cp", jars, "org.apache.hadoop.hdfs.tools.GetConf", "-confKey"]
    started = {key: subprocess.Popen([*get, key], stdout=subprocess.PIPE, text=True) for key in asked}
    assert {key: process.communicate()[0].strip() for key, process in started.items()} == {k: wanted[k] for k in asked}
