"""Functions that extraction finds against Universal Ctags, an independent counter, language by language.

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
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from evaluation.benchmarks.common import Report, files_by_language
from evaluation.reports import markdown_table
from ncs.errors import MissingExtra, SourceError
from ncs.extract import LANGUAGES, extract
from ncs.sources import SourceFile

MISSED = 200
"""Missed functions of a language in the result file."""


@dataclass(frozen=True, slots=True)
class Counter:
    """How to count a language with ctags: its name there, and the kinds of tags that are functions.

    pattern: a regular expression for a language that ctags does not know, the name as group 1. mark: matches the line
    of every function. quotes: around text of several lines whose examples ctags takes for code. body: the sign of a
    body: "{" one before a semicolon, "newline" one before the line's end, "equation" one below a signature, "types" one
    before the line's end where braces are also types, "" every tag has one.
    """

    name: str
    kinds: str
    pattern: str = ""
    body: str = "{"
    mark: str = ""
    quotes: str = ""


_NO_STATEMENT = r"^(?!\s*(?:if|else|for|while|switch)\b)"
_JAVASCRIPT = r"^(?!.*=\s*(?:/\*.*\*/\s*)?\(function\b).*(?:=>|\bfunction\b|\w\s*\(|\bnew\b)"

COUNTERS: Mapping[str, Counter] = {
    "bash": Counter("Sh", "f", body="", mark=r"\(\s*\)|\bfunction\b"),
    "c": Counter("C", "f"),
    "cpp": Counter("C++", "f"),
    "csharp": Counter("C#", "m"),
    "elixir": Counter("Elixir", "fao", body="", quotes='"""'),
    "go": Counter("Go", "f"),
    "haskell": Counter("Haskell", "f", body="equation"),
    "java": Counter("Java", "m"),
    "javascript": Counter("JavaScript", "fmgGS", mark=_JAVASCRIPT),
    "kotlin": Counter("Kotlin", "m", body="newline", mark=r"\bfun\b"),
    "lua": Counter("Lua", "f", body="", mark=r"\bfunction\s+\w|=\s*function\b"),
    "php": Counter("PHP", "f"),
    "python": Counter("Python", "f"),
    "ruby": Counter("Ruby", "fS", body=""),
    "rust": Counter("Rust", "fP"),
    "scala": Counter("ScalaByPattern", "f", r"^[^/*\"]*\bdef[ \t]+([A-Za-z_][A-Za-z0-9_]*)", body="newline"),
    "sql": Counter("SQL", "fptTv", body=""),
    "swift": Counter("SwiftByPattern", "f", r"^[^/*\"]*\bfunc[ \t]+([A-Za-z_][A-Za-z0-9_]*)", body="newline"),
    "tsx": Counter("TypeScript", "fmG", body="types", mark=_NO_STATEMENT),
    "typescript": Counter("TypeScript", "fmG", body="types", mark=_NO_STATEMENT),
    "zig": Counter("ZigByPattern", "f", r"^[^/\"]*\bfn[ \t]+([A-Za-z_][A-Za-z0-9_]*)"),
}
_ANONYMOUS = re.compile(r"anonymous|__anon|AnonymousFunction", re.IGNORECASE)


class Tag(NamedTuple):
    """A function listed by ctags; lines count from 1."""

    name: str
    line: int
    kind: str


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    parser.add_argument("--language", choices=sorted(COUNTERS))
    parser.add_argument("--examples", type=int, default=0, help="missed functions shown per language")


def run(options: argparse.Namespace) -> Report:
    """The counts of every language; examples: some of the missed functions of each."""
    if shutil.which("ctags") is None:
        raise MissingExtra("ctags is not installed; apt-get install universal-ctags")
    version = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=True).stdout
    files = files_by_language(options.paths, options.language)
    languages = {language: compare(files[language], language) for language in files}
    examples = []
    for missed in (each["missed"] for each in languages.values()):
        step = max(1, len(missed) // options.examples) if options.examples else 1
        examples += missed[::step][: options.examples]
    for each in languages.values():
        each |= {"n_missed": len(each["missed"]), "missed": each["missed"][:MISSED]}
    return {"ctags": version.partition("\n")[0], "languages": languages, "examples": examples}


def compare(files: Sequence[SourceFile], language: str) -> Report:
    """Both counts over the files of a language: tags are functions with a name and a body."""
    names = [f"{number}{LANGUAGES[language].extensions[0]}" for number in range(len(files))]
    with TemporaryDirectory() as folder:
        for name, file in zip(names, files, strict=True):
            (Path(folder) / name).write_bytes(file.data)
        tags = read_tags(folder, names, COUNTERS[language])
    documents, n_found, without_body, missed = 0, 0, 0, list[str]()
    for name, file in zip(names, files, strict=True):
        lines, starts = document_lines(file, language)
        documents += sum(map(len, lines.values()))
        text = file.data.decode("utf-8", "replace").splitlines()
        for tag in set(tags[name]):
            if tag.line in starts or any(start <= tag.line <= end for start, end in lines[plain(tag.name)]):
                n_found += 1
            elif not file.path.endswith(".d.ts") and is_function(text, tag, COUNTERS[language]):
                missed.append(f"{file.repository}/{file.path}:{tag.line} {tag.name} ({tag.kind})")
            else:
                without_body += 1
    n_tags = n_found + len(missed)
    return {
        "files": len(files), "documents": documents, "tags": n_tags, "found": n_found, "without_body": without_body,
        "missed": missed, "share": n_found / n_tags if n_tags else 1.0,
    }  # fmt: skip


def document_lines(file: SourceFile, language: str) -> tuple[dict[str, list[tuple[int, int]]], set[int]]:
    """Name -> first and last lines of the documents of a file; in JavaScript the lines where any starts, too."""
    lines = defaultdict(list)
    try:
        for document in extract(file.data, language, path=file.path):
            lines[plain(document.name)].append((document.start_line, document.end_line))
    except SourceError:
        pass  # then all functions of the file are missed
    starts = {start for spans in lines.values() for start, _ in spans} if language == "javascript" else set()
    return lines, starts


def read_tags(folder: str, names: Iterable[str], counter: Counter) -> dict[str, list[Tag]]:
    """File name -> functions, as ctags sees the files of a folder."""
    name = counter.name
    options = [f"--languages={name}", f"--kinds-{name}={counter.kinds}", f"--language-force={name}"]
    if counter.pattern:
        options[:0] = [f"--langdef={name}", f"--kinddef-{name}=f,function,functions"]
        options.append(f"--regex-{name}=!{counter.pattern}!\\1!f!")
    command = ["ctags", "--quiet", "--options=NONE", *options, "--output-format=json", "--fields=+nk", "-f-", "-L-"]
    result = subprocess.run(command, input="\n".join(names), cwd=folder, capture_output=True, text=True, check=True)
    tags = defaultdict(list)
    for tag in map(json.loads, result.stdout.splitlines()):
        if not _ANONYMOUS.search(tag["name"]) and not (name == "Sh" and tag["name"].endswith("=")):
            tags[tag["path"]].append(Tag(tag["name"], tag["line"], tag["kind"]))
    return tags


def is_function(lines: Sequence[str], tag: Tag, counter: Counter) -> bool:
    """Whether a tag has a body and is code."""
    if counter.quotes and sum(line.count(counter.quotes) for line in lines[: tag.line - 1]) % 2:
        return False
    if not re.search(counter.mark, lines[tag.line - 1]):
        return False
    text = "\n".join(lines[tag.line - 1 : tag.line + 60])
    if counter.body == "equation":
        return re.search(rf"^\s*{re.escape(tag.name)}\b(?!\s*::)[^=\n]*[=|]", text, re.MULTILINE) is not None
    return not counter.body or has_body(text, tag.name, counter.body != "{", counter.body == "types")


def plain(name: str) -> str:
    """A name without quotes, qualifiers, spaces, a setter's `=`, and signs of operators.

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


def table(report: Report) -> str:
    head = ["language", "files", "documents", "ctags, with body", "found", "share", "ctags, without body"]
    columns = ("files", "documents", "tags", "found", "share", "without_body")
    rows = [
        [name, *(f"{each[column]:.1%}" if column == "share" else str(each[column]) for column in columns)]
        for name, each in report["languages"].items()
    ]
    return "\n".join([markdown_table(head, rows), *report["examples"]])
