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

from corpora.jsonl import Row, parse_row, read_rows
from corpora.program import read_program
from ncs.errors import BadInput
from ncs.files import LONGEST_LINE
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
        program = read_program(text, self.language, id=self.url)
        words = dict(program.words)
        if documented:
            words["path"] = (self.path,)
            if self.docstring.strip():
                words.setdefault("doc", (self.docstring,))
        lines = _LINES.search(self.url)
        return replace(
            program,
            repository=self.repo,
            path=self.path,
            start_line=int(lines[1]) if lines else program.start_line,
            end_line=int(lines[2]) if lines else program.end_line,
            kind="function",
            name=self.func_name.rpartition(".")[2],
            qualified_name=self.func_name,
            words=words,
        )

    def row(self) -> dict[str, object]:
        """A JSON object in the published shape; without a license the key is left out."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "license" or self.license}


def read_functions(paths: Iterable[Path]) -> Iterator[CodeFunction]:
    """Functions of .jsonl, .jsonl.gz and of published .zip files; BadInput, naming the line, for invalid ones."""
    for path in paths:
        yield from map(_function, _archived_rows(path) if path.suffix == ".zip" else read_rows(path))


def corpus_files(folder: Path, language: str, partition: str = "", *, undocumented: bool = False) -> list[Path]:
    """The files of a language, in the order of partitions and numbers; BadInput where there are none.

    undocumented: those of the functions that are no pairs, too. A published archive is given whole.
    """
    files = sorted((folder / language / "final" / "jsonl").glob(f"{partition or '*'}/*.jsonl.gz"), key=_numbered)
    if undocumented:
        files += sorted((folder / language / "undocumented").glob("*.jsonl.gz"), key=_numbered)
    if not files and (folder / f"{language}.zip").is_file():
        return [folder / f"{language}.zip"]
    if not files:
        raise BadInput(f"{folder} has no {language}/final/jsonl/{partition or '*'}/*.jsonl.gz; name a corpus's folder")
    return files


def corpus_languages(folder: Path, partition: str = "", *, undocumented: bool = False) -> list[str]:
    """Languages with pairs, of the partition, in the folder of a corpus; published archives may have all of it.

    undocumented: those that have only functions that are no pairs, too.
    """
    places = [f"*/final/jsonl/{partition}", *["*/undocumented"] * undocumented]
    unpacked = {path.relative_to(folder).parts[0] for place in places for path in folder.glob(place)}
    return sorted(unpacked | {path.stem for path in folder.glob("*.zip")})


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
                    number = 0
                    while line := lines.readline(LONGEST_LINE):
                        number += 1
                        yield parse_row(line, f"{path}: {name}:{number}")
    except FileNotFoundError:
        raise BadInput(f"there is no {path}; fetch it with: python -m corpora fetch codesearchnet DATA") from None
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadInput(f"{path} is damaged ({error}); fetch the file again") from None


def _function(row: Row) -> CodeFunction:
    texts = {name: row.text(name, "" if name in _OPTIONAL else None) for name in _TEXTS}
    return CodeFunction(**texts, code_tokens=row.texts("code_tokens"), docstring_tokens=row.texts("docstring_tokens"))


_OPTIONAL = ("sha", "partition", "license")
_TEXTS = tuple(field.name for field in fields(CodeFunction) if not field.name.endswith("_tokens"))
