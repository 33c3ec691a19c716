"""Experiments: corpus x build settings x rankers -> runs -> values of every query, with what they cost; as JSON."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from corpora.corpus import Corpus, digest, first_repeated
from corpora.trec import write_run
from evaluation.distractors import Distractors
from evaluation.machine import commit, forget_peak_memory, machine, peak_memory
from evaluation.measures import CHALLENGE, challenge_ndcg, evaluate, mean
from ncs.config import BuildConfig
from ncs.errors import BadInput
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.search.baselines.dense import DenseRanker, text_of
from ncs.search.ncs import NcsRanker
from ncs.search.rankers import Ranker
from ncs.types import Document, Qrels, Query, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.types import Mask

BASELINE = "bm25"
DEPTH = 1000
"""Documents a query; what CoIR measures its latency at."""
MEASURES = ("mrr", "answered@1", "answered@5", "answered@10", "mrr@10", "ndcg@10", "recall@100")
RESULTS = Path(__file__).parent / "results"
SAMPLE, SAMPLE_OF_MODELS = 1000, 100
"""Documents, and queries, that embedding latency is taken over; of models that may take seconds a text."""
OFF: Mapping[str, Mapping[str, object]] = {
    "spelling": {"spelling": 0.0},
    "prose": {"prose": 1.0},
    "meaning": {"meaning": 0.0},
    "naming": {"naming": 0.0},
    "definition": {"definition": 0.0},
    "proximity": {"proximity": 0.0},
    "consensus": {"consensus": 0.0},
    "title": {"title": 0.0},
    "neighbours": {"neighbours": 0.0},
    "head": {"head": 0.0},
    "role": {"role": 1.0},
    "outline": {"outline": 1.0},
    "body": {"body": 1.0},
    "unfinished": {"unfinished": 1.0},
    "saturation": {"saturation": 1.0},
    "folding": {"fold": False},
    "calibration": {"calibrated": False},
}
"""Signal of the default ranker -> the settings that turn it off: the rows of `bin/evaluate --ablation`."""


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
    query_ms: milliseconds of each query, search and ids; p50 and p95 are taken from them.
    embed_document_ms, embed_query_ms: of one sample, in a batch, as CoIR measures; None for what embeds nothing.
    index_bytes: the ranker's own files; None where it saved none.
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


@dataclass(frozen=True, slots=True)
class Build:
    """One index and the systems that were run on it. seconds: per stage, as the manifest has them.

    documents: where builds hold different documents; None: the experiment's.
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

    def system(self, name: str) -> Ranked:
        """The system of this name; BadInput names those there are."""
        for result in self.systems:
            if result.system == name:
                return result
        raise BadInput(f"no system {name!r} in this result; there are: {', '.join(r.system for r in self.systems)}")


@dataclass(frozen=True, slots=True)
class Experiment:
    """All of it. The first measure is the one compared.

    texts: the queries' words, for people; files do not keep them, as data sets may not be passed on.
    candidates: what each query was ranked among, where that is not every document.
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
        """query id -> value of a measure, without the queries that it leaves out."""
        pairs = zip(self.queries, result.values[measure], strict=True)
        return {query: value for query, value in pairs if value is not None}


def write(experiment: Experiment, path: Path) -> None:
    """Write as JSON, lists of plain values on one line, without the texts of the queries."""
    values = asdict(experiment)
    del values["texts"]
    text = json.dumps(values, indent=1)
    text = re.sub(r"\[[^][{}]*\]", lambda list_: " ".join(list_[0].split()).replace("[ ", "[").replace(" ]", "]"), text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


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


# Settings by dotted name.


def configure(config: BuildConfig, changes: Mapping[str, object]) -> BuildConfig:
    """The configuration with some values changed, by dotted name; BadInput names the known ones."""
    return cast(BuildConfig, _changed(config, changes, ""))


def _changed(config: Any, changes: Mapping[str, object], prefix: str) -> Any:
    """All changes at once: a configuration may refuse one of them without the others."""
    values: dict[str, object] = {}
    nested: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        if first not in (settings := [each.name for each in fields(config)]):
            raise BadInput(f"no setting called {prefix + name!r}; choose one of: {', '.join(settings)}")
        if is_dataclass(getattr(config, first)) != bool(rest):
            raise BadInput(f"{prefix + name!r} is not a single setting; write for instance fasttext.dim=100")
        if rest:
            nested.setdefault(first, {})[rest] = value
        else:
            values[first] = _of_type(getattr(config, first), value, prefix + name)
    parts = {name: _changed(getattr(config, name), inner, f"{prefix}{name}.") for name, inner in nested.items()}
    return replace(config, **values, **parts)


def _of_type(default: object, value: object, name: str) -> object:
    """The value in the type of the default; a default of None allows any."""
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if default is not None and type(value) is not type(default):
        raise BadInput(f"{name} is {default!r} by default; {value!r} has another type")
    return value


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


# Running systems over one index.


def fitted(index: Index, system: System) -> tuple[Ranker, float | None]:
    """A ranker and the seconds its own fitting took; of one made of others, the seconds of these."""
    if not system.config and index.has_ranker(system.ranker):
        ranker = index.ranker(system.ranker)
        parts = cast(Sequence[str], ranker.config.get("parts", (system.ranker,)))
        stages = cast(Mapping[str, float], index.description.counts["seconds"])
        return ranker, round(sum(stages[part] for part in parts), 2) if set(parts) <= stages.keys() else None
    start = time.perf_counter()
    ranker = index.fitted(system.ranker, **cast(Mapping[str, Any], system.config))
    return ranker, round(time.perf_counter() - start, 2)


@dataclass(frozen=True, slots=True)
class Answers:
    """The run of a ranker, and the milliseconds of each query."""

    ranker: Ranker
    fit_seconds: float | None
    run: Run
    milliseconds: Sequence[float]


def ask(
    index: Index,
    system: System,
    queries: Sequence[Query],
    depth: int,
    *,
    candidates: Mapping[str, NDArray[np.int64]] | None = None,
    track: Track = silent,
    stage: str = "",
) -> Answers:
    """The first `depth` documents of every query, one query after the other, as CoIR measures retrieval (depth 1,000).

    candidates: query id -> the only rows to rank. The clock runs over search and document ids, not over the opening of
    files by the first query.
    """
    ranker, fit_seconds = fitted(index, system)
    ranker.search(queries[0].text, depth)
    run: dict[str, dict[str, float]] = {}
    milliseconds = []
    for query in track(queries, stage, total=len(queries), unit="queries"):
        allowed = _mask(candidates[query.id], len(index.documents)) if candidates else None
        start = time.perf_counter()
        rows = ranker.search(query.text, depth, allowed=allowed)
        ids = index.documents.ids([row for row, _ in rows])
        milliseconds.append((time.perf_counter() - start) * 1000)
        run[query.id] = {id: score for id, (_, score) in zip(ids, rows, strict=True)}
    return Answers(ranker, fit_seconds, run, milliseconds)


def all_documents(index: Index, step: int = 2_000) -> Iterator[Document]:
    """Every document of an index, in order of rows."""
    rows = index.documents.rows().tolist()
    for start in range(0, len(rows), step):
        yield from index.documents.documents(rows[start : start + step])


def _mask(rows: NDArray[np.int64], n: int) -> Mask:
    mask = np.zeros(n, bool)
    mask[rows] = True
    return mask


def costs(index: Index, system: System, answers: Answers, queries: Sequence[Query]) -> dict[str, Any]:
    """The fields of Ranked that say what the answers cost."""
    p50, p95 = np.percentile(answers.milliseconds, [50, 95])
    document_ms, query_ms = embedding_ms(index, answers.ranker, queries)
    return {
        "fit_seconds": answers.fit_seconds,
        "query_ms_p50": round(float(p50), 3),
        "query_ms_p95": round(float(p95), 3),
        "query_ms": [round(value, 3) for value in answers.milliseconds],
        "embed_document_ms": document_ms,
        "embed_query_ms": query_ms,
        "index_bytes": None if system.config else saved_bytes(index, answers.ranker),
    }


def embedding_ms(index: Index, ranker: Ranker, queries: Sequence[Query]) -> tuple[float | None, float | None]:
    """Milliseconds to embed one document and one query: a batch's time over its size (CoIR, section 5.1).

    Of a ranker made of others, the sum over its parts; (None, None) where nothing is embedded.
    """
    times = [_embedding_ms(index, part, [query.text for query in queries]) for part in _parts(index, ranker)]
    measured = [each for each in times if each is not None]
    if not measured:
        return None, None
    return round(sum(document for document, _ in measured), 4), round(sum(query for _, query in measured), 4)


def saved_bytes(index: Index, ranker: Ranker) -> int | None:
    """Bytes of the files that this ranker, and its parts, saved in the index; None for none."""
    names = {ranker.name, *(part.name for part in _parts(index, ranker))}
    files = (path for path in index.folder.rglob("*") if names & set(path.relative_to(index.folder).parts[:-1]))
    return sum(path.stat().st_size for path in files if path.is_file()) or None


def _parts(index: Index, ranker: Ranker) -> Iterator[Ranker]:
    """The ranker itself, or the rankers it is made of: several (fusions), or one whose ranking it changes."""
    one = [ranker.config["part"]] if "part" in ranker.config else []
    names = cast(Sequence[str], ranker.config.get("parts", one))
    if not names:
        yield ranker
    for name in names:
        yield from _parts(index, index.ranker(name))


def _embedding_ms(index: Index, ranker: Ranker, texts: Sequence[str]) -> tuple[float, float] | None:
    if isinstance(ranker, DenseRanker):
        queries = texts[:SAMPLE_OF_MODELS]
        documents = [
            text_of(each) for each in index.documents.documents(index.documents.rows()[:SAMPLE_OF_MODELS].tolist())
        ]
        ranker.model.queries(queries[:1])  # what a first call loads is not a text's latency
        return (
            _mean_ms(partial(ranker.model.documents, documents), len(documents)),
            _mean_ms(partial(ranker.model.queries, queries), len(queries)),
        )
    if not isinstance(ranker, NcsRanker) or (table := index.words().table()) is None:
        return None
    encoder, n, queries = ranker.encoder, min(SAMPLE, len(table)), texts[:SAMPLE]
    return (
        _mean_ms(partial(encoder.documents, table, 0, n), n),
        _mean_ms(lambda: [encoder.query(text) for text in queries], len(queries)),
    )


def _mean_ms(work: Callable[[], object], n: int) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000 / n


def judge(
    qrels: Qrels, run: Run, measures: Sequence[str], *, grades: Mapping[str, Mapping[str, float]] | None = None
) -> tuple[dict[str, float], dict[str, list[float | None]]]:
    """The mean of each measure, and its values in the order of the qrels, to six decimals; None where left out.

    grades: mean grades of several judges, which CodeSearchNet's two NDCG count instead of the qrels.
    """
    values = {measure: _values(qrels, run, measure, grades) for measure in measures}
    means = {measure: round(mean(column), 6) for measure, column in values.items()}
    columns = {
        measure: [round(column[query], 6) if query in column else None for query in qrels]
        for measure, column in values.items()
    }
    return means, columns


def _values(
    qrels: Qrels, run: Run, measure: str, grades: Mapping[str, Mapping[str, float]] | None
) -> Mapping[str, float]:
    values = evaluate(qrels, run, measure)
    if grades is not None and measure in CHALLENGE:
        exact = {query: grades[query] for query in qrels}
        return challenge_ndcg(exact, run, within=measure == CHALLENGE[0])
    return values


# Whole experiments.


def run_experiment(
    corpus: Corpus,
    systems: Sequence[System],
    *,
    settings: Sequence[Mapping[str, object]] = ({},),
    measures: Sequence[str] = MEASURES,
    depth: int = DEPTH,
    distractors: Distractors | None = None,
    runs: Path | None = None,
    track: Track = silent,
) -> Experiment:
    """Build an index for each of the settings and ask every query of every system; bm25 is always one.

    settings: changes to BuildConfig, by dotted name (`fasttext.dim`). Documents are extracted once.
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
    candidates = distractors.rows(documents, corpus.qrels) if distractors else None
    judged = corpus if candidates is None else replace(corpus, qrels={id: corpus.qrels[id] for id in candidates})
    plan = _Plan(judged, systems, measures, depth, candidates, runs, track)
    texts = {query.id: query.text for query in corpus.queries}
    return Experiment(
        corpus=corpus.name,
        corpus_digest=digest(documents, corpus.queries, corpus.qrels),
        documents=len(documents),
        commit=started_at,
        machine=machine(),
        depth=depth,
        measures=list(measures),
        queries=list(judged.qrels),
        builds=[_build(plan, documents, *each) for each in zip(configs, map(settings_text, settings), strict=True)],
        texts=[texts[query] for query in judged.qrels],
        candidates=str(distractors or ""),
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is the same for every build."""

    corpus: Corpus
    systems: Sequence[System]
    measures: Sequence[str]
    depth: int
    candidates: Mapping[str, NDArray[np.int64]] | None
    runs: Path | None
    track: Track


def _check_judged(corpus: Corpus, documents: Sequence[Document]) -> None:
    if corpus.fold is not None:  # files are judged, also those without a function
        return
    ids = {document.id for document in documents}
    for query, grades in corpus.qrels.items():
        for id in grades:
            if id not in ids:
                raise BadInput(f"{corpus.name}: {id!r}, judged for {query!r}, is not in the corpus; correct the qrels")


def _build(plan: _Plan, documents: Sequence[Document], config: BuildConfig, settings: str) -> Build:
    with tempfile.TemporaryDirectory(prefix="ncs-evaluate-") as folder:
        forget_peak_memory()
        start = time.perf_counter()
        with Index.of(documents, Path(folder) / "index", config=config, track=plan.track) as index:
            seconds = time.perf_counter() - start
            return Build(
                settings=settings,
                config=index.description.config,
                versions=index.description.versions,
                seconds=cast(Mapping[str, float], index.description.counts["seconds"]),
                build_seconds=round(seconds, 2),
                index_bytes=sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file()),
                peak_memory_bytes=peak_memory(),
                systems=[_rank(plan, index, system, settings) for system in plan.systems],
            )


def _rank(plan: _Plan, index: Index, system: System, settings: str) -> Ranked:
    corpus = plan.corpus
    judged = [query for query in corpus.queries if query.id in corpus.qrels]
    stage = " ".join(filter(None, (corpus.name, settings, system.name)))
    answers = ask(index, system, judged, plan.depth, candidates=plan.candidates, track=plan.track, stage=stage)
    run = corpus.judged_run(answers.run)
    if plan.runs:
        plan.runs.mkdir(parents=True, exist_ok=True)
        write_run(run, plan.runs / f"{re.sub(r'[^A-Za-z0-9_.=-]+', '-', stage)}.run", tag=system.ranker)
    means, values = judge(corpus.qrels, run, plan.measures, grades=corpus.grades)
    return Ranked(system.name, means=means, values=values, **costs(index, system, answers, judged))


def pooled(name: str, experiments: Sequence[Experiment]) -> Experiment:
    """One experiment over the queries of all, each counting the same; costs add up.

    Query ids that several corpora use get their corpus before them. Raises BadInput where the experiments do not have
    the same systems, settings, measures and depth.
    """
    first = experiments[0]
    if len(experiments) == 1:
        return replace(first, corpus=name)
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
        builds=[_pooled_build([each.builds[i] for each in experiments]) for i in range(len(first.builds))],
    )


def _shape(experiment: Experiment) -> tuple[object, ...]:
    systems = [[build.settings, [result.system for result in build.systems]] for build in experiment.builds]
    return systems, list(experiment.measures), experiment.depth, experiment.candidates


def _pooled_build(builds: Sequence[Build]) -> Build:
    stages = list(dict.fromkeys(stage for build in builds for stage in build.seconds))
    return replace(
        builds[0],
        seconds={stage: round(sum(build.seconds.get(stage, 0) for build in builds), 2) for stage in stages},
        build_seconds=round(sum(build.build_seconds for build in builds), 2),
        index_bytes=sum(build.index_bytes for build in builds),
        peak_memory_bytes=max(build.peak_memory_bytes for build in builds),
        systems=[_pooled_system([build.systems[i] for build in builds]) for i in range(len(builds[0].systems))],
    )


def _pooled_system(parts: Sequence[Ranked]) -> Ranked:
    milliseconds = [value for part in parts for value in part.query_ms]
    p50, p95 = np.percentile(milliseconds, [50, 95])
    values = {name: [value for part in parts for value in part.values[name]] for name in parts[0].values}
    defined = {name: [value for value in column if value is not None] for name, column in values.items()}
    return replace(
        parts[0],
        fit_seconds=_total([part.fit_seconds for part in parts], 2),
        query_ms_p50=round(float(p50), 3),
        query_ms_p95=round(float(p95), 3),
        query_ms=milliseconds,
        values=values,
        means={name: round(sum(column) / len(column), 6) if column else 0.0 for name, column in defined.items()},
        embed_document_ms=_median([part.embed_document_ms for part in parts]),
        embed_query_ms=_median([part.embed_query_ms for part in parts]),
        index_bytes=_total([part.index_bytes for part in parts]),
    )


def _total(values: Sequence[float | int | None], digits: int | None = None) -> int | None:
    """The sum; None where any is not known."""
    numbers = [value for value in values if value is not None]
    return round(sum(numbers), digits) if len(numbers) == len(values) else None  # type: ignore[return-value]


def _median(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return round(float(np.median(numbers)), 4) if numbers else None
