"""Signals and factors of the default ranker, computed for its candidates only.

Consensus: good answers to a how-to query share an idiom. Take the first POOL candidates, weighted by their score. For
each name a that they use (called functions, types, constants):

    lift(a)      = sum of weights of documents using a / sum of weights * log((N + 1) / (df(a) + 1)) * log(1 + R(a))
    consensus(d) = sum of lift(a) over the names of d among the strongest / sum of lift over the strongest

R(a) is the number of repositories among those documents that use a. Only a name used by many projects is an idiom, so
the weight of the signal depends on how many repositories use the leading names; inside one repository it is 0. And only
where many documents fit the query do they share an idiom: where scores fall off within the pool, few documents fit.

`inside` is 1 / the effective number of repositories among the candidates: 1 inside one project, where queries ask for a
place in the code, however short; near 0 over many projects, where they ask how something is done. It is the weight of
the file signal, which over many projects would lift whole folders named like the query.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ncs.search.question import MAX_MESSAGE
from ncs.storage.arrays import are_in, distinct
from ncs.storage.file_roles import ASIDE, EXAMPLE, SETTINGS, SOURCE, TEST
from ncs.storage.names import EXACT
from ncs.text.stems import Stems, stem_all
from ncs.text.tokens import STOP_WORDS, tokenize
from ncs.types import FIELDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.search.question import Intent
    from ncs.storage.document_facts import DocumentFacts
    from ncs.storage.names import Definitions, NameUses, Uses
    from ncs.storage.words import WordReader
    from ncs.types import Field, Rows, Scores

POOL = 200
"""Candidates whose names are counted; 100 and 400 are no better."""
MAX_NAMES, LEADING_NAMES = 25, 5
"""Names of a consensus, and those of them whose repositories are counted."""
SUPPORT_MIDPOINT, SUPPORT_SCALE = 6.0, 2.0
"""Midpoint and steepness of the gate over the mean number of repositories of the leading names."""
DENSITY_MIDPOINT, DENSITY_SCALE = 0.55, 0.04
"""The same for the gate over the mean score of the pool, relative to its best score."""
NEIGHBORS = 100
"""Candidates whose file and repository count as evidence."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """Names shared by the best candidates: ids int64 and lifts float64, strongest first; support: mean number of
    repositories that use each leading name; density: mean score of the pool relative to its best."""

    names: NDArray[np.int64]
    lifts: Scores
    support: float
    density: float

    @property
    def gate(self) -> float:
        """The weight of the consensus, 0 to 1, by support and density; 0 for one repository."""
        if self.support <= 1:
            return 0.0
        by_support = _logistic((self.support - SUPPORT_MIDPOINT) / SUPPORT_SCALE)
        return by_support * _logistic((self.density - DENSITY_MIDPOINT) / DENSITY_SCALE)

    def scores(self, uses: Uses | NameUses, rows: Rows) -> Scores:
        """Sum of the lifts of each row's names, as a share of all lifts, [len(rows)]."""
        total = float(self.lifts.sum())  # strongest first, independent of ids
        if total <= 0:
            return np.zeros(len(rows))
        ids, lengths = uses.of(rows)
        order = np.argsort(self.names)
        names, lifts = self.names[order], self.lifts[order]
        at = np.minimum(np.searchsorted(names, ids), len(names) - 1)
        owners = np.repeat(np.arange(len(rows)), lengths)
        return np.bincount(owners, np.where(names[at] == ids, lifts[at], 0.0), minlength=len(rows)) / total


def _logistic(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def agree(uses: Uses | NameUses, repositories: NDArray[np.int32], rows: Rows, weights: Scores) -> Consensus:
    """The consensus of the first POOL rows, best first; none if all weights (not negative) are 0."""
    rows, weights, repositories = rows[:POOL], weights[:POOL], repositories[:POOL]
    ids, lengths = uses.of(rows)  # [m], [len(rows)]
    names = distinct(ids.astype(np.int64))  # [names]
    if not len(names) or not weights.any():
        return Consensus(np.zeros(0, np.int64), np.zeros(0), 0.0, 0.0)
    numbers = np.searchsorted(names, ids)
    shares = np.bincount(numbers, np.repeat(weights, lengths)) / weights.sum()
    owners = np.repeat(repositories.astype(np.int64), lengths)
    pairs = distinct(numbers * (int(owners.max()) + 1) + owners)
    support = np.bincount(pairs // (int(owners.max()) + 1), minlength=len(names))
    rarity = np.log((len(uses) + 1) / (uses.documents[names] + 1))
    lifts = shares * rarity * np.log1p(support)
    order = np.lexsort((uses.names.ranks(names), -lifts))[:MAX_NAMES]
    return Consensus(names[order], lifts[order], float(support[order][:LEADING_NAMES].mean()), float(weights.mean()))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence from all candidates. pool: rows of the consensus; inside: 1 / effective number of repositories."""

    consensus: Consensus
    pool: Rows
    inside: float


def gather_evidence(facts: DocumentFacts, rows: Rows, base: Scores) -> Evidence:
    """Evidence of the candidates, best first; base: their scores by words and meaning."""
    weights = base / max(float(base[0]), 1e-9)
    owners = facts.file_roles.repositories_of(rows)
    repositories = effective_number(owners[:NEIGHBORS], weights[:NEIGHBORS])
    return Evidence(agree(facts.uses, owners, rows, weights), rows[:POOL], 1 / repositories)


def effective_number(owners: NDArray[np.int32], weights: Scores) -> float:
    """The inverse Simpson index of the owners' weights: 1 for one owner, n for n that weigh the same.

    >>> effective_number(np.array([0, 0, 3, 4]), np.array([0.5, 0.5, 1, 1]))
    3.0
    """
    shares = np.bincount(owners, weights)
    total = float(shares.sum())
    return max(1.0, total**2 / float((shares**2).sum())) if total > 0 else 1.0


def file_support(files: NDArray[np.int64], base: Scores) -> Scores:
    """The total score of the best candidates in each row's file, relative to the best file, [len(files)], in the order
    of candidates; 0 for files without a name."""
    names = distinct(files)
    numbers = np.searchsorted(names, files)
    weights = base / max(float(base[0]), 1e-9)
    sums = np.bincount(numbers, np.where(np.arange(len(files)) < NEIGHBORS, weights, 0.0) * (files >= 0))
    best = float(sums.max(initial=0))
    support: Scores = sums[numbers] / best if best > 0 else np.zeros(len(files))
    return support


NAME_SHARE = 0.25
"""The share of its weight that a name has over many projects, where people ask how a thing is done and not for it."""
DIRECTION = 0.4
"""Added to `name` for the right direction and subtracted for the wrong one; a name equal to the query counts 1."""
TO, FROM = frozenset({"to", "2", "into"}), frozenset({"from", "of"})
_OPPOSITES = """
show hide, open close, start stop, begin end, encode decode, encrypt decrypt, serialize deserialize, lock unlock,
enable disable, add remove, insert delete, push pop, read write, load save, get set, connect disconnect, attach detach,
bind unbind, register unregister, subscribe unsubscribe, expand collapse, zip unzip, compress decompress, pack unpack,
mute unmute, increase decrease, increment decrement, first last, min max, upper lower, import export, upload download,
send receive, acquire release, play pause, login logout, mount unmount, install uninstall, marshal unmarshal
"""
_PAIRS = [stem_all(pair.split()) for pair in _OPPOSITES.replace("\n", " ").split(",")]
OPPOSITES: Mapping[str, str] = {a: b for pair in _PAIRS for a, b in (pair, reversed(pair))}
"""Stem -> the stem of its opposite."""


def name_overlap(
    table: WordReader, stems: Stems, rows: Rows, idf: Mapping[str, float], spellings: Mapping[str, float]
) -> Scores:
    """recall**2 * precision of each row's name, 0 to 1, [len(rows)].

    recall: the share of the query's idf in name and scope; precision: the share of the name's words in the query.
    spellings: stem of another spelling of a query word -> its idf.
    """
    ids, offsets = table.select_rows(("name",), rows)
    total = sum(idf.values())
    if not total or not len(ids):
        return np.zeros(len(rows))
    idf = {**spellings, **idf}
    shared, _ = _find_terms(stems, ids, idf)
    precision = np.diff(np.searchsorted(shared, offsets)) / np.maximum(np.diff(offsets), 1)
    ids, offsets = table.select_rows(("name", "scope"), rows)
    shared, terms = _find_terms(stems, ids, idf)
    has = np.zeros((len(rows), len(idf)))  # [rows, terms]
    has[np.searchsorted(offsets, shared, side="right") - 1, terms] = 1
    recall = np.minimum(has @ np.array(list(idf.values())) / total, 1.0)
    result: Scores = recall**2 * precision
    return result


def _find_terms(
    stems: Stems, ids: NDArray[np.int32], terms: Iterable[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ascending positions of the words that have one of these stems, and the number of each one's term."""
    term_stems = stems.of_stems(terms)
    order = np.argsort(term_stems)
    numbers = stems.numbers(ids)
    nearest = np.minimum(np.searchsorted(term_stems[order], numbers), len(order) - 1)
    at = np.flatnonzero(term_stems[order][nearest] == numbers)
    return at, order[nearest[at]]


def directions(tokens: Sequence[str]) -> list[tuple[str, str]]:
    """(source, target) stems of the conversions in a query.

    >>> directions("how to convert an int to a string".split()), directions("string from int".split())
    ([('int', 'string')], [('int', 'string')])
    >>> directions("how to sort".split())
    []
    """
    pairs = []
    for at, each in enumerate(tokens):
        if each not in TO and each != "from":
            continue
        before = next((word for word in reversed(tokens[:at]) if word not in STOP_WORDS), None)
        after = next((word for word in tokens[at + 1 :] if word not in STOP_WORDS), None)
        if not (before and after) or tokens[at - 1] in STOP_WORDS:  # "how to" is no direction
            continue
        pairs.append((before, after) if each in TO else (after, before))
    sources = stem_all(source for source, _ in pairs)
    return list(zip(sources, stem_all(target for _, target in pairs), strict=True))


def name_direction(table: WordReader, stems: Stems, rows: Rows, tokens: Sequence[str]) -> Scores:
    """1 if a row's name has the direction of the query's conversion (`x to y`, `y from x`), -1 for the reverse, or for
    an opposite (`show`, `hide`) without the query's own word, else 0, [len(rows)]."""
    pairs = directions(tokens)
    query = set(stem_all(tokens))
    against = {OPPOSITES[stem] for stem in query if stem in OPPOSITES} - query
    result = np.zeros(len(rows))
    if not pairs and not against:
        return result
    ids, offsets = table.select_rows(("name",), rows)
    directional = are_in(stems.numbers(ids), stems.of_stems(against.union(*pairs)))
    for at in distinct(np.searchsorted(offsets, np.flatnonzero(directional), side="right") - 1).tolist():
        words = [table.vocabulary.word(int(id)) for id in ids[offsets[at] : offsets[at + 1]]]
        name = stem_all(words)
        if any(stem in against and OPPOSITES[stem] not in name for stem in name):
            result[at] = -1
        for source, target in pairs:
            result[at] = _direction(name, words, source, target) or result[at]
    return result


def _direction(name: Sequence[str], words: Sequence[str], source: str, target: str) -> int:
    """1 for a name of this direction, -1 for the reverse, else 0; words: of the name, not stemmed."""
    for at in range(1, len(name) - 1):
        if words[at] in TO or words[at] in FROM:
            around = (name[at - 1], name[at + 1]) if words[at] in TO else (name[at + 1], name[at - 1])
            if around == (source, target):
                return 1
            if around == (target, source):
                return -1
    return 0


EXACT_BONUS = 1.0
"""Added for a definition that is spelled exactly like the query, if the query is only a name."""


def definition_scores(symbols: Definitions, intent: Intent, rows: Rows, inside: float) -> Scores:
    """The best weight by which each row defines a symbol of the query, [len(rows)]; times `inside` for a symbol in a
    sentence: over many projects `how to restart an Activity` asks for no class of that name."""
    result = np.zeros(len(rows))
    for symbol in intent.symbols:
        defining, weights = symbols.match(symbol)
        _, at, here = np.intersect1d(rows, defining, assume_unique=True, return_indices=True)
        if intent.kind == "symbol":
            result[at] = np.maximum(result[at], weights[here] + EXACT_BONUS * (weights[here] >= EXACT))
        else:
            result[at] = np.maximum(result[at], weights[here] * inside)
    return result


def are_constructors(symbols: Definitions, intent: Intent, rows: Rows) -> Scores:
    """1 for the constructors of a class that the query names, else 0, [len(rows)]."""
    constructors = [symbols.constructors(symbol) for symbol in intent.symbols]
    return are_in(rows, np.concatenate([rows[:0], *constructors])).astype(np.float64)


def declared_overlap(symbols: Definitions, intent: Intent, rows: Rows, idf: Mapping[str, float]) -> Scores:
    """recall**2, as in `name_overlap`, of the symbols of the query that each row declares, 0 to 1, [len(rows)]."""
    result, total = np.zeros(len(rows)), sum(idf.values())
    for symbol in intent.symbols:
        declaring = symbols.declaring(symbol.name)[0]
        if symbol.certain and total and len(declaring):
            recall = sum(idf.get(stem, 0.0) for stem in set(stem_all(tokenize(symbol.name)))) / total
            result[are_in(rows, declaring)] = min(recall, 1.0) ** 2
    return result


MAX_VALUE = 4
"""Most words that a message may have where its literal has a placeholder: `com.acme.Order`."""
MIN_LITERAL_SHARE = 0.6
"""Least share of its words in one literal for a text to count as a message though nothing marks it as one."""
MIN_COMPLAINT, MIN_UNMARKED = 2, 4
"""Fewest words of a message, and of a text that is not marked as one: "disk cache size" is a search."""


def verbatim(
    table: WordReader, rows: Rows, words: Sequence[str], weights: Sequence[float], value: int, *, in_pairs: bool
) -> Scores:
    """The share of a message's words, by weight, that are three in a row in each row's literals, [len(rows)].

    words, weights: of the message, in order; values have weight 0, and unknown words do not count. value: most words of
    the message between two adjacent words of a literal. in_pairs: two in a row count if they are MIN_LITERAL_SHARE of
    the message.
    """
    result, words, weights = np.zeros(len(rows)), words[:MAX_MESSAGE], weights[:MAX_MESSAGE]
    ids, n = table.vocabulary.ids_of(list(words)).astype(np.int64), len(table.vocabulary)  # [words]
    known = np.where(ids >= 0, weights, 0.0)  # [words]
    pairs = [(at, at + step) for step in range(1, MAX_VALUE + 2) for at in range(len(ids) - step)]
    pairs = [(first, second) for first, second in pairs if ids[first] >= 0 and ids[second] >= 0]
    passed = np.cumsum(np.array(weights) > 0)
    pairs = [(first, second) for first, second in pairs if passed[second - 1] - passed[first] <= value]
    if not known.any() or not pairs:
        return result
    first, second = np.array(pairs).T  # [pairs] each
    keys = ids[first] * n + ids[second]
    literals, offsets = table.select_rows(("literals",), rows)  # [m], [len(rows) + 1]
    owners = np.repeat(np.arange(len(rows)), np.diff(offsets))  # [m]
    adjacent = np.where(owners[1:] == owners[:-1], literals[:-1].astype(np.int64) * n + literals[1:], -2)
    at = np.flatnonzero(are_in(adjacent, keys))
    for owner in distinct(owners[at]).tolist():
        found = are_in(keys, adjacent[at[owners[at] == owner]])
        starts, ends = first[found], second[found]
        chained = are_in(ends, starts) | are_in(starts, ends)  # three words in a row
        shares = [known[distinct(np.append(starts[run], ends[run]))].sum() / known.sum() for run in (..., chained)]
        result[owner] = shares[0] if in_pairs and shares[0] >= MIN_LITERAL_SHARE else shares[1]
    return result


def frame_scores(frames: Rows, rows: Rows) -> Scores:
    """1 for the row of the last frame, one more for each before it, for the first of n 2n - 1; 0 for others."""
    result = np.zeros(len(rows))
    _, at, numbers = np.intersect1d(rows, frames, return_indices=True)
    result[at] = np.where(numbers > 0, len(frames) - numbers, 2 * len(frames) - 1)
    return result


ROLE = 0.5
"""Factor of tests, examples and the like inside one project, where .3 and .7 are no better; half the loss over many."""
USUAL_LENGTH, LENGTH_POWER = 90, 0.25
"""Inside one project the score of a function of n < USUAL_LENGTH words is multiplied by
(n / USUAL_LENGTH)**LENGTH_POWER. Powers of .2 and .3 are no better."""
UNFINISHED, MAX_THIN = 0.5, 12
"""The factor of a body of at most MAX_THIN words that is not implemented."""
IN_BODY: tuple[Field, ...] = ("calls", "enums", "literals", "identifiers")
_PHRASES = "not implemented error, not implemented exception, unsupported operation exception, unimplemented"
_NOT_IMPLEMENTED = tuple(stem_all(words.split()) for words in _PHRASES.split(", "))
_FORMATS = "makefile dockerfile docker cmake gradle bazel jenkinsfile jenkins css scss yaml yml toml ini"
_FILES = ".json .xml"
ASKS_FOR = {
    TEST: frozenset({"test", "tests", "testing", "tested", "mock", "mocks", "fixture", "spec", "assert", "unittest"}),
    EXAMPLE: frozenset({"example", "examples", "sample", "samples", "demo", "benchmark", "benchmarks", "tutorial"}),
    ASIDE: frozenset({"stub", "stubs", "generated", "vendor", "vendored", "compatibility"}),
    # not `configuration`, `build` or `json`: questions about code have such words; `package.json` is a file
    SETTINGS: frozenset(f"{_FORMATS} {_FILES} stylesheet pipeline workflow deploy deployment".split()),
}
"""Role of a file -> query words that ask for it."""
SECTION = 0.3
"""Factor of sections of prose, beside code: sentences have the words of a question more often than the code that is
asked for. With .5 code loses .004 of its MRR to them in a project of many documents."""
_PROSE = (
    "doc docs documentation guide guides tutorial tutorials manual readme faq howto install installing installation"
)
ASKS_FOR_PROSE = tuple(frozenset(words.split("+")) for words in (*_PROSE.split(), "configuration+options"))
"""Words that together ask for documents: these name kinds of documents, or what no function does."""
ASKS_FOR_CHANGES = tuple(frozenset(words.split("+")) for words in ("changelog", "release+notes", "breaking+changes"))


def role_factors(roles: NDArray[np.int8], text: str, words: Sequence[str], factor: float = ROLE) -> Scores:
    """1 for the product and for roles that the query's words, or endings of files in it, name, else the factor.

    >>> roles = np.array([0, 1, 2, 4], np.int8)
    >>> role_factors(roles, "a test client", ["test", "client"]).tolist()
    [1.0, 1.0, 0.5, 0.5]
    >>> role_factors(roles, "scripts in package.json", ["scripts", "package", "json"]).tolist()
    [1.0, 0.5, 0.5, 1.0]
    """
    by_role = np.full(max(SOURCE, *ASKS_FOR) + 1, float(factor))
    by_role[SOURCE] = 1
    named = {*words, *re.findall(r"\.[a-z]{2,4}\b", text)}
    for role, triggers in ASKS_FOR.items():
        if not triggers.isdisjoint(named):
            by_role[role] = 1
    return by_role[roles]


def section_factors(roles: NDArray[np.int8], words: Sequence[str], factor: float = SECTION) -> Scores:
    """The factor of sections of prose by the roles of their files, [len(roles)]: 1 if the query asks for documents or
    changes; times ROLE for changelogs and documents among tests, unless it asks for changes.

    >>> roles = np.array([0, 3], np.int8)
    >>> section_factors(roles, ["install", "it"]).tolist(), section_factors(roles, ["read", "options"]).tolist()
    ([1.0, 0.5], [0.3, 0.15])
    """
    changes, documents = (any(each <= set(words) for each in kinds) for kinds in (ASKS_FOR_CHANGES, ASKS_FOR_PROSE))
    return np.where(roles == SOURCE, 1.0, 1.0 if changes else ROLE) * (1.0 if changes or documents else factor)


def length_factors(lengths: NDArray[np.integer[Any]], inside: float, name: Scores) -> Scores:
    """The factor of functions of fewer than USUAL_LENGTH words inside one project, [len(lengths)]: BM25 favors short
    callers of the answer. Nearer to 1 the larger the overlap of name and query: `hideSoftKeyboard` may be one line."""
    shorter = np.minimum(1.0, (1 + lengths) / USUAL_LENGTH) ** (LENGTH_POWER * inside)
    return 1 - (1 - shorter) * (1 - np.clip(name, 0.0, 1.0))


def quality_factors(table: WordReader, stems: Stems, rows: Rows, factor: float = UNFINISHED) -> Scores:
    """The factor of small functions that raise `NotImplementedError` or the like, [len(rows)]."""
    lengths = table.lengths(rows)[:, [FIELDS.index(field) for field in IN_BODY]]
    at = np.flatnonzero(lengths.sum(axis=1) <= MAX_THIN)
    ids, offsets = table.select_rows((*IN_BODY, "types"), rows[at])
    numbers, owners = stems.numbers(ids), np.repeat(np.arange(len(at)), np.diff(offsets))
    result = np.ones(len(rows))
    for phrase in _NOT_IMPLEMENTED:
        each = [np.bincount(owners[numbers == one], minlength=len(at)) > 0 for one in stems.of_stems(phrase)]
        result[at[np.logical_and.reduce(each)]] = factor
    return result


MEMBER = 0.7
"""Least share of the score of a class or file for one of its functions to be placed before it."""


def members_first(
    scores: Scores, files: NDArray[np.int64], outlines: NDArray[np.bool_], yielding: NDArray[np.bool_]
) -> Scores:
    """Scores in which the best function of a file swaps scores with outlines of the file (classes, top-level code)
    ranked just before it, [n]: an outline has the words of all its functions. yielding: the outlines that may swap."""
    result: Scores = scores.copy()
    functions = np.argsort(-scores, kind="stable")[::-1]
    functions = functions[~outlines[functions]]
    best = dict(zip(files[functions].tolist(), functions.tolist(), strict=True))  # the best of a file comes last
    for at in np.flatnonzero(yielding & (scores > 0)).tolist():
        other = best.get(int(files[at]), at)
        if result[at] > result[other] >= MEMBER * result[at]:
            result[at], result[other] = result[other], result[at]
    return result


SATURATION = 0.9
"""Factor for each further hit of a file; .5 hides good hits, 1 lets a file fill the first ten."""


def select_hits(
    scores: Scores,
    files: NDArray[np.int64],
    k: int,
    *,
    factor: float = SATURATION,
    clusters: NDArray[np.integer[Any]] | None = None,
) -> list[tuple[int, float]]:
    """The best k positions and their scores; the n-th further one of a file has factor**n of its score. Greedy, ties by
    position. files: negative for no file. clusters: of near duplicates, negative for none; only the first is taken.

    >>> select_hits(np.array([1.0, 0.9, 0.6]), np.array([7, 7, 8]), 3, factor=0.5)
    [(0, 1.0), (2, 0.6), (1, 0.45)]
    >>> select_hits(np.array([1.0, 0.9, 0.6]), np.array([7, 7, 8]), 3, clusters=np.array([-1, 5, 5]))
    [(0, 1.0), (1, 0.81)]
    """
    queues: dict[int, list[int]] = {}  # positions of each file, the best last
    names = np.where(files >= 0, files, -1 - np.arange(len(files))).tolist()
    for at in np.argsort(-scores, kind="stable")[::-1].tolist():
        queues.setdefault(names[at], []).append(at)
    count = dict.fromkeys(queues, 0)
    queue = [(-float(scores[positions[-1]]), positions[-1], file) for file, positions in queues.items()]
    heapq.heapify(queue)
    best: list[tuple[int, float]] = []
    clusters_taken: set[int] = set()
    while queue and len(best) < k:
        key, at, file = heapq.heappop(queue)
        queues[file].pop()
        cluster = -1 if clusters is None else int(clusters[at])
        if cluster not in clusters_taken:
            best.append((at, -key))
            count[file] += 1
        if cluster >= 0:
            clusters_taken.add(cluster)
        if queues[file]:
            following = queues[file][-1]
            heapq.heappush(queue, (-float(scores[following]) * factor ** count[file], following, file))
    return best
