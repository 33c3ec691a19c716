"""The page over HTTP, behind the guards of `ncs serve`: what is next, an answer, an answer taken back."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from evaluation.annotation.database import JudgedAlready
from evaluation.annotation.desk import Desk, State
from ncs import __version__
from ncs.serve.http.app import Gateway, add_error_handlers
from ncs.serve.http.errors import HttpError, to_json
from ncs.serve.http.security import Guard, content_security_policy
from ncs.serve.http.service import Metrics
from ncs.serve.http.settings import Settings

PAGE = Path(__file__).parent / "page.html"
MOST_NOTES = 2_000
MOST_NAME = 64

router = APIRouter()


def cleaned(name: str) -> str:
    """A name as it is kept: white space made one, letters in one form. ValueError for none, or what cannot be shown.

    >>> cleaned("  Ada   Lovelace ")
    'Ada Lovelace'
    """
    clean = unicodedata.normalize("NFC", " ".join(name.split()))
    if not clean or not clean.isprintable():
        raise ValueError("a name has letters, and nothing that cannot be shown")
    return clean


def _unicode(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("half a surrogate pair, which is no Unicode")
    return text.strip()


class Asked(BaseModel):
    """Whose turn it is. language: only pairs of this one."""

    model_config = ConfigDict(extra="forbid")
    annotator: Annotated[str, Field(min_length=1, max_length=MOST_NAME), AfterValidator(cleaned)]
    language: str | None = Field(None, min_length=1, max_length=64)


class Given(Asked):
    """An answer; without a grade the pair is skipped."""

    pair: int = Field(ge=1, strict=True)
    grade: int | None = Field(ge=0, le=3, strict=True)
    notes: Annotated[str, Field(max_length=MOST_NOTES), AfterValidator(_unicode)] = ""


def create_app(desk: Desk, settings: Settings, token: str | None = None) -> Gateway:
    """The ASGI application."""
    api = FastAPI(title="ncs annotate", version=__version__, docs_url=None, redoc_url=None)
    api.include_router(router)
    add_error_handlers(api, desk.hidden)
    api.state.service = desk
    metrics = Metrics([route.path for route in router.routes if hasattr(route, "path")])
    return Gateway(api, Guard.of(settings, token), metrics, seconds=settings.seconds)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.service
    return desk


def _json(state: State) -> Response:
    return Response(to_json(state), media_type="application/json")


@router.get("/api/pool")
def begin(request: Request) -> Response:
    """What there is to judge, and who has judged how much."""
    return _json(_desk(request).begin())


@router.get("/api/next")
def next_one(request: Request, asked: Annotated[Asked, Query()]) -> Response:
    """The next pair of an annotator, null when all is done, and the progress."""
    return _json(_desk(request).state(asked.annotator, asked.language))


@router.post("/api/answer")
def answer(request: Request, given: Given) -> Response:
    """Keep an answer; it is on the disk when the next pair comes back."""
    try:
        _desk(request).answer(given.annotator, given.pair, given.grade, given.notes)
    except JudgedAlready as error:
        message, _, remedy = str(error).partition("; ")
        raise HttpError(409, "judged_already", message, remedy) from None
    return _json(_desk(request).state(given.annotator, given.language))


@router.post("/api/undo")
def undo(request: Request, asked: Asked) -> Response:
    """Take back the last answer; its pair comes back."""
    desk = _desk(request)
    return _json(desk.state(asked.annotator, asked.language, again=desk.undo(asked.annotator)))


@router.get("/health")
def health() -> Response:
    """Whether the process answers."""
    return _json({"status": "ok"})


@router.get("/", include_in_schema=False)
def home() -> Response:
    """The page, with a policy that lets run what stands in it and nothing else."""
    html = PAGE.read_bytes()
    headers = {"content-security-policy": content_security_policy(html.decode("utf-8"))}
    return Response(html, media_type="text/html", headers=headers)
