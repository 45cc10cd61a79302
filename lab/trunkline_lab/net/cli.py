"""The command `lab`: up, down, status, exec, run, list, report."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import paths, procs, report, workloads
from ..experiments import results_page
from ..experiments.options import Options
from ..experiments.registry import EXPERIMENTS
from ..experiments.result import DIRECTORY, render
from ..paths import NotBuilt
from ..procs import ProcessFailed, Stage
from ..say import say
from . import data_center, environment, fabric, namespaces, topology_file
from .fabric import DEFAULT_LAB, Fabric, LabError
from .links import LinkMeter
from .topology import TopologyError

EPILOG = "Everything but `list` and `report` needs root. Topologies: `lab list`, or a file of your own (docs/lab.md)."


def up(arguments: argparse.Namespace) -> dict[str, Any]:
    """Makes a data centre and starts its daemons; one of this name that stands is removed first."""
    topology = data_center.on(arguments.plane, topology_file.named(arguments.topology))
    directory = DIRECTORY / "up" / arguments.lab
    fabric.preflight(data_center.needed_bytes(topology), directory, data_center.SPARE_DISK_BYTES, topology)
    if arguments.plane != "tcp":
        paths.built(paths.TRUNKLINE)
    lab = Fabric(arguments.lab)
    with lab.locked():
        lab.down()
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        lab.up(topology, plane=arguments.plane, file=arguments.topology, directory=str(directory))
        try:
            with Stage(directory / "logs", on_host=lab.command, outlive=True) as stage:
                center = data_center.start(lab, topology, stage, arguments.plane, directory)
                environment.write(center, directory)
        except BaseException:
            lab.down()
            raise
    found = _status(lab)
    found["logs"] = str(directory / "logs")
    return found


def down(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ends and removes a data centre, also one that a crash left; there need not be one."""
    lab = Fabric(arguments.lab)
    fabric.preflight()
    with lab.locked():
        record = lab.record()
        removed = lab.down()
        if record and (directory := record.extra.get("directory")):
            for left in ("data", "namenode", "tmp"):
                shutil.rmtree(Path(directory) / left, ignore_errors=True)
    return {"lab": arguments.lab, "removed_namespaces": removed}


def status(arguments: argparse.Namespace) -> dict[str, Any]:
    """What stands: hosts with their processes, links with what they carried."""
    fabric.preflight()
    return _status(Fabric(arguments.lab))


def _status(lab: Fabric) -> dict[str, Any]:
    record = lab.record()
    if record is None:
        return {"lab": lab.lab, "up": False}
    there = all(namespaces.exists(name) for name in record.namespaces.values())
    found: dict[str, Any] = {
        "lab": lab.lab,
        "up": there,
        "topology": record.topology,
        "plane": record.extra.get("plane"),
        "nodes": {node: {"namespace": name, "processes": []} for node, name in record.namespaces.items()},
    }
    for node, pids in lab.processes().items():
        found["nodes"][node]["processes"] = [{"pid": pid, "what": environment.what(pid)} for pid in sorted(pids)]
    if there and (source := record.extra.get("file")):
        topology = topology_file.named(source)
        for node in topology.nodes:
            found["nodes"][node]["address"] = topology.address(node)
        meter = LinkMeter(lab, topology)
        try:
            found["links"] = meter.read().as_json()
        finally:
            meter.close()
    return found


def exec_(arguments: argparse.Namespace) -> int:
    """Runs a command on a host: its network, its /etc/hosts, its name, and TRUNKLINE_FACE set to its forwarder."""
    lab = Fabric(arguments.lab)
    record = lab.record()
    if record is None:
        raise LabError(f"lab {arguments.lab!r} is not up; `lab up TOPOLOGY` makes it")
    if arguments.host not in record.namespaces:
        raise LabError(f"{arguments.host!r} is no node of {record.topology}; there are {', '.join(record.namespaces)}")
    words = lab.command(arguments.host, arguments.words)
    os.execvpe(words[0], words, environment.variables(lab, record, arguments.host))


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs an experiment; writes out/lab/EXPERIMENT.json, .csv, .svg and .png. Status 1 when it is not ok."""
    experiment = EXPERIMENTS.get(arguments.experiment)
    if experiment is None:
        raise LabError(f"no experiment {arguments.experiment!r}; there are {', '.join(EXPERIMENTS)}")
    paths.built(paths.TRUNKLINE)
    if experiment.needs_hadoop:
        paths.built(paths.PLUGIN_JAR)
    jobs = tuple(filter(None, arguments.jobs.split(",")))
    scale = experiment.scale if arguments.scale is None else arguments.scale
    options = Options(scale, arguments.lab, arguments.topology, jobs)
    result = experiment.run(options)
    if variant := [*([Path(arguments.topology).stem] if arguments.topology else []), *map(str.lower, jobs)]:
        result.rename("-".join([experiment.name, *variant]))
    for path in result.write():
        say(f"written: {path.relative_to(paths.ROOT)}")
    return result.document()


def list_(_: argparse.Namespace) -> dict[str, Any]:
    """The experiments and the topologies there are."""
    return {
        "experiments": {
            name: experiment.about + ("" if experiment.scale == 1 else f" (at scale {experiment.scale:g})")
            for name, experiment in EXPERIMENTS.items()
        },
        "topologies": {name: topology_file.named(name).about for name in topology_file.names()},
    }


def report_(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gathers the last results of all experiments into docs/results.md, with their plots."""
    return results_page.write(arguments.output)


def _text(command: str, found: dict[str, Any]) -> str:
    """What a person reads of an answer."""
    if command == "run":
        return render(found)
    if command == "list":
        parts = [[kind, *([name, about] for name, about in found[kind].items())] for kind in found]
        return "\n\n".join(f"{head}\n" + report.table([[f"  {n}", a] for n, a in rows]) for head, *rows in parts)
    if command in ("up", "status") and found["up"]:
        rows = [["node", "address", "processes"]]
        for node, what in found["nodes"].items():
            running = ", ".join(f"{p['what']} ({p['pid']})" for p in what["processes"])
            rows.append([node, what.get("address", ""), running])
        links = [["link", "bytes", "packets", "drops"]]
        for link in found.get("links", []):
            links.append([f"{link['from']} > {link['to']}", *(f"{link[k]:,}" for k in ("bytes", "packets", "drops"))])
        return (
            f"{found['lab']}: {found['topology']} is up, plane {found['plane']}\n\n"
            f"{report.table(rows)}\n\n{report.table(links)}"
        )
    return "\n".join(f"{key}: {value}" for key, value in found.items())


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON instead of text")
    common.add_argument("--lab", default=DEFAULT_LAB, metavar="NAME", help="which lab (default %(default)s)")
    parser = argparse.ArgumentParser(prog="lab", description=__doc__, epilog=EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, what: Callable[..., Any]) -> argparse.ArgumentParser:
        text = (what.__doc__ or "").strip()
        made = commands.add_parser(
            name, help=text.split(";")[0].split(". ")[0].rstrip("."), description=text, parents=[common]
        )
        made.set_defaults(what=what)
        return made

    made = add("up", up)
    made.add_argument("topology", metavar="TOPOLOGY", help="a name from `lab list`, or a file")
    made.add_argument(
        "--plane", choices=(*data_center.PLANES, data_center.MIRROR), default="ndn", help="default %(default)s"
    )
    add("down", down)
    add("status", status)
    made = add("exec", exec_)
    made.add_argument("host", metavar="HOST")
    made.add_argument("words", metavar="CMD", nargs=argparse.REMAINDER, help="the command with its arguments")
    made = add("run", run)
    made.add_argument("experiment", metavar="EXPERIMENT", help="a name from `lab list`")
    made.add_argument(
        "--scale", type=float, help="times the paper's data sizes (default: the experiment's own, as `lab list` has it)"
    )
    made.add_argument(
        "--topology", help="another than the experiment's; the results are then called EXPERIMENT-TOPOLOGY"
    )
    made.add_argument(
        "--jobs",
        default="",
        metavar="NAME,…",
        help=f"of ndn-cache: which jobs ({', '.join(w.name for w in workloads.WORKLOADS)}; all of them where not "
        "given); the results are then called EXPERIMENT-NAME",
    )
    add("list", list_)
    made = add("report", report_)
    made.add_argument("--output", type=Path, default=results_page.PAGE, help="default docs/results.md")
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.command == "exec" and not arguments.words:
        print("lab: exec: no command; write it after the host", file=sys.stderr)
        return 2
    try:
        with procs.interruptible():
            found = arguments.what(arguments)
    except KeyboardInterrupt:
        print("lab: interrupted; everything started has been ended", file=sys.stderr)
        return 130
    except (LabError, TopologyError, ProcessFailed, NotBuilt, ValueError, RuntimeError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2) if arguments.json else _text(arguments.command, found))
    return 1 if found.get("ok") is False else 0
