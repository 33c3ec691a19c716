"""Definitions and uses of a name.

An index holds names, not types, so uses of a qualified name (`Cache.close`) are filtered by words: a use must be in the
file of the definition, or in a function that has the owner's words (`cache`, `Cache`, `self._cache`). Uses of a
function of a file (`src/text.py::fold`) are not in files with another definition of `fold`. A note counts the others.

A function passed as a value (`map(fold, lines)`) is indexed as a variable; it is a use where the function has no such
parameter and does not assign to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ncs import messages
from ncs.console import count
from ncs.errors import BadInput, check_k
from ncs.messages import no_match
from ncs.search.highlight import BEFORE_NAME, has_file_lines, marked_lines, name_marks
from ncs.search.locate_source import locator_of
from ncs.search.question import check_length
from ncs.search.signals import IN_BODY
from ncs.storage.arrays import both, distinct
from ncs.storage.file_roles import OUTLINES, SOURCE, TEST
from ncs.storage.filters import Filters, at_matching_location
from ncs.storage.names import EXACT, FOLDED, PREFIX, Symbol, folded, innermost
from ncs.text.declarations import declared_names
from ncs.text.spelling import nearest_words
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize
from ncs.types import FIELDS, Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.documents import Documents
    from ncs.storage.filters import LocationFilter
    from ncs.storage.postings import Postings
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Location, Mask, Rows

MAX_READ = 1_000
"""Functions read to find uses without a call."""
MAX_SUGGESTIONS = 3
"""Suggestions for an unknown name."""
NAMELESS = ("module", "block", "initializer")
"""Kinds of documents whose name is not in their code."""
DECLARATION, MAX_LINES = "declaration", 20
"""The kind of constants, fields, macros and type aliases, and how many lines of one are shown."""
WITHOUT_BODY = ("overload", "abstractmethod")
"""Decorators of functions whose body is elsewhere."""
MATCHES = ("exact", "other spelling", "prefix")
GROUPS = ("same file", "same folder", "same repository", "elsewhere")
"""Groups of uses by their distance to the nearest definition."""
TESTS, DOCUMENTS, USES = "tests", "documents", "uses"
"""The groups of uses in tests and in prose, which come last, and of uses of an undefined name."""
_SEPARATOR = re.compile(r"(?:::|->|[.#\\])(?=\w|~)|/\d{1,3}$")
"""Between the parts of a name, and before the number of parameters in Elixir and Erlang."""
_RECEIVER = re.compile(
    r"(?:^|(?<=::))(?:func |\S{0,99}/)?([\w.]{0,99})\((?:\w{1,80} )?\*?(\w{1,80})(?:\[[^]]{0,80}\])?\)[. ](?=\w)"
)
"""The receiver of a method in Go: `x.com/pkg.(*T).F`, `func (t *T) F`."""
_NAMED_TWICE = re.compile(r"\s*[=:]\s*(?:async\s+)?(?:function\s*\*?|class)\s*")
"""Between the two names of `app.render = function render() {}`."""
_MARKS = " \t\r/*#-\"'"
"""Characters around the text of a comment."""
_TAG = re.compile(r"^(?::[a-z]{1,80}:|[:@\\][a-zA-Z]{1,80}(?=\s))\s*(?=\S)")
"""`:param`, `:meth:`, `@return`: before the text of a line of documentation, which a document has without them."""
_STATEMENT = re.compile(r"\b(?:extends|new|return|throw|val|when|yield)\b")
"""Words that stand before calls, not before a declaration of a function."""
_IMPORT = re.compile(r"\s*(?:from|import|use|using|#include)\b")


class Name(NamedTuple):
    """A parsed name: `close`, `Cache.close`, `src/cache.py::Cache.close`; repository and path are globs."""

    name: str
    qualifiers: tuple[str, ...] = ()
    repository: str | None = None
    path: str | None = None

    @property
    def filters(self) -> Filters:
        """Filters for its repository and path."""
        return Filters(repository=self.repository, path=self.path)


class Definition(NamedTuple):
    """A definition. match: one of MATCHES."""

    match: str
    document: Document


class Reference(NamedTuple):
    """A use. lines: (number in the file, text) of those with the name; group: one of GROUPS, TESTS, DOCUMENTS, USES."""

    document: Document
    lines: list[tuple[int, str]]
    group: str


class Definitions(NamedTuple):
    """The definitions of a name, and notes about them."""

    found: list[Definition]
    notes: list[str]


class References(NamedTuple):
    """The first uses of a name, their approximate total, the spellings searched, and notes."""

    found: list[Reference]
    total: int
    spelled: list[str]
    notes: list[str]


class NameSearch:
    """Finds the definitions and the uses of names in an index."""

    def __init__(self, snapshot: Snapshot, facts: DocumentFacts, documents: Documents, postings: Postings) -> None:
        self._facts, self._documents, self._postings = facts, documents, postings
        self._live_mask, self._locator = snapshot.live, locator_of(snapshot)

    def parse(self, text: str, path: str | None = None) -> Name:
        """Parse `NAME`, `Owner.NAME` or `FILE::NAME`; path: the file, if not in the text. Raises BadInput.

        The part before `::` is a file if the index has such a file or its name looks like a path; else an owner.
        """
        check_length(text)
        text, *declared = re.split(r"(?<!operator)\(", _RECEIVER.sub(r"\1\2.", text.strip(), count=1), maxsplit=1)
        place = self._place(path) if path else (None, None)
        file, colons, rest = text.partition("::")
        if colons and re.search(r"[/.]", file):
            found = self._place(file)
            if found != (None, None) or self._is_path(file):
                path, text, place = file, rest, found
        if declared:  # `Status DB::Write(int n)`
            *_, text = text.split() or [""]
        *qualifiers, name = [part for part in _SEPARATOR.split(text) if part] or [""]
        if not re.search(r"\w", name) or any("/" in part for part in (*qualifiers, name)):
            raise BadInput(messages.NO_NAME.format(text=text))
        if path and place == (None, None):
            defining = self._documents.locations(self._defining_rows(name)[0].tolist())
            files = list(dict.fromkeys(f"{each.repository}/{each.path}::{name}" for each in defining))[:MAX_SUGGESTIONS]
            raise BadInput(messages.NO_FILE.format(path=path, files=f": {', '.join(files)}" if files else ""))
        return Name(name, tuple(qualifiers), *place)

    def _is_path(self, file: str) -> bool:
        """Whether the part before `::` looks like a path: it has a slash, or the extension of a file of the index."""
        ending = f".{file.rpartition('.')[2]}"
        return "/" in file or any(path.endswith(ending) for _, path in self._documents.files()[1])

    def _place(self, file: str) -> tuple[str | None, str | None]:
        """Globs of repository and path for `path` or `repository/path`; both None if the index has no such file."""
        parts = file.split("/")
        splits = ((f"/{'/'.join(parts[:at])}", f"/{'/'.join(parts[at:])}") for at in range(1, len(parts)))
        for repository, path in ((None, file), *splits):
            mask = self._documents.mask(Filters(repository=repository, path=path))
            if mask is not None and mask.any():
                return repository, path
        return None, None

    def definitions(self, name: Name, k: int, allowed: Mask | None = None, *, prefixes: bool = False) -> Definitions:
        """The first k definitions, in the order of `_bodies_first`, or a note why there are none.

        Only the best kind of match counts: as spelled, else in another style, else (with `prefixes`) longer names.
        """
        check_k(k)
        passing = both(allowed, self._documents.mask(name.filters))
        rows, match = self._defining_rows(name.name, passing, prefixes=prefixes)
        chosen = self._of_owner(rows, name)
        if bodiless := not len(chosen) and len(declaring := self._bodiless(name, allowed)) > 0:
            rows, chosen, match = declaring, declaring, MATCHES[0]
        notes = []
        if len(rows) and not len(chosen):
            notes.append(messages.ELSEWHERE.format(name=name.name, owner=".".join(name.qualifiers)))
        elif len(rows) and match == MATCHES[-1]:
            notes.append(f"no definition of {name.name!r}; names that begin so:")
        elif not len(rows):
            notes.append(self._why_undefined(name, allowed))
        if not len(chosen) and not len(chosen := self._of_owner(rows, name._replace(qualifiers=name.qualifiers[-1:]))):
            chosen = rows
        best = self._bodies_first(chosen, name.name)[:k]
        passes = self._documents.location_filter(name.filters)
        documents = (at_matching_location(each, passes) for each in self._documents.documents(best.tolist()))
        return Definitions([Definition(match, _declaration(each, name.name, bodiless)) for each in documents], notes)

    def _defining_rows(self, name: str, allowed: Mask | None = None, *, prefixes: bool = False) -> tuple[Rows, str]:
        """The rows with the best match of a name, and that match, one of MATCHES; "" without any."""
        rows, weights = self._facts.definitions.match(Symbol(name), allowed=allowed)
        for match, least in zip(MATCHES, (EXACT, FOLDED, PREFIX), strict=True):
            if (weights >= least).any() and (prefixes or least != PREFIX):
                return rows[weights >= least], match
        return rows[:0], ""

    def _bodiless(self, name: Name, allowed: Mask | None) -> Rows:
        """The types of the name's owner that declare a function of this name without a body, which is no document."""
        rows = np.concatenate([self._facts.uses.rows_with([name.name]), self._with_variable(name.name)])
        types = both(self._documents.mask(Filters(kind="class")), self._documents.mask(name.filters))
        first = self._live(distinct(rows), both(types, allowed))[:MAX_READ].tolist()
        owners = [folded(each) for each in name.qualifiers]
        places = self._documents.locations(first)
        fitting = [
            row for row, at in zip(first, places, strict=True) if not owners or _fit(at, owners, declares=True) == 2
        ]
        pairs = zip(fitting, self._documents.documents(fitting), strict=True)
        return np.array([row for row, each in pairs if list(_signatures(each, name.name))], np.int64)

    def _of_owner(self, rows: Rows, name: Name) -> Rows:
        """The definitions whose scopes and folders fit the qualifiers best (`_fit`)."""
        if not name.qualifiers or not len(rows):
            return rows
        qualifiers = [folded(each) for each in name.qualifiers]
        declares = np.isin(rows, self._facts.definitions.declaring(name.name)[0]).tolist()
        places = zip(self._documents.locations(rows.tolist()), declares, strict=True)
        fits = np.array([_fit(location, qualifiers, declares=own) for location, own in places])
        best: Rows = rows[(fits == fits.max()) & (fits > 0)]
        return best

    def _bodies_first(self, rows: Rows, name: str) -> Rows:
        """Definitions in order: files last; the product before tests; named before declared; a class before its
        constructors; bodies before stubs."""
        at = [FIELDS.index(each) for each in IN_BODY]
        declared = self._facts.words.lengths(rows)[:, at].sum(axis=1) == 0
        wordless = np.flatnonzero(declared).tolist()
        for number, document in zip(wordless, self._documents.documents(rows[wordless].tolist()), strict=True):
            declared[number] = "return" not in document.code  # `return 1` has no words
        declared |= np.isin(rows, self._facts.uses.rows_with(WITHOUT_BODY))
        only_declare = np.isin(rows, self._facts.definitions.declaring(name)[0])
        aside = self._facts.file_roles.roles_of(rows) != SOURCE
        modules = self._documents.mask(Filters(kind="module"))
        files = modules[rows] if modules is not None else np.zeros(len(rows), np.bool_)
        constructs = np.isin(rows, self._facts.definitions.constructors(Symbol(name)))
        return rows[np.lexsort((rows, declared, constructs, only_declare, aside, files))]

    def _why_undefined(self, name: Name, allowed: Mask | None) -> str:
        file = ".".join((*name.qualifiers, name.name))
        if name.qualifiers and self._place(file) != (None, None):
            return messages.NO_NAME.format(text=file)
        elsewhere, _ = self._defining_rows(name.name)
        if len(elsewhere):
            where = self._where(elsewhere, name.name)
            return messages.LEFT_OUT.format(name=name.name, where=where)
        known = self._live(self._facts.uses.rows_with([name.name]), allowed)
        if uses := len(known) + len(self._uses_as_value([name.name], known, known[:0], allowed)[0]):
            users = count(uses, "function uses", "functions use")
            return messages.ONLY_USED.format(name=name.name, users=users)
        return self._unknown_note(name.name)

    def _unknown_note(self, name: str) -> str:
        """The note about a name without definition and use, with similar names."""
        documents = self._documents.documents(self._live(self._with_words(name))[:MAX_READ].tolist())
        if any(name_marks(document.code, [name]) for document in documents):
            return messages.ONLY_TEXT.format(name=name)
        longer, _ = self._defining_rows(name, prefixes=True)
        return no_match(name, self._similar_names(name) or self._own_names(longer)[:MAX_SUGGESTIONS])

    def _similar_names(self, name: str) -> list[str]:
        """At most MAX_SUGGESTIONS names of similar spelling, or equal up to case and underscores."""
        spellings: dict[str, list[str]] = {}
        for used in self._facts.uses.names:
            spellings.setdefault(_plain(used), []).append(used)
        known = dict.fromkeys((*spellings, *self._facts.definitions.names()))
        key = _plain(name)
        keys = [*([key] if key in known else []), *nearest_words(key, known)]
        rows_of = {key: self._facts.definitions.match(Symbol(key))[0][:1] for key in keys}
        names = (self._used_names(spellings.get(key, ())) or self._own_names(rows_of[key]) for key in keys)
        near = (each for some in names for each in some)
        return list(islice(near, MAX_SUGGESTIONS))

    def _used_names(self, names: Iterable[str]) -> list[str]:
        """The names that a live document uses."""
        return [name for name in names if len(self._live(self._facts.uses.rows_with([name])))]

    def _own_names(self, rows: Rows) -> list[str]:
        """The distinct names of rows, as spelled."""
        places = self._documents.locations(rows.tolist())
        return list(dict.fromkeys(each.qualified_name.rpartition(".")[2] for each in places))

    def _where(self, rows: Rows, name: str) -> str:
        location = self._documents.locations(self._bodies_first(rows, name)[:1].tolist())[0]
        return f"{location.repository}/{location.path}:{location.start_line}"

    def references(
        self, name: Name, k: int, *, passes: LocationFilter | None = None, allowed: Mask | None = None
    ) -> References:
        """The first k uses, those near a definition first, tests and documents last, or a note why there are none.

        passes: the location filter; a document with copies is shown at its first location that passes.
        """
        check_k(k)
        defining, _ = self._defining_rows(name.name)
        spelled = self._spellings(name.name, defining)
        rows = self._live(self._facts.uses.rows_with(spelled))
        passed_on, unread = self._uses_as_value(spelled, rows, defining, allowed)
        rows = distinct(np.concatenate([rows, passed_on]))
        if not len(rows) and not len(defining):
            return References([], 0, spelled, [self._unknown_note(name.name)])
        chosen = self._of_owner(self._live(defining, self._documents.mask(name.filters)), name)
        rows, notes = self._narrow(rows, name, chosen, defining)
        notes += unread
        passing = self._live(rows, allowed)
        near = chosen if len(chosen) else defining
        found = list(self._walk(passing, near, spelled, k, passes))
        total = max(len(passing), len(found)) if len(found) == k else len(found)
        if total > k:
            notes.append(messages.FIRST_USES.format(total=total, name=name.name))
        if not found and len(rows) > len(passing):
            notes.append(messages.USES_LEFT_OUT.format(name=name.name))
        elif not found and not notes:
            where = f", defined at {self._where(near, name.name)}" if len(near) else ""
            notes.append(messages.NO_USE.format(name=name.name, where=where))
        return References(found, total, spelled, notes)

    def _spellings(self, name: str, defining: Rows) -> list[str]:
        """The name, or if nothing uses this spelling, those of its definitions."""
        if len(self._facts.uses.rows_with([name])) or not len(defining):
            return [name]
        return [own for own in self._own_names(defining) if folded(own) == folded(name)] or [name]

    def _live(self, rows: Rows, allowed: Mask | None = None) -> Rows:
        mask = both(self._live_mask, allowed)
        return rows if mask is None else rows[mask[rows]]

    def _with_words(self, name: str) -> Rows:
        """The rows that have all words of a name, in code or text."""
        rows = [self._postings.rows_with(stem) for stem in dict.fromkeys(stem_all(tokenize(name)))]
        return reduce(np.intersect1d, rows) if rows else np.zeros(0, np.int64)

    def _uses_as_value(
        self, names: Sequence[str], known: Rows, defining: Rows, allowed: Mask | None
    ) -> tuple[Rows, list[str]]:
        """Further rows that use one of these names as a value, among the first MAX_READ candidates, and a note if more
        candidates exist."""
        rows = distinct(np.concatenate([self._with_variable(name) for name in names]))
        rows = self._live(rows[~np.isin(rows, known)], allowed)
        notes = [f"only the first {MAX_READ:,} of {len(rows):,} functions were read for uses without a call"]
        notes = notes if len(rows) > MAX_READ else []
        places = self._documents.locations(defining.tolist())
        fields = any(self._facts.definitions.declaring(name).size for name in names)
        bare = not fields and len(places) > 0 and not any(innermost(each.qualified_name) for each in places)
        first = rows[:MAX_READ].tolist()
        pairs = zip(first, self._documents.documents(first), strict=True)
        return np.array([row for row, each in pairs if _passes_on(each, names, bare=bare)], np.int64), notes

    def _with_variable(self, name: str) -> Rows:
        """The rows whose variables have the words of a name, adjacent and in order."""
        words, rows = tokenize(name), self._with_words(name)
        ids, offsets = self._facts.words.select_rows(("identifiers",), rows)
        wanted = self._facts.words.vocabulary.ids_of(words)
        starts = max(0, len(ids) - len(words) + 1)
        alike = [ids[at : at + starts] == id for at, id in enumerate(wanted.tolist())]
        at = np.flatnonzero(np.logical_and.reduce(alike)) if alike else np.zeros(0, np.int64)
        return rows[distinct(np.searchsorted(offsets, at, side="right") - 1)]

    def _narrow(self, rows: Rows, name: Name, chosen: Rows, defining: Rows) -> tuple[Rows, list[str]]:
        """The uses that may be of the chosen definitions, and a note about the others."""
        numbers, _ = self._documents.files()
        others = defining[~np.isin(defining, chosen)]
        if not name.qualifiers and not (name.path and len(others)):
            return rows, []
        owners = {innermost(location.qualified_name) for location in self._documents.locations(chosen.tolist())}
        owners = owners or set(name.qualifiers[-1:])
        at_home = np.isin(numbers[rows], numbers[chosen])
        if "" in owners or not owners:  # a function of a file
            kept = at_home | ~np.isin(numbers[rows], numbers[others])
            where = f"in files that define a {name.name} of their own"
        else:
            kept = at_home | np.isin(rows, np.concatenate([self._with_words(owner) for owner in sorted(owners)]))
            where = f"in functions that do not name {' or '.join(sorted(owners))}"
        left = int((~kept).sum())
        uses = count(left, "more use")
        return rows[kept], [messages.MORE_USES.format(uses=uses, name=name.name, where=where)] if left else []

    def _walk(
        self, rows: Rows, defining: Rows, names: Sequence[str], k: int, passes: LocationFilter | None
    ) -> Iterator[Reference]:
        """The first k uses, file by file; a line is shown in its innermost function only."""
        numbers, places = self._documents.files()
        near = _nearness(numbers[rows], numbers[defining], places)
        roles, sections = self._facts.file_roles.roles_of(rows), self._facts.file_roles.sections
        behind = (roles == TEST) + 2 * (np.zeros(len(rows), int) if sections is None else sections[rows])
        order = sorted(range(len(rows)), key=lambda at: (behind[at], near[at], places[numbers[rows[at]]], rows[at]))
        left = k
        for (rank, distance, _), group in groupby(order, lambda at: (behind[at], near[at], numbers[rows[at]])):
            group_name = (GROUPS[distance] if len(defining) else USES, TESTS, DOCUMENTS, DOCUMENTS)[rank]
            documents = self._documents.documents([int(rows[at]) for at in group])
            placed = [at_matching_location(document, passes) for document in documents]
            uses = [
                Reference(each, lines, group_name) for each in placed if (lines := self._lines(each, names)) is not None
            ]
            for use in _without_inner(uses)[:left]:
                left -= 1
                yield use
            if left == 0:
                return

    def _lines(self, document: Document, names: Sequence[str]) -> list[tuple[int, str]] | None:
        """The lines of a document with one of the names; None if it only defines one, or another document has them.
        Without stored code they are read from the source file, if that exists."""
        code, known = document.code, ("repository", "path", "start_line", "end_line")
        hit = {each: getattr(document, each) for each in known}
        if not code and document.kind not in OUTLINES and (source := self._locator.locate({**hit, "code": ""})):
            code = "\n".join(source.lines)
        texts = code.split("\n")
        marks = name_marks(code, names)
        if document.name in names and document.kind not in NAMELESS:
            marks = _without_definition(code, marks)
        marked = set(marked_lines(code, marks))
        code_lines = _code_lines(document, texts)
        if document.kind == "class":  # without the heads of its members, which are documents
            code_lines = [(at, line) for at, line in code_lines if not line.endswith(" ...")]
        found = [at for at, _ in code_lines if at in marked]
        if code and not found:
            return None
        return [(document.start_line + at, texts[at]) for at in found] if has_file_lines({**hit, "code": code}) else []


def _plain(name: str) -> str:
    """Nearly `folded`, but fast enough for all names of an index."""
    return name.replace("_", "").lower()


def _fit(location: Location, qualifiers: Sequence[str], *, declares: bool) -> int:
    """1 if folders and scopes of a definition contain the folded qualifiers in order, 2 if also its innermost scope is
    the last of them, else 0. declares: whether the document is itself the scope."""
    folders = location.path.rpartition(".")[0].split("/")
    scopes = location.qualified_name.split(".")[: None if declares else -1]
    parts = iter([folded(each) for each in (location.repository, *folders, *scopes)])
    if not all(each in parts for each in qualifiers):
        return 0
    return 2 if scopes and folded(scopes[-1]) == qualifiers[-1] else 1


def _signatures(document: Document, name: str) -> Iterator[int]:
    """The lines of a type, from 0, that declare a function: with a type or keyword before its name or a type behind."""
    own = rf"{re.escape(name)}\??[ \t]?(?:<[^()]{{0,100}}>)?\("
    signature = re.compile(rf"[^=]{{0,300}}?[\w>\]?*&)](?<!->)[ \t]{{1,8}}{own}|[ \t]*{own}.*\)[ \t]*[:\w*\[(]")
    lines = _code_lines(document, document.code.split("\n"))
    return (number for number, line in lines if signature.match(line) and not _STATEMENT.search(line))


def _declaration(document: Document, name: str, bodiless: bool) -> Document:
    """The lines of a class or of top-level code that declare a name; a document of this name unchanged."""
    if not bodiless and (name not in document.words.get("declared", ()) or document.name == name):
        return document
    lines = document.code.split("\n")
    in_class = document.kind == "class"
    each_line = (declared_names(line.encode(errors="replace"), document.language, in_class=in_class) for line in lines)
    declaring = (at for at, names in enumerate(each_line) if name in names)
    spelled = (at for at, line in enumerate(lines) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line))
    first = next(_signatures(document, name) if bodiless else declaring, next(spelled, 0))
    shown, depth = list[str](), 0
    for line in lines[first : first + MAX_LINES]:
        shown.append(line)
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth <= 0:
            break
    last = first + len(shown) - 1
    qualified = f"{document.qualified_name}.{name}" if document.kind == "class" else name
    copies = tuple(
        replace(each, qualified_name=qualified, start_line=each.start_line + first, end_line=each.start_line + last)
        for each in document.copies
    )
    return replace(
        document, kind=DECLARATION, name=name, qualified_name=qualified, start_line=document.start_line + first,
        end_line=document.start_line + last, code="\n".join(shown), copies=copies,
    )  # fmt: skip


def _passes_on(document: Document, names: Iterable[str], *, bare: bool) -> bool:
    """Whether a function uses one of the names as a variable that it does not define, or as `x.name`; bare: not so."""
    variables, parameters = document.words.get("identifiers", ()), document.words.get("parameters", ())
    for name in names:
        own = name in parameters or bool(_assignment(name).search(document.code))
        if name in variables and not (own and (bare or not document.code)):
            before = r"(?<![\w.])" if bare else r"(?:(?<=\.)|(?<=->))" if own else r"(?<!\w)"
            used = re.compile(rf"{before}{re.escape(name)}(?!\w)")
            lines = _code_lines(document, document.code.split("\n"))
            if not document.code or any(used.search(line) and not _IMPORT.match(line) for _, line in lines):
                return True
    return False


def _code_lines(document: Document, lines: Sequence[str]) -> list[tuple[int, str]]:
    """(0-based number, text) of the lines that are not comments of the document."""
    texts = (*document.words.get("doc", ()), *document.words.get("comments", ()))
    comments = {line.strip(_MARKS) for text in texts for line in text.split("\n")}
    bare = [line.strip(_MARKS) for line in lines]
    return [
        (number, lines[number])
        for number, line in enumerate(bare)
        if line not in comments and _TAG.sub("", line) not in comments
    ]


def _assignment(name: str) -> re.Pattern[str]:
    """Matches an assignment or declaration: `name = `, `name: int = `, `for name in`, `let name`.

    >>> [bool(_assignment("f").search(code)) for code in ("f = 1", "f: int = 2", "for f in x", "a.f = 1", "g(f == h)")]
    [True, True, True, False, False]
    """
    own = re.escape(name)
    return re.compile(
        rf"(?<![\w.>]){own}\s*(?::[^=\n)]{{1,80}})?:?=(?![=>])|\b(?:for|let|const|var|val|as)\s+\(?{own}(?!\w)"
    )


def _nearness(files: NDArray[np.int32], defining: NDArray[np.int32], places: Sequence[tuple[str, str]]) -> list[int]:
    """For each file the index in GROUPS of its distance to the nearest file with a definition."""
    folder_of = {
        file: (places[file][0], places[file][1].rpartition("/")[0]) for file in {*files.tolist(), *defining.tolist()}
    }
    homes = set(defining.tolist())
    folders = {folder_of[file] for file in homes}
    repositories = {repository for repository, _ in folders}

    def distance(file: int) -> int:
        if file in homes:
            return 0
        return 1 if folder_of[file] in folders else 2 if folder_of[file][0] in repositories else 3

    return [distance(file) for file in files.tolist()]


def _without_definition(code: str, marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The marks without those of the name in its definition.

    >>> code = "@read.cached\\ndef read(): read()"
    >>> _without_definition(code, name_marks(code, ["read"]))
    [(1, 5), (25, 29)]
    """
    for number, (start, _) in enumerate(marks):
        if not code[code.rfind("\n", 0, start) + 1 :].lstrip().startswith(BEFORE_NAME):
            after = marks[number + 1 :]
            twice = bool(after) and _NAMED_TWICE.fullmatch(code, marks[number][1], after[0][0])
            return [*marks[:number], *(after[1:] if twice else after)]
    return marks


def _without_inner(uses: Sequence[Reference]) -> list[Reference]:
    """Uses of one file, by first line; each line is kept in its innermost function only, and uses without lines are
    dropped."""
    in_order = sorted(uses, key=lambda use: (use.document.start_line, -use.document.end_line))
    kept = []
    for number, use in enumerate(in_order):
        lines, end = use.lines, use.document.end_line
        for inner in islice(in_order, number + 1, None):
            start, stop = inner.document.start_line, inner.document.end_line
            if start > end:
                break
            if (start, stop) != (use.document.start_line, end) and stop <= end:
                lines = [line for line in lines if not start <= line[0] <= stop]
        if lines or not use.lines:
            kept.append(use._replace(lines=lines))
    return sorted(kept, key=lambda use: use.lines[0][0] if use.lines else use.document.start_line)
