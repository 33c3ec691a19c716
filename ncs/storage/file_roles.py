"""The file and repository of each document, what the file is for (product, test, example ...), and its title."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ncs.errors import damaged, reading
from ncs.files import read_json, save_array
from ncs.storage.arrays import ArrayTable, Number, are_below, are_offsets, gather, load_array, offsets_of, values_of
from ncs.storage.words import WordTableBuilder, batch_words
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary
from ncs.types import SECTION, Mask, Rows

if TYPE_CHECKING:
    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot

FOLDER, REPOSITORIES = "file_roles", "repositories.json"
OUTLINES = frozenset({"class", "module", "block", SECTION})
"""Kinds of documents that are no functions."""
SECTIONS = "sections.npy"
"""Mask of the sections of prose, bool [n]; a segment without sections has no such file."""
TESTS = "tests.npy"
"""Mask of the documents that are tests by their syntax, bool [n]."""
SOURCE, TEST, EXAMPLE, ASIDE, SETTINGS = range(5)
"""Roles of a file: the product; tests; examples and benchmarks; stubs, vendored and generated code, prose about
releases; configuration, read as text (ncs.extract.text_files)."""

_OF_TESTS = """
test tests testing spec specs __tests__ testdata fixtures mocks __mocks__ testutil testutils test_util test_utils
test_helpers testfixtures androidtest commontest jvmtest
"""
_OF_EXAMPLES = "example examples sample samples demo demos benchmark benchmarks bench docs tutorial tutorials"
_OF_OTHERS = "vendor vendored third_party thirdparty generated node_modules"
_FOLDERS: Mapping[str, int] = {
    **dict.fromkeys(_OF_TESTS.split(), TEST),
    **dict.fromkeys(_OF_EXAMPLES.split(), EXAMPLE),
    **dict.fromkeys(_OF_OTHERS.split(), ASIDE),
}
_TEST_FILE = re.compile(
    r"^test_|_tests?$|[.-](test|spec)s?$|_spec$|^tests?$|^conftest$|(?:^|_)test_?(?:util|helper)s?$"
    r"|(?<=[a-z0-9])(Tests?|TestCase|Spec)$|^Test(?=[A-Z])"
)
_ASIDE_FILE = re.compile(r"\.(pb|pb2|generated|g|min)$|_pb2(_grpc)?$")
_GENERIC_NAMES = frozenset({"__init__", "__main__", "index", "main", "mod", "lib", "init", "package-info"})
_CHANGES = re.compile(
    r"(?:^|/)(?:change(?:s|logs?)?|history|news|releases?(?:[_-]?notes?)?|whats[_-]?new)(?:[/_.-]|$)"
    r"|(?:^|/)(?:blogs?|_posts|versioned_docs)/",
    re.IGNORECASE,
)
"""Prose about releases: changelogs, posts of a site, documents of older versions (Docusaurus)."""
_TRANSLATED = re.compile(
    r"(?:^|[/._-])(?:zh|cn|ja|jp|ko|kr|ru|uk|fr|de|es|it|pt|pl|tr|vi|fa)(?:[_-](?:[a-z]{2}|han[st]))?(?=/|\.[a-z]+$)",
    re.IGNORECASE,
)
"""Prose in another language than English: docs/cn/, README.zh-CN.md."""
_LEAST = 4
"""Minimum letters of a query word to match as a prefix: `auth` in `authentication`."""


def role(path: str) -> int:
    """The role of a file, by its path.

    >>> role("src/net/http.py"), role("src/androidTest/java/A.java"), role("web/LoginTest.java"), role("x/types.pyi")
    (0, 1, 1, 3)
    >>> role("deploy/Dockerfile"), role("scripts/hide.pl")
    (4, 0)
    >>> role("docs/forms.md"), role("docs/changes.rst"), role("website/blog/2017-06-28-1.5.0.md")
    (0, 3, 3)
    >>> role("docs/cn/forms.md"), role("README.zh-CN.md"), role("docs/en/forms.md"), role("src/cn/forms.py")
    (3, 3, 0, 0)
    """
    from ncs.extract.sections import prose_language  # at the build only: a query need not import it
    from ncs.extract.text_files import is_configuration

    prose = prose_language(path) is not None
    if prose and (_CHANGES.search(path) or _TRANSLATED.search(path)):
        return ASIDE
    *folders, name = path.split("/")
    bare, _, extension = name.rpartition(".")
    bare = bare or name
    if _TEST_FILE.search(bare):
        return TEST
    if extension == "pyi" or _ASIDE_FILE.search(bare):
        return ASIDE
    own = SETTINGS if is_configuration(path) else SOURCE
    of_folders = (TEST if each.endswith(("Tests", ".Test")) else _FOLDERS.get(each.lower(), SOURCE) for each in folders)
    best = max((own, *of_folders), key=_WEIGHT.__getitem__)
    return SOURCE if prose and best == EXAMPLE else best


_WEIGHT = {SOURCE: 0, EXAMPLE: 1, SETTINGS: 2, ASIDE: 3, TEST: 4}


def title(path: str) -> list[str]:
    """The stems of a file's name, or of its folder's name for `__init__` and the like.

    >>> title("src/http/cookie_jars.py"), title("src/sessions/__init__.py"), title("lib/router/index.js")
    (['cooki', 'jar'], ['session'], ['router'])
    """
    at = PurePosixPath(path)
    name = at.name.partition(".")[0] or at.name
    if name in _GENERIC_NAMES and at.parent.name:
        name = at.parent.name
    return stem_all(tokenize(name))


@dataclass(frozen=True, slots=True)
class FileRoleTable(ArrayTable):
    """The files of a segment; on disk in `<segment>/file_roles/`. Files may have no path, in corpora of functions."""

    stems: Vocabulary
    file: NDArray[np.int32]
    """[n]: the file of each row."""
    repository: NDArray[np.int32]
    """[n_files], as the next two."""
    role: NDArray[np.int8]
    named: NDArray[np.bool_]
    """Whether the file has a path."""
    outline: NDArray[np.bool_]
    """[n]: whether a row is a class or top-level code, not a function."""
    title_ids: NDArray[np.int32]
    """Stems of the files' names."""
    title_offsets: NDArray[np.int64]
    """[n_files + 1], into title_ids."""

    def fits(self) -> bool:
        return len(self.repository) == len(self.role) == len(self.named) == len(self.title_offsets) - 1

    def is_sound(self, documents: int) -> bool:
        leads = are_below(self.file, len(self.role)) and are_below(self.repository, len(self.role) + 1)
        titles = are_offsets(self.title_offsets, len(self.title_ids)) and are_below(self.title_ids, len(self.stems))
        roles = are_below(self.role, SETTINGS + 1) and len(self.file) == len(self.outline) == documents
        return leads and titles and roles

    def title_match(self, words: Mapping[str, float], rows: Rows) -> NDArray[np.float64]:
        """sqrt(recall) * precision of the name of each row's file, 0 to 1, [len(rows)]; words: stem -> weight.

        recall: the weighted share of the query in the name; precision: the share of the name in the query.
        """
        ids, lengths = values_of(self.title_ids, self.title_offsets, self.file[rows])
        owners = np.repeat(np.arange(len(rows)), lengths)
        total = sum(words.values())
        recall, shared = np.zeros(len(rows)), np.zeros(len(ids), np.bool_)
        for stem, weight in words.items():
            matches = np.zeros(len(self.stems), np.bool_)
            matches[self._matching_stems(stem)] = True
            here = matches[ids]
            shared |= here
            recall += weight * (np.bincount(owners[here], minlength=len(rows)) > 0)
        precision = np.bincount(owners[shared], minlength=len(rows)) / np.maximum(lengths, 1)
        return np.sqrt(recall / total) * precision if total else recall

    def _matching_stems(self, stem: str) -> list[int]:
        """Ids of the stems that start with this one, or are a prefix of it."""
        if len(stem) < _LEAST:
            id = self.stems.id(stem)
            return [] if id is None else [id]
        shorter = [self.stems.id(stem[:n]) for n in range(_LEAST - 1, len(stem))]
        return [*self.stems.starting(stem), *(id for id in shorter if id is not None)]


def write_file_roles(documents: DocumentTable, segment: Path) -> FileRoleTable:
    """Write `<segment>/file_roles/` from the documents of the segment."""
    file, places = documents.files
    repositories: dict[str, int] = {}
    owners = [repositories.setdefault(repository, len(repositories)) for repository, _ in places]
    builder = WordTableBuilder()
    builder.add(*batch_words([[title(path)] for _, path in places]))
    titles = builder.finish()
    table = FileRoleTable(
        titles.vocabulary,
        file,
        np.array(owners, np.int32),
        np.array([role(path) for _, path in places], np.int8),
        np.array([bool(path) for _, path in places], np.bool_),
        documents.with_labels("kind", OUTLINES),
        titles.ids,
        titles.offsets,
    )
    table.save(segment / FOLDER)
    if (sections := documents.with_labels("kind", [SECTION])).any():
        save_array(segment / FOLDER / SECTIONS, sections)
    save_array(segment / FOLDER / TESTS, documents.tests(range(len(documents))))
    (segment / FOLDER / REPOSITORIES).write_text(json.dumps(list(repositories)) + "\n", encoding="utf-8")
    return table


class FileRoles:
    """The files of all documents of a snapshot, numbered across segments."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Raises IndexDamaged where files are missing or do not fit each other."""
        self._firsts = snapshot.firsts
        folders = [segment.path / FOLDER for segment in snapshot.segments]
        self._tables = [FileRoleTable.load(folder) for folder in folders]
        self._first_file = offsets_of(np.array([len(table.role) for table in self._tables]))
        numbers: dict[str, int] = {}
        self._owners = [
            np.array([numbers.setdefault(name, len(numbers)) for name in _repositories(folder)], np.int32)
            for folder in folders
        ]
        self.projects = len(numbers) if all(table.named.all() for table in self._tables) else 0
        """How many repositories there are; 0 where files have no paths."""
        sizes = [len(table.file) for table in self._tables]
        self._tests = list(map(read_mask, folders, repeat(TESTS), sizes))
        sections = np.concatenate(list(map(read_sections, folders, sizes)))
        self.sections = sections if sections.any() else None
        """Mask of the rows that are sections of prose, bool [n]; None where there are none."""

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return sum(len(table.file) for table in self._tables)

    def files_of(self, rows: Rows) -> Rows:
        """The file of each row; -1 for one without a path."""

        def read(number: int, files: NDArray[np.int32]) -> Rows:
            return np.where(self._tables[number].named[files], files + self._first_file[number], -1)

        return self._of_files(rows, read)

    def repositories_of(self, rows: Rows) -> NDArray[np.int32]:
        """The repository of each row."""
        return self._of_files(rows, lambda number, files: self._owners[number][self._tables[number].repository[files]])

    def roles_of(self, rows: Rows) -> NDArray[np.int8]:
        """The role of each row: TEST for a test by its syntax, else that of its file."""
        of_files = self._of_files(rows, lambda number, files: self._tables[number].role[files])
        tests = gather(self._firsts, rows, lambda number, local: self._tests[number][local])
        return np.where(tests, np.int8(TEST), of_files)

    def _of_files(self, rows: Rows, read: Callable[[int, NDArray[np.int32]], NDArray[Number]]) -> NDArray[Number]:
        """One value per row, by `read` of segment number and local file numbers."""
        return gather(self._firsts, rows, lambda number, local: read(number, self._tables[number].file[local]))

    def outlines_of(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each row is a class or the top level of a file."""
        return gather(self._firsts, rows, lambda number, local: self._tables[number].outline[local])

    def count_code(self) -> int:
        """The number of rows that are no sections; of all rows if all are."""
        return len(self) if self.sections is None else int(np.count_nonzero(~self.sections)) or len(self)

    def functions(self) -> NDArray[np.bool_]:
        """Mask of the rows that are functions, bool [n]."""
        return ~np.concatenate([table.outline for table in self._tables])

    def title_match(self, words: Mapping[str, float], rows: Rows) -> NDArray[np.float64]:
        """`FileRoleTable.title_match` of each row's file, [len(rows)]."""
        return gather(self._firsts, rows, lambda number, local: self._tables[number].title_match(words, local))


def read_sections(folder: Path, documents: int) -> Mask:
    """The mask SECTIONS of a segment, bool [documents]; raises IndexDamaged for one of another length."""
    if (folder / SECTIONS).is_file():
        return read_mask(folder, SECTIONS, documents)
    return np.zeros(documents, np.bool_)


def read_mask(folder: Path, name: str, documents: int) -> Mask:
    """A mask of a segment, bool [documents]; raises IndexDamaged where it is missing or of another length."""
    mask = load_array(folder / name, np.bool_)
    if len(mask) != documents:
        raise damaged(f"{folder / name} does not fit {documents} documents")
    return mask


def _repositories(folder: Path) -> list[str]:
    with reading(folder):
        return list(map(str, read_json(folder / REPOSITORIES)))
