"""`ncs build` and `ncs map`: an index from source trees, and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ncs.build.memory import size_of
from ncs.cli.info import counts_text, documents_text, skipped_text
from ncs.cli.options import IndexOption, Quiet, Store, Workers, index_folder, without_none
from ncs.console import count, say, tracker
from ncs.errors import BadInput

if TYPE_CHECKING:
    from ncs.build.request import BeforeCommit
    from ncs.storage.snapshot import Description


def build(
    sources: Annotated[
        list[Path] | None,
        Argument(help="Folders, git repositories (bare ones too), archives.", readable=False, show_default=False),
    ] = None,
    index: Annotated[
        Path | None, Option("-i", "--index", help="Where to write the index.", envvar="NCS_INDEX", show_default=".ncs")
    ] = None,
    revision: Annotated[str | None, Option(help="Read git repositories at this revision.")] = None,
    workers: Workers = None,
    scheduler: Annotated[
        str | None,
        Option(help="Read on a Dask cluster: tcp://HOST:8786, or local for --workers processes of this machine."),
    ] = None,
    give_up: Annotated[
        float | None,
        Option(min=1, help="On a cluster: leave out a repository that takes longer (seconds, on two workers)."),
    ] = None,
    memory: Annotated[
        str | None,
        Option(help="Limit for all processes of the build together: 2GiB.", show_default="half of the machine's"),
    ] = None,
    java_frontend: Annotated[str | None, Option(help="tree-sitter or javalang.", show_default="tree-sitter")] = None,
    no_store_code: Annotated[bool, Option("--no-store-code", help="Store paths and lines only, not the code.")] = False,
    no_texts: Annotated[
        bool, Option("--no-texts", help="Leave out files without a grammar: settings, Perl, R, documents ...")
    ] = False,
    force: Annotated[bool, Option("--force", help="Index even a home folder or a drive's root.")] = False,
    embeddings: Annotated[
        str | None,
        Option(help="How word vectors are learned: lsa, fasttext.", show_default="auto: lsa in small projects"),
    ] = None,
    vectors: Annotated[
        str | None, Option(help="How vectors are searched: exact, pq.", show_default="auto: exact up to 300,000")
    ] = None,
    dim: Annotated[int | None, Option(min=1, help="fastText: embedding size.")] = None,
    window: Annotated[int | None, Option(min=1, help="fastText: skip-gram window.")] = None,
    epochs: Annotated[int | None, Option(min=1, max=1000, help="fastText: passes over the corpus.")] = None,
    min_count: Annotated[int | None, Option(min=1, help="fastText: rarer words get no vector.")] = None,
    min_n: Annotated[int | None, Option(min=0, help="fastText: shortest sub-word; 0: none.")] = None,
    max_n: Annotated[int | None, Option(min=0, help="fastText: longest sub-word; 0: none.")] = None,
    threads: Annotated[
        int | None, Option(min=1, max=256, help="fastText: threads; with more than one, results vary.")
    ] = None,
    seed: Annotated[int | None, Option(help="fastText: seed.")] = None,
    pretrained: Annotated[Path | None, Option(help="fastText: word vectors to start from (.vec, .bin).")] = None,
    ranker: Annotated[
        list[str] | None,
        Option(help="Fit this ranker, too: two_field, ncs_postrank, ncs_enhanced:pairs=FILE ...; repeatable."),
    ] = None,
    no_general: Annotated[
        bool, Option("--no-general", help="Rank without what was learned from public code (the general head).")
    ] = False,
    head: Annotated[Path | None, Option(help="Fit the ranker unif with this learned head (ncs train).")] = None,
    add: Annotated[
        list[str] | None,
        Option(help="Fit this ranker over an existing index, without sources; repeatable.", metavar="RANKER"),
    ] = None,
    store: Store = None,
    draw: Annotated[bool, Option("--map", help="Draw the map, too (ncs map); updates keep it.")] = False,
    quiet: Quiet = False,
    verbose: Annotated[
        bool, Option("-v", "--verbose", help="List skipped, broken and failed files; time per stage.")
    ] = False,
) -> None:
    """Learn from source trees and write an index.

    Example: ncs build ./repos
    """
    heads = [f"unif:head={head.resolve()}"] if head else []
    if store and not (sources or add or head):
        with publishing(index_folder(index), store, quiet=quiet):
            return
    if add or (head and not sources):
        _add(sources, [*(add or ()), *heads], index, quiet)
        return
    if not sources:
        raise BadInput("name a folder with source files, such as this one: ncs build .")
    from ncs.workers import READ_MEMORY, import_silently, start_ahead

    if scheduler is None:
        start_ahead(READ_MEMORY, import_silently, "ncs.build.ingest")  # it imports while this process does
    from ncs.config import BuildConfig, FastTextConfig
    from ncs.index import Index
    from ncs.storage.snapshot import DEFAULT_NAME
    from ncs.storage.trust import check_place

    fasttext = without_none(
        dim=dim, window=window, epochs=epochs, min_count=min_count, min_n=min_n, max_n=max_n,
        threads=threads, seed=seed, pretrained=str(pretrained) if pretrained else None,
    )  # fmt: skip
    config = BuildConfig(
        fasttext=FastTextConfig(**fasttext),
        store_code=not no_store_code,
        texts=not no_texts,
        revision=revision,
        general=not no_general,
        rankers=(*(ranker or ()), *heads),
        **without_none(java_frontend=java_frontend, embeddings=embeddings, vectors=vectors),
    )
    folder = index or Path(DEFAULT_NAME)
    if index is None:
        check_place(folder.absolute())
    ingest = None
    if scheduler is not None:
        from ncs.scale.dask import ingest_on_cluster

        ingest = partial(ingest_on_cluster, scheduler=scheduler, **without_none(give_up=give_up))
    with publishing(folder, store, quiet=quiet) as before_commit:
        new_index = Index.build(
            sources,
            folder,
            config=config,
            workers=workers,
            force=force,
            track=tracker(quiet),
            ingest=ingest,
            before_commit=before_commit,
            memory=size_of(memory) if memory else None,
        )
        new_index.close()
        if not quiet:
            _summarize(new_index.description, folder, verbose)
    if draw:
        draw_map(folder, quiet=quiet)


def draw_map(
    index: IndexOption = None,
    points: Annotated[
        int | None, Option(min=5, help="How many documents to draw, sampled.", show_default="20000")
    ] = None,
    seed: Annotated[int | None, Option(min=0, max=(1 << 32) - 1, help="Of the sample and the picture.")] = None,
    quiet: Quiet = False,
) -> None:
    """Draw the index as a picture of its document vectors, for the page of `ncs serve`.

    Example: ncs map -i .ncs
    """
    from ncs.build.map import make_map

    folder = index_folder(index)
    project_map = make_map(folder, **without_none(points=points, seed=seed))
    if not quiet:
        say(f"{len(project_map.rows):,} points in {folder}; see them with: ncs serve -i {folder}")


@contextmanager
def publishing(folder: Path, store: str | None, *, quiet: bool) -> Iterator[BeforeCommit | None]:
    """`before_commit` of a build or update whose index a store holds, too; None without a store.

    Raises BadInput for a wrong address, and MissingExtra.
    """
    if not store:
        yield None
        return
    from ncs.scale.milvus import Publication, Target

    publication = Publication(folder, Target.of(store), tracker(quiet))
    yield publication.before_commit
    n_sent = publication.finish()
    if not quiet:
        state = f"{count(n_sent, 'document')} sent to {store}" if n_sent else f"{store} is up to date"
        say(f"{state}; search there with: ncs query --store {store}")


def _add(sources: list[Path] | None, rankers: list[str], index: Path | None, quiet: bool) -> None:
    """Fit rankers over an existing index."""
    from ncs.build.head_weight import head_summary
    from ncs.build.pipeline import add_rankers
    from ncs.search.rankers import HEAD

    if sources:
        raise BadInput("--add uses an existing index; leave out the sources, or build with --ranker")
    folder = index_folder(index)
    seconds = add_rankers(folder, rankers, track=tracker(quiet))
    if not quiet:
        for name, each in seconds.items():
            say(f"{name}: fitted in {each:.1f} s; use it with: ncs query --ranker {name}")
        if HEAD in seconds:
            say(head_summary(folder))


def _summarize(description: Description, folder: Path, verbose: bool) -> None:
    counts: dict[str, Any] = dict(description.counts)
    say(
        f"{documents_text(counts)} ({count(counts['copies'], 'exact copy', 'exact copies')} folded)"
        f" from {count(counts['files'], 'file')}"
        f" of {count(len(counts['repositories']), 'repository', 'repositories')},"
        f" {sum(counts['seconds'].values()):.0f} s -> {folder}"
    )
    if texts := counts.get("text_files"):
        say(f"read as text: {counts_text(texts)}")
    if skipped := skipped_text(counts["skipped"]):
        say(f"skipped: {skipped}")
    if counts["broken"]:
        say(f"{count(counts['broken'], 'file')} with syntax errors (what could be parsed is indexed)")
    if counts["failed"]:
        names = ", ".join(counts["failed_files"][:3])
        more = ", ..." if counts["failed"] > 3 else ""
        say(f"{count(counts['failed'], 'file')} could not be parsed (left out): {names}{more}")
    if "head" in counts:
        from ncs.build.head_weight import head_summary

        say(head_summary(folder))
    for note in description.notes:
        say(f"note: {note}")
    if verbose:
        say("seconds: " + ", ".join(f"{stage} {seconds}" for stage, seconds in counts["seconds"].items()))
        for kind in ("broken_files", "failed_files", "unreadable_files"):
            for path in counts[kind]:
                say(f"{kind[:-6]}: {path}")
    say('search it: ncs query "..."' + ("" if folder.name == ".ncs" else f" -i {folder}"))
