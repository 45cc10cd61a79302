"""The agent's configuration is refused with what is wrong and the way out, before anything is touched."""

from __future__ import annotations

import http.server
import os
import threading

import pytest
from fake_control import FakeControl

from trunkline_controller import cli
from trunkline_controller.http.server import HttpServer
from trunkline_controller.http.settings import HttpSettings
from trunkline_controller.net.topology import Dpid, PortNo
from trunkline_controller.queues.agent import filters, rows
from trunkline_controller.queues.agent.client import Client, ControllerError
from trunkline_controller.queues.agent.settings import AgentFile, AgentSettings
from trunkline_controller.queues.wanted import PortQueues, PortReport, QueuesReport, QueueWanted
from trunkline_controller.settings import ConfigurationError, read
from trunkline_controller.settings import rows as settings_rows

MBIT = 1_000_000


def file(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return path


def load(path):
    return read(path, AgentFile).agent


def secret(tmp_path, text="0123456789abcdef\n", mode=0o600):
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_all_settings_are_read(tmp_path):
    token = secret(tmp_path)
    settings = load(
        file(
            tmp_path,
            f'[agent]\ncontroller = "http://[::1]:80/x"\ntoken_file = "{token}"\nbridges = ["s1"]\n'
            'database = "tcp:127.0.0.1:6640"\nname = "rack1"\ncheck_s = 2\n',
        )
    )
    assert settings.token() == "0123456789abcdef"
    assert (settings.bridges, settings.name, settings.check_s) == (("s1",), "rack1", 2)


def test_nothing_needs_to_be_set(tmp_path):
    assert load(file(tmp_path, "")) == AgentSettings()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[agent", "is not TOML"),
        ("[http]", "http: there is no such table; there are agent"),
        ("agent = 1", "agent: is not a table"),
        ("[agent]\nbridge = []", "agent.bridge: there is no such setting; did you mean bridges?"),
        ("[agent]\nbridges = 's1'", "agent.bridges: 's1' is not a list of texts"),
        ("[agent]\ncheck_s = true", "agent.check_s: True is not a number"),
        ("[agent]\ncheck_s = 0.1", "agent.check_s: 0.1 is out of range; write 1 to 3600"),
        ("[agent]\ncheck_s = nan", "agent.check_s: nan is out of range"),
        ("[agent]\ndatabase = '/run/db.sock'", "is no database; write one, as unix:"),
        ("[agent]\ncontroller = 'controller:8181'", "is no URL of a server; write one, as http://127.0.0.1:8181"),
        ("[agent]\ncontroller = 'http://x:y'", "is no URL of a server"),
        ("[agent]\ntoken_file = '/no/such'", "agent.token_file: /no/such: No such file"),
        ("[agent]\ncontroller = 'https://x'\nca_file = '/no/such'", "agent.ca_file: /no/such: No such file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, capsys, text, what):
    path = file(tmp_path, text)
    assert cli.main(["agent", "--config", str(path), "--check"]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert said.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("text", "mode", "what"), [("0123456789abcdef", 0o644, "chmod 600"), ("\n", 0o600, "has no token")]
)
def test_a_token_that_others_can_read_or_that_is_none_is_refused(tmp_path, text, mode, what):
    with pytest.raises(ConfigurationError, match=what):
        load(file(tmp_path, f'[agent]\ntoken_file = "{secret(tmp_path, text, mode)}"\n'))


def test_a_token_that_a_pipe_should_give_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigurationError, match="pipe is not a file"):
        load(file(tmp_path, f'[agent]\ntoken_file = "{tmp_path}/pipe"\n'))


def test_a_valid_configuration_is_said_to_be(tmp_path, capsys):
    assert cli.main(["agent", "--config", str(file(tmp_path, "[agent]\n")), "--check"]) == 0
    assert "configuration is valid" in capsys.readouterr().out


def test_each_setting_has_its_help():
    assert {row.name for row in settings_rows(AgentFile) if row.help} == {
        f"agent.{name}" for name in ("controller", "token_file", "ca_file", "database", "bridges", "name", "check_s")
    }


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    status, body, seen = 200, b"{}", []

    def do_GET(self):
        Answers.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(Answers.status)
        self.send_header("Content-Length", str(len(Answers.body)))
        self.end_headers()
        self.wfile.write(Answers.body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def answers():
    Answers.status, Answers.body, Answers.seen = 200, b"{}", []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "body", "what"),
    [
        (200, b"<html>", r"is this a controller\? \(agent\.controller\)"),
        (200, b'{"ports": [{}]}', "version of its answer: Field required; run controller and agents of one release"),
        (200, b"[" * 100_000, "is this a controller"),
        (401, b"", "401 .*agent.token_file"),
        (404, b"", "404 .*agent.controller"),
        (500, b"", "500 .*the controller's log"),
        (302, b"", "302"),
    ],
)
def test_a_server_that_is_no_controller_is_said(answers, status, body, what):
    Answers.status, Answers.body = status, body
    client = Client(answers, "secret")
    with pytest.raises(ControllerError, match=what):
        client.wanted([Dpid(1)], "", 0)
    assert Answers.seen == [("/v1/agent/queues?dpid=0000000000000001&seen=&wait=0", "Bearer secret")]
    client.close()


def test_a_controller_that_is_not_there_is_said():
    with pytest.raises(ControllerError, match="Connection refused; does the controller run there"):
        Client("http://127.0.0.1:1").report(QueuesReport("a", "v", (PortReport(Dpid(1), "x"),)))


def test_a_refusal_is_told_in_the_controllers_words_and_fit_for_a_terminal(answers):
    Answers.status = 413
    Answers.body = b'{"detail": "the body is longer than 9 bytes\\u001b[2J", "remedy": "send less at once"}'
    client = Client(answers)
    with pytest.raises(ControllerError) as refused:
        client.report(QueuesReport("a", "v", ()))
    said = "413 Request Entity Too Large: the body is longer than 9 bytes?[2J; send less at once"
    assert str(refused.value) == f"{answers}: {said}"
    client.close()


def test_a_report_of_any_number_of_ports_arrives_in_parts():
    control = FakeControl()
    server = HttpServer(control, HttpSettings(port=0))
    server.start()
    try:
        client = Client(f"http://127.0.0.1:{server.port}")
        long = "\N{EURO SIGN}" * 2000  # longer than the controller takes of a port's problem
        ports = tuple(PortReport(Dpid(1), f"port{n:05}", long if n < 500 else "") for n in range(12_000))
        client.report(QueuesReport("rack1", "v", ports))
        client.report(QueuesReport("rack2", "v", ()))
        client.close()
    finally:
        server.stop()
    *parts, empty = control.reports
    assert {(part.agent, part.version) for part in parts} == {("rack1", "v")}
    found = [(port.name, port.problem) for part in parts for port in part.ports]
    assert [name for name, _ in found] == [port.name for port in ports]
    assert {problem for _, problem in found} == {"\N{EURO SIGN}" * 997 + "...", ""}
    assert (empty.agent, empty.ports) == ("rack2", ())


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://192.0.2.1:8181", True), ("http://localhost.example", True), ("https://192.0.2.1", False),
        ("http://127.9.9.9:1", False), ("http://[::1]", False), ("http://LocalHost:8181", False),
    ],
)  # fmt: skip
def test_a_token_that_goes_to_another_host_in_clear_is_warned_of(tmp_path, caplog, url, warned):
    text = f'[agent]\ncontroller = "{url}"\n'
    said = f"the token goes to {url} unencrypted; have the controller speak TLS"
    for token in (f'token_file = "{secret(tmp_path)}"\n', ""):
        caplog.clear()
        assert cli.main(["agent", "--config", str(file(tmp_path, text + token)), "--check"]) == 0
        assert [record.getMessage() for record in caplog.records] == ([said] if warned and token else [])


def port(*queues, default=0):
    return PortQueues(Dpid(1), PortNo(1), "eth1", 300 * MBIT, default, queues)


Q0, Q1 = QueueWanted("q0", 0, 5, 4, 0, 300 * MBIT), QueueWanted("q1", 1, 11, 1, 200 * MBIT, 250 * MBIT)


def test_records_say_what_is_wanted():
    record = rows.record(port(Q0, Q1))
    assert dict(record.other_config) == {"max-rate": "300000000"}
    assert dict(record.queues[1].other_config) == {
        "min-rate": "200000000", "max-rate": "250000000", "priority": "1", "burst": "1000000",
    }  # fmt: skip
    assert "min-rate" not in dict(record.queues[0].other_config)
    assert dict(record.queues[1].external_ids) == {rows.OURS: "q1"}


def test_filters_compare_the_mark_alone_and_lead_to_the_queues_class():
    assert filters.wanted(port(Q0, Q1)) == {(filters.IPV4, 12): 0x10002, (filters.IPV6, 12): 0x10002}
    assert filters.wanted(port(Q0, Q1, default=1)) == {
        (filters.IPV4, 6): 0x10001, (filters.IPV6, 6): 0x10001, (filters.REST, 1): 0x10002,
    }  # fmt: skip
    assert filters.wanted(None) == {}
    four, six = filters.key(filters.IPV4, 12), filters.key(filters.IPV6, 12)
    for ecn in range(4):  # bits of congestion notification are nobody's mark
        assert (0x45 << 24 | (11 << 2 | ecn) << 16 | 1500) & four.mask == four.value
        assert (6 << 28 | (11 << 2 | ecn) << 20 | 0x12345) & six.mask == six.value
    assert (0x45 << 24 | 12 << 18) & four.mask != four.value


def test_only_what_differs_is_changed():
    present, desired = {(1, 1): 5, (1, 2): 6, (1, 3): 7}, {(1, 2): 6, (1, 3): 8, (1, 4): 9}
    assert filters.changes(present, desired) == ([(1, 1), (1, 3)], [(1, 3), (1, 4)])
    assert filters.changes(desired, desired) == ([], [])
