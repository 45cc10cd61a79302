"""`trunkline-controller`: the controller as a program.

Ends with 0 when it was asked to, 1 when it can't run here, 2 when its configuration or command line is wrong.
"""

from __future__ import annotations

import argparse
import gc
import ipaddress
import json
import logging
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __doc__ as purpose
from . import settings as configuration
from .controller import Controller, ControllerSettings
from .http.server import HttpServer
from .jobs.control_loop import DynamicControl
from .settings import ConfigurationError, Settings

log = logging.getLogger("trunkline_controller")

FAILED, REFUSED = 1, 2
OTHER_FILES = 256  # besides connections
SWITCH_INTERVAL_S = 0.001  # an answer by HTTP holds up what switches wait for no longer


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["agent"]:
        # Here, as the controller itself needs none of what speaks OVSDB, and its memory is bounded.
        from .queues.agent.command import main as agent  # noqa: PLC0415

        return agent(words[1:])
    parser = argparse.ArgumentParser(
        prog="trunkline-controller",
        description=purpose.splitlines()[0],
        epilog="trunkline-controller agent --help: the agent that makes queues at a switch's host",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration, TOML")
    parser.add_argument("--check", action="store_true", help="check the configuration, and end")
    parser.add_argument("--json", action="store_true", help="print problems, and with --check the result, as JSON")
    parser.add_argument("--verbose", action="store_true", help="log more")
    chosen = parser.parse_args(words)
    try:
        settings = configuration.load(chosen.config)
    except ConfigurationError as error:
        _print_problems(error, chosen.json)
        return REFUSED
    if chosen.check:
        print(json.dumps({"ok": True, "problems": []}) if chosen.json else f"{chosen.config}: configuration is valid")
        return 0
    _log(chosen.verbose)
    return run(settings)


def _print_problems(error: ConfigurationError, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"ok": False, "problems": [vars(problem) for problem in error.problems]}))
    else:
        print(error, file=sys.stderr)


def _log(verbose: bool) -> None:
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    # What a broken switch sent it would print whole; what that means for the switch is said here.
    logging.getLogger("os_ken").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


def _permit_files(wanted: int) -> None:
    """So many may be open, so that connections are refused by their own limits and not for want of a descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        permitted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (permitted, hard))
        if permitted < wanted:
            log.warning(
                "%d files may be open, fewer than openflow.max_connections and http.max_connections need (%d); raise "
                "the limit (ulimit -n, or systemd's LimitNOFILE), or lower these",
                permitted, wanted,
            )  # fmt: skip


def run(settings: Settings) -> int:
    """Until SIGTERM or SIGINT; flows stay in the switches."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _permit_files(settings.openflow.max_connections + settings.http.max_connections + OTHER_FILES)
    stop = [signal.SIGTERM, signal.SIGINT]
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)  # other threads inherit it; this one waits for them
    try:
        controller = Controller(
            ControllerSettings(settings.state.directory, settings.edge(), settings.fabric(), settings.openflow.poll_s)
        )
    except OSError as error:
        log.error("%s", error)
        return FAILED
    try:
        controller.start()
    except OSError as error:
        openflow = settings.openflow
        log.error(
            "openflow.port: can't listen on %s port %d: %s; end the program that has the port, or choose another",
            openflow.address, openflow.port, error.strerror,
        )  # fmt: skip
        return FAILED
    dynamic = DynamicControl(settings.dynamic, controller) if settings.dynamic.enabled else None
    controller.dynamic = dynamic
    http = HttpServer(controller, settings.http, settings.mirror)
    try:
        http.start()
    except ValueError as error:
        log.error("%s", error)
        controller.stop()
        return FAILED
    if dynamic is not None:
        dynamic.start()
    # What was made for the start stays: a full collection that looks through it serves nobody for some 50 ms.
    gc.collect()
    gc.freeze()
    log.info("listening for switches on %s port %d", settings.openflow.address, controller.openflow_port)
    if not ipaddress.ip_address(settings.openflow.address).is_loopback and settings.openflow.certificate is None:
        log.warning(
            "openflow.certificate is not set: whoever reaches %s port %d may pass for a switch; keep strangers out of "
            "that network, or use TLS",
            settings.openflow.address, controller.openflow_port,
        )  # fmt: skip
    log.info("page and REST interface: %s", http.url)
    received = signal.sigwait(stop)
    log.info("%s: ending; flows stay in the switches", signal.Signals(received).name)
    if dynamic is not None:
        dynamic.stop()
    http.stop()
    controller.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
