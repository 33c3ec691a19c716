"""`ncs annotate`: the pool is made once, then people judge, or what they judged is written and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.annotation import agreement, export
from evaluation.annotation.database import Judgments, is_new
from evaluation.annotation.desk import Desk
from evaluation.annotation.pool import DEFAULT_RANKERS, DEPTH, Recipe, pool
from evaluation.annotation.queries import read_queries
from ncs.errors import BadInput, MissingExtra
from ncs.index import Index
from ncs.progress import Track, silent
from ncs.serve.http.settings import Settings

PORT = 8766


@dataclass(frozen=True, slots=True)
class Request:
    """What to judge, and where the judgments lie; what is None is as it was when the pool was made.

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
        raise BadInput("--rankers names none; write for instance --rankers bm25,ncs")
    return names


@contextmanager
def opened(request: Request, *, make: bool, track: Track = silent) -> Iterator[tuple[Desk, Index]]:
    """The desk and its index; where there is no pool yet it is made, with `make` only.

    Raises BadInput where index, queries or options are not those of the database.
    """
    with Index.load(request.index) as index:
        queries = read_queries(request.queries)
        if make and is_new(request.file):
            recipe = _recipe(request)
            Judgments.create(request.file, recipe, queries, pool(index, queries, recipe, track)).close()
        with closing(Judgments(request.file)) as judgments:
            if judgments.queries != queries:
                raise BadInput(f"{request.file} is of other queries than {request.queries}; name another --database")
            if (asked := _recipe(request, judgments.recipe)) != judgments.recipe:
                raise BadInput(f"{request.file} was made with {_told(judgments.recipe)}, not {_told(asked)}; "
                               "leave these options out, or name another --database")  # fmt: skip
            yield Desk(judgments, index), index


def _recipe(request: Request, standing: Recipe = Recipe(DEFAULT_RANKERS, DEPTH)) -> Recipe:  # noqa: B008  (frozen)
    given = {name: getattr(request, name) for name in ("rankers", "k", "languages", "seed")}
    return replace(standing, **{name: value for name, value in given.items() if value is not None})


def _told(recipe: Recipe) -> str:
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
        opened(request, make=True, track=track) as (desk, _),
        closing(listen(settings.host, settings.port)) as listening,
    ):
        there = desk.begin()
        judged = sum(there["annotators"].values())
        say(f"ncs: {there['pairs']:,} functions for {there['queries']:,} queries, {judged:,} judgments so far, all in "
            f"{request.file}")  # fmt: skip
        say(f"ncs: judge at http://{settings.host}:{listening.getsockname()[1]}")
        run(create_app(desk, settings, token), listening, quiet=settings.quiet)
    say("ncs: stopped")


def write(request: Request, say: Callable[[str], None], *, to: Path | None, runs: Path | None) -> None:
    """Write judgments, and the rankers' runs."""
    with opened(request, make=False) as (desk, index):
        if to is not None:
            say(f"ncs: {export.export(desk, index, to)}")
        if runs is not None:
            say(f"ncs: {', '.join(map(str, export.export_runs(desk, runs)))}")


def agreed(request: Request) -> str:
    """How far annotators agree, a line each two."""
    with opened(request, make=False) as (desk, _):
        return agreement.shown(agreement.agreements(desk.judgments.answers()))
