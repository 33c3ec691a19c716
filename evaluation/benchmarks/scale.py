"""An index of any size, of synthetic functions drawn from real ones: the costs of building, opening and querying it.

FOLDER holds folders with Java files, one per repository. OUT/sources gets files with N functions: real ones with
identifiers replaced by those of another function of the same repository, so that words keep their frequencies and code
still parses; new words appear as in real code (Heaps' law). Some functions are exact copies.
`ncs build` then indexes them, with the options of --build ('--memory 2GiB', '--scheduler local' for Dask,
'--store ./milvus.db' for Milvus Lite); an index that is already in OUT is queried again.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Thread

import psutil

from evaluation.benchmarks.common import (
    NCS,
    Report,
    drop_cache,
    fastest_ms,
    in_process,
    percentiles,
    read_queries,
    resident_bytes,
    run_command,
    timed,
)
from evaluation.experiments import folder_bytes, write_json
from evaluation.reports import markdown_table
from ncs.errors import BadInput
from ncs.extract import extract_files
from ncs.index import Index
from ncs.sources import walk
from ncs.types import Document

FUNCTIONS_A_FILE = 20
REPOSITORY = 350
"""Functions of a repository on average."""
MIN_LINES = 5
"""Lines of a real function that is drawn: getters and setters alone are a third of all."""
COPIES = 0.18
"""Share of functions that are exact copies of an earlier one, as in 178 Android repositories."""
NEW_WORDS = 0.15
"""New words per function, unique to a repository."""
KEEP_NAME = 0.2
"""Share of functions that keep their name, as `onCreate`."""
HITS, QUERIES = 10, 100
IDENTIFIER = re.compile(r"\b[^\W\d]\w{2,}\b")
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "abstract assert boolean break byte case catch char class const continue default double else enum extends "
        "final finally float for goto implements import instanceof int interface long native new package private "
        "protected public return short static strictfp super switch synchronized this throw throws transient try "
        "void volatile while true false null var record yield Override",
    )
)
"""Words of Java that stay as they are."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="repositories to draw from")
    parser.add_argument("--functions", type=int, default=1_000_000, help="(default %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="for sources and index, some 1.5 KB per function")
    parser.add_argument("--queries", type=Path, required=True, help="a file with one per line, or a QUESTIONS.json")
    parser.add_argument("--build", default="", metavar="OPTIONS", help="of ncs build, as one text")
    parser.add_argument("--seed", type=int, default=0)


def run(options: argparse.Namespace) -> Report:
    """Sizes, seconds and memory of a build, and of the queries."""
    sources, index = options.out / "sources", options.out / "index"
    if not (options.out / "sources.done").exists():
        in_process(write_sources, options.folder, sources, options.functions, options.seed)
        (options.out / "sources.done").touch()
    if not (options.out / "build.json").exists():
        write_json(build(sources, index, shlex.split(options.build)), options.out / "build.json")
    drop_cache(index)
    return {
        "functions": options.functions, "options": options.build, "source_bytes": folder_bytes(sources),
        **json.loads((options.out / "build.json").read_bytes()), **in_process(query, index, options.queries),
    }  # fmt: skip


def build(sources: Path, index: Path, options: Sequence[str]) -> Report:
    """Seconds of `ncs build`, and the most memory that its processes held together, mapped files left out."""
    peak, finished = [0], Event()

    def watch() -> None:
        while not finished.wait(0.2):
            peak[0] = max(peak[0], _children_bytes())

    watcher = Thread(target=watch)
    watcher.start()
    try:
        seconds = timed(partial(run_command, *NCS, "build", sources, "-i", index, "-q", *options))
    finally:
        finished.set()
        watcher.join()
    return {"build_s": round(seconds.wall, 1), "build_cpu_s": round(seconds.cpu, 1), "build_peak_bytes": peak[0]}


def _children_bytes() -> int:
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            memory = process.memory_info()
        except psutil.Error:  # it ended
            continue
        total += memory.rss - getattr(memory, "shared", 0)
    return total


def query(folder: Path, queries: Path) -> Report:
    """Open cold, run the first query, then all of them warm; bytes on disk and in memory."""
    texts = read_queries(queries)[:QUERIES]
    start = time.perf_counter()
    with Index.load(folder) as index:
        index.ranker()
        open_seconds = time.perf_counter() - start
        index.search(texts[0], HITS)
        first = time.perf_counter() - start
        times = [fastest_ms(index.search, text, HITS, rounds=3) for text in texts]
        documents = len(index)
    return {
        "documents": documents, "index_bytes": folder_bytes(folder), "open_s": round(open_seconds, 3),
        "first_s": round(first, 3), "query_ms": percentiles(times), "resident_bytes": resident_bytes(),
    }  # fmt: skip


def write_sources(real: Path, folder: Path, functions: int, seed: int) -> None:
    """Write files with so many functions, copies among them; the same for the same arguments."""
    repositories = read_functions(real)
    rng = Random(seed)  # noqa: S311
    n_written, earlier = 0, list[str]()
    for number in range(functions):
        if n_written >= functions:
            return
        repository = rng.choices(repositories, [len(each) for each in repositories])[0]
        size = min(functions - n_written, len(repository), max(1, int(rng.expovariate(1 / REPOSITORY))))
        first = rng.randrange(len(repository) - size + 1)
        synthetic = imitate(repository[first : first + size], earlier, rng)
        earlier = [*earlier, *synthetic][-10_000:]
        _write_classes(folder / f"made{number:06}", synthetic)
        n_written += size


def read_functions(folder: Path) -> list[list[Document]]:
    """The Java methods below a folder that are long enough, a list per repository; BadInput for fewer than 100."""
    roots = [path for path in sorted(folder.iterdir()) if path.is_dir()] or [folder]
    functions: dict[str, list[Document]] = {}
    for chunk in extract_files(walk(roots, readable=lambda path: path.endswith(".java")), workers=1, finish=list):
        for document in chunk.result:
            if document.kind == "method" and document.code.count("\n") + 1 >= MIN_LINES:
                functions.setdefault(document.repository, []).append(document)
    if sum(map(len, functions.values())) < 100:
        raise BadInput(f"{folder} has fewer than 100 Java methods to draw from; name a larger folder")
    return list(functions.values())


def imitate(real: Sequence[Document], earlier: Sequence[str], rng: Random) -> list[str]:
    """The code of functions like these, of one repository; some are copies of earlier ones."""
    names = [identifiers(each.code) for each in real]
    words = [new_word(rng) for _ in range(1 + int(NEW_WORDS * len(real)))]
    return [
        rng.choice(earlier) if earlier and rng.random() < COPIES else _rename(each, names, words, rng) for each in real
    ]


def _rename(real: Document, names: Sequence[Sequence[str]], words: Sequence[str], rng: Random) -> str:
    donor, rate = rng.choice(names), rng.uniform(0.25, 0.75)
    if not donor:
        return real.code
    new = {name: rng.choice(donor) for name in identifiers(real.code) if rng.random() < rate}
    if new and rng.random() < 3 * NEW_WORDS:  # a new word stands in three functions of its repository
        new[rng.choice(list(new))] = rng.choice(words)
    if rng.random() >= KEEP_NAME:
        new[real.name] = real.name + rng.choice(donor).capitalize()
    return IDENTIFIER.sub(lambda match: new.get(match[0], match[0]), real.code)


def identifiers(code: str) -> list[str]:
    """Distinct identifiers and words of comments, in order.

    >>> identifiers("int read(File file) { return file.size; }")
    ['read', 'File', 'file', 'size']
    """
    return [name for name in dict.fromkeys(IDENTIFIER.findall(code)) if name not in RESERVED]


def new_word(rng: Random) -> str:
    """A word of three to five syllables."""
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(3, 5)))


def _write_classes(folder: Path, functions: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for at in range(0, len(functions), FUNCTIONS_A_FILE):
        body = "\n\n".join(functions[at : at + FUNCTIONS_A_FILE])
        code = f"package made;\n\npublic class Made{at} {{\n\n{body}\n}}\n"
        (folder / f"Made{at}.java").write_bytes(code.encode("utf-8", "replace"))


def table(report: Report) -> str:
    mib, query_ms = 2**20, report["query_ms"]
    rows = {
        "source": f"{report['source_bytes'] / mib:,.0f} MiB",
        "build": f"{report['build_s']:,.0f} s, {report['build_cpu_s']:,.0f} CPU s",
        "build, memory at most": f"{report['build_peak_bytes'] / mib:,.0f} MiB",
        "index": f"{report['index_bytes'] / mib:,.0f} MiB",
        "index, per document": f"{report['index_bytes'] / report['documents']:,.0f} bytes",
        "open, cold": f"{report['open_s']:.2f} s",
        "first answer, cold": f"{report['first_s']:.2f} s",
        "query, warm": f"p50 {query_ms['p50']:.1f} ms, p95 {query_ms['p95']:.1f} ms",
        **{f"memory after it, {name}": f"{size / mib:,.0f} MiB" for name, size in report["resident_bytes"].items()},
    }
    head = f"{report['functions']:,} functions, {report['documents']:,} documents"
    options = f", ncs build {report['options']}" if report["options"] else ""
    return f"{head}{options}\n\n{markdown_table(['figure', 'measured'], [[name, text] for name, text in rows.items()])}"
