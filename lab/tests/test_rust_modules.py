"""No circles among the modules of a Rust crate: those that lie side by side rely on each other in one direction alone.

What counts, tests left out:

- A file relies on the file in which an item lies that it names, in a `use` or by a path. A `mod.rs` that hands an item
  on is looked through: naming the item is naming the file that defines it.
- Modules that lie side by side are compared, each with all that lies below it: of `a`, `b::x` and `b::y`, a circle is
  one from `a` to `b` and back, or one from `b::x` to `b::y` and back.
- A module and what lies below it are one thing: the files of a folder are the parts of what its `mod.rs` defines, so
  that they may use it and be used by it.
- Methods are called without a name of their file, and macros have no path: neither is seen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trunkline_lab import paths

CRATES = sorted([*(path.parent for path in paths.ROOT.glob("*/*/Cargo.toml")), paths.ROOT / "cli"])
IDENT = r"(?:r#)?[A-Za-z_]\w*"


@dataclass
class Module:
    """One file of a crate."""

    file: Path
    path: tuple[str, ...]
    code: str
    children: set[str] = field(default_factory=set)
    # Items handed on, by name: the path behind each.
    exports: dict[str, tuple[str, ...]] = field(default_factory=dict)


def strip(text: str) -> str:
    """Rust without comments, the contents of literals, and inline test modules."""
    literal = r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\'\\])\''
    text = re.sub(literal, lambda found: " " if found[0].startswith("/") else '""', text, flags=re.S)
    while found := re.search(r"#\[cfg\([^\]]*\btest\b[^\]]*\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*(;|\{)", text):
        end = found.end()
        if found[1] == "{":
            depth = 1
            while depth and end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: found.start()] + text[end:]
    # What is compiled for tests alone.
    return re.sub(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?use\s[^;]*;", "", text)


def leaves(tree: str, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of a use tree, each with the name that it gets."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        inner = rest.rsplit("}", 1)[0]
        stem = before + tuple(part.strip() for part in head.split("::") if part.strip())
        depth, start = 0, 0
        for at, char in enumerate(inner + ","):
            depth += {"{": 1, "}": -1}.get(char, 0)
            if char == "," and depth == 0:
                if inner[start:at].strip():
                    yield from leaves(inner[start:at], stem)
                start = at + 1
        return
    path, _, name = tree.partition(" as ")
    parts = before + tuple(part.strip() for part in path.split("::") if part.strip())
    if parts and parts[-1] == "self":
        parts = parts[:-1]
    if parts:
        yield parts, (name.strip() or parts[-1])


def load(crate: Path) -> dict[tuple[str, ...], Module]:
    """The modules of a crate by path; the crate's root has the empty one."""
    source = crate / "src"
    modules = {}
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[-1] == "tests" or parts[0] == "bin":
            continue
        path = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
        modules[path] = Module(file, path, strip(file.read_text()))
    for module in modules.values():
        module.children = {path[-1] for path in modules if path[:-1] == module.path and path}
        for tree in re.findall(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);", module.code):
            for parts, name in leaves(tree):
                if (absolute := anchor(module, parts)) is not None:
                    module.exports[name] = absolute
    return modules


def anchor(module: Module, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """A path from the crate's root; None for another crate's."""
    if parts[0] == "crate":
        return parts[1:]
    if parts[0] == "self":
        return module.path + parts[1:]
    if parts[0] == "super":
        up = 0
        while up < len(parts) and parts[up] == "super":
            up += 1
        return module.path[: len(module.path) - up] + parts[up:]
    return module.path + parts if parts[0] in module.children else None


def resolve(modules: dict[tuple[str, ...], Module], path: tuple[str, ...]) -> Module | None:
    """The file that defines what `path` leads to."""
    for _ in range(16):
        at = modules.get(())
        rest = path
        while at is not None and rest and rest[0] in at.children:
            at, rest = modules[(*at.path, rest[0])], rest[1:]
        if at is None or not rest or rest[0] not in at.exports:
            return at
        path = at.exports[rest[0]] + rest[1:]
    return None


def relies_on(modules: dict[tuple[str, ...], Module], module: Module) -> set[tuple[str, ...]]:
    """The modules that this one names."""
    body = re.sub(r"\b(?:pub(?:\([^)]*\))?\s+)?use\s+[^;]+;|\bmod\s+\w+\s*;", "", module.code)
    found = []
    for exported, tree in re.findall(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);", module.code):
        for parts, name in leaves(tree):
            if exported and not re.search(rf"\b{re.escape(name)}\b", body):
                continue
            found.append(parts)
    names = "|".join(map(re.escape, ["crate", "super", "self", *sorted(module.children)]))
    for text in re.findall(rf"(?<![\w:])(?:{names})(?:\s*::\s*{IDENT})+", body):
        found.append(tuple(part.strip() for part in text.split("::")))
    targets = set()
    for parts in found:
        if (absolute := anchor(module, parts)) is not None and (target := resolve(modules, absolute)) is not None:
            targets.add(target.path)
    return targets - {module.path}


def circles(edges: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    """The groups of modules of which each leads to each other one."""
    reach: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for start, targets in edges.items():
        seen: set[tuple[str, ...]] = set()
        todo = list(targets)
        while todo:
            if (at := todo.pop()) not in seen:
                seen.add(at)
                todo.extend(edges.get(at, ()))
        reach[start] = seen
    groups = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in edges if a in reach[a]}
    return [sorted(group) for group in groups]


def side_by_side(
    edges: dict[tuple[str, ...], set[tuple[str, ...]]],
) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Which modules rely on which of those beside them, each standing for all below it."""
    found: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for a, targets in edges.items():
        for b in targets:
            same = 0
            while same < min(len(a), len(b)) and a[same] == b[same]:
                same += 1
            if same < min(len(a), len(b)):
                found.setdefault(a[: same + 1], set()).add(b[: same + 1])
    return found


def why(edges: dict[tuple[str, ...], set[tuple[str, ...]]], group: list[tuple[str, ...]]) -> str:
    """The files by which the modules of a circle rely on each other."""
    lines = [
        f"  {name(a)} -> {name(b)}"
        for a, targets in sorted(edges.items())
        for b in sorted(targets)
        if any(x != y and a[: len(x)] == x and b[: len(y)] == y for x in group for y in group)
    ]
    return "\n".join([", ".join(map(name, group)) + ":", *lines])


def name(path: tuple[str, ...]) -> str:
    return "::".join(path) or "(root)"


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: str(crate.relative_to(paths.ROOT)))
def test_modules_of_a_crate_are_in_no_circle(crate: Path):
    modules = load(crate)
    edges = {path: relies_on(modules, module) for path, module in modules.items()}
    said = [why(edges, group) for group in circles(side_by_side(edges))]
    assert not said, "modules that rely on each other:\n" + "\n\n".join(said)


def crate_of(folder: Path, files: dict[str, str]) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    for file, text in files.items():
        (folder / "src" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / file).write_text(text)
    modules = load(folder)
    return {path: relies_on(modules, module) for path, module in modules.items()}


def test_a_circle_is_found_through_what_a_parent_hands_on(tmp_path: Path):
    edges = crate_of(
        tmp_path,
        {
            "lib.rs": "mod a;\nmod b;\npub use a::A;\n",
            "a/mod.rs": "mod inner;\npub use inner::{A, Other as O};\n",
            "a/inner.rs": "use crate::b::{self, B};\npub struct A(B); pub struct Other;\n",
            "b.rs": "pub struct B;\nfn f() -> crate::a::A { todo!() }\n",
        },
    )
    assert circles(side_by_side(edges)) == [[("a",), ("b",)]]


def test_handing_on_tests_and_words_are_no_circle(tmp_path: Path):
    edges = crate_of(
        tmp_path,
        {
            "lib.rs": "//! `crate::a::A`\nmod a;\npub use a::A;\n",
            "a/mod.rs": "mod inner;\nmod other;\npub use inner::A;\n",
            "a/inner.rs": 'use super::other::B;\npub struct A(B);\nconst S: &str = "super::A";\n',
            "a/other.rs": "pub struct B;\n#[cfg(test)]\nmod tests { use super::super::A; fn f() { if true {} } }\n",
        },
    )
    assert edges[("a", "inner")] == {("a", "other")}
    assert circles(side_by_side(edges)) == []


def test_folders_are_compared_as_wholes(tmp_path: Path):
    edges = crate_of(
        tmp_path,
        {
            "main.rs": "mod run;\nmod state;\nfn main() { run::run() }\n",
            "run/mod.rs": "mod step;\npub struct Run;\npub fn run() { step::step(&Run) }\n",
            "run/step.rs": "use super::Run;\nuse crate::state::deep::Deep;\npub fn step(_: &Run) {}\n",
            "state/mod.rs": "pub mod deep;\nfn f() { crate::run::run() }\n",
            "state/deep.rs": "pub struct Deep;\n",
        },
    )
    assert circles(side_by_side(edges)) == [[("run",), ("state",)]]
    assert "run::step -> state::deep" in why(edges, [("run",), ("state",)])
