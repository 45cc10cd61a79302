"""Dynamic control's machine, in simulated time: scenarios, and what holds whatever jobs say."""

import random
from dataclasses import dataclass, field

import pytest

from trunkline_controller.jobs.lifting import Limits, Stragglers
from trunkline_controller.jobs.progress import JobProgress, Reducer, lags
from trunkline_controller.jobs.target import Target
from trunkline_controller.policy.model import Lift

AIM = Target("q0", "lifted")
JOB = "job_1_0001"


def reducer(number, fetched, host=None, began_s=0.0, shuffling=None):
    return Reducer(
        f"r{number}", host or f"10.0.0.{number}", began_s, fetched, fetched < 1 if shuffling is None else shuffling
    )


def progress(*fetched, job=JOB):
    return JobProgress(job, tuple(reducer(n, share) for n, share in enumerate(fetched, start=1)))


def lift(number, queue="lifted"):
    return Lift("shuffle", f"10.0.0.{number}", queue)


def anywhere(host):
    return host


@dataclass
class Run:
    """The machine with a clock that the test turns."""

    limits: Limits = field(default_factory=Limits)
    now: float = 1000.0
    flows_of_a_lift: int = 1
    target: Target | None = AIM
    decisions: list = field(default_factory=list)
    changed: list = field(default_factory=list)

    def __post_init__(self):
        self.machine = Stragglers(self.limits)

    def step(self, *seen, after=1.0, address_of=anywhere):
        self.now += after
        for one in seen:
            self.machine.observe(self.now, one)
        before = self.machine.lifts
        made = self.machine.step(self.now, self.now, self.target, address_of)
        hosts = len(self.machine.lifts ^ before)
        self.machine.cost(hosts, hosts * self.flows_of_a_lift)
        self.changed.append((self.now, hosts * self.flows_of_a_lift))
        self.decisions += made
        return made

    @property
    def lifts(self):
        return self.machine.lifts


def test_who_is_far_behind_the_median_is_lifted_and_the_decision_says_by_how_much():
    run = Run()
    (decision,) = run.step(progress(0.9, 0.8, 0.85, 0.2))
    assert run.lifts == {lift(4)}
    assert (decision.job, decision.reducer, decision.host) == (JOB, "r4", "10.0.0.4")
    assert (decision.from_queue, decision.to_queue) == ("q0", "lifted")
    assert decision.why == "20% of its shuffle fetched, median of 4 reducers 82%: 62 points behind, at least 20"


def test_nobody_is_lifted_within_the_threshold():
    run = Run()
    assert not run.step(progress(0.9, 0.8, 0.85, 0.7))
    assert not run.lifts


def test_between_the_two_thresholds_all_stays_as_it_is():
    run = Run()
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    for _ in range(100):
        assert not run.step(progress(0.9, 0.9, 0.9, 0.8))
    assert run.lifts == {lift(4)}


def test_who_has_caught_up_is_given_back_not_before_the_hold_is_over():
    run = Run(Limits(hold_s=10))
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    for _ in range(9):
        assert not run.step(progress(0.9, 0.9, 0.9, 0.89))
    (decision,) = run.step(progress(0.9, 0.9, 0.9, 0.89))
    assert decision.why.startswith("caught up: 89% of its shuffle fetched")
    assert (decision.from_queue, decision.to_queue) == ("lifted", "q0")
    assert not run.lifts


def test_who_was_given_back_rests_before_it_is_lifted_again():
    run = Run(Limits(hold_s=10))
    run.step(progress(0.5, 0.5, 0.5, 0.2))
    run.step(progress(0.5, 0.5, 0.5, 0.5), after=10)
    assert not run.lifts
    for _ in range(9):
        assert not run.step(progress(0.9, 0.9, 0.9, 0.5))
    assert run.step(progress(0.9, 0.9, 0.9, 0.5))


def test_a_shuffle_that_is_over_ends_the_lift_at_once():
    run = Run()
    run.step(progress(1.0, 1.0, 1.0, 0.2))
    (decision,) = run.step(progress(1.0, 1.0, 1.0, 1.0))
    assert decision.why == "its shuffle is over: lifted for 1 s"
    assert not run.lifts


def test_an_attempt_that_is_gone_ends_the_lift():
    run = Run()
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    (decision,) = run.step(progress(0.9, 0.9, 0.9))
    assert decision.why == "the attempt is no longer there"


def test_the_end_of_a_job_ends_its_lifts_and_no_others():
    run = Run()
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    run.step(JobProgress("job_1_0002", tuple(reducer(n, 1.0 if n < 9 else 0.1) for n in range(6, 10))))
    assert run.lifts == {lift(4), lift(9)}
    run.machine.running(frozenset({"job_1_0002"}))
    (decision,) = run.step()
    assert (decision.job, decision.why) == (JOB, "its job has ended")
    assert run.lifts == {lift(9)}


def test_a_job_that_says_nothing_new_has_its_lifts_given_back_and_is_believed_again_when_it_speaks():
    run = Run(Limits(silent_s=10, hold_s=5))
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    for _ in range(10):
        assert not run.step()
    (decision,) = run.step()
    assert decision.why == "its job's status is silent: nothing new for 11 s"
    assert not run.lifts
    for _ in range(20):
        assert not run.step()
    assert run.step(progress(0.9, 0.9, 0.9, 0.2))


def test_a_policy_without_the_queue_ends_all_lifts_and_one_with_another_queue_moves_them():
    run = Run(Limits(hold_s=1))
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    run.target = None
    (decision,) = run.step(progress(0.9, 0.9, 0.9, 0.2))
    assert decision.why == "the policy no longer allows it"
    assert not run.lifts
    run.target = Target("q0", "fast")
    run.step(progress(0.9, 0.9, 0.9, 0.2), after=2)
    assert run.lifts == {lift(4, "fast")}
    run.target = AIM
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    assert not run.lifts
    run.step(progress(0.9, 0.9, 0.9, 0.2), after=2)
    assert run.lifts == {lift(4)}


def test_only_hosts_that_the_policy_names_are_lifted_and_one_that_it_names_no_more_is_given_back():
    run = Run()
    assert not run.step(progress(0.9, 0.9, 0.9, 0.2), address_of=lambda host: None)
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    (decision,) = run.step(progress(0.9, 0.9, 0.9, 0.2), address_of=lambda host: None)
    assert decision.why.startswith("the policy no longer allows it: 10.0.0.4 is no NodeManager")


def test_reducers_of_one_host_share_its_lift_until_the_last_has_no_need_of_it():
    run = Run(Limits(max_lifted=4))
    both = [reducer(n, 0.9) for n in (1, 2, 3, 4, 5)]
    run.step(JobProgress(JOB, (*both, reducer(8, 0.1, "10.0.0.8"), reducer(9, 0.2, "10.0.0.8"))))
    assert [d.reducer for d in run.decisions] == ["r8", "r9"]
    assert run.lifts == {lift(8)}
    run.step(JobProgress(JOB, (*both, reducer(8, 1.0, "10.0.0.8"), reducer(9, 0.5, "10.0.0.8"))))
    assert run.lifts == {lift(8)}
    run.step(JobProgress(JOB, (*both, reducer(8, 1.0, "10.0.0.8"), reducer(9, 1.0, "10.0.0.8"))))
    assert not run.lifts
    assert sum(flows for _, flows in run.changed) == 2


def test_the_furthest_behind_is_lifted_first_and_no_more_than_are_allowed_at_once():
    run = Run(Limits(max_lifted=2))
    run.step(progress(0.9, 0.9, 0.9, 0.9, 0.3, 0.1, 0.2))
    run.step(progress(0.9, 0.9, 0.9, 0.9, 0.3, 0.1, 0.2))
    assert run.lifts == {lift(6), lift(7)}


def test_jobs_take_turns_so_that_one_does_not_have_all_lifts():
    run = Run(Limits(max_lifted=4, flows_per_s=1000))
    greedy = JobProgress("greedy", tuple(reducer(n, 0.0 if n < 20 else 1.0) for n in range(1, 50)))
    modest = JobProgress("modest", tuple(reducer(n, 0.5 if n < 103 else 0.9) for n in range(101, 110)))
    for _ in range(5):
        run.step(greedy, modest)
    assert sorted(d.job for d in run.decisions) == ["greedy", "greedy", "modest", "modest"]


def test_a_second_wave_of_reducers_is_not_behind_the_first():
    first = [reducer(n, 1.0, began_s=0) for n in range(1, 11)]
    second = [reducer(n, 0.1, began_s=300 + n) for n in range(11, 21)]
    run = Run()
    assert not run.step(JobProgress(JOB, (*first, *second)))
    second[0] = reducer(11, 0.05, began_s=300)
    late = [reducer(n, 0.6, began_s=300 + n) for n in range(12, 21)]
    (decision,) = run.step(JobProgress(JOB, (*first, second[0], *late)))
    assert decision.reducer == "r11"


def test_few_reducers_have_no_median():
    assert not lags(progress(0.9, 0.1))
    assert not Run().step(progress(0.9, 0.1))


def test_a_lift_whose_peers_have_gone_is_given_back():
    run = Run()
    run.step(progress(0.9, 0.9, 0.9, 0.2))
    (decision,) = run.step(JobProgress(JOB, (reducer(4, 0.3),)))
    assert decision.why == "caught up: no others are left to compare it with"


def test_the_first_change_goes_alone_and_what_it_cost_is_what_the_next_are_reckoned_at():
    run = Run(Limits(max_lifted=50, flows_per_s=100), flows_of_a_lift=20)
    jobs = progress(*[0.9] * 30, *[0.1] * 10)
    run.step(jobs)
    assert len(run.lifts) == 1
    run.step(jobs)
    assert len(run.lifts) == 6  # 100 flow entries a second, 20 each
    run.step(jobs)
    assert len(run.lifts) == 10


def test_giving_back_goes_before_lifting():
    run = Run(Limits(max_lifted=50, flows_per_s=10), flows_of_a_lift=10)
    run.step(progress(0.9, 0.9, 0.9, 0.9, 0.1, 0.9))
    run.step(progress(1.0, 1.0, 1.0, 1.0, 1.0, 0.1))
    assert not run.lifts
    run.step(progress(1.0, 1.0, 1.0, 1.0, 1.0, 0.1))
    assert run.lifts == {lift(6)}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_jobs_say_bounds_hold(seed):
    """Reducers that go to and fro, jobs that come, go and fall silent, policies that change."""
    rng = random.Random(seed)
    limits = Limits(
        lift_lag=rng.uniform(0.1, 0.5),
        return_lag=rng.uniform(0, 0.09),
        hold_s=rng.uniform(1, 20),
        silent_s=rng.uniform(2, 20),
        max_lifted=rng.randint(1, 10),
        flows_per_s=rng.uniform(1, 40),
    )
    run = Run(limits, flows_of_a_lift=rng.randint(1, 12))
    allowed = {f"10.0.0.{n}" for n in range(0, 200, 2)}
    began: dict[tuple[str, str], float] = {}
    ended: dict[tuple[str, str], float] = {}
    heard: dict[str, float] = {}
    for _ in range(300):
        run.target = rng.choice([AIM] * 40 + [None, Target("q0", "fast")])
        seen = [
            JobProgress(f"job{n}", tuple(reducer(n * 20 + r, rng.random()) for r in range(rng.randint(0, 20))))
            for n in range(5)
            if rng.random() < 0.6
        ]
        if rng.random() < 0.05:
            run.machine.running(frozenset(rng.sample([f"job{n}" for n in range(5)], 3)))
        step = rng.uniform(0.1, 3)
        made = run.step(*seen, after=step, address_of=lambda host: host if host in allowed else None)
        heard |= {one.job: run.now for one in seen}
        lifted = {key for key in began if key not in ended}
        for decision in made:
            key = (decision.job, decision.reducer)
            if decision.from_queue == "q0":
                assert key not in lifted
                assert decision.host in allowed
                assert run.now - ended.pop(key, -1e9) >= limits.hold_s
                assert run.now - heard[decision.job] <= limits.silent_s
                began[key] = run.now
                lifted.add(key)
            else:
                assert key in lifted
                if decision.why.startswith("caught up: ") and "no others" not in decision.why:
                    assert run.now - began[key] >= limits.hold_s
                ended[key] = run.now
                lifted.discard(key)
        assert len(lifted) <= limits.max_lifted
        assert {one.host for one in run.lifts} <= allowed
    _bounded(run)
    run.target = None
    for _ in range(3 * limits.max_lifted * run.flows_of_a_lift):
        run.step(after=1.0)
    assert not run.lifts


def _bounded(run):
    """Over every span of time no more flow entries change than a second's worth, the rate's, and one host's more."""
    rate = max(1.0, run.limits.flows_per_s)
    times = [(at, flows) for at, flows in run.changed if flows]
    for first in range(len(times)):
        total = 0
        for at, flows in times[first:]:
            total += flows
            assert total <= rate * (at - times[first][0]) + rate + run.flows_of_a_lift


@pytest.mark.parametrize(("return_lag", "lift_lag"), [(0.2, 0.2), (-0.1, 0.5), (0.1, 1.5), (0.5, 0.1)])
def test_thresholds_that_make_no_sense_are_refused(return_lag, lift_lag):
    with pytest.raises(ValueError, match="lift_lag"):
        Limits(return_lag=return_lag, lift_lag=lift_lag)
