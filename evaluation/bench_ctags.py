"""Functions found by extraction against Universal Ctags, an independent counter, language by language.

    bin/benchmark ctags PATH... [--language go] [--examples N] [--json FILE]

ctags must be on the PATH (apt-get install universal-ctags). A function of ctags counts as found where a document of
the same file has its name and covers its line (in JavaScript, which gives some functions two names, where one starts
there). Declarations without a body (of interfaces, abstract methods,
overloads) are no documents by design: they are counted apart. For a language that ctags does not know, it is taught
where functions start by a regular expression. What is missed is listed, so that a person can look.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from evaluation.ctags import KNOWN, Tag, is_function, plain, read_tags
from evaluation.machine import commit
from ncs.errors import SourceError
from ncs.exit_status import ending
from ncs.extract import LANGUAGES, extract, language_of
from ncs.extract.languages import installed
from ncs.sources import SourceFile, walk


@dataclass(slots=True)
class Count:
    """What came of the files of one language."""

    files: int = 0
    documents: int = 0
    tags: int = 0
    """Functions with a name and a body that ctags found."""
    found: int = 0
    without_body: int = 0
    missed: list[str] = field(default_factory=list)
    """path:line name (kind), each."""

    @property
    def share(self) -> float:
        """Of the functions of ctags that have a body, those that are documents, too."""
        return self.found / self.tags if self.tags else 1.0


@ending("ctags")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; --json also writes it with what was missed."""
    parser = argparse.ArgumentParser(prog="benchmark ctags", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--language", choices=sorted(KNOWN))
    parser.add_argument("--examples", type=int, default=0, help="missed functions shown a language")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if shutil.which("ctags") is None:
        parser.error("there is no ctags; install it: apt-get install universal-ctags")
    files = defaultdict(list)
    for file in walk(args.paths, wanted=lambda path: _counted(path, args.language), force=True):
        files[language_of(file.path) or ""].append(file)
    counts = {language: compare(files[language], language) for language in sorted(files)}
    print(report(counts, args.examples))  # noqa: T201
    if args.json:
        args.json.write_text(json.dumps(_record(args.paths, counts), indent=1, ensure_ascii=False) + "\n")
    return 0


def _counted(path: str, only: str | None) -> bool:
    language = language_of(path)
    return language in KNOWN and installed(language) and only in (None, language)


def compare(files: Iterable[SourceFile], language: str) -> Count:
    """Both counters over the files of a language."""
    count = Count()
    with TemporaryDirectory() as folder:
        places: dict[str, SourceFile] = {}
        for number, file in enumerate(files):
            places[f"{number}{LANGUAGES[language].extensions[0]}"] = file
            (Path(folder) / f"{number}{LANGUAGES[language].extensions[0]}").write_bytes(file.data)
        tags = read_tags(folder, places, KNOWN[language])
    for name, file in places.items():
        _add(count, file, tags.get(name, []), language)
    return count


def _add(count: Count, file: SourceFile, tags: Iterable[Tag], language: str) -> None:
    count.files += 1
    lines = defaultdict(list)
    starts: set[int] = set()
    try:
        for document in extract(file.data, language, path=file.path):
            count.documents += 1
            lines[plain(document.name)].append((document.start_line, document.end_line))
            if language == "javascript":
                starts.add(document.start_line)
    except SourceError:
        pass  # then all of the file's functions are missed
    text = file.data.decode("utf-8", "replace").splitlines()
    for tag in set(tags):
        if tag.line in starts or any(start <= tag.line <= end for start, end in lines[plain(tag.name)]):
            count.tags += 1
            count.found += 1
        elif not file.path.endswith(".d.ts") and is_function(text, tag, KNOWN[language]):
            count.tags += 1
            count.missed.append(f"{file.repository}/{file.path}:{tag.line} {tag.name} ({tag.kind})")
        else:
            count.without_body += 1


def report(counts: Mapping[str, Count], examples: int = 0) -> str:
    """The table, and what was missed."""
    lines = [
        "| language | files | documents | ctags, with body | found | share | ctags, without body |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for language, c in counts.items():
        lines.append(
            f"| {language} | {c.files} | {c.documents} | {c.tags} | {c.found} | {c.share:.1%} | {c.without_body} |"
        )
    lines += _examples(counts, examples)
    return "\n".join(lines)


def _examples(counts: Mapping[str, Count], examples: int) -> Iterator[str]:
    for count in counts.values():
        step = max(1, len(count.missed) // examples) if examples else 1
        yield from count.missed[::step][:examples]


def _record(paths: Sequence[Path], counts: Mapping[str, Count]) -> dict[str, object]:
    version = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    return {
        "commit": commit(),
        "ctags": version,
        "paths": [path.name for path in paths],
        "languages": {
            language: {**asdict(c), "missed": c.missed[:200], "n_missed": len(c.missed), "share": c.share}
            for language, c in counts.items()
        },
    }


if __name__ == "__main__":
    sys.exit(main())
