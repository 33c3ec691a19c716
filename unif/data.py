"""The data of trainings: sources of (question, code) pairs, tokens of both sides, pairs as word ids, and batches.

Pairs are JSON lines of queries and code, and the functions of an index: the doc comment or the name of each, and the
rest of it. They are read once and then memory-mapped. Ids are those of a head's tokens, 1 and above; 0 is padding.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from corpora.jsonl import Row, parse_row, read_lines
from corpora.program import read_program
from ncs.errors import BadInput, needing
from ncs.learn.embeddings import Embeddings
from ncs.learn.tokenization import END, BpeTokenizer, Tokenizer, WordTokenizer, load_tokenizer, source_words
from ncs.progress import Track, silent
from ncs.search.baselines.enhanced import normalized, read_questions
from ncs.storage.arrays import ranges
from ncs.text.tokens import field_tokens, tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import NCS_FIELDS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.index import Index
    from ncs.storage.documents import Documents
    from ncs.storage.words import WordTable
    from ncs.types import Matrix

    Ids = NDArray[np.int64]
    Encode = Callable[[Sequence[str]], Sequence[int]]

Reads = Literal["fields", "source"]
"""Input of the code tower: words of a function's NCS_FIELDS, or the sub-tokens of its source in order."""
CODE: tuple[Field, ...] = tuple(field for field in NCS_FIELDS if field != "doc")
BODY: tuple[Field, ...] = tuple(field for field in CODE if field != "name")
MIN_DOC, MIN_NAME, MIN_BODY = 3, 2, 2
"""Least words of a comment, a name and the rest."""
BLOCK = 1_000
"""Documents read at once."""
OWN = "own"
"""What a stage calls the index's own functions."""
BAD_LINES = 20
"""Bad lines that are listed; all are counted."""
STATS = "reading.json"
TOKENS = ("query.tokens", "code.tokens")
DIM = 128
"""Dimensions of CodeSearchNet's encoders."""
MAX_TOKENS, MIN_COUNT = 10_000, 10
"""Tokens at most, and least occurrences in the training pairs: CodeSearchNet's."""


@dataclass(slots=True)
class ReadStats:
    """Counts of the lines and functions that were read, and the first bad lines."""

    rows: int = 0
    questions: int = 0
    bad: int = 0
    wordless: int = 0
    left_out: int = 0
    bad_lines: list[str] = field(default_factory=list)

    def note(self, error: BadInput) -> None:
        """Count a bad line."""
        self.bad += 1
        if len(self.bad_lines) < BAD_LINES:
            self.bad_lines.append(str(error))

    def save(self, folder: Path) -> None:
        """Write `reading.json`."""
        (folder / STATS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> ReadStats:
        return cls(**json.loads((folder / STATS).read_bytes()))

    def empty(self, advice: str) -> BadInput:
        """The error if nothing usable was read."""
        first = f"; the first bad line: {self.bad_lines[0]}" if self.bad_lines else ""
        return BadInput(advice + first)


# Sources


@dataclass(frozen=True, slots=True)
class Pair:
    """The words of both sides, and keys: pairs that share one belong to one question. source: its index in Sources."""

    query: Sequence[str]
    code: Sequence[str]
    keys: Sequence[str]
    source: int = 0


@dataclass(frozen=True, slots=True)
class IndexSource:
    """The words of an index that have a vector, these vectors, and its functions."""

    words: WordTable
    documents: Documents
    vocabulary: Vocabulary
    vectors: Matrix

    @classmethod
    def of(cls, index: Index) -> IndexSource:
        """Raises BadInput for an index whose words have no vectors."""
        words, vectors = index.word_table(), np.array(Embeddings.load(index.snapshot.statistics).vectors)
        has_vector = np.asarray(vectors.any(axis=1))
        if not has_vector.any():
            raise BadInput(f"no word of the index {index.folder} has a vector; build it from more code")
        vocabulary = Vocabulary.of(word for at, word in enumerate(words.vocabulary) if has_vector[at])
        return cls(words, index.documents, vocabulary, vectors[has_vector])

    def digest(self) -> str:
        """The digest of the words and their vectors."""
        state = hashlib.blake2b("\n".join(self.vocabulary).encode(), digest_size=16)
        state.update(self.vectors.tobytes())
        return state.hexdigest()


@dataclass(frozen=True, slots=True)
class PairFile:
    """A file of pairs, and how often an epoch draws each of its questions."""

    path: Path
    weight: float = 1.0

    @classmethod
    def parse(cls, text: str) -> PairFile:
        """FILE or FILE:WEIGHT; raises BadInput for a weight below 0.

        >>> PairFile.parse("so.jsonl.gz:2.5").weight, PairFile.parse("a:b.jsonl").weight
        (2.5, 1.0)
        """
        head, colon, tail = text.rpartition(":")
        try:
            weight = float(tail) if colon else 1.0
        except ValueError:
            head, weight = "", 1.0
        if not 0 <= weight < float("inf"):
            raise BadInput(f"the weight of {head} is {tail}; give a number from 0")
        return cls(Path(head or text), weight)

    @property
    def name(self) -> str:
        """Its name in stages: the file's name up to its first dot."""
        return self.path.name.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Sources:
    """Files of JSON lines and the index's own functions.

    own: their weight, 0 for none. leave_out: a file of JSON lines; pairs that ask one of its questions are left out.
    answers: files of questions with answers, which judge the default ranker's lists (unif.judged_lists).
    """

    files: Sequence[PairFile] = ()
    own: float = 0.0
    leave_out: Path | None = None
    answers: Sequence[Path] = ()

    def weights(self, selected: Sequence[str] = ()) -> list[float]:
        """The weight of every source, 0 if not selected (none selected: all); a pair's `source` indexes this list.

        Raises BadInput for an unknown name.
        """
        all_weights = [(file.name, file.weight) for file in self.files]
        all_weights += [(OWN, float(self.own))] if self.own else []
        names = [name for name, _ in all_weights]
        if unknown := sorted(set(selected) - set(names)):
            raise BadInput(f"a stage names {unknown[0]!r}; the sources are {', '.join(names)}")
        weights = [weight if not selected or name in selected else 0.0 for name, weight in all_weights]
        if not any(weights):
            raise BadInput("every source of a stage has the weight 0; give one of them another")
        return weights

    @property
    def excluded(self) -> frozenset[str]:
        """The questions to leave out, normalized."""
        return frozenset(map(normalized, read_questions(self.leave_out))) if self.leave_out else frozenset()

    def pairs(self, index: IndexSource | None, reads: Reads, stats: ReadStats, track: Track = silent) -> Iterator[Pair]:
        """All pairs, files first; index: whose own functions these are, if asked for."""
        excluded = self.excluded
        for source, file in enumerate(self.files):
            yield from pairs_of_file(file.path, stats, reads, source, excluded, track)
        if self.own and index:
            own = own_sources if reads == "source" else own_pairs
            yield from own(index, len(self.files), track)

    def about(self) -> dict[str, object]:
        """The entry for the record of a run."""
        files = {str(file.path): file.weight for file in self.files}
        leave_out = str(self.leave_out) if self.leave_out else None
        about: dict[str, object] = {"pairs": files, "own": float(self.own), "leave_out": leave_out}
        return about | ({"answers": list(map(str, self.answers))} if self.answers else {})


@dataclass(frozen=True, slots=True)
class Line:
    """A pair of a file. published: whether it is a line of CodeSearchNet's, whose code contains its question."""

    row: Row
    query: str
    code: str
    language: str
    published: bool

    def keys(self, path: Path) -> list[str]:
        """Keys of its question: its normalized text and its id; Stack Overflow's ids are global, others per file."""
        id = self.row.values.get("question_id")
        if isinstance(id, int) or (isinstance(id, str) and id.isdecimal()):
            return [normalized(self.query), f"\n{id}"]
        return [normalized(self.query), *([f"\n{path.name}\n{id}"] if isinstance(id, str) and id else [])]


def lines_of_file(path: Path, stats: ReadStats, left_out: frozenset[str], track: Track) -> Iterator[Line]:
    """The pairs of a `.jsonl` or `.jsonl.gz` file; bad and excluded lines are counted and skipped.

    A line has query and code (and question_id, split), or is one of CodeSearchNet's, with docstring and code (and
    partition); those of the split `test` are left out. left_out: normalized questions.
    Raises BadInput for a file that cannot be read.
    """
    for number, text in enumerate(track(read_lines(path), path.name, unit="pairs"), 1):
        if not text.strip():
            continue
        try:
            row = parse_row(text, f"{path}:{number}")
            published = "docstring" in row.values and "query" not in row.values
            query = row.text("docstring" if published else "query")
            line = Line(row, query, row.text("code"), row.text("language", ""), published)
        except BadInput as error:
            stats.note(error)
            continue
        if normalized(query) in left_out or "test" in (row.values.get("split"), row.values.get("partition")):
            stats.left_out += 1
        else:
            yield line


def pairs_of_file(
    path: Path,
    stats: ReadStats,
    reads: Reads = "fields",
    source: int = 0,
    left_out: frozenset[str] = frozenset(),
    track: Track = silent,
) -> Iterator[Pair]:
    """The pairs of `lines_of_file` as words; source: the number of the file."""
    for line in lines_of_file(path, stats, left_out, track):
        if reads == "source":
            words = source_words(line.code, line.language)
        else:
            words = code_words(line.code, line.language, doc=not line.published)
        yield Pair(tokenize(line.query), words, line.keys(path), source)


def code_words(code: str, language: str, *, doc: bool = True) -> list[str]:
    """The words that NCS reads of a program of any shape; doc: those of its doc comment too."""
    words = read_program(code, language, id="").words
    return [word for field in (NCS_FIELDS if doc else CODE) for word in field_tokens(field, words.get(field, ()))]


def own_pairs(index: IndexSource, source: int = 0, track: Track = silent) -> Iterator[Pair]:
    """Pairs of each function: its doc comment with the rest, and its name with the body, as one question."""
    words, vocabulary = index.words, list(index.words.vocabulary)
    for row in track(range(len(words)), "own pairs", total=len(words), unit="functions"):
        doc, name = ([vocabulary[id] for id in words.ids_of(row, field)] for field in ("doc", "name"))
        body = [vocabulary[id] for field in BODY for id in words.ids_of(row, field)]
        if len(body) < MIN_BODY:
            continue
        for query, code, least in ((doc, [*name, *body], MIN_DOC), (name, body, MIN_NAME)):
            if len(query) >= least:
                yield Pair(query, code, [f"\n\n{row}", _key(query)], source)


def own_sources(index: IndexSource, source: int = 0, track: Track = silent) -> Iterator[Pair]:
    """The same for encoders of source code: the doc comment with the source, which contains the name."""
    n = len(index.documents)
    for start in track(range(0, n, BLOCK), "own pairs", total=-(-n // BLOCK), unit="parts"):
        rows = range(start, min(start + BLOCK, n))
        for row, document in zip(rows, index.documents.documents(rows), strict=True):
            doc = field_tokens("doc", document.words.get("doc", ()))
            if len(doc) >= MIN_DOC:
                yield Pair(doc, source_words(document.code, document.language), [f"\n\n{row}", _key(doc)], source)


def _key(words: list[str]) -> str:
    return "\n\n\n" + json.dumps(words)


# Tokens


@dataclass(frozen=True, slots=True)
class Inputs:
    """Both towers' tokens, what the code tower reads, and the vectors [V, d] that both start from; none: random."""

    query: Tokenizer
    code: Tokenizer
    reads: Reads
    vectors: Matrix

    @classmethod
    def load(cls, folder: Path, words: IndexSource | None) -> Inputs:
        """The tokens that `prepare` wrote there; words: the index whose words they are, if so."""
        query, code = (load_tokenizer(folder / name) for name in TOKENS)
        return cls(query, code, reads_of(words), words.vectors if words else np.zeros((0, DIM), np.float32))


def prepare(
    folder: Path, sources: Sources, index: IndexSource | None, words: IndexSource | None, track: Track = silent
) -> None:
    """Write the tokens and the pairs of all sources.

    index: whose own functions are a source, if so. words: the index whose words are the tokens of both sides; without
    one, byte pairs and sub-tokens are learned from the pairs. Raises BadInput for unusable pairs, MissingExtra where
    `tokenizers` is needed and not installed.
    """

    def pairs(stats: ReadStats) -> Iterator[Pair]:
        return sources.pairs(index, reads_of(words), stats, track)

    tokens = (WordTokenizer(words.vocabulary),) * 2 if words else learn_tokens(pairs(ReadStats()))
    for name, each in zip(TOKENS, tokens, strict=True):
        (folder / name).mkdir(parents=True, exist_ok=True)
        each.save(folder / name)
    stats = ReadStats()
    write_pairs(pairs(stats), folder, stats, tokens[0].ids, tokens[1].ids)


def reads_of(words: IndexSource | None) -> Reads:
    """What a code tower reads: its words, where they are an index's."""
    return "fields" if words else "source"


def learn_tokens(pairs: Iterable[Pair]) -> tuple[Tokenizer, Tokenizer]:
    """CodeSearchNet's tokens: byte pairs of queries, sub-tokens of code."""
    queries: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for pair in pairs:
        queries.update(pair.query)
        codes.update(pair.code)
    return learn_bpe(queries), learn_words(codes)


def learn_words(counts: Mapping[str, int], *, size: int = MAX_TOKENS, min_count: int = MIN_COUNT) -> WordTokenizer:
    """The most frequent of some counted words; of equally frequent ones the first in the alphabet."""
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return WordTokenizer(Vocabulary.of(word for word in order[:size] if counts[word] >= min_count))


def learn_bpe(counts: Mapping[str, int], *, size: int = MAX_TOKENS) -> BpeTokenizer:
    """Byte pairs of counted words. Raises MissingExtra where `tokenizers` is not installed."""
    with needing("learning byte pairs", "unif"):
        from tokenizers import Tokenizer as Library
        from tokenizers import models, pre_tokenizers, trainers
    # Given first, the last letters of words have the same ids every time; the library would number them by chance.
    last = sorted({word[-1] + END for word in counts if word})
    tokenizer = Library(models.BPE(end_of_word_suffix=END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=last, end_of_word_suffix=END, show_progress=False)
    tokenizer.train_from_iterator((" ".join([word] * n) for word, n in sorted(counts.items())), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    ordered = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return BpeTokenizer(ordered, [tuple(pair) for pair in model["merges"]])


# Pairs as ids


class QuestionNumbers:
    """Numbers questions: pairs connected by shared keys are one question. Memory: twelve bytes per key.

    >>> questions = QuestionNumbers()
    >>> questions.add("open a file", "id 1")
    >>> questions.add("close a file", "id 2")
    >>> questions.add("open the file", "id 1")
    >>> questions.add("close a file", "id 1")
    >>> questions.numbers().tolist()
    [0, 0, 0, 0]
    """

    def __init__(self) -> None:
        self._pairs = 0
        self._pair, self._key = array("i"), array("Q")

    def add(self, *keys: str) -> None:
        """Add a pair; a pair without keys is a question of its own."""
        for key in keys:
            digest = hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest()
            self._pair.append(self._pairs)
            self._key.append(int.from_bytes(digest, "big"))
        self._pairs += 1

    def numbers(self) -> NDArray[np.int32]:
        """The question of each pair, [n], numbered from 0 in order of appearance.

        Pairs and keys are the nodes of a graph, a pair's keys its edges; a question is a connected component.
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pair = np.frombuffer(self._pair, np.int32)
        distinct, key = np.unique(np.frombuffer(self._key, np.uint64), return_inverse=True)
        key = key.reshape(-1).astype(np.int32) + np.int32(self._pairs)
        nodes = self._pairs + len(distinct)
        graph = coo_array((np.ones(len(pair), np.int8), (pair, key)), (nodes, nodes)).tocsr()
        labels = connected_components(graph, directed=False)[1][: self._pairs]
        _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first)).astype(np.int32)
        numbered: NDArray[np.int32] = rank[numbers.reshape(-1)]
        return numbered


class Texts:
    """Ids of many texts: one flat int32 array, and offsets int64 [n + 1]."""

    def __init__(self, ids: NDArray[np.int32], offsets: Ids) -> None:
        self.ids, self.offsets = ids, offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def cut(self, rows: Ids, longest: int) -> tuple[Ids, Ids]:
        """The first `longest` words of these rows: flat ids, and the length of each row."""
        starts = np.asarray(self.offsets[rows])
        lengths = np.minimum(np.asarray(self.offsets[rows + 1]) - starts, longest)
        return np.asarray(self.ids[ranges(starts, lengths)]), lengths


class TextsBuilder:
    """Collects texts."""

    def __init__(self) -> None:
        self._ids, self._offsets = array("i"), array("q", [0])

    def add(self, ids: Iterable[int]) -> None:
        """Append a text."""
        self._ids.extend(ids)
        self._offsets.append(len(self._ids))

    def build(self) -> Texts:
        """All texts added."""
        return Texts(np.array(self._ids, np.int32), np.array(self._offsets, np.int64))


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs with the numbers of their question and source."""

    query: Texts
    code: Texts
    question: NDArray[np.int32]
    source: NDArray[np.int16]
    stats: ReadStats

    def __len__(self) -> int:
        return len(self.question)

    def split(self, share: float, seed: int) -> tuple[Ids, Ids]:
        """Training rows and validation rows, without a common question; BadInput if one side would be empty."""
        valid = hold_out(self.question, share, seed)
        if valid.all():
            raise BadInput("no question is left to train on; give more pairs")
        return np.flatnonzero(~valid), np.flatnonzero(valid)

    def save(self, folder: Path) -> None:
        """Write the arrays, `reading.json` last."""
        for name in ("query", "code"):
            texts: Texts = getattr(self, name)
            np.save(folder / f"{name}.ids.npy", texts.ids)
            np.save(folder / f"{name}.offsets.npy", texts.offsets)
        np.save(folder / "question.npy", self.question)
        np.save(folder / "source.npy", self.source)
        self.stats.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Pairs:
        """Load what `save` wrote, memory-mapped."""
        names = ("query.ids", "query.offsets", "code.ids", "code.offsets", "question", "source")
        arrays = (np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names)
        query, query_offsets, code, code_offsets, question, source = arrays
        stats = ReadStats.load(folder)
        return cls(Texts(query, query_offsets), Texts(code, code_offsets), question, source, stats)


def hold_out(question: NDArray[np.int32], share: float, seed: int) -> NDArray[np.bool_]:
    """Rows of a random share of the questions, [n]; of one question at least."""
    n = int(question.max()) + 1
    is_held_out = np.zeros(n, bool)
    is_held_out[np.random.default_rng((seed, 0)).permutation(n)[: max(1, round(share * n))]] = True
    held_out: NDArray[np.bool_] = is_held_out[question]
    return held_out


def write_pairs(pairs: Iterable[Pair], folder: Path, stats: ReadStats, query_ids: Encode, code_ids: Encode) -> Pairs:
    """Write pairs into `folder`. Raises BadInput where none has words on both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, source = QuestionNumbers(), array("h")
    queries, codes = TextsBuilder(), TextsBuilder()
    for pair in pairs:
        query, code = query_ids(pair.query), code_ids(pair.code)
        if not query or not code:
            stats.wordless += 1
            continue
        queries.add(query)
        codes.add(code)
        questions.add(*pair.keys)
        source.append(pair.source)
    if not source:
        raise stats.empty("no pair has known words on both sides; give other pairs, or a larger index")
    question = questions.numbers()
    stats.rows, stats.questions = len(source), int(question.max()) + 1
    Pairs(queries.build(), codes.build(), question, np.array(source, np.int16), stats).save(folder)
    return Pairs.load(folder)


# Batches


def one_per_question(question: NDArray[np.int32], rows: Ids, draw: np.random.Generator) -> Ids:
    """One random row of each question, questions shuffled. question: [n], of all rows."""
    shuffled = draw.permutation(rows)
    _, first = np.unique(question[shuffled], return_index=True)
    first_rows: Ids = shuffled[draw.permutation(first)]
    return first_rows


def epoch_order(
    question: NDArray[np.int32],
    source: NDArray[np.int16],
    rows: Ids,
    weights: Sequence[float],
    draw: np.random.Generator,
) -> Ids:
    """The rows of an epoch in order: one row per question, as often as the weight of its source.

    A weight of 2.5 draws every question twice and half of them a third time, each time a random row; 0 skips a source.
    A question of several sources has the weight of the row drawn first.
    """
    by_source = np.asarray(weights, np.float64)
    rows = rows[by_source[source[rows]] > 0]
    rows_drawn = one_per_question(question, rows, draw)
    weight = by_source[source[rows_drawn]]
    times = np.floor(weight) + (draw.random(len(rows_drawn)) < weight % 1)
    passes = [rows_drawn[times >= 1]]
    for count in range(2, int(times.max(initial=0)) + 1):
        has_more = np.isin(question[rows], question[rows_drawn[times >= count]])
        passes.append(one_per_question(question, rows[has_more], draw))
    return passes[0] if len(passes) == 1 else draw.permutation(np.concatenate(passes))


def batches(question: NDArray[np.int32], order: Ids, size: int) -> Iterator[Ids]:
    """Batches of rows in order, a question at most once in each: repeats are deferred to the next batch.

    A last batch of one question, which has no negatives, is dropped.
    """
    queue, at = order[:0], 0
    while len(queue) or at < len(order):
        batch, next_queue = queue[:size], queue[size:]
        while True:
            _, first = np.unique(question[batch], return_index=True)
            is_repeat = np.ones(len(batch), bool)
            is_repeat[first] = False
            next_queue, batch = np.concatenate([batch[is_repeat], next_queue]), batch[~is_repeat]
            missing = min(size - len(batch), len(order) - at)
            if missing <= 0:
                break
            batch, at = np.concatenate([batch, order[at : at + missing]]), at + missing
        queue = next_queue
        if len(batch) > 1:
            yield batch
        elif at >= len(order):
            return
