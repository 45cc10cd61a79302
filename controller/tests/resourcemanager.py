"""A ResourceManager of the tests' own making, on loopback: answers what it is given, or misbehaves as it is told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeResourceManager

    def do_GET(self):
        fake = self.server
        fake.asked.append(self.path)
        path = self.path.partition("?")[0]
        answer = fake.answers.get(self.path) or fake.answers.get(path)
        with contextlib.suppress(OSError):
            if fake.all_answer:
                fake.all_answer(self)
            elif answer is None:
                self.reply(404, b"{}")
            elif callable(answer):
                answer(self)
            else:
                self.reply(200, json.dumps(answer).encode())

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class FakeResourceManager(ThreadingHTTPServer):
    """`answers` maps a path, with or without its query, to JSON or to what answers; `all_answer` is before it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Any] = {}
        self.all_answer: Answer | None = None
        self.asked: list[str] = []
        self.sent_bytes = 0
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        """Clients that hang up are what some tests are about."""

    # Jobs

    def runs(self, *applications: tuple[str, str]) -> None:
        """(id, type) of the applications it counts as running."""
        listed = [{"id": name, "applicationType": kind} for name, kind in applications]
        self.answers["/ws/v1/cluster/apps"] = {"apps": {"app": listed} if listed else None}

    def mapreduce(self, application: str, percents: list[float], hosts: list[str], **bytes_of: int) -> None:
        """A job whose reduce tasks are so far, one attempt each."""
        job = application.replace("application_", "job_")
        number = application.removeprefix("application_")
        base = f"/proxy/{application}/ws/v1/mapreduce/jobs/{job}/tasks"
        tasks = []
        for n, (percent, host) in enumerate(zip(percents, hosts, strict=True)):
            state = "SUCCEEDED" if percent >= 100 else "RUNNING"
            task, attempt = f"task_{number}_r_{n:06d}", f"attempt_{number}_r_{n:06d}_0"
            tasks.append({"id": task, "state": state, "progress": percent, "type": "REDUCE"})
            told = {"id": attempt, "state": state, "progress": percent, "startTime": 1_000_000 + n}
            self.answers[f"{base}/{task}/attempts"] = {
                "taskAttempts": {"taskAttempt": [{**told, "nodeHttpAddress": f"{host}:8042"}]}
            }
            counters = [{"name": "REDUCE_SHUFFLE_BYTES", "value": bytes_of.get(f"r{n}", 0)}]
            self.answers[f"{base}/{task}/attempts/{attempt}/counters"] = {
                "jobTaskAttemptCounters": {"taskAttemptCounterGroup": [{"counter": counters}]}
            }
        self.answers[base] = {"tasks": {"task": tasks}}

    # Misbehaviour

    def never(self, handler: Handler) -> None:
        """Takes the request and says nothing."""
        self.over.wait()
        handler.close_connection = True

    def drips(self, handler: Handler) -> None:
        """A byte now and then, of headers without end."""
        while not self.over.wait(0.02):
            handler.wfile.write(b"X")
            handler.wfile.flush()

    def drips_body(self, handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        self.drips(handler)

    def gigabytes(self, handler: Handler) -> None:
        """Chunks without end."""
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        chunk = b" " * 65536
        while not self.over.is_set():
            handler.wfile.write(b"10000\r\n" + chunk + b"\r\n")
            self.sent_bytes += len(chunk)


@contextlib.contextmanager
def running() -> Iterator[FakeResourceManager]:
    fake = FakeResourceManager()
    thread = threading.Thread(target=fake.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        fake.shutdown()
        fake.server_close()
        thread.join(10)
