"""`trunkline qos`, the built command, and the page: of a real controller with real switches, too."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import controllers
import openvswitch
import pytest
import trustme
from browser import Page
from client import Client
from fake_control import TEXT, FakeControl

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "controller" / "policy.paper.yaml"
GIVE_UP_S = 60.0


@pytest.fixture(scope="module")
def command() -> Path:
    """The command that was built last."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [
        Path(os.environ.get("TRUNKLINE_BIN", "/nowhere")),
        *(target / kind / "trunkline" for kind in ("release", "debug")),
    ]
    built = [path for path in places if path.exists()]
    if not built:
        pytest.skip("the command is not built: make compile")
    return max(built, key=lambda path: path.stat().st_mtime)


Asks = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def qos(command: Path, tmp_path: Path) -> Asks:
    """Runs `trunkline qos …` to its end."""

    def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, "qos", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=False,
        )

    return run


def test_it_asks_by_tls_with_a_token(
    serve: Callable[..., Client], qos: Asks, tmp_path: Path, token_file: Path, control: FakeControl
):
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    certificate, key, ca = (tmp_path / name for name in ("c.pem", "c.key", "ca.pem"))
    certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    key.chmod(0o600)
    authority.cert_pem.write_to_path(ca)
    server = serve(token_file=token_file, certificate=certificate, key=key).server
    policy = tmp_path / "policy.yaml"
    policy.write_text(TEXT)

    stranger = qos("apply", policy, "--controller", server.url, "--token-file", token_file)
    assert (stranger.returncode, control.applied) == (3, ())
    assert "certificate" in stranger.stderr
    assert "--ca" in stranger.stderr
    nobody = qos("apply", policy, "--controller", server.url, "--ca", ca)
    assert (nobody.returncode, control.applied) == (2, ())
    assert "a bearer token is required; give it with --token-file" in nobody.stderr
    plain = qos("show", "--controller", server.url.replace("https", "http"), "--token-file", token_file)
    assert plain.returncode in {1, 3}

    known = {"TRUNKLINE_CONTROLLER": server.url, "TRUNKLINE_CONTROLLER_CA": str(ca)}
    done = qos("apply", policy, TRUNKLINE_CONTROLLER_TOKEN_FILE=str(token_file), **known)
    assert (done.returncode, done.stdout) == (
        0,
        "paper: in force as version 1, 84 flow entries changed; see trunkline qos show for what is in force\n",
    )
    assert control.applied[0].by.startswith("127.0.0.1, trunkline/")
    shown = qos("show", "--token-file", token_file, **known)
    assert "DSCP on 21 ports, not known on 7 ports" in shown.stdout


def test_top_is_in_place_on_a_terminal(client: Client, command: Path, control: FakeControl):
    client.put_policy(TEXT)
    terminal, inside = pty.openpty()
    words = ["qos", "top", "--interval", "50ms", "--controller", client.server.url]
    running = subprocess.Popen([command, *words], stdin=subprocess.DEVNULL, stdout=inside)
    os.close(inside)
    try:
        shown = b""
        while shown.count(b"\x1b[H\x1b[J") < 3:
            shown += os.read(terminal, 65536)  # fails once the command has ended
        running.send_signal(signal.SIGINT)
        assert running.wait(GIVE_UP_S) == 0
    finally:
        running.kill()
        running.wait()
        os.close(terminal)
    assert b"leaf3:node9" in shown


@pytest.mark.switch
@pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing() or "all is there")
def test_a_real_network_is_steered_and_shown(qos: Asks, tmp_path: Path, page: Page):
    with controllers.running(tmp_path / "controller") as controller, openvswitch.network(tmp_path) as network:
        at = {"TRUNKLINE_CONTROLLER": controller.url}
        assert qos("check", PAPER, **at).stdout.endswith(
            "policy three-queues is valid: 3 queues, " + _rules(qos, at) + "\n"
        )
        for number, name in enumerate(("spine1", "spine2", "leaf1", "leaf2"), 1):
            network.switch(name, number, [controller.target()])
        for leaf in ("leaf1", "leaf2"):
            for spine in ("spine1", "spine2"):
                network.link(leaf, spine)
        hosts = [network.host(f"h{n}", f"leaf{1 + n // 2}") for n in range(4)]
        openvswitch.until("links are found", lambda: controller.status()["links"] == 4)
        openvswitch.until("hosts reach each other", lambda: hosts[0].pings(hosts[3]) and hosts[1].pings(hosts[2]))
        openvswitch.until("hosts are found", lambda: controller.status()["hosts"] == 4)

        wrong = tmp_path / "wrong.yaml"
        wrong.write_text(PAPER.read_text().replace("shuffle: q1", "shuffle: q9"))
        refused = qos("apply", wrong, **at)
        line = next(n for n, text in enumerate(wrong.read_text().splitlines(), 1) if "q9" in text)
        assert refused.returncode == 1
        assert f"{wrong}:{line}: " in refused.stderr
        assert json.loads(qos("show", "--json", **at).stdout)["policy"] is None
        done = qos("apply", PAPER, **at)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("three-queues: in force as version 1, ")
        openvswitch.until("switches are up to date", lambda: controller.status()["converged"])
        shown = json.loads(qos("show", "--json", **at).stdout)
        assert {queue["queue"] for queue in shown["queues"]} == {"q0", "q1", "q2"}
        assert all(sum(queue["modes"].values()) == 8 + 4 for queue in shown["queues"])
        looked = qos("top", "--once", "--rows", "100", **at).stdout
        assert "leaf1:" in looked
        assert "spine2:" in looked

        _on_the_page(page, controller.url)

        assert qos("clear", **at).stdout.startswith("no policy is in force any more (version 2), ")
        page.until(lambda: "No policy is in force" in page.one("#policy-body").text)
        assert page.complaints() == []
        with urllib.request.urlopen(f"{controller.url}metrics", timeout=GIVE_UP_S) as answer:
            metrics = answer.read().decode()
        assert 'trunkline_flow_entries{owner="forward",switch="0000000000000003"}' in metrics
        assert hosts[0].pings(hosts[3])


def _rules(qos: Asks, at: dict[str, str]) -> str:
    count = len(json.loads(qos("check", PAPER, "--json", **at).stdout)["policy"]["rules"])
    assert count > 0
    return f"{count} rules"


def _on_the_page(page: Page, url: str) -> None:
    page.open(url)
    page.until(lambda: [box.text for box in page.all("#drawing .switch")] == ["spine1", "spine2", "leaf1", "leaf2"])
    page.until(lambda: len(page.all("#drawing .link")) == 4 + 4)
    page.until(lambda: len(page.all("#drawing .host")) == 4)
    tops = [box.location["y"] for box in page.all("#drawing .switch")]
    assert tops[0] == tops[1] < tops[2] == tops[3]
    assert "three-queues in force as version 1" in page.one("#policy-body").text
    assert len(page.all("#queues .card")) == 3
    link = page.all("#drawing .link")[0].get_attribute("data-id")
    page.open(f"{url}#link={link}")
    page.driver.refresh()
    page.until(lambda: "Flows that send over it (" in page.one("#details").text)
    assert "Queues of" in page.one("#details").text
    assert "table forward" in page.one("#details").text
