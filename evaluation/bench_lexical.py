"""Lexical engines side by side on one real corpus in one run: our postings, bm25s and tantivy.

    bin/benchmark lexical [--documents 100000] [--json FILE] [FOLDER ...]

The functions of the folders (default: the running Python's standard library and installed packages) are
extracted once and drawn again with replacement up to `--documents`. Each engine indexes them in a process of
its own, and answers in another: cold (process start to first answer), then warm. Questions are the first words
of functions' doc comments. Exactness is judged by bm25s's scores of all documents, ties by row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluation.lexical_engines import ENGINES, K1, PARTS, B, K, weighted_stems
from ncs.errors import BadInput
from ncs.types import FIELDS
from ncs.vocabulary import WordTable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; --json also writes it."""
    args = _arguments(argv)
    if args.step:
        print(json.dumps(_step(args.engine, args.step, args.work)))  # noqa: T201
        return 0
    with tempfile.TemporaryDirectory(prefix="ncs-bench-") as temporary:
        work = Path(temporary)
        facts = _prepare(args.folders, args.documents, args.questions, work)
        report = {**facts, "engines": {name: _measure(name, work) for name in ENGINES}}
    print(_table(report))  # noqa: T201
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmark lexical", description=__doc__.split("\n")[0])
    paths = sysconfig.get_paths()
    default = [Path(paths["stdlib"]), Path(paths["purelib"])]
    parser.add_argument("folders", nargs="*", type=Path, default=default)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--json", type=Path)
    for hidden in ("--engine", "--step"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _prepare(folders: Sequence[Path], documents: int, questions: int, work: Path) -> dict[str, Any]:
    """Write the word table, the questions and what they should find; return the corpus's figures."""
    real = read_words(folders, work)
    rng = np.random.default_rng(0)
    rows = (
        np.arange(documents)
        if documents <= len(real)
        else np.concatenate([np.arange(len(real)), rng.integers(0, len(real), documents - len(real))])
    )
    words = redraw(real, rows)
    words.save(work)
    texts = _questions(words, questions, rng)
    want = _reference(words, texts)
    (work / "questions.json").write_text(json.dumps({"texts": texts, "want": want}))
    return {
        "documents": len(words), "distinct": min(len(real), documents), "words": len(words.ids),
        "vocabulary": len(words.vocabulary), "questions": len(texts), "k": K, "k1": K1, "b": B,
        "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, numpy {np.__version__}",
    }  # fmt: skip


def read_words(folders: Sequence[Path], work: Path) -> WordTable:
    """The words of all functions below the folders, copies left out."""
    from ncs.batches import Collector, pack_batch
    from ncs.extract import extract_files, language_of
    from ncs.sources import walk

    files = walk(folders, wanted=lambda path: language_of(path) is not None, force=True)
    with Collector(work, code=False, deduplicate=True) as collector:
        for extraction in extract_files(files, finish=partial(pack_batch, code=False)):
            collector.add(extraction.result)
        words = collector.finish().words
    if not len(words):
        raise BadInput("no function found; name a folder with source files")
    return words


def redraw(words: WordTable, rows: NDArray[np.int64]) -> WordTable:
    """The documents of these rows, in this order."""
    width = len(FIELDS)
    bounds = words.offsets[::width]
    lengths = np.diff(words.offsets).reshape(-1, width)[rows]
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths.ravel(), out=offsets[1:])
    ids = np.concatenate([words.ids[bounds[row] : bounds[row + 1]] for row in rows])
    return WordTable(words.vocabulary, ids, offsets)


def _questions(words: WordTable, n: int, rng: np.random.Generator) -> list[list[str]]:
    """The first words of doc comments, as people would type them: two to five, without stop words."""
    from ncs.stopwords import content_words

    texts: list[list[str]] = []
    for row in rng.permutation(len(words)):
        ids = words.ids_of(int(row), "doc")[:8]
        text = content_words([words.vocabulary.word(int(id)) for id in ids])[:5]
        if len(text) >= 2:
            texts.append(text)
        if len(texts) == n:
            break
    return texts


def _reference(words: WordTable, texts: Sequence[Sequence[str]]) -> list[list[tuple[int, float]]]:
    """The best ten of each question by bm25s's score of every document, exactly, ties by row."""
    import bm25s

    from ncs.lexical import stem_all, top

    stems, ids, offsets = weighted_stems(words)
    engine = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64")
    engine.index((np.split(ids, offsets[1:-1]), {s: id for id, s in enumerate(stems)}), show_progress=False)
    want = []
    for text in texts:
        scores = engine.get_scores(stem_all(text)).astype(np.float64)
        rows = np.flatnonzero(scores > 0)
        want.append(top(rows, scores[rows], 10))
    return want


def _measure(engine: str, work: Path) -> dict[str, Any]:
    """Index and ask in two fresh processes."""
    figures: dict[str, Any] = {}
    for step in ("index", "ask"):
        command = [
            sys.executable,
            "-m",
            "evaluation.bench_lexical",
            "--engine",
            engine,
            "--step",
            step,
            "--work",
            str(work),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NCS_T0": str(time.time())}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"failed": done.stderr.strip().split("\n")[-1]}
        figures.update(json.loads(done.stdout))
    return figures


def _step(engine: str, step: str, work: Path) -> dict[str, float]:
    return _index(engine, work) if step == "index" else _ask(engine, work)


def _index(engine: str, work: Path) -> dict[str, float]:
    folder = work / engine.replace(" ", "_")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = WordTable.load(work)
    start = time.perf_counter()
    ENGINES[engine].index(words, folder)
    return {
        "index s": time.perf_counter() - start,
        "index CPU s": time.process_time(),
        "index peak MB": _resident("VmHWM"),
        "disk MB": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6,
    }


def _ask(engine: str, work: Path) -> dict[str, float]:
    questions = json.loads((work / "questions.json").read_text())
    texts, want = questions["texts"], questions["want"]
    search = ENGINES[engine].open(work / engine.replace(" ", "_"))
    search(texts[0], False)
    cold = time.time() - float(os.environ["NCS_T0"])
    warm, got = _timed(lambda text: search(text, False), texts)
    masked, got_masked = _timed(lambda text: search(text, True), texts)
    pairs = [(hits[: len(best)], best) for hits, best in zip(got, want, strict=True)]
    same = [[row for row, _ in hits] == [row for row, _ in best] for hits, best in pairs]
    errors = [abs(a / b - 1) for hits, best in pairs for (_, a), (_, b) in zip(hits, best, strict=False)]
    return {
        "cold ms": cold * 1e3,
        "p50 ms": float(np.percentile(warm, 50)),
        "p95 ms": float(np.percentile(warm, 95)),
        "masked p50 ms": float(np.percentile(masked, 50)),
        "masked p95 ms": float(np.percentile(masked, 95)),
        "anonymous MB": _resident("RssAnon"),
        "mapped MB": _resident("RssFile"),
        "same first ten %": 100 * float(np.mean(same)),
        "score error %": 100 * max(errors),
        "mask broken": float(sum(row % PARTS != 0 for hits in got_masked for row, _ in hits)),
    }


def _timed(
    search: Callable[[Sequence[str]], list[tuple[int, float]]], texts: Sequence[Sequence[str]]
) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """Milliseconds and hits of each question; once round before, so that files are in memory for all."""
    for text in texts:
        search(text)
    times, hits = [], []
    for text in texts:
        start = time.perf_counter()
        hits.append(search(text))
        times.append((time.perf_counter() - start) * 1e3)
    return times, hits


def _resident(kind: str) -> float:
    """RssAnon, RssFile or VmHWM (the peak) of this process in MB; 0 where there is no /proc."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(kind)), 0.0)


def _table(report: Mapping[str, Any]) -> str:
    engines = report["engines"]
    rows = list(dict.fromkeys(key for figures in engines.values() for key in figures))
    head = (
        f"{report['documents']:,} functions ({report['distinct']:,} distinct), {report['words']:,} words, "
        f"{report['questions']} questions, {report['machine']}"
    )
    lines = [head, "", f"| {'':17} | " + " | ".join(f"{name:>12}" for name in engines) + " |"]
    lines.append("|" + "-" * 19 + "|" + "|".join(["-" * 13 + ":"] * len(engines)) + "|")
    for row in rows:
        cells = [figures.get(row, "") for figures in engines.values()]
        lines.append(f"| {row:17} | " + " | ".join(f"{_cell(cell):>12}" for cell in cells) + " |")
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
