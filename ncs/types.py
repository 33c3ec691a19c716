"""The basic types: documents, locations, queries, hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float32]"
"""Rows of vectors, float32, C order: [n, d]."""
Mask: TypeAlias = "NDArray[np.bool_]"
"""Mask of rows, bool [n_documents]."""
Rows: TypeAlias = "NDArray[np.int64]"
"""Rows of documents."""
Ids: TypeAlias = "NDArray[np.int32]"
"""Ids of words."""
Scores: TypeAlias = "NDArray[np.float64]"

Field = Literal[
    "name",  # the function's own name
    "scope",  # enclosing classes, namespaces or functions, outermost first
    "calls",  # names of called functions, methods and constructed classes
    "enums",  # enum members and constants: Context.INPUT_METHOD_SERVICE, MAX_SIZE
    "literals",  # string literals, without quotes
    "doc",  # the documentation comment: Javadoc, docstring
    "comments",  # comments inside the body
    "identifiers",  # variables and attributes that are none of the above
    "types",  # type names
    "parameters",  # parameter names
    "path",  # the file's path
    "declared",  # constants, fields, macros and types by another name that code outside functions declares
]
FIELDS: tuple[Field, ...] = get_args(Field)[:-1]
"""The fields that are searched by words; what is declared stands among them, too."""
NCS_FIELDS: tuple[Field, ...] = ("doc", "scope", "name", "calls", "enums", "literals", "comments")
"""The fields that NCS reads (Sachdev et al. 2018, section 3.1), in training order."""

SECTION = "section"
"""The kind of a document that is prose: a section of a guide."""

Tokens: TypeAlias = tuple[str, ...]
Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""query id -> document id -> grade."""
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""query id -> document id -> score."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a function; lines are 1-based and inclusive."""

    repository: str
    path: str
    start_line: int
    end_line: int
    qualified_name: str


@dataclass(frozen=True, slots=True)
class Document:
    """A function or method, code around functions (a class, top-level code), or a section of prose: what a search
    returns.

    `words` holds the source's own spellings in source order, one tuple per field
    (`words["calls"] == ("getSystemService", "hideSoftInputFromWindow")`);
    `ncs.text.tokens.tokenize` makes words of them. Fields without words are left out.
    """

    id: str
    repository: str
    path: str
    start_line: int
    end_line: int
    language: str
    kind: str
    name: str
    qualified_name: str
    words: Mapping[Field, Tokens] = field(default_factory=dict)
    code: str = ""
    digest: bytes = b""
    """Hash (16 bytes) of the code without comments and layout: equal for exact duplicates."""
    copies: tuple[Location, ...] = ()
    """Locations of exact duplicates."""
    test: bool = False
    """Whether it is a test by the syntax of its language."""

    @property
    def location(self) -> Location:
        return Location(self.repository, self.path, self.start_line, self.end_line, self.qualified_name)


@dataclass(frozen=True, slots=True)
class Query:
    """A question with an id, as evaluation sets have them."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A document at its place in a ranking: rank 1 is best, a higher score is better."""

    rank: int
    score: float
    document: Document
    confidence: float | None = None
    """Probability that the hit is correct, 0 to 1; None for other rankers than the default one."""
    near_copies: tuple[Location, ...] = ()
    """Locations of near duplicates folded into this hit."""
