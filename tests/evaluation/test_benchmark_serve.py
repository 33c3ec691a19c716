"""The server benchmark: its clients count right, and its phases have no errors."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from evaluation.benchmarks import serve
from evaluation.benchmarks.serve import Answers, Load, ask
from ncs.index import Index
from tests import corpus


class Counting(BaseHTTPRequestHandler):
    """Answers /good with 200 and everything else with 503, hangs up on /cut; counts targets and connections."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[Counter[str]] = Counter()
    lock: ClassVar[threading.Lock] = threading.Lock()

    def count(self, what: str) -> None:
        with self.lock:  # each connection has a thread
            self.seen[what] += 1

    def setup(self) -> None:
        super().setup()
        self.count("connections")

    def do_GET(self) -> None:
        self.count(self.path)
        if self.path == "/cut":
            self.close_connection = True
            return
        self.send_response(200 if self.path == "/good" else 503)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"12345")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Counting.seen = Counter()
    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_every_request_is_counted_once_over_one_connection_per_client(url: str) -> None:
    answers = ask(url, ["/good"], Load(4, 0.01, 1.0))
    assert answers.errors == {}
    assert len(answers.milliseconds) == Counting.seen["/good"] > 4
    assert Counting.seen["connections"] <= 4


def test_refusals_and_cut_connections_are_errors(url: str) -> None:
    answers = ask(url, ["/good", "/bad", "/cut"], Load(1, 0.0, 1.0))
    assert answers.errors["503"] == Counting.seen["/bad"] > 0
    assert answers.errors["RemoteProtocolError"] > 0
    assert len(answers.milliseconds) == Counting.seen["/good"] + Counting.seen["/bad"]


def test_a_server_that_is_not_there_is_an_error() -> None:
    assert set(ask("http://127.0.0.1:9", ["/"], Load(1, 0.0, 1.0)).errors) == {"ConnectError"}


def test_percentiles_are_those_of_the_answers() -> None:
    values = [0.5, 1.0, 1.1, 2.0, 3.0, 40.0]
    summary = Answers(values, Counter({"503": 1}), 2.0).summary()
    assert (summary["requests"], summary["requests_per_second"], summary["errors"]) == (6, 3.0, {"503": 1})
    assert summary["ms"]["p95"] == pytest.approx(np.percentile(values, 95), abs=0.01)
    assert summary["ms"]["p100"] == 40


@pytest.mark.slow
def test_an_index_is_served_and_asked_without_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "index").close()
    queries, report = tmp_path / "queries.txt", tmp_path / "report.json"
    queries.write_text("hide soft keyboard\nread text file\n")
    options = ["--queries", str(queries), "--clients", "3", "--think", "0.05", "--seconds", "3", "--workers", "1"]
    assert serve.main([str(tmp_path / "index"), *options, "--json", str(report)]) == 0
    phases = json.loads(report.read_text())["phases"]
    assert len(phases) == 5
    assert all(phase["requests"] > 0 for phase in phases.values())
    assert "| search " in capsys.readouterr().out
