"""`ncs train unif --pairs FILE --out RUN`: a learnt head for an index, from (question, code) pairs.

ncs train unif --out RUN                        from the index's own comments and names, no labels
ncs train unif --pairs FILE ... --out RUN       from JSON lines with query, code, language, question_id
ncs train unif --questions own --out RUN        from what the default ranker answers, no labels (--teacher)
ncs train translation --pairs FILE --out RUN    vectors, and which words of code answer which of a question
ncs train translation ... --answers FILE        and what the default ranker's lists lack, judged by known answers
ncs train nbow|cnn|birnn|selfatt|mixed ...      CodeSearchNet's encoders, over byte pairs and sub-tokens
ncs build --add unif:head=RUN                   then: ncs query --ranker unif; torch is needed no more
ncs explain-attention "hide keyboard"           which words of the best hit the head weighs, beside TF-IDF
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from ncs.cli.output import tracker
from ncs.errors import MissingExtra
from ncs.exit_status import ending
from ncs.index import Index
from ncs.progress import silent
from ncs.storage.folder import find_index
from unif.settings import (
    CHOICES,
    Encoder,
    ModelConfig,
    Pooling,
    Prior,
    QueryWeights,
    RareWords,
    Stage,
    TrainConfig,
    TranslationConfig,
    given,
)

if TYPE_CHECKING:
    from unif.train import Trained


TRANSLATION = "translation"


@ending("unif", stopped="the same command goes on from the last epoch")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, told in one line on stderr."""
    options = _parser().parse_args(arguments)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ncs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    train = commands.add_parser(
        "train", help="train a head; the same command goes on with a training that was killed",
        epilog="Example: ncs train unif --pairs pairs.jsonl.gz --own 0.5 --out head",
    )  # fmt: skip
    encoders = (*get_args(Encoder), TRANSLATION)
    train.add_argument("encoder", choices=encoders, metavar="ENCODER", help=", ".join(encoders))
    _add_index(train, "the index whose words, vectors and functions are the start")
    train.add_argument(
        "--pairs", action="append", default=[], metavar="FILE[:WEIGHT]",
        help="JSON lines, or CodeSearchNet's; drawn WEIGHT times an epoch; repeatable",
    )  # fmt: skip
    train.add_argument(
        "--own", type=float, nargs="?", const=1.0, default=0.0, metavar="WEIGHT",
        help="learn from the index's own comments and names too; alone without --pairs",
    )  # fmt: skip
    train.add_argument(
        "--stage", action="append", default=[], metavar="EPOCHS[:SOURCE,...][@RATE]",
        help="a curriculum in place of --epochs; a source is a file's name up to its first dot, or own; repeatable",
    )  # fmt: skip
    train.add_argument(
        "--teacher", metavar="RANKER|RUN",
        help="learn from what a ranker answers to --questions (default hybrid), or what it answered in another run",
    )  # fmt: skip
    train.add_argument(
        "--questions", action="append", default=[], metavar="FILE[:WEIGHT]",
        help="JSON lines with a query, or own, the index's comments and names: no answers needed; repeatable",
    )  # fmt: skip
    train.add_argument(
        "--answers", action="append", default=[], type=Path, metavar="FILE",
        help="translation: questions with answers, as JSON lines, by which the default ranker's lists over the index "
        "are judged and learnt from last; repeatable",
    )  # fmt: skip
    train.add_argument("--leave-out", type=Path, metavar="FILE", help="JSON lines with a query: no pair may ask it")
    train.add_argument("--out", type=Path, required=True, metavar="RUN", help="folder of the run")
    train.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default %(default)s)")
    train.add_argument("-q", "--quiet", action="store_true", help="no progress")
    _add_settings(train)
    train.set_defaults(run=_train)

    shown = commands.add_parser(
        "explain-attention",
        aliases=["attention"],
        help="which words of the best hit a head weighs",
        epilog='Example: ncs explain-attention "hide soft keyboard"',
    )
    _add_index(shown, "the index")
    shown.add_argument("text", metavar="TEXT", help="a question, or a function's name: its first hit is shown")
    shown.add_argument(
        "--head", type=Path, help="a head, or the run that made it; else the one the index was built with"
    )
    shown.add_argument("-n", type=int, default=10, help="words (default %(default)s)")
    shown.set_defaults(run=_attention)
    return parser


def _add_index(parser: argparse.ArgumentParser, told: str) -> None:
    parser.add_argument("-i", "--index", type=Path, help=f"{told}; else .ncs here or in a folder above")


def _opened(options: argparse.Namespace) -> Index:
    return Index.load(options.index or find_index(Path.cwd()))


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """An option for every setting; those that are not given keep the default, which is written once, there."""
    default, model = TrainConfig(), ModelConfig()
    choices = {"query_weights": QueryWeights, "prior": Prior, "rare_words": RareWords, "pooling": Pooling, **CHOICES}
    for name, kind in choices.items():
        preset = getattr(default if name in CHOICES else model, name)
        parser.add_argument(f"--{name.replace('_', '-')}", choices=get_args(kind), help=f"(default {preset})")
    for name, number in (("heads", int), ("buckets", int), ("dropout", float)):
        parser.add_argument(f"--{name}", type=number, help=f"(default {getattr(model, name)})")
    parser.add_argument("--shared", action="store_true", default=None, help="one table for questions and code")
    parser.add_argument("--unique", action="store_true", default=None, help="repeated words of a function count once")
    for name in ("epochs", "batch", "patience", "query_words", "code_words", "accumulate", "mine_every", "mined",
                 "candidates", "strangers", "seed"):  # fmt: skip
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=f"(default {getattr(default, name)})")
    parser.add_argument("--centre", action="store_true", default=None, help="without the mean of all functions")
    parser.add_argument("--compile", action="store_true", default=None, help="by torch.compile")
    for name in ("rate", "margin", "word_dropout", "stay", "weight_decay", "valid", "soft"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, help=f"(default {getattr(default, name)})")


def _train(options: argparse.Namespace) -> int:
    if options.encoder == TRANSLATION:
        return _train_translation(options)
    values = vars(options) | {"stages": tuple(map(Stage.parse, options.stage)) or None}
    config = TrainConfig(**{**given(TrainConfig, values), "model": ModelConfig(**given(ModelConfig, values))})
    try:
        from unif.train import train
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra("training needs torch: pip install 'neural-code-search[unif]'") from None
    from unif.sources import PairFile, Sources

    files, asked = (tuple(map(PairFile.parse, each)) for each in (options.pairs, options.questions))
    teacher = options.teacher or ("hybrid" if asked else "")
    own = options.own if files or teacher else options.own or 1.0
    sources = Sources(files, own, options.leave_out, teacher, asked)
    track = silent if options.quiet else tracker(options.quiet)
    with _opened(options) as index:
        trained = train(index, options.out, sources, config, device=options.device, track=track)
    sys.stdout.write(_told(trained, options.out))
    return 0


def _train_translation(options: argparse.Namespace) -> int:
    """From pairs alone, without an index; with --answers it learns from lists of one too."""
    from unif.sources import PairFile, Sources

    config = TranslationConfig(**given(TranslationConfig, vars(options)))
    try:
        from unif.translating import train
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra("training needs torch: pip install 'neural-code-search[unif]'") from None
    answers = tuple(options.answers)
    sources = Sources(tuple(map(PairFile.parse, options.pairs)), 0.0, options.leave_out, answered=answers)
    track = silent if options.quiet else tracker(options.quiet)
    with _opened(options) if answers else nullcontext() as index:
        trained = train(options.out, sources, config, index=index, device=options.device, track=track)
    sys.stdout.write(_told(trained, options.out))
    return 0


def _attention(options: argparse.Namespace) -> int:
    """The words of the default ranker's first hit; 1 where it finds nothing."""
    from unif.attention import attention
    from unif.head import opened
    from unif.ranker import UnifRanker

    with _opened(options) as index:
        head = opened(options.head) if options.head else cast(UnifRanker, index.ranker("unif")).head
        found = index.ranker().search(options.text, 1)
        if not found:
            sys.stderr.write("unif: nothing found\n")
            return 1
        row = found[0][0]
        document = index.store.document(row)
        lines = [f"{document.qualified_name}  {document.path}:{document.start_line}", "learnt  tf-idf  word"]
        for each in attention(head, index.words(), row)[: options.n]:
            times = f" x {each.count}" if each.count > 1 else ""
            lines.append(f"{each.learnt:6.1%} {each.tfidf:7.1%}  {each.word}{times}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _told(trained: Trained, out: Path) -> str:
    read = trained.reading
    lines = [
        f"{read.rows:,} pairs of {read.questions:,} questions; passed over: {read.wordless:,} without known words, "
        f"{read.left_out:,} to leave out, {read.bad:,} bad lines",
        *read.bad_lines,
        "epoch   loss  validation MRR  pairs/s",
    ]
    for row in trained.curve:
        mark = "  <- kept" if row["epoch"] == trained.best_epoch else ""
        loss = f"{row['loss']:.4f}" if "loss" in row else "     -"
        speed = f"{row['pairs_per_s']:,.0f}" if "pairs_per_s" in row else "-"
        lines.append(f"{row['epoch']:5} {loss} {row['mrr']:15.4f} {speed:>8}{mark}")
    return "\n".join([*lines, f"use it: ncs build --add unif:head={out}"]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
