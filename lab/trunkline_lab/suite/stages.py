"""The stages of the suite: what each does, and which must have ended well before it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .. import deny, fuzz, guest, hadoop_tests, mirror_kernels, paths, planes, procs, sanitizers, stock, venv, verbs
from ..say import say
from .again import once_more
from .count import Count, failed_case, of_cargo, of_hadoop, of_junit
from .step import LOGS, Step

FSX = "0.3.2"
FUSE = "/dev/fuse"
CARGO_TESTS = ("cargo", "test", "--workspace")
PLUGIN = ("mvn", "-q", "-B", "-f", "hadoop/plugin/pom.xml")


def _fetch() -> Count:
    """What later stages take from elsewhere, while others compile; what can't be had, who needs it asks for again."""
    for version in stock.VERSIONS:
        scopes = ("runtime", "test") if version == stock.NEWEST else ("runtime",)
        for scope in scopes:
            _try(f"Hadoop {version}", lambda scope=scope, version=version: stock.classpath(scope, hadoop=version))
    Step("fetch", [*PLUGIN, "dependency:resolve", "dependency:resolve-plugins"], quiet=True)
    _try("the guest's kernel", lambda: guest.kernel(verbs.TOOLS))
    return Count()


def _try(what: str, get: Callable[[], object]) -> None:
    try:
        get()
    except (RuntimeError, OSError) as error:
        say(f"fetch: {what}: {error}")


def _lab() -> Count:
    count = Step("lab", [venv.tool("ruff"), "check", "lab"]).as_check()
    count.add(Step("lab", [venv.tool("ruff"), "format", "--check", "lab"]).as_check())
    count.add(_pytest("lab", "not e2e and not matrix", "lab/tests"))
    return count


def _controller() -> Count:
    """The OpenFlow controller: its cores, then with a real Open vSwitch and a browser where those are to be had."""
    count = Step("controller", [venv.tool("ruff"), "check", "controller"]).as_check()
    count.add(Step("controller", [venv.tool("ruff"), "format", "--check", "controller"]).as_check())
    count.add(_pytest("controller", "", "controller/tests", room="controller"))
    return count


def _pytest(stage: str, mark: str, *where: str, room: str = "lab") -> Count:
    program = [venv.tool("pytest"), "-c", f"{room}/pyproject.toml", "--rootdir", room, "-m", mark]
    return _pytest_by(stage, [*program, *where])


def _pytest_by(stage: str, program: Sequence[str]) -> Count:
    """Counts what pytest ran, after what failed was run again."""

    def cases(name: str, *words: str) -> Count:
        report = LOGS / f"{name}-pytest.xml"
        report.unlink(missing_ok=True)
        cache = f"cache_dir={LOGS / f'{stage}-pytest-cache'}"
        step = Step(stage, [*program, "-o", cache, f"--junit-xml={report}", *words])
        return of_junit([report], step.command, step.status)

    return once_more(cases(stage), lambda _: cases(f"{stage}-again", "--last-failed"))


def _compile() -> Count:
    return Step("compile", ["make", "compile"]).as_check()


def _rust() -> Count:
    count = Step("rust", ["cargo", "fmt", "--all", "--check"]).as_check()
    clippy = ["cargo", "clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"]
    count.add(Step("rust", clippy, name="clippy", gives_way=True).as_check())
    count.add(_fsx())
    if why := mirror_missing():
        count.add(Count(skipped=1, notes=[f"skipped: the tests of mirrored replication's eBPF program: {why}"]))
    Step("rust", [*CARGO_TESTS, "--no-run"], name="compile", gives_way=True)
    count.add(once_more(_cargo_tests("test"), lambda names: _cargo_tests("again", "--", "--exact", *names)))
    return count


def _cargo_tests(name: str, *words: str) -> Count:
    step = Step("rust", [*CARGO_TESTS, "--no-fail-fast", *words], name=name)
    return of_cargo(step.lines, step.command, step.status)


def _fsx() -> Count:
    """The file system exerciser, for the mount's tests; where it can't be had, they say so and go on without it."""
    root = paths.ROOT / ".cache" / "fsx"
    program = root / "bin" / "fsx"
    if why := mount_missing():
        return Count(skipped=1, notes=[f"skipped: the mount's tests: {why}"])
    if not program.exists():
        Step("rust", ["cargo", "install", "--quiet", "fsx", "--version", FSX, "--root", str(root)], quiet=True)
    if not program.exists():
        return Count(skipped=1, notes=[f"skipped: exercised_by_fsx: cargo could not install fsx {FSX}"])
    os.environ["TRUNKLINE_FSX"] = str(program)
    return Count()


def mount_missing() -> str:
    """Why the mount's tests pass themselves over here; empty when they run."""
    if os.geteuid() != 0:
        return "not root"
    try:
        os.close(os.open(FUSE, os.O_RDWR))
    except OSError as error:
        return f"{FUSE}: {error.strerror}"
    return ""


def mirror_missing() -> str:
    """Why the tests of mirrored replication's eBPF program pass themselves over here; empty when they run."""
    if os.geteuid() != 0:
        return "not root"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)"
    if not shutil.which(os.environ.get("CLANG", "clang")):
        return "no clang; install clang and libbpf-dev"
    return "" if Path("/usr/include/bpf/bpf_helpers.h").exists() else "no bpf/bpf_helpers.h; install libbpf-dev"


def _mirror_kernel(kernel: str) -> Count:
    """The eBPF program's tests on another kernel than this machine's, in a guest."""
    if not shutil.which(os.environ.get("CLANG", "clang")):
        return Count(skipped=1, notes=[f"skipped: mirror on kernel {kernel}: no clang; install clang and libbpf-dev"])
    build = Step(f"mirror-{kernel}", mirror_kernels.BUILD, quiet=True)
    if build.status:
        return build.as_check()
    try:
        console = mirror_kernels.run(kernel, mirror_kernels.test_program(build.lines))
    except guest.Unavailable as lack:
        return Count(skipped=1, notes=[f"skipped: mirror on kernel {kernel}: {lack}"])
    ended = any("script ended with status 0" in line for line in console)
    itself = any(line.startswith(f"kernel {kernel}.") for line in console)
    return of_cargo(console, f"the guest on kernel {kernel}", 0 if ended and itself else 1)


def _fuzz() -> Count:
    """A minute of each fuzz target."""
    count = _fuzz_plugin()
    if not fuzz.installed():
        Step("fuzz", fuzz.INSTALL, quiet=True)
    if not fuzz.installed():
        count.add(Count(skipped=1, notes=[f"skipped: fuzz: cargo could not install cargo-fuzz {fuzz.CARGO_FUZZ}"]))
        return count
    for target in fuzz.targets():
        count.add(_fuzzed(target.label, Step("fuzz", target.command(), quiet=True)))
    return count


def _fuzz_plugin() -> Count:
    maven = (*PLUGIN, f"-Dnative.dir={_native_dir()}")
    step = Step("fuzz", [*maven, "test-compile"], quiet=True)
    if step.status:
        return step.as_check()
    count = Count()
    for target in fuzz.java_targets():
        count.add(_fuzzed(target.label, Step("fuzz", target.command(maven), quiet=True)))
    return count


def _fuzzed(label: str, step: Step) -> Count:
    if step.status:
        return Count(failed=1, notes=[f"failed: fuzz: {label}: status {step.status}"])
    return Count(passed=1)


def _miri() -> Count:
    """The shared-memory rings as Miri runs them."""
    if sanitizers.miri_missing():
        Step("miri", sanitizers.INSTALL_MIRI, quiet=True)
    if lack := sanitizers.miri_missing():
        return Count(skipped=1, notes=[f"skipped: miri: {lack}"])
    # It says each test's outcome once a seed; that all went well is one case.
    return Step("miri", sanitizers.MIRI).as_check()


def _asan() -> Count:
    """Unit tests of the crates with `unsafe` in them, watched by AddressSanitizer."""
    if sanitizers.nightly_missing():
        Step("asan", sanitizers.INSTALL_NIGHTLY, quiet=True)
    if lack := sanitizers.nightly_missing():
        return Count(skipped=1, notes=[f"skipped: asan: {lack}"])
    step = Step("asan", sanitizers.ASAN)
    return of_cargo(step.lines, step.command, step.status)


def _deny() -> Count:
    """Licences, sources and advisories of the crates; where no newer advisories can be had, by the stored ones."""
    if not deny.PROGRAM.exists():
        Step("deny", deny.INSTALL, quiet=True)
    if not deny.PROGRAM.exists():
        return Count(skipped=1, notes=[f"skipped: deny: cargo could not install cargo-deny {deny.VERSION}"])
    deny.prepare()
    Step("deny", deny.CRATES, quiet=True)
    is_fetched = Step("deny", deny.FETCH, quiet=True).status == 0
    if not is_fetched:
        say("deny: the newest advisories can't be had, those in lab/advisories are taken")
        deny.use_stored()
    return Step("deny", deny.check(offline=not is_fetched), name="check").as_check()


def _build() -> Count:
    return Step("build", ["make", "build"]).as_check()


def _plugin(stage: str = "plugin", hadoop: str = stock.NEWEST) -> Count:
    """The plug-in's own tests, and its format; another Hadoop than the newest has a build folder of its own."""
    target = paths.ROOT / "hadoop" / "plugin" / "target"
    words = ["-Dsurefire.rerunFailingTestsCount=1", f"-Dnative.dir={_native_dir()}", "verify"]
    if hadoop != stock.NEWEST:
        target /= hadoop
        words = [f"-Dhadoop.version={hadoop}", f"-Dbuild.dir={target}", *words]
    reports = target / "surefire-reports"
    for old in reports.glob("TEST-*.xml"):
        old.unlink()
    step = Step(stage, [*PLUGIN, *words], quiet=True)
    return of_junit(sorted(reports.glob("TEST-*.xml")), step.command, step.status)


def _native_dir() -> Path:
    """Where `make compile` leaves the libraries that the jar carries."""
    return Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve() / "release"


def _interop() -> Count:
    return _pytest_by("interop", ["tests/interop/run.sh"])


def _verbs() -> Count:
    """RDMA verbs in a guest, and the plug-in's byte streams over them; a machine that can't run either says so."""
    count = Count()
    if no_ucx := planes.ucx_missing():
        count.add(Count(skipped=1, notes=[f"skipped: verbs: the plug-in's byte streams: {no_ucx}"]))
    try:
        found = verbs.run([] if no_ucx else planes.plugin_jars())
    except guest.Unavailable as lack:
        count.add(Count(skipped=1, notes=[f"skipped: verbs: {lack}"]))
        return count
    for check, why in found:
        count.add(failed_case(f"verbs: {check}", why) if why else Count(passed=1))
    return count


def _e2e() -> Count:
    return _pytest("e2e", "e2e and not matrix", "lab/tests/e2e")


def _mirror_faults() -> Count:
    """What goes wrong while blocks are mirrored, on clusters in namespaces; the shortest of it is in `e2e`."""
    return _pytest("mirror-faults", "matrix", "lab/tests/e2e/test_mirror_faults.py")


def _faults() -> Count:
    """DataNodes killed and stopped at the places of a pipeline that `e2e` leaves out."""
    return _pytest("faults", "matrix", "lab/tests/e2e/test_faults.py")


def _certificates() -> Count:
    """What goes wrong with the certificates of routers while blocks are written."""
    return _pytest("certificates", "matrix", "lab/tests/e2e/test_host_routers.py")


def _e2e_in(hadoop: str) -> Count:
    """All of what is tested on clusters, in an older Hadoop."""
    names = ("faults", "store", "ucx", "uses", "without_ucx")
    files = [f"lab/tests/e2e/test_{name}.py" for name in names]
    return _pytest(f"e2e-{hadoop}", "e2e", f"--hadoop={hadoop}", *files)


def _hadoop(
    plane: str = "ndn", hadoop: str = stock.NEWEST, classes: Sequence[str] = hadoop_tests.DEFAULT_CLASSES
) -> Count:
    """Hadoop's own classes on a plane; what fails there is run again, beside stock TCP."""
    if plane == "ucx" and (lack := planes.ucx_missing()):
        return Count(skipped=1, notes=[f"skipped: Hadoop's tests over UCX: {lack}"])
    jars = stock.classpath("test", hadoop=hadoop)
    directory = hadoop_tests.directory_of(hadoop, plane)
    results: dict[str, dict[str, hadoop_tests.Result]] = {}
    count = Count()
    with procs.Stage(directory / "logs") as stage:
        for name in hadoop_tests.find_classes(jars, list(classes)):
            short = name.rpartition(".")[2]
            say(f"Hadoop {hadoop}: {short} on {plane}")
            result = hadoop_tests.run_whole(stage, directory, jars, name, plane)
            hadoop_tests.excuse_known(short, result)
            hadoop_tests.run_again(stage, directory, jars, name, result)
            results[short] = {plane: result}
            count.add(of_hadoop(short, result))
    print(hadoop_tests.render(results, [plane], hadoop), flush=True)
    if not any(by[plane].carried for by in results.values()):
        count.add(Count(failed=1, notes=[f"failed: Hadoop's tests: no block was written over {plane}"]))
    return count


@dataclass(frozen=True)
class Stage:
    """`work` counts its test cases; `needs` names the stages that must have ended well."""

    work: Callable[[], Count]
    needs: tuple[str, ...] = ()


# Of those that may begin the first does: what takes longest stands before what fills the gaps.
STAGES: dict[str, Stage] = {
    "compile": Stage(_compile),
    "fetch": Stage(_fetch),
    "build": Stage(_build, ("compile", "fetch")),
    "rust": Stage(_rust),
    "e2e": Stage(_e2e, ("build",)),
    "hadoop": Stage(_hadoop, ("build",)),
    "plugin": Stage(_plugin, ("build",)),
    "interop": Stage(_interop, ("build",)),
    "verbs": Stage(lambda: once_more(_verbs(), lambda _: _verbs()), ("build",)),
    "controller": Stage(_controller, ("compile",)),
    "lab": Stage(_lab),
}

OLDER = stock.VERSIONS[:-1]
ALL_CLASSES = (*hadoop_tests.DEFAULT_CLASSES, "TestPread", "TestFileAppend2")
MIRROR_CLASSES = ("TestFileAppend2", "TestHSync", "TestDatanodeDeath")

# Long matrices, for `make test-all`.
MATRIX: dict[str, Stage] = {
    **{f"plugin-{version}": Stage(partial(_plugin, f"plugin-{version}", version), ("build",)) for version in OLDER},
    **{f"e2e-{version}": Stage(partial(_e2e_in, version), ("build",)) for version in OLDER},
    **{
        f"hadoop-{version}-{plane}": Stage(partial(_hadoop, plane, version, ALL_CLASSES), ("build",))
        for version in stock.VERSIONS
        for plane in ("ndn", "ucx")
    },
    "fuzz": Stage(_fuzz, ("build",)),
    "miri": Stage(_miri),
    "asan": Stage(_asan),
    "deny": Stage(_deny),
    "hadoop-secure": Stage(partial(_hadoop, "ndn", stock.NEWEST, hadoop_tests.SECURED_CLASSES), ("build",)),
    "hadoop-mirror": Stage(partial(_hadoop, "mirror", stock.NEWEST, MIRROR_CLASSES), ("build",)),
    "mirror-faults": Stage(_mirror_faults, ("build",)),
    "faults": Stage(_faults, ("build",)),
    "certificates": Stage(_certificates, ("build",)),
    **{f"mirror-{kernel}": Stage(partial(_mirror_kernel, kernel), ("rust",)) for kernel in mirror_kernels.KERNELS},
}
