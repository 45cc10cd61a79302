"""The controller's and its agents' configuration: one TOML file, checked whole, with all that is wrong in it.

Each table of the file is a dataclass; the text under a field is its help, of which the docs page is made.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import ipaddress
import itertools
import ssl
import textwrap
import tomllib
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from .fabric import FabricSettings
from .http.settings import HttpSettings
from .http.tokens import Tokens
from .jobs.settings import DynamicSettings
from .mirror.settings import MirrorSettings
from .net.limits import Limits
from .openflow.edge import EdgeSettings
from .refusal import SettingsError


@dataclass(frozen=True)
class Problem:
    """One thing wrong in the file; `key` is empty where it is the file itself."""

    file: str
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {f'{self.key}: ' if self.key else ''}{self.what}; {self.remedy}"


class ConfigurationError(ValueError):
    """A file that is refused whole."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True)
class OpenFlowSettings:
    """Where switches connect, and which of two controllers is their master."""

    address: str = "127.0.0.1"
    """IP address to listen on for switches. Who reaches it may pass for a switch, unless TLS keeps strangers out."""
    port: int = 6653
    """TCP port; 0 takes a free one."""
    certificate: Path | None = None
    """Certificate chain for TLS, in PEM; with it go `key` and `ca_file`, and switches connect by ssl: alone."""
    key: Path | None = None
    """Private key of the certificate, in PEM."""
    ca_file: Path | None = None
    """Certificates in PEM; switches must show one that these have signed."""
    max_connections: int = 1024
    """Connections at once, 1 to 65536; a quarter of them amid their handshake from one address. When all are there, one
    amid its handshake gives way to a new one."""
    max_memory_mib: int = 1024
    """Memory for what switches send, with what is kept of it, and for what they leave unread, in MiB, 64 to 1048576:
    about 1 KiB a flow entry that is read from a switch. When it is used up, the switch that takes most of it is
    disconnected. TLS takes about 0.3 MiB a connection besides."""
    lease_s: int = 10
    """How long after its master's silent end a switch goes to a controller that stands by, in seconds, 1 to 300."""
    poll_s: float = 1.0
    """How often switches are asked what their ports and queues have counted, in seconds, 0.1 to 60."""


@dataclass(frozen=True)
class NetworkSettings:
    """How the network is found out, and how much is remembered of what hosts say."""

    lldp_interval_s: float = 2.0
    """How often LLDP is sent over each link, in seconds, 0.1 to 60; a link ends when 3 in a row are lost."""
    settle_s: float = 1.0
    """A port that hears no LLDP for so long leads to hosts, in seconds, 0.1 to 60."""
    switch_hold_s: float = 5.0
    """How long a switch that lost its connection is still taken to forward, in seconds, 0 to 300."""
    adopt_hold_s: float = 20.0
    """How long after a start flows stay whose hosts or switches are not found again, and how long a port that led to a
    switch is kept for it, in seconds, 0 to 600."""
    host_timeout_s: float = 3600.0
    """A host that was silent for so long is asked, and forgotten if it does not answer; in seconds, 10 to 604800."""
    probe_wait_s: float = 1.0
    """How long a host that is asked may take to answer, in seconds, 0.1 to 30."""
    max_hosts: int = 10_000
    """Hosts that are remembered, 1 to 1000000."""
    max_hosts_per_port: int = 64
    """Hosts that are remembered at one port, 1 to 65536."""
    max_addresses_per_host: int = 16
    """IP addresses that are remembered of one host, 1 to 1024."""
    packets_per_port: float = 200.0
    """Packets a second of one port that the controller looks at, 1 to 100000."""
    flood_frames: float = 2000.0
    """Frames a second that it has switches send for packets to unknown destinations, one a switch, 1 to 100000; one
    port's packets may take a tenth."""


@dataclass(frozen=True)
class StateSettings:
    """What outlives the controller."""

    directory: Path = Path("/var/lib/trunkline-controller")
    """Where the policy in force, its history and this controller's identity are kept."""


RANGES: dict[str, tuple[float, float]] = {
    "openflow.port": (0, 65535),
    "openflow.max_connections": (1, 65536),
    "openflow.max_memory_mib": (64, 1_048_576),
    "openflow.lease_s": (1, 300),
    "openflow.poll_s": (0.1, 60),
    "network.lldp_interval_s": (0.1, 60),
    "network.settle_s": (0.1, 60),
    "network.switch_hold_s": (0, 300),
    "network.adopt_hold_s": (0, 600),
    "network.host_timeout_s": (10, 604_800),
    "network.probe_wait_s": (0.1, 30),
    "network.max_hosts": (1, 1_000_000),
    "network.max_hosts_per_port": (1, 65_536),
    "network.max_addresses_per_host": (1, 1024),
    "network.packets_per_port": (1, 100_000),
    "network.flood_frames": (1, 100_000),
    "mirror.max_pipelines": (1, 65_536),
    "mirror.max_pipelines_per_host": (1, 65_536),
    "mirror.lease_s": (1, 86_400),
    "mirror.agent_lease_s": (1, 3600),
    "agent.check_s": (1, 3600),
}


@dataclass(frozen=True)
class Settings:
    """The whole file."""

    openflow: OpenFlowSettings = field(default_factory=OpenFlowSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    state: StateSettings = field(default_factory=StateSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    dynamic: DynamicSettings = field(default_factory=DynamicSettings)
    mirror: MirrorSettings = field(default_factory=MirrorSettings)

    def check(self) -> None:
        """Raises SettingsError unless each token is of one kind."""
        Tokens(self.http.token(), self.mirror.announce_token(), self.mirror.permitted())

    def edge(self) -> EdgeSettings:
        of = self.openflow
        return EdgeSettings(of.address, of.port, tls(of), of.max_connections, of.lease_s, of.max_memory_mib)

    def fabric(self) -> FabricSettings:
        net = self.network
        limits = Limits(**{item.name: getattr(net, item.name) for item in dataclasses.fields(Limits)})
        return FabricSettings(limits, net.packets_per_port, net.flood_frames, self.mirror)


def tls(settings: OpenFlowSettings) -> ssl.SSLContext | None:
    """Raises ValueError where the three files are not of one piece."""
    files = settings.certificate, settings.key, settings.ca_file
    if not any(files):
        return None
    if not all(files):
        raise ValueError("TLS needs certificate, key and ca_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(str(settings.certificate), str(settings.key), password=lambda: b"")
        context.load_verify_locations(str(settings.ca_file))
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        raise ValueError(f"{', '.join(map(str, files))}: {why}") from None
    return context


Whole = TypeVar("Whole")  # a dataclass of tables, such as Settings


def load(path: Path) -> Settings:
    """Reads and checks the controller's file. Raises ConfigurationError."""
    return read(path, Settings)


def read(path: Path, whole: type[Whole]) -> Whole:
    """Reads and checks a file whose tables are the fields of `whole`. Raises ConfigurationError."""
    file = str(path)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = Problem(file, "", error.strerror or str(error), "name a file that can be read with --config")
        raise ConfigurationError((problem,)) from None
    except UnicodeDecodeError:
        raise ConfigurationError((Problem(file, "", "is not UTF-8", "save it as UTF-8"),)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError((Problem(file, "", f"is not TOML: {error}", "mend that place"),)) from None
    return check(document, file, whole)


def check(document: dict[str, Any], file: str, whole: type[Whole] = Settings) -> Whole:
    """The settings that a file's tables give. Raises ConfigurationError with everything that is wrong."""
    problems: list[Problem] = []
    sections = {item.name: item.default_factory for item in dataclasses.fields(whole)}
    made: dict[str, Any] = {}
    for name, value in document.items():
        if name not in sections:
            problems.append(Problem(file, name, "there is no such table", _nearest(name, sections)))
        elif not isinstance(value, dict):
            problems.append(Problem(file, name, "is not a table", f"write [{name}] above its settings"))
    for name, factory in sections.items():
        given = document.get(name, {})
        values: dict[str, Any] = {}
        wrong = len(problems)
        for key, value in (given if isinstance(given, dict) else {}).items():
            found = _value(factory, f"{name}.{key}", value)  # type: ignore[arg-type]
            if isinstance(found, tuple):
                problems.append(Problem(file, f"{name}.{key}", *found))
            else:
                values |= found
        made[name] = factory(**values)  # type: ignore[misc,operator]
        if len(problems) == wrong:
            problems += _checked(made[name], file)
    if problems:
        raise ConfigurationError(tuple(problems))
    settings = whole(**made)
    if together := _checked(settings, file):
        raise ConfigurationError(tuple(together))
    return settings


def _value(section: type, full: str, value: object) -> dict[str, Any] | tuple[str, str]:
    """One setting, converted; or what is wrong with it, and the way out."""
    key = full.partition(".")[2]
    known = typing.get_type_hints(section)
    if key not in known:
        return "there is no such setting", _nearest(key, known)
    wanted = known[key]
    if isinstance(wanted, types.UnionType):
        wanted = next(kind for kind in typing.get_args(wanted) if kind is not type(None))
    if wanted is Path and isinstance(value, str) and value:
        return {key: Path(value)}
    if typing.get_origin(wanted) is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return {key: tuple(value)}
    if wanted is float and isinstance(value, int | float) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not wanted:
        return f"{value!r} is not {_KINDS.get(wanted, 'a list of texts')}", _example(wanted)
    if full in RANGES and not RANGES[full][0] <= value <= RANGES[full][1]:  # type: ignore[operator]
        least, most = RANGES[full]
        return f"{value} is out of range", f"write {least:g} to {most:g}"
    return {key: value}


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path"}


def _example(kind: object) -> str:
    examples = {bool: "true", int: "10", float: "0.5", str: '"text"', Path: '"/path"'}
    shown = examples.get(kind, '["one", "two"]')  # type: ignore[call-overload]
    return f"write one, as {shown}"


def _nearest(word: str, known: Iterator[str] | dict[str, Any]) -> str:
    close = get_close_matches(word, list(known), 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


def _checked(section: object, file: str) -> list[Problem]:
    """What no single value tells."""
    if isinstance(section, OpenFlowSettings):
        found = []
        try:
            ipaddress.ip_address(section.address)
        except ValueError:
            what = f"{section.address!r} is not an IP address"
            found.append(Problem(file, "openflow.address", what, "write one, as 0.0.0.0 or 127.0.0.1"))
        try:
            tls(section)
        except ValueError as error:
            found.append(
                Problem(file, "openflow.certificate", str(error), "name three PEM files, the key without password")
            )
        return found
    check = getattr(section, "check", None)
    try:
        if check is not None:
            check()
    except SettingsError as error:
        return [Problem(file, error.setting, error.what, error.remedy)]
    except ValueError as error:  # of what is no path at all
        return [Problem(file, "", str(error), "see the documentation")]
    return []


@dataclass(frozen=True)
class Row:
    """A setting as the documentation lists it."""

    name: str
    kind: str
    default: str
    help: str


def rows(whole: type[Whole] = Settings) -> Iterator[Row]:
    """All settings, in the file's order."""
    for table in dataclasses.fields(whole):
        section = table.default_factory
        helps = _helps(section)  # type: ignore[arg-type]
        hints = typing.get_type_hints(section)
        for item in dataclasses.fields(section):  # type: ignore[arg-type]
            kind = hints[item.name]
            if isinstance(kind, types.UnionType):
                kind = next(k for k in typing.get_args(kind) if k is not type(None))
            shown = (
                "" if item.default in (None, ()) else str(item.default).lower() if kind is bool else str(item.default)
            )
            yield Row(f"{table.name}.{item.name}", _KINDS.get(kind, "a list of texts"), shown, helps.get(item.name, ""))


def _helps(section: type) -> dict[str, str]:
    """The text under each field of a dataclass."""
    body = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for one, after in itertools.pairwise(body):
        if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[one.target.id] = " ".join(str(after.value.value).split())  # type: ignore[union-attr]
    return found
