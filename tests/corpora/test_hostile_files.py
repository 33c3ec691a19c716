"""Data sets of strangers: gzip bombs, JSON that Python cannot hold, numbers of 5,000 digits."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from corpora.jsonl import parse_row, read_json
from corpora.ncs287 import read_questions, read_score_sheet
from ncs.errors import BadInput
from ncs.search.baselines.enhanced import read_questions as read_enhanced
from tests.waiting import LONG

READER = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from {module} import {function} as read
from ncs.errors import BadInput
try:
    for _ in read(Path(sys.argv[1])):
        pass
except (BadInput, OSError) as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@pytest.mark.parametrize(
    ("module", "function", "line"),
    [("corpora.jsonl", "read_rows", b" "), ("ncs.search.baselines.enhanced", "read_pairs", b" " * 1023 + b"\n")],
    ids=["one line", "many lines"],
)
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(
    tmp_path: Path, module: str, function: str, line: bytes
) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    block = gzip.compress(line * ((16 << 20) // len(line)), 9)
    path.write_bytes(block * 16)  # 256 MiB in 256 KB
    code = READER.format(module=module, function=function)
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=LONG, check=False
    )
    assert "its lines are endless" in run.stdout, run.stderr[-300:]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 5_000 + "}", '{"a": ' * 50_000])
def test_json_that_python_cannot_hold_is_no_traceback(tmp_path: Path, text: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(text)
    for read in (lambda: parse_row(text, "f:1"), lambda: read_json(path, ""), lambda: list(read_enhanced(path))):
        with pytest.raises(BadInput, match="not JSON"):
            read()


def test_a_question_of_megabytes_and_a_rank_of_thousands_of_digits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text('[{"stackoverflow_id": 1, "answer": "a();", "question": "' + "word " * 800_000 + '"}]')
    with pytest.raises(BadInput, match="the query has 4,000,000 characters"):
        read_questions(path)
    path.write_text("No.,StackOverflow ID,NCS FRank\r\n1,7," + "9" * 5_000 + "\r\n")
    with pytest.raises(BadInput, match="neither NF nor a number"):
        read_score_sheet(path)
