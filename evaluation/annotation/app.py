"""The annotation page over HTTP, behind the guards of `ncs serve`: the next pair, an answer, undo."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from evaluation.annotation.judgments import Answer, JudgedAlready
from evaluation.annotation.session import Session, State
from ncs import __version__
from ncs.serve.http.app import Gateway
from ncs.serve.http.errors import HttpError, to_json
from ncs.serve.http.security import page
from ncs.serve.http.settings import Settings

PAGE = Path(__file__).parent / "page.html"
MAX_NOTES = 2_000
MAX_NAME = 64

router = APIRouter()


def normalized(name: str) -> str:
    """A name in one form of white space and letters. ValueError for an empty or unprintable one.

    >>> normalized("  Ada   Lovelace ")
    'Ada Lovelace'
    """
    clean = unicodedata.normalize("NFC", " ".join(name.split()))
    if not clean or not clean.isprintable():
        raise ValueError("a name needs letters, and only printable characters")
    return clean


def _unicode(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("half a surrogate pair, which is not Unicode")
    return text.strip()


class Turn(BaseModel):
    """The annotator, and optionally the language of the pairs."""

    model_config = ConfigDict(extra="forbid")
    annotator: Annotated[str, Field(min_length=1, max_length=MAX_NAME), AfterValidator(normalized)]
    language: str | None = Field(None, min_length=1, max_length=64)


class Judgment(Turn):
    """An answer; a pair without a grade is skipped."""

    pair: int = Field(ge=1, strict=True)
    grade: int | None = Field(ge=0, le=3, strict=True)
    notes: Annotated[str, Field(max_length=MAX_NOTES), AfterValidator(_unicode)] = ""


def create_app(session: Session, settings: Settings, token: str | None = None) -> Gateway:
    """The ASGI application."""
    api = FastAPI(title="ncs annotate", version=__version__, docs_url=None, redoc_url=None)
    api.include_router(router)
    api.state.service = session
    return Gateway(api, settings, token, session.aliases())


def _session(request: Request) -> Session:
    session: Session = request.app.state.service
    return session


def _json(state: State) -> Response:
    return Response(to_json(state), media_type="application/json")


@router.get("/api/pool")
def overview(request: Request) -> Response:
    """Counts of pairs, and of judgments by annotator."""
    return _json(_session(request).overview())


@router.get("/api/next")
def next_pair(request: Request, turn: Annotated[Turn, Query()]) -> Response:
    """The next pair of an annotator, null when all is done, and the progress."""
    return _json(_session(request).state(turn.annotator, turn.language))


@router.post("/api/answer")
def answer(request: Request, judgment: Judgment) -> Response:
    """Store an answer; it is on disk when the next pair comes back."""
    session = _session(request)
    try:
        session.judgments.add(Answer(judgment.annotator, judgment.pair, judgment.grade, judgment.notes))
    except JudgedAlready as error:
        message, _, remedy = str(error).partition("; ")
        raise HttpError(409, "judged_already", message, remedy) from None
    return _json(session.state(judgment.annotator, judgment.language))


@router.post("/api/undo")
def undo(request: Request, turn: Turn) -> Response:
    """Delete the last answer; its pair comes back."""
    session = _session(request)
    return _json(session.state(turn.annotator, turn.language, undone=session.judgments.undo(turn.annotator)))


@router.get("/health")
def health() -> Response:
    """Whether the process answers."""
    return _json({"status": "ok"})


@router.get("/", include_in_schema=False)
def home() -> Response:
    """The page."""
    return page(PAGE)
