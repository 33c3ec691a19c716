"""Experiments: corpus x build settings x rankers -> runs -> values of every query, with what they cost; as JSON."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from corpora.corpus import Corpus, digest, first_repeated
from corpora.trec import write_run
from evaluation.machine import commit, machine
from evaluation.measures import CHALLENGE, challenge_ndcg, evaluate, mean
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.files import replace_file
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.baselines.dense import DenseRanker, text_of
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import DEFAULT_RANKER, Ranker, create_ranker, of_type, read_ranker
from ncs.types import Document, Qrels, Query, Run

BASELINE = "bm25"
DEPTH = 1000
"""Hits of each query, as CoIR measures its latency."""
BATCH = 2000
"""Documents read at a time."""
MEASURES = ("mrr", "answered@1", "answered@5", "answered@10", "mrr@10", "ndcg@10", "recall@100")
RESULTS = Path(__file__).parent / "results"
SAMPLE, SAMPLE_OF_MODELS = 1000, 100
"""Documents, and queries, over which embedding latency is measured; the second for models that may take seconds per
text."""
OFF: Mapping[str, object] = {
    **dict.fromkeys(("spelling", "meaning", "naming", "definition", "consensus"), 0.0),
    **dict.fromkeys(("title", "neighbours", "general", "context", "head"), 0.0),
    **dict.fromkeys(("prose", "role", "unfinished", "saturation"), 1.0),
    "fold": False,
    "calibrated": False,
}
"""Setting of the default ranker -> the value that turns a signal off: the rows of `bin/evaluate --ablation`."""


@dataclass(frozen=True, slots=True)
class System:
    """A ranker of the index, or one with other settings, fitted for the experiment only."""

    ranker: str
    config: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`ncs`, or `ncs:centre=true,stop_words=false`."""
        return f"{self.ranker}:{settings_text(self.config, ',')}" if self.config else self.ranker


@dataclass(frozen=True, slots=True)
class Ranked:
    """One system over one build.

    values: measure -> one value per query, in the order of Experiment.queries; None where the measure leaves it out.
    query_ms: milliseconds of each query, search and ids. embed_document_ms, embed_query_ms: of a sample in a batch, as
    CoIR measures; None for a ranker without embeddings. index_bytes: the ranker's own files; None without any.
    ranks: of each query the rank of every relevant file, 0 where it is not ranked; tokens: of each answer that an agent
    reads, none for a ranker that agents cannot ask (evaluation.issues).
    """

    system: str
    fit_seconds: float | None
    query_ms_p50: float
    query_ms_p95: float
    means: Mapping[str, float]
    values: Mapping[str, Sequence[float | None]]
    query_ms: Sequence[float] = ()
    embed_document_ms: float | None = None
    embed_query_ms: float | None = None
    index_bytes: int | None = None
    ranks: Sequence[Sequence[int]] = field(default_factory=list)
    tokens: Sequence[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Build:
    """One index and its systems. seconds: per stage of the build. peak_memory_bytes: of the building process so far.

    documents: where builds hold different documents; None: the experiment's. updates: of an index that was brought from
    revision to revision, their seconds, and comparisons with whole builds (evaluation.issues).
    """

    settings: str
    config: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: Mapping[str, float]
    build_seconds: float
    index_bytes: int
    peak_memory_bytes: int
    systems: Sequence[Ranked]
    documents: int | None = None
    updates: Mapping[str, Any] | None = None

    def system(self, name: str) -> Ranked:
        """A system by name; BadInput for an unknown one."""
        for result in self.systems:
            if result.system == name:
                return result
        raise BadInput(f"no system {name!r} in this result; there are: {', '.join(r.system for r in self.systems)}")


@dataclass(frozen=True, slots=True)
class Experiment:
    """Systems over a corpus. The first measure is compared.

    texts: of the queries, for people; files do not keep them, as data sets may not be passed on.
    candidates: among which documents each query was ranked, where that is not every document.
    """

    corpus: str
    corpus_digest: str
    documents: int
    commit: str
    machine: Mapping[str, str | int]
    depth: int
    measures: Sequence[str]
    queries: Sequence[str]
    builds: Sequence[Build]
    texts: Sequence[str] = ()
    candidates: str = ""

    def values(self, result: Ranked, measure: str) -> dict[str, float]:
        """query id -> value of a measure, without queries that have none."""
        pairs = zip(self.queries, result.values[measure], strict=True)
        return {query: value for query, value in pairs if value is not None}


def write(experiment: Experiment, path: Path) -> None:
    """Write as JSON, without the texts of the queries."""
    values = asdict(experiment)
    del values["texts"]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(values, path)


def write_json(values: Mapping[str, Any], path: Path) -> None:
    """Write a result file, lists of plain values on one line."""
    text = json.dumps(values, indent=1)
    text = re.sub(r"\[[^][{}]*\]", lambda list_: " ".join(list_[0].split()).replace("[ ", "[").replace(" ]", "]"), text)
    replace_file(path, text + "\n")


def read(path: Path) -> Experiment:
    """Read what `write` wrote; BadInput for anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        builds = [
            Build(**{**build, "systems": [Ranked(**each) for each in build["systems"]]}) for build in values["builds"]
        ]
        return Experiment(**{**values, "builds": builds})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not the JSON of an experiment ({error}); make one with bin/evaluate") from None


# Settings by name.


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted name.

    >>> flat({"texts": True, "lsa": {"dim": 300}})
    {'texts': True, 'lsa.dim': 300}
    """
    names: dict[str, Any] = {}
    for name, value in settings.items():
        names |= {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
    return names


def configure(config: BuildConfig, changes: Mapping[str, object]) -> BuildConfig:
    """The configuration with some values changed, by dotted name; BadInput names the known ones."""
    defaults = flat(asdict(config))
    values: dict[str, dict[str, Any]] = {"": {}, "fasttext": {}, "lsa": {}}
    for name, value in changes.items():
        if name not in defaults:
            raise BadInput(f"no setting called {name!r}; choose one of: {', '.join(defaults)}")
        part, _, setting = name.rpartition(".")
        values[part][setting] = of_type(defaults[name], value, name)
    fasttext, lsa = replace(config.fasttext, **values["fasttext"]), replace(config.lsa, **values["lsa"])
    return replace(config, fasttext=fasttext, lsa=lsa, **values[""])


def changed_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a result that differ from today's defaults, by dotted name."""
    defaults = flat(json.loads(json.dumps(asdict(BuildConfig()))))
    return {name: value for name, value in flat(config).items() if value != defaults.get(name)}


def grid(alternatives: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Every combination of the alternatives.

    >>> grid({"fasttext.dim": [50, 100], "fasttext.epochs": [5]})
    [{'fasttext.dim': 50, 'fasttext.epochs': 5}, {'fasttext.dim': 100, 'fasttext.epochs': 5}]
    """
    return [dict(zip(alternatives, values, strict=True)) for values in product(*alternatives.values())]


def settings_text(changes: Mapping[str, object], separator: str = " ") -> str:
    """Settings as the command line takes them.

    >>> settings_text({"centre": True, "query_weights": "idf"}, ",")
    'centre=true,query_weights=idf'
    """
    return separator.join(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in changes.items())


def read_system(text: str) -> System:
    """`ncs`, or `ncs:centre=true,query_weights=idf`; BadInput for an unknown ranker or setting.

    >>> read_system("ncs:centre=true")
    System(ranker='ncs', config={'centre': True})
    """
    system = System(*read_ranker(text))
    create_ranker(system.ranker, **system.config)
    return system


# Systems over one index.


def fit_ranker(index: Index, system: System) -> tuple[Ranker, float | None]:
    """A ranker and the seconds its own fitting took; of one made of others, the seconds of these."""
    if not system.config and index.has_ranker(system.ranker):
        ranker = index.ranker(system.ranker)
        parts = cast(Sequence[str], ranker.config.get("parts", (system.ranker,)))
        stages = cast(Mapping[str, float], index.description.counts["seconds"])
        return ranker, round(sum(stages[part] for part in parts), 2) if set(parts) <= stages.keys() else None
    start = time.perf_counter()
    ranker = index.fitted(system.ranker, **cast(Mapping[str, Any], system.config))
    return ranker, round(time.perf_counter() - start, 2)


def search_all(
    index: Index,
    ranker: Ranker,
    queries: Sequence[Query],
    depth: int,
    candidates: Mapping[str, NDArray[np.int64]] | None,
    track: Track,
    stage: str,
) -> tuple[Run, list[float]]:
    """The first `depth` documents of every query, one query after the other, as CoIR measures retrieval (depth 1,000).

    candidates: query id -> the only rows to rank. The milliseconds of each query are those of search and document ids,
    not of the opening of files by the first query.
    """
    ranker.search(queries[0].text, depth)
    sections = index.facts.file_roles.sections
    code = None if sections is None or ranker.name == DEFAULT_RANKER else ~sections  # as ncs query has it
    run: dict[str, dict[str, float]] = {}
    milliseconds = []
    for query in track(queries, stage, total=len(queries), unit="queries"):
        allowed = code
        if candidates:
            allowed = np.zeros(len(index.documents), bool)
            allowed[candidates[query.id]] = True
        start = time.perf_counter()
        rows = ranker.search(query.text, depth, allowed=allowed)
        ids = index.documents.ids([row for row, _ in rows])
        milliseconds.append((time.perf_counter() - start) * 1000)
        run[query.id] = {id: score for id, (_, score) in zip(ids, rows, strict=True)}
    return run, milliseconds


def all_documents(index: Index) -> Iterator[Document]:
    """Every document of an index, in order of rows."""
    rows = index.documents.rows().tolist()
    for start in range(0, len(rows), BATCH):
        yield from index.documents.documents(rows[start : start + BATCH])


def require_code(index: Index) -> None:
    """Raise BadInput for an index without code, in which nothing can be judged."""
    if not index.description.config.get("store_code", True):
        raise BadInput(f"{index.folder} holds no code to judge; build it without --no-store-code")


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def costs(
    index: Index, system: System, ranker: Ranker, milliseconds: Sequence[float], queries: Sequence[Query]
) -> dict[str, Any]:
    """The fields of Ranked that say what the answers cost."""
    parts = list(_parts(index, ranker))
    times = [_embedding_ms(index, part, [query.text for query in queries]) for part in parts]
    embedding = [each for each in times if each is not None]
    folders = {ranker.name, *(part.name for part in parts)}
    saved = sum(folder_bytes(path) for path in index.folder.rglob("*") if path.is_dir() and path.name in folders)
    return {
        **query_times(milliseconds),
        "embed_document_ms": round(sum(document for document, _ in embedding), 4) if embedding else None,
        "embed_query_ms": round(sum(query for _, query in embedding), 4) if embedding else None,
        "index_bytes": None if system.config else saved or None,
    }


def query_times(milliseconds: Sequence[float]) -> dict[str, Any]:
    """The fields of Ranked that say how long each query took."""
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {
        "query_ms_p50": round(float(p50), 3),
        "query_ms_p95": round(float(p95), 3),
        "query_ms": [round(value, 3) for value in milliseconds],
    }


def _parts(index: Index, ranker: Ranker) -> Iterator[Ranker]:
    """The ranker itself, or the rankers it is made of: several (fusions), or one whose ranking it changes."""
    if not ranker.parts:
        yield ranker
    for name in ranker.parts:
        yield from _parts(index, index.ranker(name))


def _embedding_ms(index: Index, ranker: Ranker, texts: Sequence[str]) -> tuple[float, float] | None:
    """Milliseconds to embed one document and one query: a batch's time over its size (CoIR, section 5.1)."""
    if isinstance(ranker, DenseRanker):
        queries, rows = texts[:SAMPLE_OF_MODELS], index.documents.rows()[:SAMPLE_OF_MODELS].tolist()
        documents = [text_of(document) for document in index.documents.documents(rows)]
        ranker.model.embed(queries[:1], "query")  # the loading of a model is not a text's latency
        return (
            _mean_ms(partial(ranker.model.embed, documents, "document"), len(documents)),
            _mean_ms(partial(ranker.model.embed, queries, "query"), len(queries)),
        )
    if not isinstance(ranker, NcsRanker) or (table := index.words().table()) is None:
        return None
    encoder, n, queries = ranker.encoder, min(SAMPLE, len(table)), texts[:SAMPLE]
    return (
        _mean_ms(lambda: next(encoder.chunks(table, [len(table) - n])), n),
        _mean_ms(lambda: [encoder.query(text) for text in queries], len(queries)),
    )


def _mean_ms(work: Callable[[], object], n: int) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000 / n


def judge(
    qrels: Qrels, run: Run, measures: Sequence[str], *, grades: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, Any]:
    """The mean of each measure, and its values in the order of the qrels, to six decimals; None where left out.

    grades: mean grades of several judges, which CodeSearchNet's two NDCG count instead of the qrels.
    """
    values = {measure: evaluate(qrels, run, measure) for measure in measures}
    if grades is not None:
        exact = {query: grades[query] for query in qrels}
        for measure in set(measures) & set(CHALLENGE):
            values[measure] = challenge_ndcg(exact, run, within=measure == CHALLENGE[0])
    columns = {
        measure: [round(column[query], 6) if query in column else None for query in qrels]
        for measure, column in values.items()
    }
    return {"means": {measure: round(mean(column), 6) for measure, column in values.items()}, "values": columns}


# Whole experiments.


def run_experiment(
    corpus: Corpus,
    systems: Sequence[System],
    *,
    settings: Sequence[Mapping[str, object]] = ({},),
    measures: Sequence[str] = MEASURES,
    depth: int = DEPTH,
    distractors: int | None = None,
    seed: int = 0,
    runs: Path | None = None,
    track: Track = silent,
) -> Experiment:
    """Build an index for each of the settings and search every query by every system; bm25 is always one.

    settings: changes to BuildConfig, by dotted name (`fasttext.dim`). Documents are extracted once.
    distractors: rank each query among its own documents and so many others, drawn for it by `seed`.
    runs: folder to write every ranking to, as TREC run files.
    Exact duplicates are not merged: every judged document must stay findable.
    Raises BadInput for unknown settings, before anything is built, and for judged documents that are not there.
    """
    started_at = commit()
    configs = [configure(BuildConfig(deduplicate=False), changes) for changes in settings]
    documents = list(track(corpus.documents(), f"{corpus.name}: documents"))
    _check_judged(corpus, documents)
    if all(system.name != BASELINE for system in systems):
        systems = [System(BASELINE), *systems]
    candidates = None
    if distractors:
        candidates = draw_distractors(documents, corpus.qrels, distractors, seed, corpus.judged_run)
    qrels = corpus.qrels if candidates is None else {query: corpus.qrels[query] for query in candidates}
    queries = [query for query in corpus.queries if query.id in qrels]

    def rank(index: Index, system: System, settings: str) -> Ranked:
        stage = " ".join(filter(None, (corpus.name, settings, system.name)))
        ranker, fit_seconds = fit_ranker(index, system)
        rankings, milliseconds = search_all(index, ranker, queries, depth, candidates, track, stage)
        run = corpus.judged_run(rankings)
        if runs:
            runs.mkdir(parents=True, exist_ok=True)
            write_run(run, runs / f"{re.sub(r'[^A-Za-z0-9_.=-]+', '-', stage)}.run", tag=system.ranker)
        values = judge(qrels, run, measures, grades=corpus.grades)
        return Ranked(system.name, fit_seconds, **values, **costs(index, system, ranker, milliseconds, queries))

    def build(config: BuildConfig, settings: str) -> Build:
        with (
            tempfile.TemporaryDirectory(prefix="ncs-evaluate-") as folder,
            Index.of(documents, Path(folder) / "index", config=config, track=track) as index,
        ):
            return build_of(index, settings, [rank(index, system, settings) for system in systems])

    texts = {query.id: query.text for query in corpus.queries}
    return Experiment(
        corpus=corpus.name,
        corpus_digest=digest(documents, corpus.queries, corpus.qrels),
        documents=len(documents),
        commit=started_at,
        machine=machine(),
        depth=depth,
        measures=list(measures),
        queries=list(qrels),
        builds=[build(config, settings_text(changes)) for config, changes in zip(configs, settings, strict=True)],
        texts=[texts[query] for query in qrels],
        candidates=f"among {distractors:,} drawn distractors, seed {seed}" if distractors else "",
    )


def build_of(index: Index, settings: str, systems: Sequence[Ranked], documents: int | None = None) -> Build:
    """An index and its systems as a Build."""
    description = index.description
    counts: Mapping[str, Any] = description.counts
    return Build(
        settings=settings,
        config=description.config,
        versions=description.versions,
        seconds=counts["seconds"],
        build_seconds=round(sum(counts["seconds"].values()), 2),
        index_bytes=folder_bytes(index.folder),
        peak_memory_bytes=counts.get("peak_memory_bytes", 0),
        systems=systems,
        documents=documents,
    )


def _check_judged(corpus: Corpus, documents: Sequence[Document]) -> None:
    if corpus.fold is not None:  # files are judged, also those without a function
        return
    ids = {document.id for document in documents}
    for query, grades in corpus.qrels.items():
        if (id := next((id for id in grades if id not in ids), None)) is not None:
            raise BadInput(f"{corpus.name}: {id!r}, judged for {query!r}, is not in the corpus; correct the qrels")


def draw_distractors(
    documents: Sequence[Document],
    qrels: Qrels,
    count: int,
    seed: int = 0,
    judged_run: Callable[[Run], Run] = lambda run: run,
) -> dict[str, NDArray[np.int64]]:
    """query id -> sorted rows of its relevant documents and of `count` others, drawn for this query alone.

    CodeSearchNet's first test (Husain et al. 2019, section 4.3, table 3): "we fix a set of 999 distractor snippets for
    each test pair". The draw depends on the seed, the query's id and the number of documents only.
    judged_run: of the corpus, where the qrels judge files or names of functions: what has one is relevant.
    Queries without a relevant document are left out. Raises BadInput where none has one, and for too few documents.
    """
    names = judged_run({document.id: {document.id: 1.0} for document in documents})
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, document in enumerate(documents):
        for name in names[document.id]:
            rows_of[name].append(row)
    rows_by_query = {}
    for query, grades in qrels.items():
        relevant = {row for name, grade in grades.items() if grade > 0 for row in rows_of[name]}
        rows = np.array(sorted(relevant), np.int64)
        others = np.setdiff1d(np.arange(len(documents)), rows)
        if len(others) < count:
            raise BadInput(f"{count} distractors for {query!r}, but only {len(others)} other documents; ask for fewer")
        key = hashlib.blake2b(f"{seed} {query}".encode(), digest_size=8).digest()
        sampled = np.random.default_rng(int.from_bytes(key, "little")).choice(others, count, replace=False)
        if len(rows):
            rows_by_query[query] = np.sort(np.concatenate([rows, sampled]))
    if not rows_by_query:
        raise BadInput("no query has a relevant document to rank among distractors; omit --distractors")
    return rows_by_query


def pooled(name: str, experiments: Sequence[Experiment]) -> Experiment:
    """One experiment over the queries of all, each counting the same; costs add up.

    Query ids that several corpora use get their corpus before them. Raises BadInput where the experiments do not have
    the same systems, settings, measures and depth.
    """
    first = experiments[0]
    if any(_shape(each) != _shape(first) for each in experiments):
        raise BadInput(f"{name}: the corpora have different rankers, settings or measures; run them alike")
    ids = [query for each in experiments for query in each.queries]
    if first_repeated(ids) is not None:
        ids = [f"{each.corpus}/{query}" for each in experiments for query in each.queries]
    return replace(
        first,
        corpus=name,
        corpus_digest=hashlib.sha256("".join(each.corpus_digest for each in experiments).encode()).hexdigest(),
        documents=sum(each.documents for each in experiments),
        queries=ids,
        texts=[text for each in experiments for text in each.texts],
        builds=[_pooled_build(builds) for builds in zip(*(each.builds for each in experiments), strict=True)],
    )


def _shape(experiment: Experiment) -> tuple[object, ...]:
    systems = [[build.settings, [result.system for result in build.systems]] for build in experiment.builds]
    return systems, list(experiment.measures), experiment.depth, experiment.candidates


def _pooled_build(builds: Sequence[Build]) -> Build:
    stages = dict.fromkeys(stage for build in builds for stage in build.seconds)
    updates = [build.updates for build in builds if build.updates is not None]
    return replace(
        builds[0],
        seconds={stage: round(sum(build.seconds.get(stage, 0) for build in builds), 2) for stage in stages},
        build_seconds=round(sum(build.build_seconds for build in builds), 2),
        index_bytes=sum(build.index_bytes for build in builds),
        peak_memory_bytes=max(build.peak_memory_bytes for build in builds),
        systems=[_pooled_system(parts) for parts in zip(*(build.systems for build in builds), strict=True)],
        updates={name: [each for part in updates for each in part[name]] for name in updates[0]} if updates else None,
    )


def _pooled_system(parts: Sequence[Ranked]) -> Ranked:
    values = {name: [value for part in parts for value in part.values[name]] for name in parts[0].values}
    defined = {name: [value for value in column if value is not None] for name, column in values.items()}
    return replace(
        parts[0],
        fit_seconds=_total([part.fit_seconds for part in parts]),
        **query_times([value for part in parts for value in part.query_ms]),
        ranks=[ranks for part in parts for ranks in part.ranks],
        tokens=[tokens for part in parts for tokens in part.tokens],
        values=values,
        means={name: round(sum(column) / len(column), 6) if column else 0.0 for name, column in defined.items()},
        embed_document_ms=_median([part.embed_document_ms for part in parts]),
        embed_query_ms=_median([part.embed_query_ms for part in parts]),
        index_bytes=_total([part.index_bytes for part in parts]),
    )


Number = TypeVar("Number", int, float)


def _total(values: Sequence[Number | None]) -> Number | None:
    """The sum; None where any is not known."""
    numbers = [value for value in values if value is not None]
    return round(sum(numbers), 2) if len(numbers) == len(values) else None


def _median(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return round(float(np.median(numbers)), 4) if numbers else None
