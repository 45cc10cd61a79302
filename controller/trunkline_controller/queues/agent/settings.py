"""What the agent is told by its configuration file: one table of settings, from which docs/qos.md's is made too."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MAX_BYTES = 64 << 10


class SettingsError(ValueError):
    """A setting that is refused: which, what is wrong with it, the way out."""


def _setting(default: Any, kind: str, values: str, text: str) -> Any:  # noqa: ANN401 (dataclasses.field is so too)
    made = {"default_factory": default} if callable(default) else {"default": default}
    return field(**made, metadata={"kind": kind, "values": values, "help": text})


@dataclass(frozen=True)
class AgentSettings:
    """The table `[agent]`."""

    controller: str = _setting(
        "http://127.0.0.1:8181", "string", "an http or https URL", "The controller's REST interface."
    )
    token_file: str = _setting(
        "", "string", "a file that only its owner can read, or empty", "The controller's bearer token."
    )
    ca_file: str = _setting(
        "",
        "string",
        "a PEM file, or empty",
        "Certificates that an https controller is checked against; empty: the system's.",
    )
    database: str = _setting(
        "unix:/var/run/openvswitch/db.sock",
        "string",
        "as ovs-vsctl's --db",
        "Open vSwitch's database at this host.",
    )
    bridges: tuple[str, ...] = _setting(
        (), "list of strings", "names of bridges", "Bridges to see to; empty: all of this host."
    )
    name: str = _setting(
        socket.gethostname,
        "string",
        "1 to 255 characters",
        "What the controller calls this agent; default: the host's name.",
    )
    check_s: float = _setting(
        10.0, "number", "1 to 3600 (seconds)", "How often queues and filters are compared with what they should be."
    )

    @property
    def tls(self) -> ssl.SSLContext | None:
        """Raises SettingsError where the certificates can't be read."""
        if urlsplit(self.controller).scheme != "https":
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:  # ssl.SSLError is one
            why = error.strerror or str(error)
            raise SettingsError(f"agent.ca_file: {self.ca_file}: {why}; name a file of certificates in PEM") from None

    def token(self) -> str:
        """The bearer token, empty where none is set. Raises SettingsError unless the file keeps it secret."""
        if not self.token_file:
            return ""
        try:
            with open(self.token_file, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(MAX_BYTES).strip()
        except OSError as error:
            raise SettingsError(
                f"agent.token_file: {self.token_file}: {error.strerror}; name the file of http.token_file's token"
            ) from None
        if stat.S_IMODE(mode) & 0o077:
            raise SettingsError(
                f"agent.token_file: {self.token_file} can be read by other users; chmod 600 {self.token_file}"
            )
        if not text or not text.isascii() or not text.decode().isprintable():
            raise SettingsError(f"agent.token_file: {self.token_file} has no token; copy the controller's")
        return text.decode()

    def check(self) -> None:
        """Raises SettingsError with what is wrong; reads the files that are named."""
        url = urlsplit(self.controller)
        try:
            right = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            right = False
        if not right or url.query or url.fragment or url.username:
            raise SettingsError(
                f"agent.controller: {self.controller!r} is no URL of a server; write http://127.0.0.1:8181 or the like"
            )
        if not 1 <= self.check_s <= 3600:
            raise SettingsError(f"agent.check_s: {self.check_s:g} is out of range; write 1 to 3600 seconds")
        if not 1 <= len(self.name) <= 255:
            raise SettingsError("agent.name: is empty or too long; write 1 to 255 characters")
        if not self.database.startswith(("unix:", "tcp:", "ssl:")):
            raise SettingsError(
                f"agent.database: {self.database!r} is no database; write unix:/var/run/openvswitch/db.sock or the like"
            )
        self.token()
        _ = self.tls


def load(path: Path) -> AgentSettings:
    """A configuration file's settings, checked. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            document = tomllib.loads(file.read(MAX_BYTES).decode())
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; name the agent's configuration file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: not valid TOML: {error}; mend it there") from None
    table = document.get("agent", {})
    others = [name for name in document if name != "agent"]
    if others or not isinstance(table, dict):
        what = f"{', '.join(others)} is no table of the agent's" if others else "agent is no table"
        raise SettingsError(f"{path}: {what}; settings stand under [agent]")
    try:
        settings = AgentSettings(**{name: _value(name, value) for name, value in table.items()})
        settings.check()
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    return settings


_TYPES = {"string": str, "number": (int, float), "list of strings": list}


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 (of a file)
    known = {setting.name: setting for setting in fields(AgentSettings)}
    if name not in known:
        raise SettingsError(f"agent.{name}: there is no such setting; there are {', '.join(sorted(known))}")
    kind = known[name].metadata["kind"]
    right = isinstance(value, _TYPES[kind]) and not isinstance(value, bool)
    if not right or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        raise SettingsError(f"agent.{name}: {value!r} is no {kind}; write {known[name].metadata['values']}")
    return tuple(value) if isinstance(value, list) else value


def table() -> str:
    """The settings as a table for docs/qos.md."""
    lines = ["| setting | type | default | values | |", "|---|---|---|---|---|"]
    for setting in fields(AgentSettings):
        facts = setting.metadata
        default = "the host's name" if setting.name == "name" else f"`{_toml(setting.default)}`"
        lines.append(f"| `{setting.name}` | {facts['kind']} | {default} | {facts['values']} | {facts['help']} |")
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    return '"' + value + '"' if isinstance(value, str) else "[]" if value == () else f"{value:g}"
