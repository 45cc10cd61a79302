"""`make docs`: the settings pages, made from the tables in the programs."""

from __future__ import annotations

import argparse
import re
import subprocess
from dataclasses import dataclass

from . import paths, venv

PLUGIN_HEAD = """\
# Settings of the Hadoop plug-in

Made by `make docs` from the table in `Setting.java`. They stand in `core-site.xml` of NameNode, DataNodes and clients; `trunkline hadoop conf ndn`, `… ucx` and `… mirror` print the few that are needed, and Hadoop's own that go with them. An unknown key under `trunkline.`, a value out of range or one that does not go with another is refused when the JVM starts.

"""  # noqa: E501

CONTROLLER_PYTHON = "python of the controller"  # looked up, and installed, when a page is made


@dataclass(frozen=True)
class Page:
    """A page under docs/: `head`, then what `command` prints."""

    name: str
    head: str
    command: tuple[str, ...]

    def made(self) -> str:
        """The page as it would be made now."""
        command, cwd = list(self.command), None
        if command[0] == CONTROLLER_PYTHON:
            command[0], cwd = venv.tool("python"), paths.CONTROLLER
        done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        return self.head + done.stdout


PAGES = [
    Page("settings-fwd.md", "", (str(paths.TRUNKLINE), "fwd", "settings", "--markdown")),
    Page("settings-mirror.md", "", (str(paths.TRUNKLINE), "mirror", "settings", "--markdown")),
    Page("settings-repo.md", "", (str(paths.TRUNKLINE), "repo", "settings", "--markdown")),
    Page(
        "settings-hadoop.md",
        PLUGIN_HEAD,
        (paths.java(), "-cp", str(paths.PLUGIN_JAR), "io.trunkline.hadoop.conf.SettingsPage"),
    ),
    Page("settings-controller.md", "", (CONTROLLER_PYTHON, "-m", "trunkline_controller.settings_page")),
]


def commands(text: str) -> list[list[str]]:
    """Subcommands of `trunkline` that a page names: the words before the first option or argument."""
    found = []
    for match in re.finditer(r"(?:^|`|, `)trunkline ((?:[a-z]+ ?)+)", text, re.MULTILINE):
        words = match.group(1).split()
        depth = {
            "fwd": 3 if words[1:2] in (["face"], ["route"], ["strategy"], ["cs"]) else 2,
            "hadoop": 3,
            "mirror": 2,
            "repo": 2,
        }
        found.append(words[: depth.get(words[0], 1)])
    return found


def add_arguments(_: argparse.ArgumentParser) -> None:
    pass


def main(_: argparse.Namespace) -> int:
    paths.built(paths.TRUNKLINE)
    paths.built(paths.PLUGIN_JAR)
    for page in PAGES:
        (paths.ROOT / "docs" / page.name).write_text(page.made())
    return 0
