"""docs/qos.md says of keys, categories and settings what the program does."""

from __future__ import annotations

from pathlib import Path

from trunkline_controller.policy import categories, file, matching
from trunkline_controller.policy.model import Category
from trunkline_controller.queues.agent.settings import AgentFile
from trunkline_controller.settings import rows

PAGE = (Path(__file__).parents[2] / "docs" / "qos.md").read_text()


def test_each_key_of_a_policy_is_in_the_reference():
    for key in (*file.KEYS, "match"):
        assert f"| `{key}` |" in PAGE, key
    for key in matching.KEYS:
        assert f"`{key}`" in PAGE, key


def test_each_category_and_its_services_are_in_the_table():
    for category in Category:
        assert f"| `{category}` |" in PAGE, category
    for service in categories.SERVICES:
        assert f"`{service}` (" in PAGE, service


def test_each_setting_of_the_agent_is_in_the_table():
    for row in rows(AgentFile):
        default = f"`{row.default}`" if row.default else ""
        assert f"| `{row.name.partition('.')[2]}` | {row.kind} | {default} | {row.help} |" in PAGE, row.name
