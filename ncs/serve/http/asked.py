"""What may be asked, with bounds: one model a request, for GET parameters and POST bodies alike."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ncs.search.rankers import DEFAULT_RANKER
from ncs.serve.http.settings import MOST_BODY, MOST_K, MOST_QUERY

Name = Annotated[str, Field(min_length=1, max_length=64)]
Pattern = Annotated[str, Field(min_length=1, max_length=300)]
Id = Annotated[str, Field(min_length=1, max_length=4_096, description="The id of a document, as hits give it.")]
Words = Annotated[str, Field(min_length=1, max_length=MOST_QUERY)]


class Asked(BaseModel):
    """What every request may have."""

    model_config = ConfigDict(extra="forbid")
    index: Name | None = Field(None, description="Which index; the server's first one if left out.")


class Filtered(Asked):
    """How many documents, and which may be found."""

    k: int = Field(10, ge=1, le=MOST_K, description="How many hits.")
    language: Name | None = Field(None, description="Only this language.", examples=["java"])
    repository: Pattern | None = Field(None, description="Only repositories that match this glob.")
    path: Pattern | None = Field(None, description="Only paths that match this glob.", examples=["src/main"])
    kind: Name | None = Field(None, description="Only this kind of document.", examples=["method"])
    code: bool = Field(True, description="Whether hits hold their code.")
    marks: bool = Field(False, description="Say where the question's words stand in the code: [start, end] each.")


class Search(Filtered):
    """A question: what a function does, or its name."""

    query: Words = Field(description="What the function does, or its name.", examples=["hide soft keyboard"])
    ranker: Name = Field(DEFAULT_RANKER, description="bm25, ncs ...; some only where the build fitted them.")
    functions_only: bool = Field(False, description="No classes, no top-level code.")
    min_confidence: float | None = Field(None, ge=0, le=1, description="Leave out hits less likely to be right.")
    unfold: bool = Field(False, description="Near duplicates as hits of their own.")


class Question(Search):
    """A question whose answer may say why each hit is one."""

    explain: bool = Field(False, description="Say why each hit is one.")


class SimilarTo(Filtered):
    """A document of the index whose like is looked for."""

    id: Id


class SimilarCode(Filtered):
    """Code whose like is looked for, or a document of the index."""

    id: Id | None = None
    source: str | None = Field(None, min_length=1, max_length=MOST_BODY, description="Code that holds a function.")
    source_language: Name | None = Field(None, description="The language of the code.", examples=["python"])
    line: int | None = Field(None, ge=1, le=MOST_BODY, description="A line of the function; else the first one's.")


class DocumentWanted(Asked):
    """One document."""

    id: Id
    code: bool = Field(True, description="Whether it holds its code.")


class PlacesWanted(Asked):
    """Where documents stand on the map."""

    ids: list[Id] = Field(max_length=MOST_K, description="Ids of documents, as hits give them.")


class WordsWanted(Asked):
    """Words used like a word."""

    word: str = Field(min_length=1, max_length=100, examples=["keyboard"])
    n: int = Field(10, ge=1, le=MOST_K, description="How many.")


class Vote(Asked):
    """Whether a document answers a question."""

    query: Words
    id: Id
    vote: Literal["up", "down"]
