"""`ncs build`: an index from source trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncs.build.memory import size_of
from ncs.cli import output
from ncs.cli.options import Quiet, Store, Workers, index_folder, without_none
from ncs.cli.publish import Publisher
from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.build.request import Ingest


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
    workers: Workers = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Read on a Dask cluster: tcp://HOST:8786, or local for --workers processes of this machine."),
    ] = None,
    give_up: Annotated[
        float | None,
        typer.Option(min=1, help="On a cluster: leave out a repository that takes longer (seconds, on two workers)."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Limit for all processes of the build together: 2GiB.", show_default="half of the machine's"),
    ] = None,
    java_frontend: Annotated[
        str | None, typer.Option(help="tree-sitter or javalang.", show_default="tree-sitter")
    ] = None,
    no_store_code: Annotated[
        bool, typer.Option("--no-store-code", help="Store paths and lines only, not the code.")
    ] = False,
    no_texts: Annotated[
        bool, typer.Option("--no-texts", help="Leave out files without a grammar: settings, Perl, R, Julia ...")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Index even a home folder or a drive's root.")] = False,
    embeddings: Annotated[
        str | None,
        typer.Option(help="How word vectors are learned: lsa, fasttext.", show_default="auto: lsa in small projects"),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(help="How vectors are searched: exact, pq.", show_default="auto: exact up to 300,000"),
    ] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="fastText: embedding size.")] = None,
    window: Annotated[int | None, typer.Option(min=1, help="fastText: skip-gram window.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="fastText: passes over the corpus.")] = None,
    min_count: Annotated[int | None, typer.Option(min=1, help="fastText: rarer words get no vector.")] = None,
    min_n: Annotated[int | None, typer.Option(min=0, help="fastText: shortest sub-word; 0: none.")] = None,
    max_n: Annotated[int | None, typer.Option(min=0, help="fastText: longest sub-word; 0: none.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="fastText: threads; with more than one, results vary.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="fastText: seed.")] = None,
    pretrained: Annotated[Path | None, typer.Option(help="fastText: word vectors to start from (.vec).")] = None,
    ranker: Annotated[
        list[str] | None,
        typer.Option(help="Fit this ranker, too: two_field, ncs_postrank, ncs_enhanced:pairs=FILE ...; repeatable."),
    ] = None,
    head: Annotated[Path | None, typer.Option(help="Fit the ranker unif with this learned head (ncs train).")] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(help="Fit this ranker over an existing index, without sources; repeatable.", metavar="RANKER"),
    ] = None,
    store: Store = None,
    draw: Annotated[bool, typer.Option("--map", help="Draw the map, too (ncs map); updates keep it.")] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="List skipped, broken and failed files; time per stage.")
    ] = False,
) -> None:
    """Learn from source trees and write an index.

    Example: ncs build ./repos
    """
    heads = [f"unif:head={head.resolve()}"] if head else []
    if store and not (sources or add or head):
        Publisher(index_folder(index), store, quiet=quiet).finish()
        return
    if add or (head and not sources):
        _add(sources, [*(add or ()), *heads], index, quiet)
        return
    if not sources:
        raise BadInput("name a folder with source files, such as this one: ncs build .")
    from ncs.config import BuildConfig, FastTextConfig
    from ncs.index import Index
    from ncs.storage.snapshot import DEFAULT_NAME

    fasttext = without_none(
        dim=dim, window=window, epochs=epochs, min_count=min_count, min_n=min_n, max_n=max_n,
        threads=threads, seed=seed, pretrained=str(pretrained) if pretrained else None,
    )  # fmt: skip
    config = BuildConfig(
        fasttext=FastTextConfig(**fasttext),
        store_code=not no_store_code,
        texts=not no_texts,
        revision=revision,
        rankers=(*(ranker or ()), *heads),
        **without_none(java_frontend=java_frontend, embeddings=embeddings, vectors=vectors),
    )
    folder = index or Path(DEFAULT_NAME)
    publisher = Publisher(folder, store, quiet=quiet)
    with Index.build(
        sources,
        folder,
        config=config,
        workers=workers,
        force=force,
        track=output.tracker(quiet),
        ingest=_ingest(scheduler, give_up),
        before_commit=publisher.before_commit,
        memory=size_of(memory) if memory else None,
    ) as built:
        if not quiet:
            output.say_built(built.description, folder, verbose)
    publisher.finish()
    if draw:
        from ncs.cli.map import draw_map

        draw_map(folder, quiet=quiet)


def _ingest(scheduler: str | None, give_up: float | None) -> Ingest | None:
    """What reads the sources on a cluster; None: this machine does."""
    if scheduler is None:
        return None
    from functools import partial

    from ncs.scale.dask.client import ingest_on_cluster

    return partial(ingest_on_cluster, scheduler=scheduler, **without_none(give_up=give_up))


def _add(sources: list[Path] | None, rankers: list[str], index: Path | None, quiet: bool) -> None:
    """Fit rankers over an existing index."""
    from ncs.build.add_ranker import add_rankers
    from ncs.build.calibration import head_summary
    from ncs.search.signals.head import NAME as HEAD

    if sources:
        raise BadInput("--add uses an existing index; leave out the sources, or build with --ranker")
    folder = index_folder(index)
    seconds = add_rankers(folder, rankers, track=output.tracker(quiet))
    if not quiet:
        for name, each in seconds.items():
            output.say(f"{name}: fitted in {each:.1f} s; use it with: ncs query --ranker {name}")
        if HEAD in seconds:
            output.say(head_summary(folder))
