"""Looking at jobs through a ResourceManager that is silent, slow, wrong or hostile."""

import contextlib
import json
import socket
import ssl
import threading
from pathlib import Path

import pytest
import resourcemanager
import trustme
from hypothesis import example, given
from hypothesis import strategies as st

from trunkline_controller.jobs.poll import FIRST_PAUSE_S, Poll
from trunkline_controller.jobs.rest import Rest, RestError, Unusable

APP, OTHER = "application_1700000000000_0001", "application_1700000000000_0002"
APPS = "/ws/v1/cluster/apps"
HOSTS = [f"10.0.0.{n}" for n in range(1, 5)]
MIB = 1 << 20
DATA = Path(__file__).parent / "data" / "jobs"


@pytest.fixture
def rm():
    with resourcemanager.running() as fake:
        fake.runs((APP, "MAPREDUCE"))
        fake.mapreduce(APP, [30, 30, 30, 5], HOSTS, r3=1_500_000)
        yield fake


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def get(rm, path=APPS, timeout_s=10.0, most=MIB):
    rest = Rest(rm.url, timeout_s, most)
    with rest:
        return rest.get(path)


def test_a_job_is_told_of_with_hosts_shares_and_the_stragglers_bytes(rm):
    looked = Poll(10).look((rm.url,))
    assert looked.running == {"job_1700000000000_0001"}
    (job,) = looked.progress
    assert [reducer.host for reducer in job.reducers] == HOSTS
    assert [round(reducer.fetched, 3) for reducer in job.reducers] == [0.9, 0.9, 0.9, 0.15]
    assert [reducer.shuffled_bytes for reducer in job.reducers] == [None, None, None, 1_500_000]


def test_a_reducer_past_its_first_third_no_longer_shuffles(rm):
    rm.mapreduce(APP, [33.4, 100, 33.33, 0], HOSTS)
    (job,) = Poll(10).look((rm.url,)).progress
    assert [reducer.shuffling for reducer in job.reducers] == [False, False, False, True]


def test_no_jobs_are_no_error(rm):
    rm.runs()
    looked = Poll(10).look((rm.url,))
    assert (looked.running, looked.progress, looked.error) == (frozenset(), (), "")


def test_applications_of_other_kinds_are_not_asked(rm):
    rm.runs((OTHER, "TEZ"))
    assert Poll(10).look((rm.url,)).running == frozenset()
    assert len(rm.asked) == 1


def test_a_large_job_has_few_requests_each_time_and_all_its_hosts_after_some(rm):
    rm.mapreduce(APP, [10.0] * 60, [f"10.0.1.{n}" for n in range(60)])
    poll = Poll(30)
    seen = []
    for _ in range(4):
        before = len(rm.asked)
        (job,) = poll.look((rm.url,)).progress
        seen.append(len(job.reducers))
        assert len(rm.asked) - before <= 2 + 24 + 3
    assert seen == [24, 48, 60, 60]


def test_a_new_attempt_is_found_when_the_tasks_progress_falls(rm):
    poll = Poll(10)
    poll.look((rm.url,))
    rm.mapreduce(APP, [30, 30, 30, 2], [*HOSTS[:3], "10.0.0.9"])
    poll.look((rm.url,))
    (job,) = poll.look((rm.url,)).progress
    assert job.reducers[3].host == "10.0.0.9"


def test_a_job_as_hadoop_told_of_it(rm):
    """Five reducers a moment before the last has fetched all; its attempt was asked for later than its task."""
    told = json.loads((DATA / "mapreduce-3.5.0-shuffling.json").read_bytes())
    rm.answers = {path.replace("?states=RUNNING", ""): answer for path, answer in told.items()}
    looked = Poll(10).look((rm.url,))
    assert looked.running == {"job_1795451430188_0002"}
    assert not looked.failed
    (job,) = looked.progress
    assert [reducer.host for reducer in job.reducers] == ["h6", "h5", "h3", "h7", "h2"]
    assert [reducer.shuffling for reducer in job.reducers] == [False] * 4 + [True]
    last = job.reducers[4]
    assert (last.name, last.shuffled_bytes) == ("attempt_1795451430188_0002_r_000004_0", 30_908_248)
    assert (last.began_s, round(last.fetched, 2)) == (1795451583.338, 0.92)


def test_a_spark_applications_stages_are_jobs_of_their_own(rm):
    rm.runs((APP, "SPARK"))
    base = f"/proxy/{APP}/api/v1/applications/{APP}/stages"
    rm.answers[f"{base}?status=active"] = json.loads((DATA / "spark-3.5.1-stages.json").read_bytes())
    rm.answers[f"{base}/3/0/taskList"] = json.loads((DATA / "spark-3.5.1-task-list.json").read_bytes())
    looked = Poll(10).look((rm.url,))
    assert looked.running == {f"{APP} stage 3.0"}
    assert [len(job.reducers) for job in looked.progress] == [3]


# Silent or slow


def test_nobody_there(rm):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    looked = Poll(10).look((url,))
    assert looked.running is None
    assert url in looked.error


@pytest.mark.parametrize("how", ["never", "drips", "drips_body"])
def test_an_answer_that_does_not_end_is_given_up(rm, how):
    rm.all_answer = getattr(rm, how)
    looked = Poll(0.3).look((rm.url,))
    assert looked.running is None
    assert "no whole answer within 0.3 s" in looked.error or "broke off" in looked.error


def test_the_next_resourcemanager_is_asked_where_the_first_stands_by(rm):
    with resourcemanager.running() as standby:
        standby.all_answer = lambda handler: handler.reply(307, b"", Location=f"{rm.url}{APPS}")
        looked = Poll(10).look((standby.url, rm.url))
    assert looked.running == {"job_1700000000000_0001"}


def test_a_silent_application_keeps_no_other_from_being_heard_and_is_asked_less_and_less(rm):
    rm.runs((OTHER, "MAPREDUCE"), (APP, "MAPREDUCE"))
    tasks = f"/proxy/{OTHER}/ws/v1/mapreduce/jobs/{OTHER.replace('application', 'job')}/tasks"
    rm.answers[tasks] = lambda handler: handler.reply(500, b"")
    clock = Clock()
    poll = Poll(10, clock=clock)
    asked_at = []
    for second in range(70):
        clock.now = float(second)
        before = len(rm.asked)
        looked = poll.look((rm.url,))
        assert [job.job for job in looked.progress] == ["job_1700000000000_0001"]
        assert "500" in looked.failed[OTHER]
        if any(OTHER in path for path in rm.asked[before:]):
            asked_at.append(second)
    assert asked_at == [0, 2, 6, 14, 30, 62]
    assert FIRST_PAUSE_S == 2


def test_applications_that_take_long_come_last_and_the_rest_of_them_waits(rm):
    """A clock that each of the slow ones moves; they answer well in the end."""
    clock = Clock()
    slow = [f"application_1700000000000_{n:04d}" for n in range(10, 20)]
    rm.runs(*((name, "MAPREDUCE") for name in slow), (APP, "MAPREDUCE"))

    def late(handler):
        clock.now += 2
        handler.reply(200, b'{"tasks": null}')

    for name in slow:
        rm.answers[f"/proxy/{name}/ws/v1/mapreduce/jobs/{name.replace('application', 'job')}/tasks"] = late
    poll = Poll(3, clock=clock)
    looked = [[job.job for job in poll.look((rm.url,)).progress] for _ in range(4)]
    assert [len(jobs) for jobs in looked] == [4, 4, 5, 5]
    assert "job_1700000000000_0001" in looked[2]
    assert looked[3][0] == "job_1700000000000_0001"


def test_a_job_whose_status_fails_still_runs_and_one_that_ended_does_not(rm):
    poll = Poll(10)
    poll.look((rm.url,))
    rm.answers = {APPS: rm.answers[APPS]}
    looked = poll.look((rm.url,))
    assert looked.running == {"job_1700000000000_0001"}
    assert looked.failed
    rm.runs()
    assert poll.look((rm.url,)).running == frozenset()


# Gigabytes


def test_an_answer_without_end_is_left_after_its_bound(rm):
    rm.all_answer = rm.gigabytes
    with pytest.raises(Unusable, match="more than 1048576 bytes"):
        get(rm)
    # What lay in sockets' buffers when it was left is all that was sent beyond the bound.
    assert rm.sent_bytes < 64 * MIB


def test_an_answer_that_says_it_is_too_long_is_not_read(rm):
    rm.all_answer = lambda handler: handler.reply(200, b"", Content_Length=str(10 << 30))
    with pytest.raises(Unusable, match="10737418240 bytes"):
        get(rm)


def test_an_answer_that_breaks_off_is_none(rm):
    def half(handler):
        handler.reply(200, b'{"apps": null}', Content_Length="100")
        handler.close_connection = True

    rm.all_answer = half
    with pytest.raises(RestError, match="broke off"):
        get(rm)


# Nonsense

SAID = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\nTransfer-Encoding: identity\r\n\r\n"
    b'{"apps": null}'
)
MOVED = b"HTTP/1.1 302 Found\r\nLocation: /proxy/application_1_1/x\r\nContent-Length: 0\r\n\r\n"
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{"apps": null}\r\n0\r\n\r\n'
WORDS = [
    b"\r\n",
    b"\0",
    b"\xff",
    b"-1",
    b"99999999999999999999",
    b"ffffffff\r\n",
    b"Location: //[::",
    b"://",
    b":",
    b" ",
]


@contextlib.contextmanager
def speaking(said):
    """A server that answers each connection with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(65536)
                        connection.sendall(said[0])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


@pytest.fixture(scope="module")
def stranger():
    said = [b""]
    with speaking(said) as url:
        yield url, said


CHANGE = st.tuples(st.integers(0, 120), st.integers(0, 6), st.one_of(st.binary(max_size=4), st.sampled_from(WORDS)))


@given(st.sampled_from([SAID, MOVED, CHUNKED]), st.lists(CHANGE))
@example(MOVED, [(MOVED.index(b"/proxy"), 0, b"//[::")])
def test_no_bytes_are_more_than_no_answer(stranger, whole, changes):
    url, said = stranger
    mangled = bytearray(whole)
    for at, taken, put in changes:
        mangled[at : at + taken] = put
    said[0] = bytes(mangled)
    with Rest(url, 10, 1000) as rest, contextlib.suppress(RestError):
        assert len(rest.get("/ws/v1/cluster/apps")) <= 1000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Login</html>",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b'{"apps": 7}',
        b'{"apps": {"app": "application_1_1"}}',
        b'{"apps": {"app": [{"id": "../../etc"}]}}',
        b'{"apps": {"app": [{"id": "application_1_1/../../x"}]}}',
        b"[" * 100_000,
        b'{"apps": ' * 50_000,
    ],
)
def test_a_list_of_jobs_that_is_none(rm, body):
    rm.all_answer = lambda handler: handler.reply(200, body)
    looked = Poll(10).look((rm.url,))
    assert looked.running is None
    assert "not what the REST documentation says" in looked.error


@pytest.mark.parametrize(
    "task",
    [
        {"id": "task_1_0001_r_000000", "state": "RUNNING", "progress": "30"},
        {"id": "task_1_0001_r_000000", "state": "RUNNING", "progress": -1},
        {"id": "task_1_0001_r_000000", "state": "RUNNING", "progress": 1e300},
        {"id": "task_1_0001_r_000000", "state": "RUNNING", "progress": float("nan")},
        {"id": "task_1_0001_r_000000", "state": "RUNNING"},
        {"id": "task_1_0001_r_000000/../..", "state": "RUNNING", "progress": 1},
        {"id": "task_1_0001_r_000000", "state": "x" * 1000, "progress": 1},
        7,
    ],
)
def test_a_job_that_says_what_cannot_be(rm, task):
    base = f"/proxy/{APP}/ws/v1/mapreduce/jobs/{APP.replace('application', 'job')}/tasks"
    rm.answers[base] = {"tasks": {"task": [task]}}
    looked = Poll(10).look((rm.url,))
    assert not looked.progress
    assert list(looked.failed) == [APP]


def test_more_tasks_than_a_job_can_have(rm):
    base = f"/proxy/{APP}/ws/v1/mapreduce/jobs/{APP.replace('application', 'job')}/tasks"
    one = {"id": "task_1_0001_r_000000", "state": "RUNNING", "progress": 1}
    rm.answers[base] = {"tasks": {"task": [one] * 10_001}}
    assert list(Poll(30).look((rm.url,)).failed) == [APP]


# Redirected


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:1/proxy/application_1_1/",
        "https://127.0.0.1/ws/v1/cluster/apps",
        "http://example.org/ws/v1/cluster/apps",
        "//example.org/ws/v1/cluster/apps",
        "//[::/ws/v1/cluster/apps",
        "file:///etc/passwd",
        "/logs/",
        "/proxy/../conf",
        "http://127.0.0.1:99999/ws/v1/cluster/apps",
        "",
    ],
)
def test_a_redirect_elsewhere_is_not_followed(rm, location):
    rm.answers[APPS] = lambda handler: handler.reply(302, b"", Location=location)
    with pytest.raises(Unusable, match="redirect"):
        get(rm)
    assert set(rm.asked) <= {APPS, "/"}


def test_a_redirect_to_its_own_proxy_is_followed(rm):
    rm.answers["/proxy/a"] = lambda handler: handler.reply(302, b"", Location=f"{rm.url}/proxy/b?x=1")
    rm.answers["/proxy/b?x=1"] = {"yes": 1}
    assert get(rm, "/proxy/a") == b'{"yes": 1}'


def test_redirects_without_end_are_left(rm):
    rm.answers[APPS] = lambda handler: handler.reply(302, b"", Location=APPS)
    with pytest.raises(Unusable, match="more than 3 times"):
        get(rm)
    assert len(rm.asked) == 4


def test_tls_is_checked_against_the_authority(rm):
    authority = trustme.CA()
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(there)
    rm.socket = there.wrap_socket(rm.socket, server_side=True)
    url = rm.url.replace("http", "https")
    ours = ssl.create_default_context()
    with pytest.raises(RestError, match="certificate"), Rest(url, 10, MIB, ours) as strict:
        strict.get(APPS)
    authority.configure_trust(ours)
    with Rest(url, 10, MIB, ours) as trusting:
        assert b"application_" in trusting.get(APPS)


@pytest.mark.parametrize("base", ["rm:8088", "ftp://rm", "http://", "http://rm:8088/?x=1", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(base):
    with pytest.raises(ValueError, match=r"http://rm.example:8088"):
        Rest(base, 1, 1)
