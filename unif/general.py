"""Training of the general head (ncs.learn.general) from the repositories that `corpora/general.txt` lists.

RUN/corpus/         functions and their documentation, in CodeSearchNet's shape (corpora.codesearchnet.pipeline)
RUN/apart.json      a digest of what is kept apart and asked
RUN/*.jsonl.gz      pairs of documentation and function, of two functions of one name, of guides, of written questions
RUN/translation/    the training of its words (unif.translation), float32
RUN/context/        the training of its encoder (unif.context)
RUN/general/        the head, int8; copied to ncs/models/general it is part of the package

Each step resumes where it stopped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from corpora.codesearchnet import pairs
from corpora.codesearchnet.duplicates import HeldOutFunctions
from corpora.codesearchnet.pipeline import Rules, make_corpus
from corpora.codesearchnet.repositories import find_repositories
from corpora.guides import guide_pairs
from corpora.jsonl import Row
from corpora.pairs import Pair, write_pairs
from ncs.errors import BadInput, SourceError
from ncs.files import replace_file
from ncs.learn.context_encoder import ContextEncoder
from ncs.learn.general import GeneralHead
from ncs.learn.heads import Head
from ncs.progress import Track, silent
from ncs.text.vocabulary import Vocabulary
from unif.config import TranslationConfig
from unif.context import train as train_context
from unif.data import PairFile, Sources
from unif.training import Trained, in_8_bits
from unif.translation import train as train_translation
from unif.translation_data import SparsePairs, Wordings

WRITTEN_WEIGHT = 4.0
"""How often an epoch draws a written question."""
EPOCHS_EACH = 10
"""Epochs of the encoder for each epoch of the vectors."""
REQUIRED = {"pairs": "documentation and function in --repositories", "asked": "question and function in --questions"}
"""Kinds of pairs that must not be empty; a project may have no guides, and no two functions of one name."""
STEMS = 12_000
"""Stems that are kept, the most frequent ones: 4 tables of 128 bytes for each. 23,000 are no better."""


def train(
    out: Path,
    repositories: Sequence[Path],
    sources: Sources,
    config: TranslationConfig,
    *,
    apart: Iterable[tuple[str, str]] = (),
    questions: Iterable[Row] = (),
    device: str = "auto",
    track: Track = silent,
) -> Trained:
    """Train the head on all repositories below these folders, and on further sources.

    apart: functions kept for evaluation, (code, language): no pair may be like one. questions: written about
    functions of the repositories (`pairs.written_pairs`), each drawn WRITTEN_WEIGHT times per epoch.
    """
    apart, rows, corpus, kept = list(apart), list(questions), out / "corpus", out / "apart.json"
    inputs = blake2b(json.dumps([apart, [dict(row.values) for row in rows]]).encode()).hexdigest()
    if kept.is_file() and json.loads(kept.read_bytes()) != inputs:
        raise BadInput(f"{out} was begun with other --apart or --questions; name another folder")
    held_out = HeldOutFunctions(apart)
    make_corpus(repositories, corpus, Rules(), track=track)
    replace_file(kept, json.dumps(inputs))
    own = {"pairs": pairs.pairs(corpus), "namesakes": pairs.namesakes([corpus]), "guides": _guides(repositories)}
    own |= {"asked": pairs.written_pairs(corpus, rows)} if rows else {}
    for name, made in own.items():
        path = out / f"{name}.jsonl.gz"
        if path.is_file():
            continue
        if not write_pairs(track(held_out.without(made, Counter()), name, unit="pairs"), path) and name in REQUIRED:
            for each in (kept, *out.glob("*.jsonl.gz")):
                each.unlink()
            raise BadInput(f"no pair is left of {REQUIRED[name]}; give others")
    own_files = [PairFile(out / f"{name}.jsonl.gz", WRITTEN_WEIGHT if name == "asked" else 1.0) for name in own]
    sources = replace(sources, files=[*own_files, *sources.files])
    trained = train_translation(out / "translation", sources, config, device=device, track=track)
    read = out / "translation" / "pairs"
    sparse, wordings, epochs = SparsePairs.load(read), Wordings.load(read), EPOCHS_EACH * config.epochs
    stems = frequent_stems(sparse)
    context = train_context(
        out / "context", sparse, wordings, stems, config.valid, epochs=epochs, device=device, track=track
    )
    quantized(trained.head, sparse, stems, context).save(out / "general")
    return trained


def _guides(folders: Sequence[Path]) -> Iterator[Pair]:
    """The pairs of all guides; what cannot be read is left out, and counted in the statistics of the corpus."""
    for repository in find_repositories(folders):
        with suppress(SourceError):
            yield from guide_pairs(repository)


def frequent_stems(pairs: SparsePairs, most: int = STEMS) -> Vocabulary:
    """The stems that most pairs have in the question or in the function."""
    pairs_with = sum(np.bincount(rows.indices, minlength=len(pairs.stems)) for rows in (pairs.query, pairs.code))
    words = list(pairs.stems)
    return Vocabulary.of(words[at] for at in np.sort(np.argsort(-pairs_with, kind="stable")[:most]))


def quantized(head: Head, pairs: SparsePairs, stems: Vocabulary, context: ContextEncoder) -> GeneralHead:
    """The head of these stems, its tables in 8 bits: each row by the largest of its numbers."""
    translation = head.translation
    assert translation is not None
    kept = pairs.stems.ids_of(list(stems))
    towers = (head.query.arrays, head.code.arrays)
    tables = [*(tower["table"] for tower in towers), translation.query, translation.code]
    weights = [*(tower["scores"][:, 0] for tower in towers), translation.query_weights, translation.code_weights]
    rows = np.stack([np.asarray(table[1:][kept], np.float32) for table in tables])  # [4, stems, d]
    return GeneralHead(
        stems,
        *in_8_bits(rows),
        np.stack([np.asarray(each[1:][kept], np.float16) for each in weights]),
        translation.power,
        translation.half,
        translation.same,
        context,
    )
