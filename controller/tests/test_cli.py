"""The controller as a program, as far as it need not run for that."""

import resource

import pytest

from trunkline_controller import cli


@pytest.fixture
def limits():
    """Sets how many files may be open; as before when the test ends."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_as_many_files_may_be_open_as_there_may_be_connections(limits, caplog):
    limits(256)
    cli._permit_files(400)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
    cli._permit_files(300)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
    assert not caplog.text


def test_where_fewer_are_permitted_the_log_says_so(limits, caplog):
    limits(256)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    cli._permit_files(hard + 1)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    assert "LimitNOFILE" in caplog.text
