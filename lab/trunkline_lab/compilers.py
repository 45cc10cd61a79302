"""What JVMs' compilers take of processors: it falls for minutes, by leaps, and says nothing of what is measured."""

from __future__ import annotations

from pathlib import Path

from .procs import Stage

_NAMES = ("C1 CompilerThre", "C2 CompilerThre")  # the kernel keeps 15 characters


def compilers_s(pid: int, proc: Path = Path("/proc")) -> float:
    """CPU seconds so far of a process's threads that compile; 0 where it is no JVM, or has ended."""
    try:
        threads = list((proc / str(pid) / "task").iterdir())
    except OSError:
        return 0.0
    return sum(map(_compiler_s, threads))


def _compiler_s(thread: Path) -> float:
    try:
        if not (thread / "comm").read_text().startswith(_NAMES):
            return 0.0
        return int((thread / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def cpu_without_s(stage: Stage) -> dict[str, float]:
    """`Stage.cpu_s` less what compilers took of it. A thread that compiles must live as long as its JVM."""
    spent = stage.cpu_s()
    for process in stage.processes:
        if process.running():
            spent[process.host] -= compilers_s(process.pid)
    return spent
