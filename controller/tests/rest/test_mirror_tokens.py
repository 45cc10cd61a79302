"""Tokens of agents and of DataNodes: each lets its owner do its part in mirrored replication, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from client import TOKEN, Answer, Client
from fake_control import MirroringControl
from test_mirror_routes import POOL, hop

from trunkline_controller.mirror.settings import MirrorSettings
from trunkline_controller.refusal import SettingsError

ANNOUNCER = "datanodes-announce-with-it"
TOKENS = {
    "d1": "the-token-of-the-first-agent",
    "d2": "the-token-of-the-second-agent",
    "b1": "the-token-of-a-bridge-s-agent",
}
AGENTS = """
[d1]
token_file = "d1.token"
addresses = ["10.0.1.2", "2001:db8:1::/64"]
[d2]
token_file = "d2.token"
addresses = ["10.0.2.0/24"]
[b1]
token_file = "b1.token"
bridge = true
"""
KIND = {"Content_Type": "application/json"}


@pytest.fixture
def control() -> Iterator[MirroringControl]:
    made = MirroringControl()
    yield made
    made.stop()


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.fixture
def mirror(tmp_path: Path) -> MirrorSettings:
    for name, token in TOKENS.items():
        written(tmp_path, f"{name}.token", token)
    announce = written(tmp_path, "announce.token", ANNOUNCER)
    return MirrorSettings(agents=written(tmp_path, "agents.toml", AGENTS), announce_token_file=announce)


@pytest.fixture
def client(serve: Callable[..., Client], mirror: MirrorSettings, token_file: Path) -> Client:
    return serve(mirror, token_file=token_file)


def ask(client: Client, token: str, method: str, path: str, body: object = None) -> Answer:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return client.ask(method, path, None if body is None else json.dumps(body), **(KIND | headers))


def poll(client: Client, token: str, name: str, *addresses: str) -> Answer:
    return ask(client, token, "POST", f"/v1/mirror-agents/{name}", {"run": "1", "addresses": addresses})


def poll_bridge(client: Client, token: str, name: str) -> Answer:
    said = {"run": "1", "dpid": "0000020000000009"}
    return ask(client, token, "POST", f"/v1/mirror-switches/{name}", said)


def there(client: Client) -> dict[str, list[str]]:
    agents = ask(client, TOKEN, "GET", "/v1/mirror-agents").json["agents"]
    return {agent["name"]: agent["addresses"] for agent in agents}


def test_an_agent_claims_addresses_of_its_own_and_no_others(client: Client):
    for name, own, foreign in (
        ("d1", ["10.0.1.2", "2001:db8:1::7"], ["10.0.2.1", "2001:db8:2::7"]),
        ("d2", ["10.0.2.7", "::ffff:10.0.2.8"], ["10.0.1.2", "::ffff:10.0.1.2"]),
    ):
        for address in foreign:
            answer = poll(client, TOKENS[name], name, *own, address)
            assert (answer.status, answer.json["why"]) == (403, "address_not_permitted")
            assert f"agent {name} may not claim" in answer.json["detail"]
        assert name not in there(client)
        assert poll(client, TOKENS[name], name, *own).status == 200
    assert there(client) == {"d1": ["10.0.1.2", "2001:db8:1::7"], "d2": ["10.0.2.7", "10.0.2.8"]}


def test_an_agents_token_does_nothing_but_poll_under_its_name(client: Client):
    assert poll(client, TOKENS["d1"], "d1", "10.0.1.2").status == 200
    for name in ("d2", "d3", "d1/", "d", ""):
        answer = poll(client, TOKENS["d1"], name, "10.0.1.2")
        assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json"), name
    paths = client.get("/openapi.json").json["paths"]
    asked = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    asked = [(m, p) for m, p in asked if p.startswith("/v1") or p == "/metrics"]
    assert len(asked) > 20
    for method, path in (*asked, ("GET", "/v1/mirror-agents/d1"), ("DELETE", f"/v1/mirrors/{POOL}~1~1")):
        assert ask(client, TOKENS["d1"], method, path).status == 403, (method, path)
    assert "10.0.2.1" not in str(there(client))


def test_nobody_else_is_an_agent(client: Client):
    for token in ("", "wrong-wrong-wrong-wrong"):
        assert poll(client, token, "d1", "10.0.1.2").status == 401
    for token in (TOKEN, ANNOUNCER):
        for name in ("d1", "d3"):
            answer = poll(client, token, name, "10.0.1.2")
            assert (answer.status, bool(answer.json["remedy"])) == (403, True)
    assert there(client) == {}


def test_a_bridges_agent_polls_for_its_bridge_and_no_other_does(client: Client):
    assert poll_bridge(client, TOKENS["b1"], "b1").status == 200
    for token, name in (
        (TOKENS["b1"], "b2"),
        (TOKENS["d1"], "d1"),
        (TOKENS["d1"], "b1"),
        (TOKEN, "b1"),
        (ANNOUNCER, "b1"),
    ):
        assert poll_bridge(client, token, name).status == 403, (token, name)
    assert poll(client, TOKENS["b1"], "b1", "10.0.1.2").status == 403
    assert poll_bridge(client, "", "b1").status == 401
    assert ask(client, TOKENS["b1"], "GET", "/v1/mirror-switches").status == 403


def test_a_token_for_announcing_announces_and_ends_and_does_nothing_else(client: Client):
    answer = ask(client, ANNOUNCER, "POST", "/v1/mirrors", hop(1))
    assert answer.status == 200
    assert ask(client, ANNOUNCER, "DELETE", f"/v1/mirrors/{answer.json['id']}").status == 204
    for method, path in (
        ("GET", "/v1/mirrors"),
        ("GET", "/v1/status"),
        ("GET", "/metrics"),
        ("PUT", "/v1/policy"),
        ("DELETE", "/v1/policy"),
        ("POST", "/v1/agent/queues"),
        ("POST", "/v1/mirrors/x"),
        ("GET", "/v1/mirror-agents"),
    ):
        assert ask(client, ANNOUNCER, method, path).status == 403, (method, path)
    for token in TOKENS.values():
        assert ask(client, token, "POST", "/v1/mirrors", hop(1)).status == 403


def test_an_operators_token_does_all_but_be_an_agent(client: Client):
    answer = ask(client, TOKEN, "POST", "/v1/mirrors", hop(1))
    assert answer.status == 200
    assert ask(client, TOKEN, "GET", "/v1/mirrors").json["total"] == 1
    assert ask(client, TOKEN, "DELETE", f"/v1/mirrors/{answer.json['id']}").status == 204


def test_on_a_loopback_address_without_a_token_agents_have_theirs_all_the_same(serve, mirror: MirrorSettings):
    client = serve(mirror)
    assert client.get("/v1/status").status == 200
    assert poll(client, "", "d1", "10.0.1.2").status == 403
    assert poll(client, TOKENS["d1"], "d1", "10.0.1.2").status == 200
    assert ask(client, TOKENS["d1"], "GET", "/v1/status").status == 403


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[d1", "is not TOML"),
        ("d1 = 1", "d1 is not a table"),
        ("['a b']\ntoken_file = 'd1.token'\naddresses = ['10.0.0.1']", "'a b' can't be an agent's name"),
        ("[d1]\naddresses = ['10.0.0.1']", "d1.token_file is no path"),
        ("[d1]\ntoken_file = 'd1.token'", "d1.addresses is no list"),
        ("[d1]\ntoken_file = 'd1.token'\naddresses = []", "d1.addresses is no list"),
        ("[d1]\ntoken_file = 'd1.token'\naddresses = ['node1']", "'node1' is neither an IP address nor a network"),
        ("[d1]\ntoken_file = 'd1.token'\naddresses = [7]", "7 is neither"),
        ("[d1]\ntoken_file = 'd1.token'\naddresses = ['10.0.0.1/8']", "'10.0.0.1/8' is neither"),
        ("[d1]\ntoken_file = 'd1.token'\naddress = ['10.0.0.1']", "d1.address is no setting"),
        ("[d1]\ntoken_file = 'd1.token'\nbridge = 1", "d1.bridge is neither true nor false"),
        ("[d1]\ntoken_file = 'd1.token'\nbridge = true\naddresses = ['10.0.0.1']", "d1 has addresses"),
        ("[d1]\ntoken_file = 'none'\naddresses = ['10.0.0.1']", "No such file"),
        (AGENTS.replace("d2.token", "d1.token"), "d2 has the same token as d1"),
        ("#" * (1 << 20) + "\n", "is longer than"),
    ],
)
def test_a_file_of_agents_that_is_wrong_is_refused(mirror: MirrorSettings, text: str, what: str):
    mirror.check()
    mirror.agents.write_text(text)
    with pytest.raises(SettingsError) as refused:
        mirror.check()
    assert refused.value.setting.startswith("mirror.agents")
    assert what in refused.value.what
    assert refused.value.remedy


def test_a_token_for_two_purposes_is_refused(serve, mirror: MirrorSettings, token_file: Path):
    folder = mirror.agents.parent
    for name, setting in (("d1.token", "mirror.agents: d1"), ("announce.token", "mirror.announce_token_file")):
        before = (folder / name).read_text()
        written(folder, name, TOKEN)
        with pytest.raises(SettingsError) as refused:
            serve(mirror, token_file=token_file)
        assert refused.value.setting == setting
        written(folder, name, before)
    written(folder, "d1.token", ANNOUNCER)
    with pytest.raises(SettingsError):
        serve(mirror)
