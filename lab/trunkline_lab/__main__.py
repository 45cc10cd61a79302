"""`python3 -m trunkline_lab COMMAND`: what the Makefile calls."""

from __future__ import annotations

import argparse
import sys

from . import bench, demo, docs, fmt, hadoop_tests, procs, suite
from .paths import NotBuilt
from .procs import ProcessFailed

COMMANDS = {"demo": demo, "test": suite, "bench": bench, "hadoop-tests": hadoop_tests, "docs": docs, "fmt": fmt}


def main() -> int:
    parser = argparse.ArgumentParser(prog="trunkline_lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        module.add_arguments(commands.add_parser(name, description=module.__doc__))
    arguments = parser.parse_args()
    try:
        with procs.interruptible():
            return COMMANDS[arguments.command].main(arguments)
    except KeyboardInterrupt:
        print("interrupted; everything started has been ended", file=sys.stderr)
        return 130
    except (ProcessFailed, NotBuilt, ValueError, RuntimeError, OSError) as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
