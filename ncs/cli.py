"""The commands of `ncs`. Thin: each parses its options and calls the engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before numpy: idle thread pools cost a cold query 50 ms
    os.environ.setdefault(_threads, "1")

import typer

from ncs import __version__, console
from ncs.errors import BadInput, NcsError
from ncs.rankers import RANKERS

FOUND, NOTHING_FOUND, FAILED = 0, 1, 2

app = typer.Typer(
    name="ncs",
    help="Search code by what it does. Everything is learnt from your code, on your machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

IndexOption = Annotated[
    Path | None,
    typer.Option(
        "-i", "--index", help="Index folder; else $NCS_INDEX, else .ncs here or in a folder above.", envvar="NCS_INDEX"
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, no summary.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ncs {__version__}")
        raise typer.Exit


_AS_IT_IS: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Of commands whose arguments are another parser's."""


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def build(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders, git repositories (bare ones too), archives.", show_default=False),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option("-i", "--index", help="Where to write the index.", envvar="NCS_INDEX", show_default=".ncs"),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Read git repositories at this revision.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that extract.", show_default="one a core")
    ] = None,
    java_frontend: Annotated[
        str | None, typer.Option(help="tree-sitter or javalang.", show_default="tree-sitter")
    ] = None,
    no_store_code: Annotated[
        bool, typer.Option("--no-store-code", help="Keep paths and lines only, not the code.")
    ] = False,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Leave out files that no grammar reads: settings, Perl, R, Julia ...")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Index a home folder or a drive's root all the same.")] = False,
    embeddings: Annotated[
        str | None,
        typer.Option(help="What learns word vectors: lsa, fasttext.", show_default="auto: lsa in small projects"),
    ] = None,
    warm_start: Annotated[
        str | None,
        typer.Option(help="Learn word vectors from this code too: stdlib, a folder, an index; it is not searched."),
    ] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Embedding size of fastText, as all below.")] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Skip-gram window.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the corpus.")] = None,
    min_count: Annotated[int | None, typer.Option(min=1, help="Words rarer than this get no vector.")] = None,
    min_n: Annotated[int | None, typer.Option(min=0, help="Shortest sub-word; 0: none.")] = None,
    max_n: Annotated[int | None, typer.Option(min=0, help="Longest sub-word; 0: none.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Training threads; more than one does not repeat exactly.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the training.")] = None,
    pretrained: Annotated[Path | None, typer.Option(help="Word vectors to start from (.vec).")] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(help="Fit this ranker too: two_field, ncs_postrank, ncs_enhanced:pairs=FILE ...; repeatable."),
    ] = None,
    head: Annotated[Path | None, typer.Option(help="Fit the ranker unif by this learnt head (ncs train).")] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(help="Fit this ranker over the index that stands, without sources; repeatable.", metavar="RANKER"),
    ] = None,
    draw: Annotated[bool, typer.Option("--map", help="Draw the map, too, as ncs map does; updates drop it.")] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Name skipped, broken and failed files; stage times.")
    ] = False,
) -> None:
    """Learn from source trees and write an index.

    Example: ncs build ./repos
    """
    learnt = [f"unif:head={head.resolve()}"] if head else []
    if add or (head and not sources):
        _add(sources, [*(add or ()), *learnt], index, quiet)
        return
    if not sources:
        raise BadInput("name a folder with source files: ncs build SOURCES")
    from ncs.embeddings import FastTextConfig
    from ncs.folder import DEFAULT_NAME
    from ncs.index import BuildConfig, Index

    learning = _given(
        dim=dim, window=window, epochs=epochs, min_count=min_count, min_n=min_n, max_n=max_n,
        threads=threads, seed=seed, pretrained=str(pretrained) if pretrained else None,
    )  # fmt: skip
    config = BuildConfig(
        fasttext=FastTextConfig(**learning),
        store_code=not no_store_code,
        texts=not no_texts,
        revision=revision,
        rankers=(*(ranker or ()), *learnt),
        **_given(java_frontend=java_frontend, embeddings=embeddings, warm_start=warm_start),
    )
    folder = index or Path(DEFAULT_NAME)
    with Index.build(
        sources, folder, config=config, workers=workers, force=force, track=console.tracker(quiet)
    ) as built:
        if not quiet:
            console.say_built(built.manifest, folder, verbose)
    if draw:
        _draw(folder, quiet)


def _add(sources: list[Path] | None, rankers: list[str], index: Path | None, quiet: bool) -> None:
    from ncs.adding import add_rankers

    if sources:
        raise BadInput("--add takes the index as it stands; leave out the sources, or build with --ranker")
    seconds = add_rankers(_folder(index), rankers, track=console.tracker(quiet))
    if not quiet:
        for name, took in seconds.items():
            console.say(f"{name}: fitted in {took:.1f} s; ask it with: ncs query --ranker {name}")


@app.command(context_settings=_AS_IT_IS)
def train(context: typer.Context) -> None:
    """Learn a head from (question, code) pairs or from the index itself: unif, nbow, cnn, birnn, selfatt or mixed.

    Example: ncs train unif --index .ncs --pairs pairs.jsonl.gz --out HEAD; all options: ncs train unif --help
    """
    raise typer.Exit(_unif("train", context))


@app.command(context_settings=_AS_IT_IS)
def explain_attention(context: typer.Context) -> None:
    """Which words of the best hit a learnt head weighs, beside TF-IDF.

    Example: ncs explain-attention "hide soft keyboard"; all options: ncs explain-attention --help
    """
    raise typer.Exit(_unif("explain-attention", context))


def _unif(command: str, context: typer.Context) -> int:
    """Learnt heads have a command line of their own, imported when it is asked for; it needs torch to train only."""
    from importlib import import_module

    code: int = import_module("unif.__main__").main([command, *context.args])
    return code


@app.command()
def update(
    index: IndexOption = None,
    retrain: Annotated[bool, typer.Option("--retrain", help="Learn word vectors anew too.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that extract.", show_default="one a core")
    ] = None,
    quiet: Quiet = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Name new, changed and removed files.")] = False,
) -> None:
    """Bring an index up to date with its sources; only files that changed are read.

    Example: ncs update
    """
    from ncs.index import Index

    updated, changes = Index.update(_folder(index), retrain=retrain, workers=workers, track=console.tracker(quiet))
    with updated:
        if not quiet:
            console.say_updated(updated.manifest, changes, verbose)


@app.command()
def query(
    text: Annotated[list[str], typer.Argument(help="What the function does, or its name.", show_default=False)],
    k: Annotated[int, typer.Option("-k", min=1, help="How many hits.")] = 10,
    ranker: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(RANKERS)}; some only where the build fitted them.", show_default="hybrid"),
    ] = None,
    language: Annotated[str | None, typer.Option(help="Only this language.")] = None,
    repository: Annotated[str | None, typer.Option(help="Only repositories that match this glob.")] = None,
    path: Annotated[str | None, typer.Option(help="Only paths that match this glob.")] = None,
    as_json: Json = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="A JSON object a line, one a hit.")] = False,
    no_code: Annotated[bool, typer.Option("--no-code", help="Names and places only.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each hit is one.")] = False,
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out hits less likely to be right than this, 0 to 1.")
    ] = None,
    unfold: Annotated[bool, typer.Option("--unfold", help="Near duplicates as hits of their own.")] = False,
    index: IndexOption = None,
    quiet: Quiet = False,
) -> None:
    """Find functions by what they do. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs query "hide soft keyboard" -k 3
    """
    from ncs.answer import ask
    from ncs.rankers import DEFAULT_RANKER

    with _open(index) as opened:
        answer = ask(
            opened, " ".join(text), k,
            ranker=ranker or DEFAULT_RANKER, language=language, repository=repository, path=path, code=not no_code,
            explain=explain, min_confidence=min_confidence, unfold=unfold,
        )  # fmt: skip
    _show(answer, as_json, jsonl, not no_code, quiet)


@app.command()
def similar(
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="A line of a function.", show_default=False)],
    k: Annotated[int, typer.Option("-k", min=1, help="How many hits.")] = 10,
    language: Annotated[str | None, typer.Option(help="Only this language.")] = None,
    repository: Annotated[str | None, typer.Option(help="Only repositories that match this glob.")] = None,
    path: Annotated[str | None, typer.Option(help="Only paths that match this glob.")] = None,
    as_json: Json = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="A JSON object a line, one a hit.")] = False,
    no_code: Annotated[bool, typer.Option("--no-code", help="Names and places only.")] = False,
    index: IndexOption = None,
    quiet: Quiet = False,
) -> None:
    """Find functions like the one at a line of a file. Exit status: 0 found, 1 nothing found, 2 error.

    Example: ncs similar src/Main.java:42
    """
    from ncs.answer import ask_similar

    with _open(index) as opened:
        answer = ask_similar(
            opened, place, k, language=language, repository=repository, path=path, code=not no_code
        )  # fmt: skip
    _show(answer, as_json, jsonl, not no_code, quiet)


@app.command()
def info(
    index: IndexOption = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its checksum.")] = False,
    as_json: Json = False,
) -> None:
    """What is in the index: repositories, languages, documents, configuration, sizes."""
    from ncs.answer import describe
    from ncs.index import Index

    folder = _folder(index)
    with Index.load(folder, verify=verify) as opened:
        described = describe(opened)
    if as_json:
        console.show_json(described)
    else:
        console.show_info(described)


@app.command()
def words(
    word: Annotated[str, typer.Argument(help="A word.", show_default=False)],
    n: Annotated[int, typer.Option("-n", min=1, help="How many neighbours.")] = 10,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """Words the index has learnt to use like this one.

    Example: ncs words keyboard
    """
    from ncs.answer import words_like

    with _open(index) as opened:
        answer = words_like(opened, word, n)
    found = answer["words"]
    if found is None:
        hint = f"; near it in spelling: {', '.join(answer['near'])}" if answer["near"] else ""
        console.say(f"ncs: the index does not know the word {word!r}{hint}")
        raise typer.Exit(NOTHING_FOUND)
    if as_json:
        console.show_json({"word": word, "words": found})
    else:
        console.show_table(f"words used like {word!r}", [(one["word"], f"{one['similarity']:.3f}") for one in found])
    raise typer.Exit(FOUND if found else NOTHING_FOUND)


@app.command(name="map")
def draw_map(
    index: IndexOption = None,
    points: Annotated[
        int | None, typer.Option(min=5, help="Documents drawn; a sample of larger indexes.", show_default="20000")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the sample and the picture.")] = None,
    quiet: Quiet = False,
) -> None:
    """Draw the index as a picture of its document vectors, for the page of `ncs serve`.

    Example: ncs map -i .ncs
    """
    _draw(_folder(index), quiet, **_given(points=points, seed=seed))


def _draw(folder: Path, quiet: bool, **options: int) -> None:
    from ncs.map import make_map

    drawn = make_map(folder, track=console.tracker(quiet), **options)
    if not quiet:
        console.say(f"{len(drawn.rows):,} points in {folder}; see them with: ncs serve -i {folder}")


@app.command()
def evaluate(
    questions: Annotated[
        Path, typer.Argument(help="JSON file: stackoverflow_id, question, answer.", show_default=False)
    ],
    index: Annotated[
        list[Path] | None,
        typer.Option("-i", "--index", help="Index folder; repeatable.", show_default=".ncs, here or above"),
    ] = None,
    ranker: Annotated[
        list[str] | None, typer.Option(help="Ranker, bm25 beside it; repeatable.", show_default="all there are")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Hits a question that are judged.")] = 10,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="Write everything as JSON; a stopped run goes on from beside it.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a line a ranker.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Write the rank of the first correct hit of every question.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page with tables and plots.")] = None,
    quiet: Quiet = False,
) -> None:
    """How good the rankers are at questions whose answers you have: Answered@k and MRR.

    Example: ncs evaluate questions.json --html report.html
    """
    from dataclasses import asdict

    from evaluation import stackoverflow

    files = {"json": out, "csv": csv, "sheet": sheet, "html": html}
    request = stackoverflow.Request(questions, index or [_folder(None)], ranker or (), k, files, quiet=quiet)
    found = stackoverflow.evaluate(request)
    if as_json:
        console.show_json(asdict(found))
    else:
        typer.echo(stackoverflow.shown(found), nl=False)


@app.command()
def tune(
    from_feedback: Annotated[
        Path | None, typer.Option(help="Lines of a question, a tab, and the id, path:line or name of its function.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC qrels; the lines of --from-feedback then are: query id, tab, question.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Use the weights even if they do not win.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Go back to the weights of the build.")] = False,
    as_json: Json = False,
    index: IndexOption = None,
) -> None:
    """Fit the ranking to your own questions. Exit status: 0 done, 1 not used because it does not win, 2 error.

    Example: ncs tune --from-feedback questions.tsv
    """
    from dataclasses import asdict

    from ncs import tuning
    from ncs.feedback import read_feedback

    if reset == (from_feedback is not None):
        raise BadInput("name a file with --from-feedback, or take back what was tuned with --reset")
    with _open(index) as opened:
        if from_feedback is None:
            console.say("back at the weights of the build" if tuning.reset(opened) else "nothing was tuned")
            return
        tuned = tuning.tune(opened, read_feedback(from_feedback, opened.store, qrels=qrels), force=force)
        if as_json:
            console.show_json(asdict(tuned))
        else:
            typer.echo(tuning.told(tuned))
    raise typer.Exit(FOUND if tuned.written else NOTHING_FOUND)


@app.command()
def serve(
    index: Annotated[
        list[str] | None,
        typer.Option("-i", "--index", help="Index folder, or name=FOLDER; repeatable.", show_default=".ncs"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback lets others read your code.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8765,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name that the server may be called by, behind a proxy; repeatable.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that requests must bear; else $NCS_TOKEN.")
    ] = None,
    feedback: Annotated[
        list[str] | None,
        typer.Option(help="FILE for thumbs up and down, for `ncs tune`; name=FILE for further indexes; repeatable."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, max=64, help="Processes that search.", show_default="one a core, at most 4")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(min=0.05, max=600, help="Seconds a request may take.", show_default="10")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No line a request.")] = False,
) -> None:
    """Answer searches over HTTP, on this machine only unless --host says otherwise.

    Example: ncs serve -i .ncs --port 8765
    """
    from ncs.errors import MissingExtra
    from ncs.server.settings import Settings, default_workers, feedback_files, named, read_token

    folders = named(index or [os.environ.get("NCS_INDEX") or str(_folder(None))])
    settings = Settings(
        folders, feedback_files(feedback or [], list(folders)), host, port, tuple(allow_host or ()),
        workers=default_workers() if workers is None else workers, quiet=quiet, **_given(seconds=time_limit),
    )  # fmt: skip
    token = read_token(token_file, os.environ)
    try:
        from ncs.server import serving
    except ImportError as error:
        raise MissingExtra(f"ncs serve needs {error.name}; pip install 'neural-code-search[server]'") from error
    serving.serve(settings, token, console.say)


corpus_app = typer.Typer(no_args_is_help=True, help="Make data sets to learn from and to evaluate on.")
app.add_typer(corpus_app, name="corpus")


@corpus_app.callback()
def _corpus() -> None:
    pass


@corpus_app.command()
def codesearchnet(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Folders of repositories (bare ones too), archives, site-packages.", show_default=False),
    ],
    out: Annotated[Path, typer.Argument(help="Folder of the corpus; a stopped run goes on.", show_default=False)],
    language: Annotated[
        list[str] | None, typer.Option(help="Only this language; repeatable.", show_default="all")
    ] = None,
    licence: Annotated[
        list[str] | None,
        typer.Option(help="Allowed SPDX id; repeatable.", show_default="those that permit to pass on parts"),
    ] = None,
    any_licence: Annotated[
        bool, typer.Option("--any-licence", help="Repositories without an allowed licence too.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Of the split by repository.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one a core")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pairs of function and documentation in CodeSearchNet's shape, with its filters, from repositories.

    Example: ncs corpus codesearchnet ./repos ./corpus
    """
    from corpora.codesearchnet import commands

    made = commands.make(
        sources, out, workers=workers, track=console.tracker(quiet),
        **_given(language=language, licence=licence, any_licence=any_licence or None, seed=seed),
    )  # fmt: skip
    if as_json:
        console.show_json(made)
    else:
        commands.show(made)


def _show(answer: Any, as_json: bool, jsonl: bool, code: bool, quiet: bool) -> None:
    """Hits in the form asked for, notes on stderr; then the command ends."""
    if as_json:
        console.show_json(answer)
    elif jsonl:
        for hit in answer["hits"]:
            console.show_json(hit, indent=None)
    else:
        console.show_answer(answer, code=code)
    if not quiet:
        console.say_notes(answer)
    raise typer.Exit(FOUND if answer["hits"] else NOTHING_FOUND)


def _given(**options: Any) -> dict[str, Any]:
    """Only what the user set: defaults are written once, in the engine."""
    return {name: value for name, value in options.items() if value is not None}


def _folder(index: Path | None) -> Path:
    from ncs.folder import find_index

    return index or find_index(Path.cwd())


def _open(index: Path | None) -> Any:
    from ncs.index import Index

    return Index.load(_folder(index))


def main(run: Callable[[], None] = app) -> None:
    """The `ncs` command: an NcsError is one line on stderr and exit status 2."""
    try:
        run()
    except NcsError as error:
        console.say(f"ncs: {error}")
        sys.exit(FAILED)
    except KeyboardInterrupt:
        console.say("ncs: stopped")
        sys.exit(130)
    except BrokenPipeError:  # the reader (head, less) has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FOUND)


if __name__ == "__main__":
    main()
