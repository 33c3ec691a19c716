"""`ncs train unif --pairs FILE --out RUN`: a learned head for an index, from (question, code) pairs.

ncs train unif --out RUN                        from the index's own comments and names, no labels
ncs train unif --pairs FILE ... --out RUN       from JSON lines with query, code, language, question_id
ncs train translation --pairs FILE --out RUN    vectors, and a translation of question words into code words
ncs train translation ... --answers FILE        and then on the default ranker's lists, judged by known answers
ncs train general --repositories FOLDER --out RUN   the head that is part of the package
ncs train nbow|cnn|birnn|selfatt|mixed ...      CodeSearchNet's encoders, over byte pairs and sub-tokens
ncs build --add unif:head=RUN                   then: ncs query --ranker unif; no torch needed
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from corpora.jsonl import read_rows
from ncs.console import tracker
from ncs.errors import BadInput, needing
from ncs.exit_status import main_program
from ncs.index import Index
from ncs.storage.snapshot import find_index
from unif.config import CHOICES, Encoder, Stage, TrainConfig, TranslationConfig, settings_of
from unif.data import PairFile, Sources

if TYPE_CHECKING:
    from unif.training import Trained


TRANSLATION, GENERAL = "translation", "general"
_TRAINED = get_args(Encoder)
_OWN_SETTINGS = {each.name for each in fields(TrainConfig)} - {each.name for each in fields(TranslationConfig)}
OPTIONS_OF = {
    "answers": (TRANSLATION,),
    **dict.fromkeys(("repositories", "apart", "questions"), (GENERAL,)),
    **dict.fromkeys(sorted({"own", "stage"} | _OWN_SETTINGS - {"encoder"}), _TRAINED),
}
"""Options that only some encoders have, and these."""


@main_program("ncs", interrupted="the same command resumes after the last epoch")
def main(arguments: Sequence[str] | None = None) -> int:
    """Train; 0 done, 2 error (one line on stderr)."""
    options = _parser().parse_args(arguments)
    for name, encoders in OPTIONS_OF.items():
        if getattr(options, name, None) and options.encoder not in encoders:
            option = name.replace("_", "-")
            raise BadInput(f"--{option} is of ncs train {', '.join(encoders)}, not of {options.encoder}; leave it out")
    run = {TRANSLATION: _train_translation, GENERAL: _train_general}.get(options.encoder, _train)
    with needing("training", "unif"):
        trained = run(options)
    use = f"ncs build --add unif:head={options.out}"
    if options.encoder == GENERAL:
        use = f"copy {options.out / 'general'} to ncs/models/general"
    sys.stdout.write(f"{_summary(trained)}use it: {use}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="ncs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )  # fmt: skip
    parser = root.add_subparsers(metavar="COMMAND", required=True).add_parser(
        "train", help="train a head; the same command resumes a training that was killed",
        epilog="Example: ncs train unif --pairs pairs.jsonl.gz --own 0.5 --out head",
    )  # fmt: skip
    encoders = (*get_args(Encoder), TRANSLATION, GENERAL)
    parser.add_argument("encoder", choices=encoders, metavar="ENCODER", help=", ".join(encoders))
    parser.add_argument(
        "-i", "--index", type=Path,
        help="the index whose words, vectors and functions are the start; else .ncs here or in a folder above",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", action="append", default=[], metavar="FILE[:WEIGHT]",
        help="JSON lines, or CodeSearchNet's; drawn WEIGHT times per epoch; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--own", type=float, nargs="?", const=1.0, default=0.0, metavar="WEIGHT",
        help="learn from the index's own comments and names too; the default without --pairs",
    )  # fmt: skip
    parser.add_argument(
        "--stage", action="append", default=[], metavar="EPOCHS[:SOURCE,...][@RATE]",
        help="a curriculum in place of --epochs; a source is a file's name up to its first dot, or own; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--answers", action="append", default=[], type=Path, metavar="FILE",
        help="translation: questions with answers, as JSON lines, by which the default ranker's lists over the index "
        "are judged and learned from last; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--repositories", action="append", default=[], type=Path, metavar="FOLDER",
        help="general: of git directories or archives (bin/corpora repositories corpora/general.txt FOLDER)",
    )  # fmt: skip
    parser.add_argument(
        "--apart", action="append", default=[], type=Path, metavar="FILE",
        help="general: JSON lines with code, as cosqa's: no pair may be like one; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--questions", action="append", default=[], type=Path, metavar="FILE",
        help="general: questions about their functions, as evaluation/written/training.jsonl.gz; repeatable",
    )  # fmt: skip
    parser.add_argument("--leave-out", type=Path, metavar="FILE", help="JSON lines with a query: no pair may ask it")
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="folder of the run")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, mps (default %(default)s)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    _add_settings(parser)
    return root


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """An option for every setting; defaults are in `unif.config`."""
    for setting in fields(TrainConfig):
        option, help = f"--{setting.name.replace('_', '-')}", f"(default {setting.default})"
        if setting.name in CHOICES and setting.name != "encoder":
            parser.add_argument(option, choices=get_args(CHOICES[setting.name]), help=help)
        elif isinstance(setting.default, (int, float)) and not isinstance(setting.default, bool):
            parser.add_argument(option, type=type(setting.default), help=help)
    about = "subtract the mean of all functions' vectors"
    parser.add_argument("--centre", action="store_true", default=None, help=about)


def _open(options: argparse.Namespace) -> Index:
    return Index.load(options.index or find_index(Path.cwd()))


def _train(options: argparse.Namespace) -> Trained:
    values = vars(options) | {"stages": tuple(map(Stage.parse, options.stage)) or None}
    config = TrainConfig(**settings_of(TrainConfig, values))
    from unif.training import needs_index, train

    files = tuple(map(PairFile.parse, options.pairs))
    sources = Sources(files, options.own if files else options.own or 1.0, options.leave_out)
    with _open(options) if needs_index(config, sources) else nullcontext() as index:
        return train(options.out, sources, config, index=index, device=options.device, track=tracker(options.quiet))


def _train_translation(options: argparse.Namespace) -> Trained:
    """Train on pairs alone; with --answers also on ranked lists of an index."""
    config = TranslationConfig(**settings_of(TranslationConfig, vars(options)))
    from unif.translation import train

    answers = tuple(options.answers)
    sources = Sources(tuple(map(PairFile.parse, options.pairs)), 0.0, options.leave_out, answers)
    with _open(options) if answers else nullcontext() as index:
        return train(options.out, sources, config, index=index, device=options.device, track=tracker(options.quiet))


def _train_general(options: argparse.Namespace) -> Trained:
    """Train the head of the package on repositories, and pairs if given."""
    config = TranslationConfig(**settings_of(TranslationConfig, vars(options)))
    if not options.repositories:
        raise BadInput("name the folder of the repositories to learn from: --repositories FOLDER")
    from unif.general import train

    apart = ((row.text("code"), row.text("language")) for file in options.apart for row in read_rows(file))
    questions = (row for file in options.questions for row in read_rows(file))
    sources, track = Sources(tuple(map(PairFile.parse, options.pairs)), 0.0, options.leave_out), tracker(options.quiet)
    return train(
        options.out, options.repositories, sources, config, apart=apart, questions=questions, device=options.device,
        track=track,
    )  # fmt: skip


def _summary(trained: Trained) -> str:
    stats = trained.stats
    lines = [
        f"{stats.rows:,} pairs of {stats.questions:,} questions; skipped: {stats.wordless:,} without known words, "
        f"{stats.left_out:,} to leave out, {stats.bad:,} bad lines",
        *stats.bad_lines,
        "epoch   loss  validation MRR  pairs/s",
    ]
    for row in trained.curve:
        mark = "  <- best" if row["epoch"] == trained.best_epoch else ""
        loss = f"{row['loss']:.4f}" if "loss" in row else "     -"
        speed = f"{row['pairs_per_s']:,.0f}" if "pairs_per_s" in row else "-"
        lines.append(f"{row['epoch']:5} {loss} {row['mrr']:15.4f} {speed:>8}{mark}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
