"""Functions found by extraction against Universal Ctags, an independent counter, language by language.

    bin/benchmark ctags PATH... [--language go] [--examples N] [--json FILE]

ctags must be on the PATH (apt-get install universal-ctags). A function that ctags lists counts as found where a
document of the same file has its name and covers its line (in JavaScript, which gives some functions two names, where
one starts there). Declarations without a body (of interfaces, abstract methods, overloads) are no documents by design:
they are counted apart. A language that ctags does not know is described by a regular expression. Missed functions are
listed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from evaluation.benchmarks.common import about, write_json
from evaluation.reports import markdown_table
from ncs.errors import MissingExtra, SourceError
from ncs.exit_status import main_program
from ncs.extract import LANGUAGES, extract, language_of
from ncs.extract.languages import installed
from ncs.sources import SourceFile, walk

MISSED = 200
"""Missed functions of a language in the result file."""


@dataclass(frozen=True, slots=True)
class Known:
    """What ctags calls a language, and the kinds of its tags that are functions.

    pattern: a regular expression for a language that ctags does not know, the name as group 1. mark: the line of every
    function matches it. quotes: around text of several lines whose examples ctags takes for code.
    body: what tells a body: "{" one before a semicolon, "newline" one before the line's end, "equation" one below a
    signature, "types" one before the line's end where braces are also types, "" every tag has one.
    """

    name: str
    kinds: str
    pattern: str = ""
    body: str = "{"
    mark: str = ""
    quotes: str = ""


_NO_STATEMENT = r"^(?!\s*(?:if|else|for|while|switch)\b)"
_JAVASCRIPT = r"^(?!.*=\s*(?:/\*.*\*/\s*)?\(function\b).*(?:=>|\bfunction\b|\w\s*\(|\bnew\b)"

KNOWN: Mapping[str, Known] = {
    "bash": Known("Sh", "f", body="", mark=r"\(\s*\)|\bfunction\b"),
    "c": Known("C", "f"),
    "cpp": Known("C++", "f"),
    "csharp": Known("C#", "m"),
    "elixir": Known("Elixir", "fao", body="", quotes='"""'),
    "go": Known("Go", "f"),
    "haskell": Known("Haskell", "f", body="equation"),
    "java": Known("Java", "m"),
    "javascript": Known("JavaScript", "fmgGS", mark=_JAVASCRIPT),
    "kotlin": Known("Kotlin", "m", body="newline", mark=r"\bfun\b"),
    "lua": Known("Lua", "f", body="", mark=r"\bfunction\s+\w|=\s*function\b"),
    "php": Known("PHP", "f"),
    "python": Known("Python", "f"),
    "ruby": Known("Ruby", "fS", body=""),
    "rust": Known("Rust", "fP"),
    "scala": Known("ScalaByPattern", "f", r"^[^/*\"]*\bdef[ \t]+([A-Za-z_][A-Za-z0-9_]*)", body="newline"),
    "sql": Known("SQL", "fptTv", body=""),
    "swift": Known("SwiftByPattern", "f", r"^[^/*\"]*\bfunc[ \t]+([A-Za-z_][A-Za-z0-9_]*)", body="newline"),
    "tsx": Known("TypeScript", "fmG", body="types", mark=_NO_STATEMENT),
    "typescript": Known("TypeScript", "fmG", body="types", mark=_NO_STATEMENT),
    "zig": Known("ZigByPattern", "f", r"^[^/\"]*\bfn[ \t]+([A-Za-z_][A-Za-z0-9_]*)"),
}
_ANONYMOUS = re.compile(r"anonymous|__anon|AnonymousFunction", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tag:
    """A function listed by ctags; lines count from 1."""

    name: str
    line: int
    kind: str


@dataclass(slots=True)
class Count:
    """The files of one language. tags: functions with a name and a body; missed: `path:line name (kind)` each."""

    files: int = 0
    documents: int = 0
    tags: int = 0
    found: int = 0
    without_body: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of the functions of ctags that have a body, those that are documents."""
        return self.found / self.tags if self.tags else 1.0


@main_program("ctags")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; --json also writes it with what was missed."""
    parser = argparse.ArgumentParser(prog="benchmark ctags", description=__doc__.split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--language", choices=sorted(KNOWN))
    parser.add_argument("--examples", type=int, default=0, help="missed functions shown per language")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if shutil.which("ctags") is None:
        raise MissingExtra("ctags is not installed; apt-get install universal-ctags")

    def wanted(path: str) -> bool:
        language = language_of(path)
        return language in KNOWN and installed(language) and args.language in (None, language)

    files = defaultdict(list)
    for file in walk(args.paths, wanted=wanted, force=True):
        files[language_of(file.path) or ""].append(file)
    counts = {language: compare(files[language], language) for language in sorted(files)}
    sys.stdout.write(table(counts, args.examples) + "\n")
    languages = {
        name: {**asdict(c), "missed": c.missed[:MISSED], "n_missed": len(c.missed), "share": c.share}
        for name, c in counts.items()
    }
    write_json(args.json, {**about(), "ctags": _version(), "languages": languages})
    return 0


def _version() -> str:
    result = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=True)
    return result.stdout.partition("\n")[0]


def compare(files: Iterable[SourceFile], language: str) -> Count:
    """Both counters over the files of a language."""
    count, settings = Count(), KNOWN[language]
    with TemporaryDirectory() as folder:
        copies: dict[str, SourceFile] = {}
        for number, file in enumerate(files):
            name = f"{number}{LANGUAGES[language].extensions[0]}"
            (Path(folder) / name).write_bytes(file.data)
            copies[name] = file
        tags = read_tags(folder, copies, settings)
    for name, file in copies.items():
        _add(count, file, tags.get(name, []), language)
    return count


def read_tags(folder: str, names: Iterable[str], settings: Known) -> dict[str, list[Tag]]:
    """File name -> functions, as ctags sees the files of a folder."""
    options = [
        f"--languages={settings.name}",
        f"--kinds-{settings.name}={settings.kinds}",
        f"--language-force={settings.name}",
    ]
    if settings.pattern:
        options[:0] = [f"--langdef={settings.name}", f"--kinddef-{settings.name}=f,function,functions"]
        options.append(f"--regex-{settings.name}=!{settings.pattern}!\\1!f!")
    command = ["ctags", "--quiet", "--options=NONE", *options, "--output-format=json", "--fields=+nk", "-f-", "-L-"]
    result = subprocess.run(command, input="\n".join(names), cwd=folder, capture_output=True, text=True, check=True)
    tags = defaultdict(list)
    for line in result.stdout.splitlines():
        tag = json.loads(line)
        if not _ANONYMOUS.search(tag["name"]) and not (settings.name == "Sh" and tag["name"].endswith("=")):
            tags[tag["path"]].append(Tag(tag["name"], tag["line"], tag["kind"]))
    return tags


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
        pass  # then all functions of the file are missed
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


def is_function(lines: Sequence[str], tag: Tag, settings: Known) -> bool:
    """Whether a tag has a body and is code."""
    if settings.quotes and sum(line.count(settings.quotes) for line in lines[: tag.line - 1]) % 2:
        return False
    if not re.search(settings.mark, lines[tag.line - 1]):
        return False
    text = "\n".join(lines[tag.line - 1 : tag.line + 60])
    if settings.body == "equation":
        return re.search(rf"^\s*{re.escape(tag.name)}\b(?!\s*::)[^=\n]*[=|]", text, re.MULTILINE) is not None
    return not settings.body or has_body(text, tag.name, settings.body != "{", settings.body == "types")


def plain(name: str) -> str:
    """A name as both write it: without quotes, qualifiers, spaces, a setter's `=`, and what marks operators.

    A conversion of C++ is named by its type alone, as the document is.

    >>> plain("operator const std::locale&")
    'locale'
    >>> plain("'Foo.bar'"), plain("Foo::bar"), plain("operator =="), plain("M:go"), plain("value="), plain("~A")
    ('bar', 'bar', '==', 'go', 'value', 'A')
    """
    if re.match(r"operator \w", name):
        name = re.sub(r"^ *const\b|[*& ]+$", "", name.removeprefix("operator"))
    name = name.strip("'\"`#~{[]").removeprefix("operator").replace(" ", "")
    if name[:1].isalpha() or name[:1] in "_:.":
        name = re.split(r"[.:]", name.rstrip("="))[-1] or name
    return name


def has_body(text: str, name: str, newline_ends: bool, types: bool = False) -> bool:
    """Whether a declaration at the start of the text has a body.

    >>> has_body("int a(int x);", "a", False), has_body("int a(int x)\\n{", "a", False)
    (False, True)
    >>> has_body("a(): B<{ c: D }>\\n b() {}", "a", True, True), has_body("a(): { c: D } {}", "a", True, True)
    (False, True)
    >>> has_body("fun a(x: Int): Int\\n fun b() {}", "a", True), has_body("fun a(x: Int) = x", "a", True)
    (False, True)
    """
    brackets = r"\([^()]*\)|\[[^][]*\]|<[^<>{;]*>"
    braces = r"(?<=[<,:|&(=])\s*\{[^{}()]*\}" if types else r"(?!)"
    rest = text.partition(name)[2].replace("=>", "=")
    while (shorter := re.sub(brackets, "", re.sub(braces, "T", rest))) != rest:
        rest = shorter
    for line in rest.split("\n"):
        for character in line:
            if character in "{=":
                return True
            if character == ";":
                return False
        if newline_ends and line.strip() and line.strip()[-1] not in ",(:&|":
            following = rest.partition(line)[2].lstrip()
            return following.startswith(("{", "=")) or following.startswith("where")
    return not newline_ends


def table(counts: Mapping[str, Count], examples: int = 0) -> str:
    """A row per language, then some of the missed functions of each."""
    head = ["language", "files", "documents", "ctags, with body", "found", "share", "ctags, without body"]
    rows = [
        [name, f"{c.files}", f"{c.documents}", f"{c.tags}", f"{c.found}", f"{c.share:.1%}", f"{c.without_body}"]
        for name, c in counts.items()
    ]
    lines = [markdown_table(head, rows)]
    for count in counts.values():
        step = max(1, len(count.missed) // examples) if examples else 1
        lines += count.missed[::step][:examples]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
