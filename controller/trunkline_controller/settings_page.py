"""`python -m trunkline_controller.settings_page`: the documentation's page of settings, from their tables."""

from __future__ import annotations

import dataclasses

from . import settings
from .queues.agent.settings import AgentFile

HEAD = """\
# Settings of `trunkline-controller`

Made by `make docs` from the tables in the program. One TOML file, given by `--config`; `--check` checks it whole and \
lists everything that is wrong (`--json` for programs), and ends with status 2 if anything is. Every setting has a \
default; `controller/controller.sample.toml` has those that most change. Unknown tables and settings are refused.
"""
AGENT = """
# Settings of `trunkline-controller agent`

The file of an agent, which runs at the host of switches and makes the queues that the policy wants.
"""


def page() -> str:
    return HEAD + _tables(settings.Settings) + AGENT + _tables(AgentFile)


def _tables(whole: type) -> str:
    rows = list(settings.rows(whole))
    text = ""
    for table in dataclasses.fields(whole):
        text += f"\n## `[{table.name}]`\n\n| setting | type | default | what it does |\n| --- | --- | --- | --- |\n"
        for row in rows:
            if row.name.startswith(f"{table.name}."):
                default = f"`{row.default}`" if row.default else "none"
                text += f"| `{row.name.partition('.')[2]}` | {row.kind} | {default} | {row.help} |\n"
    return text


if __name__ == "__main__":
    print(page(), end="")
