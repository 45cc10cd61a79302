"""`trunkline-controller agent`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from ... import settings as configuration
from .agent import Agent, clear
from .database import DatabaseError
from .settings import AgentFile

log = logging.getLogger("trunkline.agent")


def main(words: Sequence[str]) -> int:
    """Runs the command; returns its exit status: 0, 1 for what failed, 2 for what is wrong with the configuration."""
    parser = argparse.ArgumentParser(
        prog="trunkline-controller agent",
        description="Makes the queues that the controller's policy wants in this host's Open vSwitch.",
    )
    parser.add_argument("--config", type=Path, required=True, help="configuration file (TOML)")
    parser.add_argument("--check", action="store_true", help="check the configuration and end")
    parser.add_argument("--clear", action="store_true", help="take all queues of the agent's away and end")
    parser.add_argument("--verbose", action="store_true", help="log more")
    options = parser.parse_args(words)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        settings = configuration.read(options.config, AgentFile).agent
    except configuration.ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    if settings.is_token_in_clear and not options.clear:
        log.warning("the token goes to %s unencrypted; have the controller speak TLS", settings.controller)
    if options.check:
        print(f"{options.config}: configuration is valid")
        return 0
    try:
        if options.clear:
            print(f"queues of {clear(settings)} ports taken away")
            return 0
        agent = Agent(settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.stop())
        agent.run()
    except DatabaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
