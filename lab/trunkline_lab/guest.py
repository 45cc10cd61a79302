"""A machine with another kernel, or with an RDMA NIC where there is none: a QEMU guest, by default on Debian's generic
kernel, with Soft-RoCE.

It has no disk: an initrd of a few modules, then the host's own file system, read-only over 9p, beneath an overlay in
memory. So what was built here runs there, at the same path. Kernel and initrd are kept in .cache/guest/.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import paths
from .procs import Process, Stage
from .say import say

SCRIPTS = paths.LAB / "guest"
CACHE = paths.CACHE / "guest"
QEMU = "qemu-system-x86_64"
BUSYBOX = Path("/bin/busybox")

# What each needs from Debian; the kernel image itself is fetched with apt-get and unpacked, never installed.
PACKAGES = {
    QEMU: "qemu-system-x86",
    "cpio": "cpio",
    "modprobe": "kmod",
    "depmod": "kmod",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
META_PACKAGE = "linux-image-amd64"  # depends on the kernel of this Debian release; the cloud kernel has no Soft-RoCE

# In the order asked for; what they need is loaded before them. Without crc32_generic `rdma link add` says ENOENT.
PLAIN_MODULES = ("virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "overlay")
MODULES = (*PLAIN_MODULES, "crc32_generic", "crc32c_generic", "dummy", "ib_uverbs", "rdma_ucm", "rdma_rxe")


class Unavailable(RuntimeError):
    """This machine cannot run a guest; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Release:
    """Another kernel to boot: this Debian's by a meta package, or packages of another archive."""

    name: str
    """Of its folder under .cache/guest/."""
    meta_package: str = ""
    archive: str = ""
    """An apt source; what comes from there is known by `packages`, its contents by SHA-256."""
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kernel:
    """A kernel unpacked under .cache/guest/, and the initrd made for it."""

    image: Path
    initrd: Path


def missing(tools: Mapping[str, str]) -> str:
    """What keeps this machine from running a guest that needs `tools` (to their packages); empty when nothing does."""
    absent = sorted({package for tool, package in {**PACKAGES, **tools}.items() if _which(tool) is None})
    if not BUSYBOX.exists() or _linked_dynamically(BUSYBOX):
        absent.append("busybox-static")
    return f"install {' '.join(absent)}" if absent else ""


def _which(tool: str) -> str | None:
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _linked_dynamically(program: Path) -> bool:
    return b"/ld-linux" in program.read_bytes()


def kernel(tools: Mapping[str, str], release: Release | None = None) -> Kernel:
    """The guest's kernel and initrd, made on first use; raises Unavailable with the reason."""
    if lack := missing(tools):
        raise Unavailable(lack)
    cache = CACHE / release.name if release else CACHE
    package = _kernel_package(cache, release)
    version = package.removeprefix("linux-image-")
    home = cache / package
    image = home / "boot" / f"vmlinuz-{version}"
    if not image.exists():
        _fetch(package, home, release)
    return Kernel(image, _initrd(version, home, PLAIN_MODULES if release else MODULES))


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [_which(command[0]) or command[0], *command[1:]],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _kernel_package(cache: Path, release: Release | None) -> str:
    """Name of the kernel's image package; an unpacked one is good enough without asking apt."""
    if kept := sorted(cache.glob("linux-image-*/boot/vmlinuz-*")):
        return kept[-1].parents[1].name
    if release and release.packages:
        return next(name for name in release.packages if name.startswith("linux-image-"))
    meta_package = release.meta_package if release else META_PACKAGE
    found = re.search(r"Depends: (linux-image-\S+-amd64)", _run("apt-cache", "depends", meta_package))
    if not found:
        raise Unavailable(f"apt knows no {meta_package}; run apt-get update")
    return found.group(1)


def _fetch(package: str, home: Path, release: Release | None) -> None:
    """Downloads and unpacks a kernel's packages; `home` appears whole or not at all."""
    say(f"fetching {package} for the guest")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as work:
        # apt's own sandbox user could not write here.
        apt = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root"]
        if release and release.archive:
            apt += _private_archive(Path(work) / "apt", release.archive)
            _run(*apt, "update")
        _run(*apt, "download", *(release.packages if release and release.packages else [package]), cwd=Path(work))
        unpacked = Path(work) / "unpacked"
        for archive in Path(work).glob("*.deb"):
            _check(archive, release)
            _run("dpkg-deb", "-x", str(archive), str(unpacked))
        _run("depmod", "-b", str(unpacked), package.removeprefix("linux-image-"))
        unpacked.rename(home)


def _private_archive(at: Path, archive: str) -> list[str]:
    """Options that have apt read `archive` alone, with lists of its own. That vouches for nothing: see _check."""
    for directory in ("lists/partial", "cache/archives/partial"):
        (at / directory).mkdir(parents=True)
    sources = at / "sources.list"
    sources.write_text(f"deb [trusted=yes arch=amd64] {archive}\n")
    options = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": at / "lists",
        "Dir::Cache": at / "cache",
        "Acquire::Languages": "none",
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _check(archive: Path, release: Release | None) -> None:
    wanted = release.packages.get(archive.name.partition("_")[0]) if release else None
    if wanted and hashlib.sha256(archive.read_bytes()).hexdigest() != wanted:
        raise Unavailable(f"{archive.name} is not the package that was tried here: its SHA-256 differs")


def _initrd(version: str, home: Path, wanted: tuple[str, ...]) -> Path:
    """An initrd with `lab/guest/init`, busybox and the modules; made again when `init` has changed."""
    made = home / "initrd.gz"
    sources = [SCRIPTS / "init", Path(__file__)]
    if made.exists() and made.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return made
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        root = Path(work) / "root"
        modules = root / "lib" / "modules"
        for directory in ("bin", "proc", "sys", "dev", "host", "memory", "root"):
            (root / directory).mkdir(parents=True)
        modules.mkdir(parents=True)
        shutil.copy2(BUSYBOX, root / "bin" / "busybox")
        shutil.copy2(SCRIPTS / "init", root / "init")
        order: dict[str, None] = {}
        for module in wanted:
            for line in _run("modprobe", "-d", str(home), "-S", version, "--show-depends", module).splitlines():
                if line.startswith("insmod "):
                    path = Path(line.split()[1])
                    name = path.name.removesuffix(".xz")
                    order[name] = None
                    # busybox loads them plain only.
                    plain = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
                    (modules / name).write_bytes(plain)
        (modules / "order").write_text("".join(f"{name}\n" for name in order))
        fresh = Path(work) / "initrd.gz"
        _run("sh", "-c", f"find . | cpio -o -H newc --quiet | gzip -1 >{fresh}", cwd=root)
        fresh.rename(made)
    return made


def start(stage: Stage, kernel: Kernel, script: Path, arguments: list[str], *, memory: str = "1536M") -> Process:
    """Boots a guest that runs `script` with `arguments` (no blank or comma in them) and then switches itself off.

    Its console is the process's log.
    """
    if bad := [word for word in [str(script), *arguments] if re.search(r"[\s,\"]", word)]:
        raise ValueError(f"a guest's argument may hold no blank, comma or quote: {bad}")
    words = f"console=ttyS0 quiet loglevel=3 panic=-1 guest.run={script} guest.args={','.join(arguments)}"
    command = [
        QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-machine", "q35", "-smp", "2", "-m", memory,
        "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
        "-kernel", str(kernel.image), "-initrd", str(kernel.initrd), "-append", words,
        "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
        "-device", "virtio-9p-pci,fsdev=host,mount_tag=host", "-device", "virtio-rng-pci",
    ]  # fmt: skip
    return stage.start("guest", "guest", command)
