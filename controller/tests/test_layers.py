"""Who may know whom in the controller: the pure parts no edge, and nobody in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import trunkline_controller

ROOT = Path(trunkline_controller.__file__).parent
NAME = trunkline_controller.__name__

PURE = (
    "net",
    "flows",
    "policy",
    "queues.plan",
    "queues.wanted",
    "jobs.progress",
    "jobs.lifting",
    "mirror.agents",
    "mirror.bridge",
    "mirror.bridge_entries",
    "mirror.places",
    "mirror.tree",
    "mirror.entries",
    "mirror.counts",
    "mirror.model",
    "mirror.pipelines",
)
# A policy's file is read and kept, and its hosts' names are resolved, at that room's own edge.
EDGE_OF_POLICY = ("policy.store", "policy.hosts")
FORBIDDEN = (
    "asyncio",
    "fastapi",
    "http",
    "os_ken",
    "requests",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
    "uvicorn",
)
EDGES = (
    "cli",
    "controller",
    "counted",
    "fabric",
    "http",
    "in_force",
    "listener",
    "loop",
    "monitor",
    "openflow",
    "packets",
    "port_queues",
    "queues.agent",
    "refusals",
)


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> tuple[set[str], set[str]]:
    """(modules of ours, top-level modules of others) that a module imports when it is loaded."""
    ours, others = set(), set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            others |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            others.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                inner = ".".join([*base, alias.name])
                ours.add(inner if inner in known else ".".join(base))
    return ours - {name}, others


def within(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


def test_pure_parts_know_neither_sockets_nor_clocks_nor_edges():
    known = modules()
    pure = [name for name in known if within(name, PURE) and not within(name, EDGE_OF_POLICY)]
    assert len(pure) > 20
    wrong = []
    for name in pure:
        ours, others = imports(name, known[name], known)
        wrong += [f"{name} imports {other}" for other in sorted(others & set(FORBIDDEN))]
        wrong += [f"{name} imports {other}" for other in sorted(ours) if within(other, EDGES)]
    assert not wrong


def test_no_module_is_in_a_circle():
    known = modules()
    graph = {name: imports(name, path, known)[0] & set(known) for name, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' > '.join(error.args[1])}") from None
