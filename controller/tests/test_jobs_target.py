"""Which queue stragglers are lifted into: never one that the policy lacks, or that is worse."""

import pytest

from trunkline_controller.jobs.target import NoTarget, Target, runs_tasks, target
from trunkline_controller.policy.model import Policy, PortClass, Queue, Role, Share


def policy(shares, *, priorities=(4, 4), categories=None, roles=None):
    """Queues q0 and lifted, each with what `shares` gives it by class of ports."""
    queues = {"q0": Queue("q0", 0, 0, priorities[0]), "lifted": Queue("lifted", 1, 10, priorities[1])}
    classes = {name: PortClass(name, 0, of) for name, of in shares.items()}
    return Policy("p", queues, classes, categories or {"shuffle": "q0"}, (), roles or {}, "q0")


BETTER = {"hosts": {"q0": Share(10, 100), "lifted": Share(50, 100)}}


def test_a_better_queue_is_the_target():
    assert target(policy(BETTER), "lifted") == Target("q0", "lifted")
    assert target(policy(BETTER, categories={"other": "q0"}), "lifted") == Target("q0", "lifted")


def test_a_queue_that_is_served_earlier_is_better():
    same = {"hosts": {"q0": Share(10, 100), "lifted": Share(10, 100)}}
    assert target(policy(same, priorities=(4, 1)), "lifted")


@pytest.mark.parametrize(
    ("shares", "priorities", "message"),
    [
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(10, 100)}}, (4, 4), "same everywhere"),
        (BETTER, (4, 5), "priority is 5"),
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(5, 100)}}, (4, 1), "its minimum is lower"),
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(10, 50)}}, (4, 1), "its maximum is lower"),
        ({"hosts": {"q0": Share(10, 0), "lifted": Share(10, 50)}}, (4, 1), "its maximum is lower"),
        ({"hosts": {"q0": Share(0, 0, 10, 50), "lifted": Share(0, 0, 10, 40)}}, (4, 1), "its maximum is lower"),
        ({"hosts": {"q0": Share(10, 100), "lifted": Share(0, 0, 10, 40)}}, (4, 1), "percentage"),
        ({**BETTER, "switches": {"q0": Share(10, 100)}}, (4, 1), "class switches have no share"),
    ],
)
def test_a_queue_that_is_not_better_everywhere_is_refused(shares, priorities, message):
    with pytest.raises(NoTarget, match=message) as refused:
        target(policy(shares, priorities=priorities), "lifted")
    assert refused.value.remedy


def test_a_queue_that_the_policy_lacks_is_refused_and_those_it_has_are_named():
    with pytest.raises(NoTarget, match=r"no queue 'fast'.*lifted, q0"):
        target(policy(BETTER), "fast")


def test_without_a_policy_there_is_no_target():
    with pytest.raises(NoTarget, match="no policy is in force"):
        target(None, "lifted")


def test_shuffles_that_are_in_the_queue_already_need_no_lift():
    with pytest.raises(NoTarget, match="already"):
        target(policy(BETTER, categories={"shuffle": "lifted"}), "lifted")


def test_only_the_policys_nodemanagers_run_tasks():
    named = policy(
        BETTER, roles={Role.NODEMANAGER: ("10.0.0.1", "10.1.0.0/28", "fd00::/64"), Role.CLIENT: ("10.0.0.9",)}
    )
    for address in ("10.0.0.1", "10.1.0.15", "fd00::7"):
        assert runs_tasks(named, address)
    for address in ("10.0.0.9", "10.1.0.16", "10.0.0.2", "h1", "", "fd01::1"):
        assert not runs_tasks(named, address)
    assert not runs_tasks(None, "10.0.0.1")
