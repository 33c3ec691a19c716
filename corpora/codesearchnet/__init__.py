"""CodeSearchNet (Husain et al. 2019): its corpus read and made from repositories, and its Challenge."""

from __future__ import annotations

from corpora.codesearchnet.challenge import (
    Challenge,
    Grades,
    challenges,
    read_annotations,
    read_challenge,
    read_queries,
    read_submission,
    write_submission,
)
from corpora.codesearchnet.functions import LANGUAGES, CodeFunction, read_functions, write_functions

__all__ = [
    "LANGUAGES",
    "Challenge",
    "CodeFunction",
    "Grades",
    "challenges",
    "read_annotations",
    "read_challenge",
    "read_functions",
    "read_queries",
    "read_submission",
    "write_functions",
    "write_submission",
]
