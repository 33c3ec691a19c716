"""Thumbs up and down as lines of a file that `ncs tune --from-feedback` reads."""

from __future__ import annotations

import os
from pathlib import Path

from ncs.serve.http.refusals import Refusal

MOST_BYTES = 64 << 20
MODE = os.O_RDWR | os.O_CREAT | os.O_APPEND


def line_of(query: str, id: str, vote: str) -> bytes:
    r"""A question, a tab, an id; a thumb down is a comment, which `ncs tune` knows, and `ncs eval` passes over.

    Raises Refusal for an id that no line can hold.

    >>> line_of("hide\tkeyboard", "app/K.java:3", "up"), line_of("#x", "a:1", "up"), line_of("x", "a:1", "down")
    (b'hide keyboard\tapp/K.java:3\n', b' #x\ta:1\n', b'# down\tx\ta:1\n')
    """
    question = " ".join(query.split())
    try:
        text = f"{question}\t{id}".encode()
    except UnicodeEncodeError:
        text = b""
    if not question or not text or id.splitlines() != [id] or "\t" in id or id != id.strip():
        raise Refusal(422, "no_line", "this cannot be written as a line", "send a question with words, and another id")
    before = b"# down\t" if vote == "down" else b" " if question.startswith("#") else b""
    return before + text + b"\n"


def append(path: Path, line: bytes) -> None:
    """Write a line and bring it to the disk; several processes may write at a time.

    A last line that was cut off is ended first. Raises Refusal where the file is full or cannot be written.
    """
    try:
        file = os.open(path, MODE, 0o600)
        try:
            size = os.fstat(file).st_size
            if size + len(line) > MOST_BYTES:
                raise Refusal(507, "feedback_full", "the feedback file is full", "the operator may move it away")
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            _write(file, b"\n" + line if torn else line)
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        said = f"the feedback cannot be written ({error.strerror})"
        raise Refusal(507, "feedback_lost", said, "the operator should look at the disk") from error


def _write(file: int, line: bytes) -> None:
    """One call, so that lines of several processes do not mix."""
    if os.write(file, line) != len(line):
        raise OSError(0, "the disk is full")
