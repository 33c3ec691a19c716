"""The server benchmark: its clients count right, its functions are drawn from an index, its phases have no errors."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from evaluation.http_load import Load, Seen, ask

from evaluation import bench_serve
from ncs.index import Index
from ncs.storage.file_roles import OUTLINES
from tests import corpus
from tests.waiting import LONG


class Counting(BaseHTTPRequestHandler):
    """Answers /good and /bad, hangs up on /cut; counts targets and connections."""

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


def asked(url: str, targets: list[str], load: Load, enough: Callable[[], bool]) -> Seen:
    """What was seen in a time in which so much was asked: a busy machine gets more of it."""
    while True:
        Counting.seen.clear()
        seen = ask(url, targets, load)
        if enough() or load.seconds > LONG:
            return seen
        load = replace(load, seconds=4 * load.seconds)


def test_every_request_is_counted_once_over_one_connection_a_client(url: str) -> None:
    seen = asked(url, ["/good"], Load(4, 0.01, 0.5), lambda: Counting.seen["connections"] == 4 < Counting.seen["/good"])
    assert seen.errors == {}
    assert len(seen.milliseconds) == Counting.seen["/good"] > 4
    assert Counting.seen["connections"] == 4


def test_refusals_and_cut_connections_are_errors(url: str) -> None:
    targets = ["/good", "/bad", "/cut"]
    seen = asked(url, targets, Load(1, 0.005, 0.5), lambda: all(Counting.seen[target] for target in targets))
    assert seen.errors == {"503": Counting.seen["/bad"], "IncompleteReadError": Counting.seen["/cut"]}
    assert len(seen.milliseconds) == Counting.seen["/good"] + Counting.seen["/bad"]


def test_a_server_that_is_not_there_is_an_error() -> None:
    assert set(ask("http://127.0.0.1:9", ["/"], Load(1, 0.01, 0.05, seed=1)).errors) <= {"ConnectionRefusedError"}


def test_percentiles_and_histogram_are_of_what_was_seen() -> None:
    values = [0.5, 1.0, 1.1, 2.0, 3.0, 40.0]
    summary = Seen(values, Counter({"503": 1}), 2.0).summary()
    assert (summary["requests"], summary["requests_per_second"], summary["errors"]) == (6, 3.0, {"503": 1})
    ms = summary["ms"]
    assert isinstance(ms, dict)
    assert ms["p95"] == pytest.approx(np.percentile(values, 95), abs=0.01)
    assert ms["max"] == 40
    assert summary["histogram_ms"] == {"0.5": 1, "1": 1, "2": 2, "4": 1, "64": 1}


@pytest.mark.slow
def test_an_index_is_drawn_served_and_asked_without_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Index.build(corpus.write(tmp_path / "repos"), tmp_path / "big").close()
    questions, report = tmp_path / "questions.txt", tmp_path / "report.json"
    questions.write_text("hide soft keyboard\nread text file\n")
    arguments = [str(tmp_path / "drawn"), "--from", str(tmp_path / "big"), "--functions", "4", "--workers", "1"]
    arguments += [
        "--queries",
        str(questions),
        "--clients",
        "3",
        "--think",
        "0.05",
        "--json",
        str(report),
    ]
    for seconds in (1, 10, 60):  # a busy machine gets more of them
        assert bench_serve.main([*arguments, "--seconds", str(seconds)]) == 0
        found = json.loads(report.read_text())
        if all(phase["requests"] for phase in found["phases"].values()):
            break
    assert found["documents"] == 4
    assert {phase["requests"] > 0 for phase in found["phases"].values()} == {True}
    assert "| search " in capsys.readouterr().out
    with Index.load(tmp_path / "big") as big, Index.load(tmp_path / "drawn") as drawn:
        ids, kinds = set(drawn.store.ids(range(4))), {kind for *_, kind in drawn.store.names()}
        assert ids <= set(big.store.ids(range(len(big))))
        assert not kinds & OUTLINES
