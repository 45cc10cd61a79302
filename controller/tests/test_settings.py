"""The configuration: what is right is taken, what is wrong is refused whole, each with the way out."""

import json
from pathlib import Path

import pytest

from trunkline_controller import cli, settings
from trunkline_controller.settings import ConfigurationError

SAMPLE = Path(__file__).parents[1] / "controller.sample.toml"


def problems(tmp_path, text):
    file = tmp_path / "controller.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        settings.load(file)
    assert all(problem.file == str(file) for problem in refused.value.problems)
    return [(problem.key, problem.what, problem.remedy) for problem in refused.value.problems]


def test_the_sample_is_valid_and_says_the_defaults():
    assert settings.load(SAMPLE) == settings.Settings()


def test_an_empty_file_is_valid(tmp_path):
    (tmp_path / "c.toml").write_text("")
    assert settings.load(tmp_path / "c.toml") == settings.Settings()


def test_settings_go_where_they_belong(tmp_path):
    (tmp_path / "c.toml").write_text("[network]\nmax_hosts = 5\nadopt_hold_s = 3\n[openflow]\nlease_s = 7\n")
    found = settings.load(tmp_path / "c.toml")
    assert found.fabric().limits.max_hosts == 5
    assert found.fabric().limits.adopt_hold_s == 3.0
    assert found.edge().lease_s == 7


def test_all_that_is_wrong_is_listed(tmp_path):
    text = """
        [openflow]
        port = "six"
        lease_s = 0
        prot = 1
        [netwrk]
        [network]
        max_hosts = true
        [http]
        address = "0.0.0.0"
        [dynamic]
        resourcemanager = "http://rm"
        poll_s = 1e9
    """
    assert problems(tmp_path, text) == [
        ("netwrk", "there is no such table", "did you mean network?"),
        ("openflow.port", "'six' is not a whole number", "write one, as 10"),
        ("openflow.lease_s", "0 is out of range", "write 1 to 300"),
        ("openflow.prot", "there is no such setting", "did you mean port?"),
        ("network.max_hosts", "True is not a whole number", "write one, as 10"),
        (
            "http.token_file",
            "is missing, and 0.0.0.0 can be reached from other machines",
            "name a file with a secret of 16 bytes or more (openssl rand -hex 32), or listen on 127.0.0.1",
        ),
        ("dynamic.resourcemanager", "'http://rm' is not a list of texts", 'write one, as ["one", "two"]'),
    ]


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ("[openflow]\naddress = 'here'", "openflow.address", "'here' is not an IP address"),
        ("[openflow]\ncertificate = '/none'", "openflow.certificate", "TLS needs certificate, key and ca_file"),
        ("openflow = 1", "openflow", "is not a table"),
        ("[openflow", "", "is not TOML: "),
        ("[dynamic]\npoll_s = 1e9", "dynamic.poll_s", "1e+09 is out of range"),
        ("[mirror]\nagents = '/none'", "mirror.agents", "/none: No such file"),
        ("[mirror]\nannounce_token_file = '/none'", "mirror.announce_token_file", "/none: No such file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, key, what):
    ((found_key, found_what, remedy),) = problems(tmp_path, text)
    assert found_key == key
    assert found_what.startswith(what)
    assert remedy


def test_a_token_of_two_kinds_is_named(tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-more-than-16-bytes")
    token.chmod(0o600)
    text = f"[http]\ntoken_file = '{token}'\n[mirror]\nannounce_token_file = '{token}'\n"
    ((key, what, remedy),) = problems(tmp_path, text)
    assert (key, remedy) == ("mirror.announce_token_file", "make one of its own")
    assert what == "has a token that is in use for something else"


def test_each_setting_has_a_help_and_a_number_its_range():
    rows = list(settings.rows())
    assert len(rows) == len({row.name for row in rows})
    assert all(row.help for row in rows)
    assert {"openflow.lease_s", "http.port", "dynamic.enabled"} <= {row.name for row in rows}
    for name, (least, most) in settings.RANGES.items():
        help_text = next(
            (row.help for row in rows if row.name == name), f"{least:g} {most:.12g}"
        )  # an agent's have none
        assert f"{least:g}" in help_text or name == "openflow.port"
        assert f"{most:.12g}" in help_text or name == "openflow.port"


def test_check_says_so_and_ends(tmp_path, capsys):
    assert cli.main(["--config", str(SAMPLE), "--check"]) == 0
    assert capsys.readouterr().out == f"{SAMPLE}: configuration is valid\n"
    (tmp_path / "c.toml").write_text("[openflow]\nport = -1\n")
    assert cli.main(["--config", str(tmp_path / "c.toml"), "--check", "--json"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is False
    assert said["problems"][0]["key"] == "openflow.port"
    assert cli.main(["--config", str(tmp_path / "none.toml")]) == 2
    assert "No such file or directory; name a file that can be read with --config" in capsys.readouterr().err
