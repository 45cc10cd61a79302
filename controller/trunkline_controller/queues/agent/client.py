"""The agent's side of the controller's REST interface: long polls for what is wanted, reports of what was done."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from pydantic import ValidationError

from ... import __version__
from ...http.views.agent import MAX_NAME, PortReportView, ReportView, WantedView
from ...net.topology import Dpid, dpid_text
from ...text import printable
from ..wanted import QueuesReport, QueuesWanted

MAX_SAID = 300  # characters of what a server says of its refusal
MAX_ANSWER_BYTES = 16 << 20
MAX_REPORT_BYTES = 128 << 10  # at once; the controller takes twice as much
ANSWER_S = 10.0  # beyond what a poll may wait
ONE_RELEASE = f"run controller and agents of one release (this agent is {__version__})"


class ControllerError(OSError):
    """The controller does not answer, or refuses; the message names the way out."""


@dataclass(frozen=True)
class Told:
    """What the controller wants, the word by which it knows that it said so, and the one of its run."""

    version: str
    wanted: QueuesWanted
    controller: str = ""


class Client:
    """One connection, kept; from one thread at a time."""

    def __init__(self, url: str, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        self._url = url
        self._host, self._port = parts.hostname or "", parts.port
        self._path = quote(parts.path.rstrip("/"), safe="/%")
        self._tls = tls
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None
        self._ended = False

    def wanted(self, dpids: Iterable[Dpid], seen: str, wait_s: float) -> Told:
        """What these switches should have; waits while it is the version that was seen. Raises ControllerError."""
        query = urlencode([*(("dpid", dpid_text(dpid)) for dpid in dpids), ("seen", seen), ("wait", f"{wait_s:g}")])
        return told(self._url, self._ask("GET", f"/v1/agent/queues?{query}", None, wait_s + ANSWER_S))

    def report(self, report: QueuesReport) -> None:
        """In as many parts as it takes. Raises ControllerError."""
        for part in _parts(report):
            self._ask("POST", "/v1/agent/queues", part.model_dump_json().encode(), ANSWER_S)

    def abort(self) -> None:
        """Ends what is under way, from another thread; nothing is asked from now on."""
        self._ended = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(2)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, method: str, path: str, data: bytes | None, within_s: float) -> bytes:
        headers = self._headers if data is None else {**self._headers, "Content-Type": "application/json"}
        kept = self._connection is not None
        try:
            try:
                return self._exchange(method, path, data, headers, within_s)
            except (http.client.BadStatusLine, ConnectionError):
                if not kept or self._ended:
                    raise
                # A connection that was kept may have been ended since: once more with a new one.
                self.close()
                return self._exchange(method, path, data, headers, within_s)
        except ControllerError:
            self.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ControllerError(f"{self._url}: {why}; does the controller run there? (agent.controller)") from error

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str], within_s: float) -> bytes:
        connection = self._connection
        if connection is None:
            connection = (
                http.client.HTTPSConnection(self._host, self._port, context=self._tls)
                if self._tls is not None
                else http.client.HTTPConnection(self._host, self._port)
            )
            self._connection = connection
        connection.timeout = within_s
        if connection.sock is not None:
            connection.sock.settimeout(within_s)
        connection.request(method, self._path + path, data, headers)
        answer = connection.getresponse()
        text = answer.read(MAX_ANSWER_BYTES + 1)
        if len(text) > MAX_ANSWER_BYTES:
            raise ControllerError(
                f"{self._url}: an answer of more than {MAX_ANSWER_BYTES} bytes; is this a controller?"
            )
        if answer.will_close:
            self.close()
        if answer.status // 100 != 2:
            raise ControllerError(f"{self._url}: {_refusal(answer.status, answer.reason, text)}")
        return text


def told(url: str, answer: bytes) -> Told:
    """What an answer says. Raises ControllerError."""
    try:
        view = WantedView.model_validate_json(answer)
    except ValidationError as error:
        raise ControllerError(f"{url}: {_unlike(error)}") from None
    return Told(view.version, view.wanted(), view.controller)


def _parts(report: QueuesReport) -> Iterator[ReportView]:
    """Reports of some of the ports each; one at least."""

    def part(ports: list[PortReportView]) -> ReportView:
        return ReportView(agent=printable(report.agent, MAX_NAME), version=report.version, ports=ports)

    ports: list[PortReportView] = []
    size = 0
    for port in map(PortReportView.of, report.ports):
        length = len(port.model_dump_json().encode()) + len(",")
        if ports and size + length > MAX_REPORT_BYTES:
            yield part(ports)
            ports, size = [], 0
        ports.append(port)
        size += length
    yield part(ports)


def _unlike(error: ValidationError) -> str:
    """Why an answer is not what was asked for."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "its answer is not JSON; is this a controller? (agent.controller)"
    where = "".join(f"{part}." for part in first["loc"])[:-1]
    return f"{f'{where} of ' if where else ''}its answer: {first['msg']}; {ONE_RELEASE}"


def _refusal(status: int, reason: str, body: bytes) -> str:
    """What a controller's refusal says (RFC 9457), or what that of another server may mean."""
    problem: Any = None
    with suppress(ValueError, RecursionError):
        problem = json.loads(body)
    said = problem if isinstance(problem, dict) else {}
    detail, remedy = (printable(str(said.get(key, "")), MAX_SAID) for key in ("detail", "remedy"))
    what = f"{status} {printable(reason, MAX_SAID)}" + (f": {detail}" if detail else "")
    return f"{what}; {_remedy(status, remedy)}"


def _remedy(status: int, said: str) -> str:
    if status in (401, 403):
        return "set agent.token_file to a file with the controller's token"
    if status == 404:
        return "set agent.controller to a controller's REST interface"
    if status == 422:
        return f"{said}; {ONE_RELEASE}" if said else ONE_RELEASE
    return said or "look at the controller's log"
