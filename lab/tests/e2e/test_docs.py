"""Pages that are made from programs stand as the programs would make them now (`make docs`)."""

import subprocess

import pytest

from trunkline_lab import docs, paths

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("page", docs.PAGES, ids=lambda page: page.name)
def test_page_is_up_to_date(page):
    assert (paths.ROOT / "docs" / page.name).read_text() == page.made(), "run `make docs`"


def test_every_command_in_the_operators_page_exists():
    text = (paths.ROOT / "docs" / "operate.md").read_text() + (paths.ROOT / "README.md").read_text()
    for words in docs.commands(text):
        shown = subprocess.run([str(paths.TRUNKLINE), *words, "--help"], capture_output=True, text=True, check=False)
        assert shown.returncode == 0, f"trunkline {' '.join(words)}: {shown.stderr}"
