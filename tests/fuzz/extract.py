"""Source files of every language, damaged or made to be expensive, through the real door: `extract_files`.

A case is the name of a file, a line end and its content. A file may be left out, but nothing comes out of it, it costs
CPU_SECONDS at most, and its documents are parts of the file. SHAPES and UNITS are the expensive ones that are known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from ncs.extract import LANGUAGES, Extraction, extract_files
from ncs.extract.languages import is_installed
from ncs.extract.readers import readable
from ncs.extract.text_files import TEXT_KINDS
from ncs.sources import SourceFile
from ncs.types import Document

SECONDS = 120.0
MEMORY = 700 << 20
"""500 MB for a file, beside what Python and the grammars take."""
CASES = 15
CPU_SECONDS = 25.0
"""Of a file and the processes that read it: 5 s on a machine that may be five times slower or busier than ours."""
DATA = Path(__file__).parents[1] / "data"
SPECIAL = [bytes([byte]) for byte in b"(){}[]<>\"'`\\/*#@$%&|;:,.?!=+-~^ \n\t\r\0aA0\x80\xff"]
SPANS = (
    b"/*", b"*/", b"//", b"/**", b"<!--", b"-->", b'"""', b"'''", b"${", b"#{", b"<<A\n", b"{-", b"-}", b"--", b"[[",
    b"$$", b"$a$", b"\\\n", b"\r\n", b"<?php", b"?>", b"<script", b"</script>", b"r#\"", b"%w(", b"=begin\n", b"@a ",
    b"a<", b"a(", b"a.", b"a?", b"a:", b"a=>", b"a,", b"->", b"::", b"=>", b"else ", b"\n  ", b"\xef\xbb\xbf", b"\xe2",
)  # fmt: skip
"""What stands at the start or end of strings, comments and nested code."""
UNITS = (
    "(", "[", "{", ")", "a(", "a[", "a{", "a<", "a<b,", "a.b", "a?", "a?b:", "a+", "a-", "!", "-", "*", "&", "a=",
    "a=>", "a->", "->", "a:", "a::", "a,", "@a ", "@a(", "$a", "${", "#{", "`${", '"', "'", "`", '"a" ', '"""', "'''",
    '\\"""\n', "/*", "/*\n", "*/", "//\n", "/", "#", "#\n", "--\n", "{-", "<", "<a>", "</a>", "<!--", "<<A\n",
    "<<-A\n", "\\", "\\\n", "r#", "%", "a\n", "a\n\n", "(a)\n", "{}\n", "[]", "()", "if (a) ", "if a {", "else ",
    "f(){", "function f(){", "class A{", "def f():\n ", "fn f(){", "fun f(){", "func f(){", "let a=", "case a:",
    "do ", "begin ", "end\n", "SELECT (", "SELECT ", "$a$", "é", "\xff", "\0", "\t", " ", "\n ", "\n", "0", "0x",
    "1e", "a", "import a\n", "#if a\n", "#define a \\\n", "=",
)  # fmt: skip
"""What is repeated up to a file's size."""
BODIES = {
    "java": ("class A { void f() { int x = ", "; } }"),
    "csharp": ("class A { void f() { int x = ", "; } }"),
    "python": ("def f():\n    x = ", "\n"),
    "go": ("package a\nfunc f() { x := ", " }\n"),
    "php": ("<?php function f() { $x = ", "; }"),
    "c": ("int f() { int x = ", "; }"),
    "cpp": ("int f() { int x = ", "; }"),
    "rust": ("fn f() { let x = ", "; }"),
    "kotlin": ("fun f() { val x = ", "\n}"),
    "swift": ("func f() { let x = ", "\n}"),
    "scala": ("object A { def f() = { val x = ", "\n} }"),
    "lua": ("function f()\n x = ", "\nend"),
    "bash": ("f() { x=", "\n}"),
    "elixir": ("def f() do\n x = ", "\nend"),
    "haskell": ("module A where\nf = ", "\n"),
    "zig": ("fn f() void { const x = ", "; }"),
    "sql": ("SELECT ", ";"),
    "ruby": ("def f()\n x = ", "\nend"),
}
"""A function around what is repeated."""
_FUNCTION = ("function f() { x = ", "; }")


@cache
def names() -> dict[str, str]:
    """Language, text kind or sort of file -> a file name that is read so."""
    files = {name: f"a{language.extensions[0]}" for name, language in LANGUAGES.items() if is_installed(name)}
    files |= {
        kind.name: f"a{kind.files[0]}" if kind.files[0].startswith(".") else kind.files[0]
        for kind in TEXT_KINDS.values()
        if kind.files
    }
    return files | {"notebook": "a.ipynb", "page": "a.html", "vue": "a.vue", "astro": "a.astro"}


def repeated(name: str, unit: str, size: int, *, inside: bool) -> tuple[str, bytes]:
    """A file of about so many bytes; inside: of a function."""
    before, after = BODIES.get(name, _FUNCTION if name in LANGUAGES else ("", "")) if inside else ("", "")
    if name == "php" and not inside:
        before = "<?php "
    code = before + unit * (size // len(unit.encode("latin-1", "replace"))) + after
    if name == "notebook":
        return names()[name], _notebook(code)
    if name in ("page", "vue", "astro") and inside:
        code = f"<script>{code}</script>"
    return names()[name], code.encode("latin-1", "replace")


def _notebook(code: str) -> bytes:
    return json.dumps({"cells": [{"cell_type": "code", "source": code.splitlines(True)}]}).encode()


def growing(unit: str, size: int) -> bytes:
    """Lines that are indented more and more."""
    lines: list[str] = []
    while size > 0:
        lines.append(" " * len(lines) + unit + "\n")
        size -= len(lines[-1])
    return "".join(lines).encode()


SHAPES: dict[str, Callable[[int], tuple[str, bytes]]] = {
    "Kotlin with a wrong byte": lambda n: ("a.kt", _kotlin(n)),
    "Python of /*": lambda n: ("a.py", b"/*" * (n // 2)),
    "Python of /* by line": lambda n: ("a.py", b"/*\n" * (n // 3)),
    "Java of a<": lambda n: ("A.java", b"a<" * (n // 2)),
    "Java of a< in a method": lambda n: repeated("java", "a<", n, inside=True),
    "JSON of [": lambda n: ("package.json", b"[" * n),
    "notebook of [": lambda n: ("a.ipynb", b'{"cells":' + b"[" * n),
    "notebook of {": lambda n: ("a.ipynb", b'{"a":' * (n // 5)),
    "notebook of cells": lambda n: ("a.ipynb", _cells(n, "code", "def f(a):\n    return a.b(1)\n")),
    "notebook of markdown": lambda n: ("a.ipynb", _cells(n, "markdown", "# a [b](c)\n" * 50)),
    "notebook of one cell": lambda n: ("a.ipynb", _notebook("x = f(1)\n" * (n // 9))),
    "notebook of one line": lambda n: ("a.ipynb", _notebook("x = f(1);" * (n // 9))),
    "notebook of magics": lambda n: ("a.ipynb", _notebook("!ls '\n%a\n" * (n // 9))),
    "notebook of outputs": lambda n: (
        "a.ipynb",
        json.dumps({"cells": [{"cell_type": "code", "source": "f(1)", "outputs": ["a" * 70] * (n // 74)}]}).encode(),
    ),
    "notebook of numbers": lambda n: ("a.ipynb", b'{"cells":[' + b"1," * (n // 2) + b"1]}"),
    "notebook of a number": lambda n: ("a.ipynb", b'{"cells":[' + b"1" * n + b"]}"),
    "scripts": lambda n: ("a.html", b"<script>f(1)</script>\n" * (n // 22)),
    "script of a": lambda n: ("a.html", b"<script " + b"a" * n),
    "Python in steps": lambda n: ("a.py", growing("if a:", n)),
    "Haskell in steps": lambda n: ("a.hs", growing("where", n)),
    "Ruby of heredocs": lambda n: ("a.rb", b"".join(b"f(<<A%d)\n" % i for i in range(n // 9))),
    "SQL of dollar tags": lambda n: ("a.sql", b"".join(b"$a%d$ " % i for i in range(n // 8))),
    "C++ of raw strings": lambda n: ("a.cpp", b"".join(b'R"a%d(' % i for i in range(n // 8))),
    "Rust of raw strings": lambda n: ("a.rs", b'r' + b"#" * n + b'"'),
    "Lua of long brackets": lambda n: ("a.lua", b"[" + b"=" * n + b"["),
    "functions": lambda n: ("a.js", b"function f(a){return g(a.b)}\n" * (n // 29)),
    "one function": lambda n: ("a.js", b"function f(a){" + b"g(a.b);\n" * (n // 8) + b"}\n"),
    "one line": lambda n: ("a.js", b"f(a.b);" * (n // 7)),
    "one name": lambda n: ("a.py", b"a" * n),
    "nested functions": lambda n: ("a.js", b"function f(){" * (n // 14) + b"}" * (n // 14)),
    "nested classes": lambda n: ("A.java", b"class A{" * (n // 9) + b"}" * (n // 9)),
    "Scala of 0a,": lambda n: repeated("scala", "0a,", n, inside=True),
    "Scala of a+": lambda n: repeated("scala", "a+\n", n, inside=True),
    "Swift of $a$a,": lambda n: repeated("swift", "$a$a,", n, inside=True),
    "Elixir of ()": lambda n: repeated("elixir", "()", n, inside=True),
    "comments": lambda n: ("a.go", b"// a b c\nfunc f() {}\n" * (n // 21)),
}  # fmt: skip
"""Sorts of expensive files, by size in bytes."""


def _kotlin(size: int) -> bytes:
    """It once took 46 CPU seconds and 3.8 GB; large, it is one of many functions."""
    text = (DATA / "kotlin" / "Keyboard.kt").read_bytes()
    return text * (size // len(text) // 2) + text[:765] + b"`" + text[766:] + text * (size // len(text) // 2)


def _cells(size: int, kind: str, text: str) -> bytes:
    cell = {"cell_type": kind, "source": [text], "metadata": {}, "outputs": []}
    return json.dumps({"cells": [cell] * (size // len(json.dumps(cell)))}).encode()


@cache
def sources() -> tuple[tuple[str, bytes], ...]:
    """The test data: name and content of a file of every language."""
    paths = [path for path in sorted(DATA.rglob("*")) if path.is_file() and "expected" not in path.parts]
    return tuple((path.name, path.read_bytes()) for path in paths if readable(path.name))


def generate(random: Random) -> bytes:
    sort = random.random()
    if sort < 0.75:
        name, data = mutation(random)
    elif sort < 0.8:
        name, data = random.choice(list(SHAPES.values()))(random.choice((1_000, 30_000, 300_000, 1_000_000)))
    else:
        units = random.choices(UNITS, k=random.choice((1, 1, 2, 3)))
        size, inside = random.choice((500, 2_000, 10_000, 30_000, 100_000)), random.random() < 0.5
        name, data = repeated(random.choice(list(names())), "".join(units), size, inside=inside)
    return name.encode() + b"\n" + data


def mutation(random: Random) -> tuple[str, bytes]:
    """A file of the test data with a few edits; sometimes under the name of another language."""
    name, text = random.choice(sources())
    data = bytearray(text)
    for _ in range(random.choice((1, 1, 2, 4, 10))):
        at = random.randrange(len(data) + 1)
        end = min(len(data), at + random.choice((0, 1, 1, 5, 50)))
        new = random.choice((b"", random.choice(SPECIAL), random.choice(SPANS), bytes(data[at:end])))
        data[at:end] = new * random.choice((1, 1, 1, 2, 10, 100))
    if random.random() < 0.1:
        name = random.choice(list(names().values()))
    return name, bytes(data)


def check(case: bytes, room: Path) -> None:
    name, _, data = case.partition(b"\n")
    before = sum(os.times()[:4])
    extractions = list(extract_files([SourceFile("r", name.decode(), data)], workers=1, outside=True, finish=list))
    seconds = sum(os.times()[:4]) - before
    assert seconds < CPU_SECONDS, f"{seconds:.1f} CPU seconds"
    assert [sum(extraction.counts) for extraction in extractions] == [len(extractions[0].result)]
    check_documents(extractions[0], data)


def check_documents(extraction: Extraction[list[Document]], data: bytes) -> None:
    """Documents have distinct ids, are parts of the file, and can be written."""
    documents = extraction.result
    assert not (extraction.failed and documents), "documents of a file that failed"
    assert len({document.id for document in documents}) == len(documents), "ids"
    lines = data.count(b"\n") + data.count(b"\r") + 1
    for document in documents:
        where = f"{document.kind} {document.name[:50]!r}"
        assert 1 <= document.start_line <= document.end_line, f"lines of {where}"
        assert document.end_line <= lines or document.path.endswith(".ipynb"), f"{where}, line {document.end_line}"
        for text in (document.name, document.code, *(word for words in document.words.values() for word in words)):
            text.encode()
