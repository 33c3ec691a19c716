"""`ncs annotate`: makes the pool, serves the page, and exports and compares judgments."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from corpora.corpus import Corpus, write_beir
from corpora.trec import write_qrels, write_run
from evaluation.annotation.judgments import Judgments, agreement_text, agreements, is_new, qrels_of
from evaluation.annotation.pool import DEFAULT_RANKERS, DEPTH, Recipe, pool, read_queries, runs
from evaluation.annotation.session import Session
from evaluation.experiments import all_documents
from ncs.errors import BadInput, MissingExtra
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.serve.http.settings import Settings
from ncs.types import Qrels

T = TypeVar("T")
PORT = 8766
COLUMNS = ("Language", "Query", "GitHubUrl", "Relevance", "Notes")
"""Of annotationStore.csv."""
_SPELLED = {"javascript": "JavaScript", "typescript": "TypeScript", "php": "PHP"}


@dataclass(frozen=True, slots=True)
class Request:
    """What to judge, and the database; None: as when the pool was made.

    database: else QUERIES.judgments.sqlite beside the queries.
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
def open_session(request: Request, *, make: bool, track: Track = silent) -> Iterator[tuple[Session, Index]]:
    """The session and its index; with `make`, where there is no pool yet it is made.

    Raises BadInput where index, queries or options are not those of the database.
    """
    with Index.load(request.index) as index:
        queries = read_queries(request.queries)
        if make and is_new(request.file):
            recipe = _recipe(request)
            Judgments.create(request.file, recipe, queries, pool(index, queries, recipe, track)).close()
        with closing(Judgments(request.file)) as judgments:
            if judgments.queries != queries:
                raise BadInput(f"{request.file} has other queries than {request.queries}; name another --database")
            if (recipe := _recipe(request, judgments.recipe)) != judgments.recipe:
                raise BadInput(f"{request.file} was made with {_options(judgments.recipe)}, not {_options(recipe)}; "
                               "leave these options out, or name another --database")  # fmt: skip
            yield Session(judgments, index), index


def _recipe(request: Request, default: Recipe = Recipe(DEFAULT_RANKERS, DEPTH)) -> Recipe:  # noqa: B008  (frozen)
    options = {name: getattr(request, name) for name in ("rankers", "k", "languages", "seed")}
    return replace(default, **{name: value for name, value in options.items() if value is not None})


def _options(recipe: Recipe) -> str:
    languages = f" --language {' --language '.join(recipe.languages)}" if recipe.languages else ""
    return f"--rankers {','.join(recipe.rankers)} -k {recipe.k}{languages} --seed {recipe.seed}"


def serve(
    request: Request, say: Callable[[str], None], *, port: int, token: str | None, quiet: bool, track: Track = silent
) -> None:
    """Show the page on this machine until SIGTERM or ctrl-C. Raises MissingExtra without the extra `server`."""
    try:
        from evaluation.annotation.app import create_app
        from ncs.serve.http.app import listen, run
    except ImportError as error:
        raise MissingExtra(f"ncs annotate needs {error.name}; pip install 'neural-code-search[server]'") from error
    settings = Settings({}, port=port, quiet=quiet)
    with (
        open_session(request, make=True, track=track) as (session, _),
        closing(listen(settings.host, settings.port)) as listening,
    ):
        overview = session.overview()
        n_judgments = sum(overview["annotators"].values())
        size = f"{_count(overview['pairs'], 'function')} for {_count(overview['queries'], 'query', 'queries')}"
        say(f"ncs: {size}, {_count(n_judgments, 'judgment')} so far, all in {request.file}")
        say(f"ncs: judge at http://{settings.host}:{listening.getsockname()[1]}")
        run(create_app(session, settings, token), listening, quiet=settings.quiet)
    say("ncs: stopped")


def _count(n: int, singular: str, plural: str = "") -> str:
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def write(request: Request, say: Callable[[str], None], *, to: Path | None, runs: Path | None) -> None:
    """Write judgments, and the rankers' runs."""
    with open_session(request, make=False) as (session, index):
        if to is not None:
            say(f"ncs: {export(session, index, to)}")
        if runs is not None:
            say(f"ncs: {', '.join(map(str, export_runs(session, runs)))}")


def agreement_report(request: Request) -> str:
    """The agreement of annotators, one line per pair of them."""
    with open_session(request, make=False) as (session, _):
        return agreement_text(agreements(session.judgments.answers()))


# Export.


def export(session: Session, index: Index, path: Path) -> str:
    """Write the judgments and say what was written.

    FILE.csv: a row per judgment in annotationStore's columns. A folder that is there: BEIR, with every document of the
    index. Any other name: TREC qrels, of several people's grades the mean, halves rounded up (`trec_id`).
    Raises BadInput where nothing is judged and for ids that the form cannot hold.
    """
    answers = session.judgments.answers()
    qrels = qrels_of(session.judgments.pairs, answers)
    n_judged = sum(map(len, qrels.values()))
    if not n_judged:
        raise BadInput(f"nothing is judged in {session.judgments.path} yet; judge first, without --export")
    try:
        if path.is_dir():
            _write_beir(session, index, qrels, path)
        else:
            _write_whole(session, qrels, path)
    except UnicodeEncodeError as error:
        raise BadInput(f"{path} cannot hold {error.object[:80]!r}, which is not Unicode; rename that file") from None
    except OSError as error:
        raise BadInput(f"cannot write {path} ({error.strerror}); name another file") from None
    return f"{n_judged:,} of {len(session.judgments.pairs):,} pairs are judged, of {len(qrels):,} queries: {path}"


def export_runs(session: Session, folder: Path) -> list[Path]:
    """A TREC run per ranker, of the queries with a judgment: what `bin/evaluate --compare` takes."""
    judged_qrels = qrels_of(session.judgments.pairs, session.judgments.answers())
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for ranker, run in runs(session.judgments.pairs, session.judgments.recipe).items():
        paths.append(folder / f"{ranker}.run")
        of_judged = {query: scores for query, scores in run.items() if query in judged_qrels}
        write_run(_trec_ids(of_judged), paths[-1], tag=ranker)
    return paths


def _write_whole(session: Session, qrels: Qrels, path: Path) -> None:
    """Write a file atomically."""
    part = path.with_name(path.name + ".part")
    try:
        if path.suffix.lower() == ".csv":
            _write_csv(session, part)
        else:
            write_qrels(_trec_ids(qrels), part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def trec_id(id: str) -> str:
    """An id for TREC files, which cannot hold white space.

    >>> trec_id("my app/a.py:1"), trec_id("app/a%b.py:1")
    ('my%20app/a.py:1', 'app/a%b.py:1')
    """
    return re.sub(r"\s", lambda space: quote(space[0]), id)


def _trec_ids(by_query: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
    renamed = {query: {trec_id(id): value for id, value in values.items()} for query, values in by_query.items()}
    if any(len(renamed[query]) < len(values) for query, values in by_query.items()):
        raise BadInput("two ids differ only in white space and %20; make a folder and export into it, as BEIR")
    return renamed


def _write_csv(session: Session, path: Path) -> None:
    texts = {query.id: query.text for query in session.judgments.queries}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for answer in session.judgments.answers():
            if answer.grade is not None:
                pair = session.judgments.pairs[answer.pair - 1]
                language = _SPELLED.get(pair.language, pair.language.capitalize())
                url = session.url_or_id(pair.document)
                writer.writerow((language, texts[pair.query], url, answer.grade, answer.notes))


def _write_beir(session: Session, index: Index, qrels: Qrels, folder: Path) -> None:
    queries = tuple(query for query in session.judgments.queries if query.id in qrels)
    write_beir(Corpus(folder.name, queries, qrels, partial(all_documents, index)), folder)
