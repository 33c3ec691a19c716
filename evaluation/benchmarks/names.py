"""Constants, macros, types and members of enums: does the name alone find where it is declared?

Universal Ctags (apt-get install universal-ctags) lists them. Of every repository of evaluation/functions (or `--data`)
NAMES names with a capital that it lists once are drawn, always the same; ctags takes some local variables and imports
for such names, too, which no index should find. first: the first hit of the default ranker has the line; file: it is in
the file; five: one of five hits has the line; def: `ncs def` shows the line among its first three.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import NamedTuple

import numpy as np

from corpora.repo_search import mirror_of, read
from evaluation.benchmarks.common import Report
from evaluation.benchmarks.tokens import FUNCTIONS, SETS, checked_out
from evaluation.benchmarks.tokens import add_options as add_options
from evaluation.reports import markdown_table
from ncs.errors import MissingExtra
from ncs.index import Index
from ncs.types import Document

NAMES = 40
KINDS = re.compile("alias|const|constant|enumConstant|enumerator|field|macro|property|talias|type|typedef|variable")
MEASURES = ("first", "file", "five", "def")


class Tag(NamedTuple):
    """What ctags lists; lines count from 1."""

    name: str
    path: str
    line: int
    kind: str

    def is_in(self, document: Document) -> bool:
        """Whether a document has its line."""
        return document.path == self.path and document.start_line <= self.line <= document.end_line


def run(options: argparse.Namespace) -> Report:
    """By kind, how many names there are and how many of them are found."""
    if which("ctags") is None:
        raise MissingExtra("ctags is not installed; apt-get install universal-ctags")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for data in [options.data] if options.data else [FUNCTIONS / name for name in SETS]:
        mirror = options.mirror or mirror_of(data)
        for task in read(data, mirror):
            with checked_out(task, mirror) as tree, Index.build(tree, tree / ".ncs") as index:
                paths = [path for _, path in index.documents.files()[1]]
                for tag in drawn(list(tags(tree, paths))):
                    counts[tag.kind] += Counter(names=1, **ask(index, tag))
    return {"kinds": {kind: dict(counts[kind]) for kind in sorted(counts)}}


def tags(tree: Path, paths: Sequence[str]) -> Iterator[Tag]:
    """All names of KINDS in some files of a folder."""
    command = ["ctags", "--options=NONE", "--quiet", "--output-format=json", "--fields=+nK", "-f-", "-L-"]
    found = subprocess.run(command, input="\n".join(paths).encode(), cwd=tree, capture_output=True, check=True).stdout
    for tag in (json.loads(line.decode("utf-8", "replace")) for line in found.splitlines()):
        if tag["_type"] == "tag" and KINDS.fullmatch(tag["kind"]):
            yield Tag(tag["name"], tag["path"], tag["line"], tag["kind"])


def drawn(found: Sequence[Tag]) -> list[Tag]:
    """NAMES of those that are listed once."""
    times = Counter(tag.name for tag in found)
    once = [tag for tag in found if times[tag.name] == 1 and len(tag.name) > 3 and re.search("[A-Z]", tag.name)]
    order = np.random.default_rng(0).permutation(len(once))
    return [once[at] for at in order[:NAMES].tolist()]


def ask(index: Index, tag: Tag) -> Mapping[str, int]:
    """1 for each of MEASURES that holds."""
    hits = [hit.document for hit in index.search(tag.name, k=5)]
    declared = [each.document for each in index.definitions(tag.name, 3).found]
    return {
        "first": int(any(map(tag.is_in, hits[:1]))),
        "file": int(any(document.path == tag.path for document in hits[:1])),
        "five": int(any(map(tag.is_in, hits))),
        "def": int(any(map(tag.is_in, declared))),
    }


def table(report: Report) -> str:
    kinds = {kind: Counter(counts) for kind, counts in report["kinds"].items()}
    kinds["all"] = sum(kinds.values(), Counter())
    rows = [
        [kind, str(counts["names"]), *(f"{counts[name] / counts['names']:.3f}" for name in MEASURES)]
        for kind, counts in kinds.items()
    ]
    return markdown_table(["kind", "names", *MEASURES], rows)
