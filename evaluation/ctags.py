"""What Universal Ctags says of source files, and what of it is a function with a body."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """What ctags calls a language and the kinds of its tags that are functions."""

    name: str
    kinds: str
    pattern: str = ""
    """A regular expression for a language that it does not know: where functions start, the name as group 1."""
    body: str = "{"
    """What tells a body: "{" one before a semicolon, "newline" one before the line's end, "equation" one below a
    signature, "types" one before the line's end where braces are also types, "" every tag has one."""
    mark: str = ""
    """A regular expression that the line of every function matches; ctags also gives other names."""
    quotes: str = ""
    """Around text of several lines, in which examples of code stand that ctags takes for code."""


_NO_STATEMENT = r"^(?!\s*(?:if|else|for|while|switch)\b)"

KNOWN: Mapping[str, Known] = {
    "bash": Known("Sh", "f", body="", mark=r"\(\s*\)|\bfunction\b"),
    "c": Known("C", "f"),
    "cpp": Known("C++", "f"),
    "csharp": Known("C#", "m"),
    "elixir": Known("Elixir", "fao", body="", quotes='"""'),
    "go": Known("Go", "f"),
    "haskell": Known("Haskell", "f", body="equation"),
    "java": Known("Java", "m"),
    "javascript": Known(
        "JavaScript", "fmgGS", mark=r"^(?!.*=\s*(?:/\*.*\*/\s*)?\(function\b).*(?:=>|\bfunction\b|\w\s*\(|\bnew\b)"
    ),
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
    """A function of ctags; lines count from 1."""

    name: str
    line: int
    kind: str


def read_tags(folder: str, names: Iterable[str], known: Known) -> dict[str, list[Tag]]:
    """File name -> functions, as ctags sees the files of a folder."""
    options = [f"--languages={known.name}", f"--kinds-{known.name}={known.kinds}", f"--language-force={known.name}"]
    if known.pattern:
        options[:0] = [f"--langdef={known.name}", f"--kinddef-{known.name}=f,function,functions"]
        options.append(f"--regex-{known.name}=!{known.pattern}!\\1!f!")
    command = [
        "ctags",
        "--quiet",
        "--options=NONE",
        *options,
        "--output-format=json",
        "--fields=+nk",
        "-f",
        "-",
        "-L",
        "-",
    ]
    done = subprocess.run(command, input="\n".join(names), cwd=folder, capture_output=True, text=True, check=True)
    tags = defaultdict(list)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if not _ANONYMOUS.search(tag["name"]) and not (known.name == "Sh" and tag["name"].endswith("=")):
            tags[tag["path"]].append(Tag(tag["name"], tag["line"], tag["kind"]))
    return tags


def is_function(lines: Sequence[str], tag: Tag, known: Known) -> bool:
    """Whether what ctags found has a body, and is code."""
    if known.quotes and sum(line.count(known.quotes) for line in lines[: tag.line - 1]) % 2:
        return False
    if not re.search(known.mark, lines[tag.line - 1]):
        return False
    text = "\n".join(lines[tag.line - 1 : tag.line + 60])
    if known.body == "equation":
        return re.search(rf"^\s*{re.escape(tag.name)}\b(?!\s*::)[^=\n]*[=|]", text, re.MULTILINE) is not None
    return not known.body or has_body(text, tag.name, known.body != "{", known.body == "types")


def plain(name: str) -> str:
    """A name as both write it: without quotes, qualifiers, spaces, a setter's `=`, and what marks operators.

    A conversion of C++ is named by its type alone: the document is, too.

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
