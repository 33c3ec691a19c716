"""Files to edit for a bug report, best first, each with reasons and its best functions.

The score of a file is a sum of signals, each at most about 1, by WEIGHTS:

    title      the title by the default ranker: sum of the scores of the file's functions, the n-th times DECAY**n
    report     title, prose and code by BM25, summed in the same way
    words      BM25 of the title with whole files as documents; term frequency: the functions that have a word
    names      it defines names of title and prose, weighted by 1 / sqrt(number of files that define the name)
    uses       it uses names of the report, weighted by idf
    path       the report has its path
    called     its path has words of the title
    trace      1 / place among the files of the stack trace, innermost first

less TEST_PENALTY for tests, and OTHER_PENALTY for examples, settings and vendored code. Sections of prose are left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import check_k
from ncs.search.question import saturate
from ncs.search.traces import Files
from ncs.storage.arrays import are_in, both, distinct, places_in_runs
from ncs.storage.file_roles import SOURCE, TEST
from ncs.storage.names import Symbol
from ncs.text.stems import stem_all
from ncs.text.tokens import content_words, tokenize

if TYPE_CHECKING:
    from ncs.search.rankers import Ranker
    from ncs.search.report import Report
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.postings import Postings
    from ncs.storage.snapshot import Snapshot
    from ncs.types import Mask, Rows, Scores

WEIGHTS: Mapping[str, float] = {
    "title": 1.0, "report": 1.0, "words": 1.0, "names": 1.0, "uses": 0.5, "path": 1.0, "called": 0.5, "trace": 0.5
}  # fmt: skip
TEST_PENALTY, OTHER_PENALTY = 1.0, 0.3
"""Penalties of tests, and of files of other roles than the product's."""
DECAY, FUNCTIONS = 0.5, 8
"""Factor of each further function of a file, and how many count."""
DEPTH = 400
"""Functions retrieved for the title."""
MAX_DEFINITIONS = 60
"""Names with more definitions than this are ignored."""
NAMES_MIDPOINT = 0.7
"""Weight of the names that a file defines at which their signal is .5."""
MIN_LETTERS, MAX_WORDS = 3, 400
"""Fewest letters of a name, and most words of a report that are searched for."""
K1, B = 1.2, 0.75
MIN_FIT = 0.5
"""Least weight of a definition (ncs.storage.names): the same letters, at worst in another class."""
CODE_WEIGHT = 0.3
"""Weight of a name that only the report's code has."""
MEAN_SHOWN, MAX_SHOWN, MAX_NAMES = 2, 8, 5
"""Functions shown of a file, on average and at most, and names."""


_Names = dict[str, tuple["Rows", float]]
"""Name -> rows and the weight of the name."""


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A file at its place. signals: weighted, with the penalty of its role; defines, uses: names of the report, by
    weight; rows, row_scores: its best functions, or classes and top-level code if it has none.
    Functions of several files are ordered by the score of the file plus that of the row.
    """

    repository: str
    path: str
    score: float
    signals: Mapping[str, float]
    defines: tuple[str, ...]
    uses: tuple[str, ...]
    rows: tuple[int, ...]
    row_scores: tuple[float, ...]


def reasons_of(file: LocatedFile, words: Sequence[str]) -> list[str]:
    """Reasons for a file's place, for people. words: of the title that its functions have."""
    reasons = ["in the stack trace"] if "trace" in file.signals else []
    reasons += ["named in the report"] if "path" in file.signals else []
    reasons += [f"defines {', '.join(file.defines)}"] if file.defines else []
    others = [name for name in file.uses if name not in file.defines]
    reasons += [f"uses {', '.join(others)}"] if others else []
    reasons += [f"words of the title: {', '.join(words)}"] if words else []
    return reasons


class Locator:
    """Ranks the files of an index for reports."""

    def __init__(self, snapshot: Snapshot, facts: DocumentFacts, postings: Postings, ranker: Ranker) -> None:
        """ranker: the default one, for titles."""
        self._snapshot, self._facts, self._postings, self._ranker = snapshot, facts, postings, ranker
        self._named = Files(snapshot)
        self.places, self._files = self._named.places, self._named.numbers.astype(np.int64)
        self._tests = facts.file_roles.roles_of(np.arange(len(self._files))) == TEST
        live = self._files if snapshot.live is None else self._files[snapshot.live]
        self._path_stems = {number: _stems(self.places[number][1]) for number in distinct(live).tolist()}

    def locate(self, report: Report, k: int, allowed: Mask | None = None) -> list[LocatedFile]:
        """The best k files. allowed: mask of rows, [n]."""
        check_k(k)
        roles = self._facts.file_roles
        code = both(allowed, self._snapshot.live)
        if roles.sections is not None:
            code = both(code, ~roles.sections)
        code = np.ones(len(self._files), np.bool_) if code is None else code
        product = code & ~self._tests
        of_report = np.where(product, self._row_bm25(report.text), 0.0)
        of_title = np.zeros(len(code))
        if report.title:
            ranking = self._ranker.rank(report.title, DEPTH, allowed=code)
            of_title[ranking.rows] = ranking.scores
        frames = self._named.rows_of(report.trace, self._facts.definitions)
        defined, used = self._defining_rows(report, product), self._using_rows(report, product)
        values = {
            "title": self._gather(of_title),
            "report": self._gather(of_report),
            "words": self._file_bm25(report.title, product),
            "names": self._name_scores(defined, saturated=True),
            "uses": self._name_scores(used),
            "path": self._path_scores(report),
            "called": self._title_in_path(report.title),
            "trace": self._trace_scores(frames[code[frames]]),
        }
        signals = {name: WEIGHTS[name] * value for name, value in values.items()}
        total = sum(signals.values(), np.zeros(len(self.places)))
        rows = np.flatnonzero(code)
        firsts = np.full(len(self.places), -1)  # [n_files]: the first row of each
        firsts[self._files[rows][::-1]] = rows[::-1]
        here = np.flatnonzero((firsts >= 0) & (total > 0))
        role = roles.roles_of(firsts[here])
        signals["role"] = np.zeros(len(total))
        signals["role"][here] = -np.where(role == TEST, TEST_PENALTY, np.where(role == SOURCE, 0.0, OTHER_PENALTY))
        total = total + signals["role"]
        best = here[np.lexsort((here, -total[here]))][:k]
        own = _scale(of_title) + _scale(of_report)
        own[np.concatenate([frames, *(rows for rows, _ in defined.values())])] += 1
        shown = self._best_rows(best, total, own, code)
        return [
            LocatedFile(
                self.places[number][0], self.places[number][1], float(total[number]),
                {name: float(value[number]) for name, value in signals.items() if value[number]},
                self._names_in(number, defined), self._names_in(number, used),
                tuple(shown[number].tolist()), tuple(own[shown[number]].tolist()),
            )
            for number in best.tolist()
        ]  # fmt: skip

    def _best_rows(self, files: Rows, total: Scores, own: Scores, code: Mask) -> dict[int, Rows]:
        """file -> its rows to show, best first: the best rows of all files by the scores of file and row together, and
        the first of each file; classes and top-level code only of files without functions."""
        functions = self._facts.file_roles.functions()
        rows = np.flatnonzero(code & are_in(self._files, files))
        rows = rows[functions[rows] | ~are_in(self._files[rows], self._files[rows[functions[rows]]])]
        rows = rows[np.lexsort((rows, -own[rows], self._files[rows]))]
        place = places_in_runs(self._files[rows])
        eligible = np.flatnonzero((place < MAX_SHOWN) & (own[rows] > 0))
        scores = (total[self._files[rows]] + own[rows])[eligible]
        chosen = place == 0
        chosen[eligible[np.argsort(-scores, kind="stable")[: MEAN_SHOWN * len(files)]]] = True
        rows = rows[chosen]
        return {number: rows[self._files[rows] == number] for number in files.tolist()}

    def _names_in(self, file: int, names: _Names) -> tuple[str, ...]:
        """The names with a row in a file, by weight."""
        here = [(weight, name) for name, (rows, weight) in names.items() if weight and file in self._files[rows]]
        return tuple(name for _, name in sorted(here, key=lambda pair: -pair[0])[:MAX_NAMES])

    def _name_scores(self, names: _Names, *, saturated: bool = False) -> Scores:
        """The weights of the names by file, 0 to 1, [n_files]."""
        scores = np.zeros(len(self.places))
        for rows, weight in names.values():
            scores[distinct(self._files[rows])] += weight
        return scores / (scores + NAMES_MIDPOINT) if saturated else _scale(scores)

    def _gather(self, scores: Scores) -> Scores:
        """The discounted sums of each file's rows, divided by the best file's, [n_files]."""
        rows = np.flatnonzero(scores)
        rows = rows[np.lexsort((rows, -scores[rows], self._files[rows]))]
        files = self._files[rows]
        place = places_in_runs(files)
        weights = np.where(place < FUNCTIONS, DECAY**place, 0.0)
        return _scale(np.bincount(files, scores[rows] * weights, minlength=len(self.places)).astype(np.float64))

    def _row_bm25(self, text: str) -> Scores:
        """BM25 of every row, [n]."""
        counts = Counter(stem_all(content_words(tokenize(text))[:MAX_WORDS]))
        return self._postings.all_scores({stem: saturate(count) for stem, count in counts.items()})

    def _file_bm25(self, text: str, rows: Mask) -> Scores:
        """BM25 with files as documents; term frequency: the file's functions that have a word, [n_files]."""
        files = self._files[rows]
        lengths = np.bincount(files, minlength=len(self.places)).astype(np.float64)
        n, scores = int(np.count_nonzero(lengths)), np.zeros(len(lengths))
        norm = K1 * (1 - B + B * lengths / max(lengths[lengths > 0].mean() if n else 1.0, 1.0))
        for stem in sorted(set(stem_all(content_words(tokenize(text))))):
            having = self._postings.rows_with(stem)
            frequency = np.bincount(self._files[having[rows[having]]], minlength=len(lengths))
            df = int(np.count_nonzero(frequency))
            scores += math.log(1 + (n - df + 0.5) / (df + 0.5)) * frequency * (K1 + 1) / (frequency + norm)
        return _scale(scores)

    def _defining_rows(self, report: Report, rows: Mask) -> _Names:
        """Names of title and prose -> the rows that define them."""
        names: _Names = {}
        for name, weight in report.names.items():
            *qualifiers, last = _parts(name)
            if len(last) >= MIN_LETTERS:
                found, fits = self._facts.definitions.match(Symbol(last, tuple(qualifiers), certain=True), allowed=rows)
                found, fits = found[fits >= MIN_FIT], fits[fits >= MIN_FIT]
                if 0 < len(found) <= MAX_DEFINITIONS:
                    files = len(distinct(self._files[found]))
                    names[name] = found, weight * float(fits.max()) / math.sqrt(files)
        return names

    def _using_rows(self, report: Report, rows: Mask) -> _Names:
        """Names of the report -> the rows that use them."""
        weights = dict.fromkeys(report.used, CODE_WEIGHT)
        weights |= {_parts(name)[-1]: weight for name, weight in report.names.items()}
        names: _Names = {}
        n = len(distinct(self._files[rows]))
        for name, weight in weights.items():
            if len(name) >= MIN_LETTERS:
                having = self._facts.uses.rows_with([name])
                having = having[rows[having]]
                if len(having):
                    files = len(distinct(self._files[having]))
                    names[name] = having, weight * math.log(n / files)
        return names

    def _path_scores(self, report: Report) -> Scores:
        """1 for files whose path is in the report, .7 if only folder and file name agree, [n_files]."""
        scores = np.zeros(len(self.places))
        for parts in map(list, report.paths):
            for number in self._named.by_name.get(parts[-1], ()):
                path = self.places[number][1].split("/")
                whole = min(len(parts), len(path))
                if parts[-whole:] == path[-whole:]:
                    scores[number] = 1.0
                elif parts[-2:] == path[-2:]:
                    scores[number] = max(scores[number], 0.7)
        return scores

    def _title_in_path(self, title: str) -> Scores:
        """Sum of the normalized idf of the title's words in each path, [n_files]."""
        wanted = set(stem_all(content_words(tokenize(title))))
        held = Counter(stem for each in self._path_stems.values() for stem in each & wanted)
        n, scores = max(2, len(self._path_stems)), np.zeros(len(self.places))
        for number, stems in self._path_stems.items():
            scores[number] = sum(math.log(n / held[stem]) / math.log(n) for stem in sorted(stems & wanted))
        return scores

    def _trace_scores(self, frames: Rows) -> Scores:
        """1 / the place of each file among those of a trace, innermost first, [n_files]."""
        scores = np.zeros(len(self.places))
        for place, file in enumerate(dict.fromkeys(self._files[frames].tolist()), 1):
            scores[file] = 1 / place
        return scores


def _parts(name: str) -> list[str]:
    return re.split(r"\.|::|#", name)


def _stems(path: str) -> set[str]:
    """The stems of a path, without the extension."""
    return set(stem_all(tokenize(path.rpartition(".")[0] or path)))


def _scale(scores: Scores) -> Scores:
    best = float(scores.max(initial=0))
    return scores / best if best > 0 else scores
