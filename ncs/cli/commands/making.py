"""`ncs build`, `update` and `map`: an index is made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncs.build.memory import size_of
from ncs.cli import output as console
from ncs.cli.commands.options import IndexOption, Quiet, Store, Workers, folder_of, given
from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.build.request import Ingest
    from ncs.scale.milvus.publish import Publication


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
        typer.Option(help="What all processes of the build may hold together: 2GiB.", show_default="half of it"),
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
    vectors: Annotated[
        str | None,
        typer.Option(help="How vectors are searched: exact, pq.", show_default="auto: exact up to 300,000"),
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
    store: Store = None,
    draw: Annotated[bool, typer.Option("--map", help="Draw the map, too, as ncs map does; updates keep it.")] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Name skipped, broken and failed files; stage times.")
    ] = False,
) -> None:
    """Learn from source trees and write an index.

    Example: ncs build ./repos
    """
    learnt = [f"unif:head={head.resolve()}"] if head else []
    if store and not (sources or add or head):
        _finish(_publication(folder_of(index), store, quiet), quiet)
        return
    if add or (head and not sources):
        _add(sources, [*(add or ()), *learnt], index, quiet)
        return
    if not sources:
        raise BadInput("name a folder with source files, such as this one: ncs build .")
    from ncs.config import BuildConfig, FastTextConfig
    from ncs.index import Index
    from ncs.storage.snapshot import DEFAULT_NAME

    learning = given(
        dim=dim, window=window, epochs=epochs, min_count=min_count, min_n=min_n, max_n=max_n,
        threads=threads, seed=seed, pretrained=str(pretrained) if pretrained else None,
    )  # fmt: skip
    config = BuildConfig(
        fasttext=FastTextConfig(**learning),
        store_code=not no_store_code,
        texts=not no_texts,
        revision=revision,
        rankers=(*(ranker or ()), *learnt),
        **given(java_frontend=java_frontend, embeddings=embeddings, vectors=vectors),
    )
    folder = index or Path(DEFAULT_NAME)
    publication = _publication(folder, store, quiet)
    with Index.build(
        sources,
        folder,
        config=config,
        workers=workers,
        force=force,
        track=console.tracker(quiet),
        ingest=_ingest(scheduler, give_up),
        before_commit=publication.before_commit if publication else None,
        memory=size_of(memory) if memory else None,
    ) as built:
        if not quiet:
            console.say_built(built.description, folder, verbose)
    _finish(publication, quiet)
    if draw:
        _draw(folder, quiet)


def _add(sources: list[Path] | None, rankers: list[str], index: Path | None, quiet: bool) -> None:
    from ncs.build.add_ranker import add_rankers
    from ncs.build.calibration import head_summary
    from ncs.search.signals.head import NAME as HEAD

    if sources:
        raise BadInput("--add takes the index as it stands; leave out the sources, or build with --ranker")
    seconds = add_rankers(folder_of(index), rankers, track=console.tracker(quiet))
    if not quiet:
        for name, took in seconds.items():
            console.say(f"{name}: fitted in {took:.1f} s; ask it with: ncs query --ranker {name}")
        if HEAD in seconds:
            console.say(head_summary(folder_of(index)))


def _ingest(scheduler: str | None, give_up: float | None) -> Ingest | None:
    """What reads the sources on a cluster; None: this machine does."""
    if scheduler is None:
        return None
    from functools import partial

    from ncs.scale.dask.client import ingest_on_cluster

    return partial(ingest_on_cluster, scheduler=scheduler, **given(give_up=give_up))


def _publication(folder: Path, store: str | None, quiet: bool) -> Publication | None:
    """Of an index that is built or updated; None where no store is to have it."""
    if not store:
        return None
    from ncs.scale.milvus.publish import Publication
    from ncs.scale.milvus.store import Target

    return Publication(folder, Target.of(store), console.tracker(quiet))


def _finish(publication: Publication | None, quiet: bool) -> None:
    if publication is None:
        return
    sent, store = publication.finish().sent, publication.target.text
    if not quiet:
        documents = "document" if sent == 1 else "documents"
        console.say(f"{sent:,} {documents} sent to {store}; search there with: ncs query --store {store}")


def update(
    index: IndexOption = None,
    retrain: Annotated[bool, typer.Option("--retrain", help="Learn word vectors anew too.")] = False,
    workers: Workers = None,
    store: Store = None,
    quiet: Quiet = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Name new, changed and removed files.")] = False,
) -> None:
    """Bring an index up to date with its sources; only files that changed are read.

    Example: ncs update
    """
    from ncs.index import Index

    folder = folder_of(index)
    publication = _publication(folder, store, quiet)
    updated, changes = Index.update(
        folder,
        retrain=retrain,
        workers=workers,
        track=console.tracker(quiet),
        before_commit=publication.before_commit if publication else None,
    )
    with updated:
        if not quiet:
            console.say_updated(updated.description, changes, verbose)
    _finish(publication, quiet)


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
    _draw(folder_of(index), quiet, **given(points=points, seed=seed))


def _draw(folder: Path, quiet: bool, **options: int) -> None:
    from ncs.build.map import make_map

    drawn = make_map(folder, track=console.tracker(quiet), **options)
    if not quiet:
        console.say(f"{len(drawn.rows):,} points in {folder}; see them with: ncs serve -i {folder}")
