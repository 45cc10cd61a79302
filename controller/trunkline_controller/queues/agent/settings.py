"""What the agent is told by its configuration file: the table `[agent]`."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ...refusal import SettingsError, secret


@dataclass(frozen=True)
class AgentSettings:
    """Where the agent finds the controller, and which switches it sees to."""

    controller: str = "http://127.0.0.1:8181"
    """URL of the controller's REST interface, http or https."""
    token_file: Path | None = None
    """File with the controller's bearer token, where it wants one; nobody else may read it."""
    ca_file: Path | None = None
    """Certificates in PEM that an https controller is checked against; none: the system's."""
    database: str = "unix:/var/run/openvswitch/db.sock"
    """This host's Open vSwitch database, as ovs-vsctl's --db names it."""
    bridges: tuple[str, ...] = ()
    """Names of the bridges to see to; none: all of this host."""
    name: str = ""
    """What the controller calls this agent; none: the host's name."""
    check_s: float = 10.0
    """How often queues and filters are compared with what they should be, in seconds, 1 to 3600."""

    @property
    def called(self) -> str:
        return self.name or socket.gethostname()

    def tls(self) -> ssl.SSLContext | None:
        """What an https controller is checked by. Raises SettingsError where the certificates can't be read."""
        if urlsplit(self.controller).scheme != "https":
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # ssl.SSLError is one
            why = error.strerror or str(error)
            raise SettingsError("agent.ca_file", f"{self.ca_file}: {why}", "name certificates in PEM") from None

    def token(self) -> str:
        """The bearer token, empty where none is set. Raises SettingsError unless the file keeps it secret."""
        if self.token_file is None:
            return ""
        text = secret("agent.token_file", self.token_file).strip()
        if not text or not text.isascii() or not text.decode().isprintable():
            raise SettingsError("agent.token_file", f"{self.token_file} has no token", "copy the controller's")
        return text.decode()

    @property
    def is_token_in_clear(self) -> bool:
        """Whether the token goes to another host by plain http."""
        url = urlsplit(self.controller)
        return self.token_file is not None and url.scheme != "https" and not _is_loopback(url.hostname or "")

    def check(self) -> None:
        """Raises SettingsError unless an agent can start with these; reads the files that are named."""
        url = urlsplit(self.controller)
        try:
            right = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            right = False
        if not right or url.query or url.fragment or url.username:
            what = f"{self.controller!r} is no URL of a server"
            raise SettingsError("agent.controller", what, "write one, as http://127.0.0.1:8181")
        if not self.database.startswith(("unix:", "tcp:", "ssl:")):
            what = f"{self.database!r} is no database"
            raise SettingsError("agent.database", what, "write one, as unix:/var/run/openvswitch/db.sock")
        if len(self.name) > 255 or not self.name.isprintable():
            raise SettingsError("agent.name", "is no name", "write at most 255 characters")
        self.token()
        self.tls()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True)
class AgentFile:
    """The whole file."""

    agent: AgentSettings = field(default_factory=AgentSettings)
