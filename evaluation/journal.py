"""What is done stays done: judged questions as JSON lines, appended one by one, read again after a stop.

The first line says what the file is: no other file is ever cut or appended to.
A line is written whole and flushed before the next question is asked. Where the process was killed in the middle of
one, that torn line is cut off and its question asked again; any other line that does not fit is an error.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ncs.errors import BadInput

HEADER = b'{"file": "judged answers of ncs", "version": 1}\n'


@dataclass(frozen=True, slots=True)
class Key:
    """What decides a judged answer: index (a digest of its manifest), system, question with its digest, and depth."""

    index: str
    system: str
    question: str
    digest: str
    k: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits of one system for one question: (document id, score, similarity to the answer), best first."""

    hits: tuple[tuple[str, float, float], ...]
    milliseconds: float


class Journal:
    """Answers by key, kept in a file where one is named; `path` None keeps them in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._answers: dict[Key, Answer] = {}
        self._file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        if self.path:
            try:
                whole = self._read(self.path) if self.path.exists() else 0
                self._file = self.path.open("ab")
                self._file.truncate(whole)
                if not whole:
                    self._write(HEADER)
            except OSError as error:
                raise BadInput(f"cannot use {self.path} ({error.strerror}); name another state file") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key) -> Answer | None:
        """The answer that is known already."""
        return self._answers.get(key)

    def add(self, key: Key, answer: Answer) -> None:
        """Keep an answer; in the file before this returns."""
        self._answers[key] = answer
        self._write(json.dumps({**asdict(key), **asdict(answer)}).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        if self._file:
            self._file.write(line)
            self._file.flush()

    def remove(self) -> None:
        """Remove the file: everything it held stands in a result now."""
        if self.path:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> int:
        """Take in every whole line; how many bytes these are. BadInput for a file of another kind."""
        data = path.read_bytes()
        if HEADER.startswith(data):
            return 0
        if not data.startswith(HEADER):
            raise BadInput(f"{path} is not a state file of this program; name another one")
        whole = data.rindex(b"\n") + 1
        for number, line in enumerate(data[len(HEADER) : whole].splitlines(), 2):
            key, answer = _line(line, f"{path}:{number}")
            self._answers[key] = answer
        return whole


def _line(line: bytes, place: str) -> tuple[Key, Answer]:
    try:
        values = json.loads(line)
        index, system, question, digest = (str(values[name]) for name in ("index", "system", "question", "digest"))
        key = Key(index, system, question, digest, int(values["k"]))
        hits = tuple((str(id), float(score), float(similarity)) for id, score, similarity in values["hits"])
        answer = Answer(hits, float(values["milliseconds"]))
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{place} is not a line of this program; remove the file to begin anew") from None
    return key, answer
