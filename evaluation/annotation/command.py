"""`ncs annotate`: makes the pool, serves the page, and exports and compares judgments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from corpora.corpus import Corpus, write_beir
from corpora.tables import write_table
from corpora.trec import write_qrels, write_run
from evaluation.annotation.judgments import Judgments, grades_of, is_new, qrels_of
from evaluation.annotation.pool import Recipe, make_pool, read_queries, runs
from evaluation.annotation.session import Session
from evaluation.experiments import all_documents
from ncs.console import count
from ncs.errors import BadInput, needing
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.serve.http.settings import Settings

PORT = 8766
COLUMNS = ("Language", "Query", "GitHubUrl", "Relevance", "Notes")
"""The columns of annotationStore.csv."""
_SPELLINGS = {"javascript": "JavaScript", "typescript": "TypeScript", "php": "PHP"}


@dataclass(frozen=True, slots=True)
class Request:
    """An index, queries and a database (None: QUERIES.judgments.sqlite beside the queries).

    The options of the pool are None where they are as in the database, or the defaults.
    """

    index: Path
    queries: Path
    database: Path | None = None
    rankers: tuple[str, ...] | None = None
    k: int | None = None
    languages: tuple[str, ...] | None = None
    seed: int | None = None

    @property
    def file(self) -> Path:
        """The database."""
        return self.database or self.queries.with_name(self.queries.name + ".judgments.sqlite")

    def recipe(self, default: Recipe) -> Recipe:
        """The default with the options that are given."""
        options = {name: getattr(self, name) for name in ("rankers", "k", "languages", "seed")}
        return replace(default, **{name: value for name, value in options.items() if value is not None})


def ranker_names(text: str) -> tuple[str, ...]:
    """Names between commas, each once. Raises BadInput for none.

    >>> ranker_names("bm25, ncs,bm25")
    ('bm25', 'ncs')
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadInput("--rankers is empty; write for instance --rankers bm25,ncs")
    return names


@contextmanager
def open_session(request: Request, *, make: bool, track: Track = silent) -> Iterator[Session]:
    """The session; with `make`, where there is no pool yet it is made.

    Raises BadInput where index, queries or options are not those of the database.
    """
    with Index.load(request.index) as index:
        queries = read_queries(request.queries)
        if make and is_new(request.file):
            recipe = request.recipe(Recipe())
            Judgments.create(request.file, recipe, queries, make_pool(index, queries, recipe, track)).close()
        with closing(Judgments(request.file)) as judgments:
            if judgments.queries != queries:
                raise BadInput(f"{request.file} has other queries than {request.queries}; name another --database")
            if (recipe := request.recipe(judgments.recipe)) != judgments.recipe:
                raise BadInput(f"{request.file} was made with {judgments.recipe}, not {recipe}; "
                               "leave these options out, or name another --database")  # fmt: skip
            yield Session(judgments, index)


def serve(
    request: Request, say: Callable[[str], None], *, port: int, token: str | None, quiet: bool, track: Track = silent
) -> None:
    """Show the page on this machine until SIGTERM or ctrl-C. Raises MissingExtra without the extra `server`."""
    with needing("ncs annotate", "server"):
        from evaluation.annotation.app import create_app
        from ncs.serve.http.app import listen, run
    settings = Settings({}, port=port, quiet=quiet)
    with (
        open_session(request, make=True, track=track) as session,
        closing(listen(settings.host, settings.port)) as listening,
    ):
        overview = session.overview()
        size = f"{count(overview['pairs'], 'function')} for {count(overview['queries'], 'query', 'queries')}"
        judgments = count(sum(overview["annotators"].values()), "judgment")
        say(f"ncs: {size}, {judgments} so far, all in {request.file}")
        say(f"ncs: judge at http://{settings.host}:{listening.getsockname()[1]}")
        run(create_app(session, settings, token), listening, quiet=settings.quiet)
    say("ncs: stopped")


def write(request: Request, say: Callable[[str], None], *, to: Path | None, runs: Path | None) -> None:
    """Write judgments, and the rankers' runs."""
    with open_session(request, make=False) as session:
        if to is not None:
            say(f"ncs: {export(session, to)}")
        if runs is not None:
            say(f"ncs: {', '.join(map(str, export_runs(session, runs)))}")


def agreement_report(request: Request) -> str:
    """The agreement of annotators, one line per pair of them."""
    with open_session(request, make=False) as session:
        return "\n".join(map(str, agreements(grades_of(session.judgments.answers()))))


# Export.


def export(session: Session, path: Path) -> str:
    """Write the judgments; returns a sentence with their number.

    FILE.csv: a row per judgment in annotationStore's columns. A folder that is there: BEIR, with every document of the
    index. Any other name: TREC qrels, of several people's grades the mean, halves rounded up.
    Raises BadInput where nothing is judged and for ids that the form cannot hold.
    """
    qrels = qrels_of(session.judgments.pairs, session.judgments.answers())
    n_judged = sum(map(len, qrels.values()))
    if not n_judged:
        raise BadInput(f"nothing is judged in {session.judgments.path} yet; judge first, without --export")
    try:
        if path.is_dir():
            queries = tuple(query for query in session.judgments.queries if query.id in qrels)
            write_beir(Corpus(path.name, queries, qrels, partial(all_documents, session.index)), path)
        elif path.suffix.lower() == ".csv":
            _write_csv(session, path)
        else:
            write_qrels(qrels, path)
    except UnicodeEncodeError as error:
        raise BadInput(f"{path} cannot hold {error.object[:80]!r}, which is not Unicode; rename that file") from None
    except OSError as error:
        raise BadInput(f"cannot write {path} ({error.strerror}); name another file") from None
    return f"{n_judged:,} of {len(session.judgments.pairs):,} pairs are judged, of {len(qrels):,} queries: {path}"


def export_runs(session: Session, folder: Path) -> list[Path]:
    """A TREC run per ranker, of the queries with a judgment: what `bin/evaluate --compare` takes."""
    qrels = qrels_of(session.judgments.pairs, session.judgments.answers())
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for ranker, run in runs(session.judgments.pairs, session.judgments.recipe).items():
        paths.append(folder / f"{ranker}.run")
        write_run({query: run[query] for query in run if query in qrels}, paths[-1], tag=ranker)
    return paths


def _write_csv(session: Session, path: Path) -> None:
    texts = {query.id: query.text for query in session.judgments.queries}
    rows = []
    for answer in session.judgments.answers():
        if answer.grade is not None:
            pair = session.judgments.pairs[answer.pair - 1]
            language = _SPELLINGS.get(pair.language, pair.language.capitalize())
            rows.append((language, texts[pair.query], session.url_or_id(pair.document), answer.grade, answer.notes))
    write_table(path, COLUMNS, rows)


# Agreement.


@dataclass(frozen=True, slots=True)
class Agreement:
    """Annotators over the pairs that two of them judged. same: share of equal grades; kappa: Cohen's with squared
    weights, as CodeSearchNet reports it (section 3), None where it is 0 / 0.
    """

    names: str
    pairs: int
    same: float
    kappa: float | None

    def __str__(self) -> str:
        value = "not defined (all grades are the same)" if self.kappa is None else f"{self.kappa:.3f}"
        return f"{self.names}: {self.pairs:,} judged by both, {self.same:.0%} alike, squared Cohen's kappa {value}"


def agreements(grades: Mapping[int, Mapping[str, int]]) -> list[Agreement]:
    """The agreement of every two annotators with common pairs, by name; of more than two also of everybody.

    grades: pair -> annotator -> grade. Everybody: each two judgments of a pair count in both orders, so that the order
    of names does not matter. Raises BadInput where no pair has two annotators.
    """
    names = sorted({name for by_annotator in grades.values() for name in by_annotator})
    result, left, right = list[Agreement](), list[int](), list[int]()
    for first, second in combinations(names, 2):
        common = [(each[first], each[second]) for each in grades.values() if first in each and second in each]
        if common:
            a, b = zip(*common, strict=True)
            result.append(_agreement(f"{first} and {second}", len(common), a, b))
            left += [*a, *b]
            right += [*b, *a]
    if not result:
        raise BadInput("no function was judged by two people for the same query; agreement needs a second annotator")
    if len(names) > 2:
        result.append(_agreement("everybody", sum(len(each) > 1 for each in grades.values()), left, right))
    return result


def _agreement(names: str, pairs: int, left: Sequence[int], right: Sequence[int]) -> Agreement:
    from sklearn.metrics import cohen_kappa_score

    varied = len({*left, *right}) > 1
    kappa = float(cohen_kappa_score(left, right, labels=(0, 1, 2, 3), weights="quadratic")) if varied else None
    return Agreement(names, pairs, float(np.mean(np.equal(left, right))), kappa)
