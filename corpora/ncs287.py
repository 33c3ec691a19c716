"""Facebook's evaluation questions: Stack Overflow titles about Android with answer snippets (Li et al. 2019).

They have no qrels over a fixed corpus: a hit is judged by its similarity to the answer's snippet
(evaluation.judges.aroma). The data is CC BY-NC: for evaluation only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from corpora.corpus import first_repeated
from ncs.errors import BadInput
from ncs.types import Query


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the snippet of its accepted answer, and links to functions that answer it as well."""

    query: Query
    answer: str
    examples: tuple[str, ...]


def read_questions(path: Path) -> list[Question]:
    """Questions of a JSON file in the published shape: a list of objects with stackoverflow_id, question,
    answer and (where there are) examples_url. Raises BadInput that names the first object that does not fit.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; name the JSON file with the questions") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} is not JSON ({error}); get the file again") from None
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{path} holds no list of questions; name the JSON file with the questions")
    questions = [_question(row, f"{path}: question {number}") for number, row in enumerate(rows, 1)]
    if (twice := first_repeated(question.query.id for question in questions)) is not None:
        raise BadInput(f"{path}: two questions have the stackoverflow_id {twice!r}; ids must differ")
    return questions


def _question(row: object, place: str) -> Question:
    if not isinstance(row, dict):
        raise BadInput(f"{place} is not a JSON object; correct it")
    texts = [row.get(key) for key in ("question", "answer")]
    id = row.get("stackoverflow_id")
    if not isinstance(id, (str, int)) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise BadInput(f"{place} lacks stackoverflow_id, question or answer; correct it")
    examples = row.get("examples_url") or ()
    if not isinstance(examples, Iterable):
        raise BadInput(f"{place}: examples_url is not a list; correct it")
    return Question(Query(str(id), str(texts[0])), str(texts[1]), tuple(map(str, examples)))
