"""The code points that policies believe by default are those that the Hadoop plug-in sets by default."""

from __future__ import annotations

import re
from pathlib import Path

from trunkline_controller.policy.categories import MARKS
from trunkline_controller.policy.values import code_point

SETTINGS = Path(__file__).parents[2] / "docs" / "settings-hadoop.md"


def test_the_defaults_of_both_agree() -> None:
    rows = re.findall(r"^\| `trunkline\.dscp\.([a-z-]+)` \| (\S+) \|", SETTINGS.read_text(), re.MULTILINE)
    assert {category: code_point(mark) for category, mark in rows} == {str(c): mark for c, mark in MARKS.items()}
