"""Functions of the corpus and their files: gzipped JSON lines, as published or as made here.

As published a language is a folder (in a .zip) with `final/jsonl/<partition>/*.jsonl.gz`; a corpus that was made here
has beside `final` a folder `undocumented`, with the functions that are no pairs.
"""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

from corpora.jsonl import Row, parse_row, read_rows, write_rows
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.types import Document

LANGUAGES = ("go", "java", "javascript", "php", "python", "ruby")
_LINES = re.compile(r"#L(\d+)-L(\d+)$")


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """A line of the corpus, its keys as published (section 2), and the repository's license where it is known.

    docstring: the first paragraph of the comment where the corpus was made here; in the published files all of it, so
    the paragraph is that of docstring_tokens there. func_name: with the names around it, separated by dots.
    """

    repo: str
    path: str
    func_name: str
    original_string: str
    language: str
    code: str
    code_tokens: tuple[str, ...]
    docstring: str
    docstring_tokens: tuple[str, ...]
    sha: str
    url: str
    partition: str

    license: str = ""

    def document(self, *, documented: bool = True) -> Document:
        """The function as in the file, with the words of its comment; its id is its URL.

        documented=False leaves out comment, docstring and path: for queries made of the comment.
        """
        text = (self.original_string or self.code) if documented else self.code
        document_read = read_program(text, self.language, id=self.url)
        words = dict(document_read.words)
        if documented:
            words["path"] = (self.path,)
            if self.docstring.strip():
                words.setdefault("doc", (self.docstring,))
        lines = _LINES.search(self.url)
        return replace(
            document_read,
            repository=self.repo,
            path=self.path,
            start_line=int(lines[1]) if lines else document_read.start_line,
            end_line=int(lines[2]) if lines else document_read.end_line,
            kind="function",
            name=self.func_name.rpartition(".")[2],
            qualified_name=self.func_name,
            words=words,
        )

    def row(self) -> dict[str, object]:
        """As a JSON object in the published shape; without a license the key is left out."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "license" or self.license}


def read_functions(paths: Iterable[Path]) -> Iterator[CodeFunction]:
    """Functions of .jsonl, .jsonl.gz and of published .zip files, which are read as they are, in name order.

    Raises BadInput, naming the line, for invalid functions.
    """
    for path in paths:
        rows = _archived_rows(path) if path.suffix == ".zip" else read_rows(path)
        yield from map(_function, rows)


def write_functions(functions: Iterable[CodeFunction], path: Path) -> int:
    """JSON lines in the published shape, gzip by the name; how many."""
    return write_rows(path, (function.row() for function in functions))


def corpus_files(folder: Path, language: str, partition: str = "", *, undocumented: bool = False) -> list[Path]:
    """The files of a language, in the order of partitions and numbers; with undocumented also the functions that are
    no pairs (a corpus made here has them; the published one has them pickled, which is not read). A published archive
    is given whole, whatever the partition.

    Raises BadInput where there are none.
    """
    files = sorted((folder / language / "final" / "jsonl").glob(f"{partition or '*'}/*.jsonl.gz"), key=_numbered)
    if undocumented:
        files += sorted((folder / language / "undocumented").glob("*.jsonl.gz"), key=_numbered)
    if not files and (folder / f"{language}.zip").is_file():
        return [folder / f"{language}.zip"]
    if not files:
        raise BadInput(f"{folder} has no {language}/final/jsonl/{partition or '*'}/*.jsonl.gz; name a corpus's folder")
    return files


def corpus_languages(folder: Path) -> list[str]:
    """Languages that have functions in the folder of a corpus, unpacked or as the published archives."""
    archives = [path.stem for path in folder.glob("*.zip")]
    return sorted({path.parent.parent.name for path in folder.glob("*/final/jsonl")} | {*archives})


def _numbered(path: Path) -> tuple[str, int]:
    number = re.search(r"_(\d+)\.jsonl", path.name)
    return path.parent.name, int(number[1]) if number else 0


def _archived_rows(path: Path) -> Iterator[Row]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".jsonl.gz"))
            if not names:
                raise BadInput(f"{path} holds no .jsonl.gz; name a language's archive of CodeSearchNet")
            for name in names:
                with archive.open(name) as packed, gzip.open(packed, "rb") as lines:
                    for number, line in enumerate(lines, 1):
                        yield parse_row(line, f"{path}: {name}:{number}")
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; fetch it with: python -m corpora fetch codesearchnet DATA") from None
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadInput(f"{path} is damaged ({error}); fetch the file again") from None


def _function(row: Row) -> CodeFunction:
    texts = {
        field.name: row.text(field.name, "" if field.name in ("sha", "partition", "license") else None)
        for field in fields(CodeFunction)
        if not field.name.endswith("_tokens")
    }
    return CodeFunction(
        **texts, code_tokens=_tokens(row, "code_tokens"), docstring_tokens=_tokens(row, "docstring_tokens")
    )


def _tokens(row: Row, key: str) -> tuple[str, ...]:
    tokens = row.values.get(key, [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BadInput(f"{row.place}: {key!r} is not a list of strings; correct that line")
    return tuple(tokens)
