"""The file and repository of each document, what the file is for (product, test, example ...), and its title."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from ncs.errors import IndexDamaged
from ncs.storage.arrays import load_arrays, save_arrays
from ncs.storage.words import ranges
from ncs.storage.words_builder import WordTableBuilder, batch_words
from ncs.text.stems import stem_all
from ncs.text.tokens import tokenize
from ncs.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ncs.storage.documents import DocumentTable
    from ncs.storage.snapshot import Snapshot

FOLDER = "file_roles"
OUTLINES = frozenset({"class", "module", "block"})
"""Kinds of documents that ncs.extract.outlines makes."""
SOURCE, TEST, EXAMPLE, ASIDE, SETTINGS = range(5)
"""Roles of a file: the product itself; tests; examples and benchmarks; stubs, vendored and generated code; what
configures and builds it, read as text (ncs.extract.text_kinds)."""

_OF_TESTS = "test tests testing spec specs androidtest __tests__ testdata fixtures mocks __mocks__"
_OF_EXAMPLES = "example examples sample samples demo demos benchmark benchmarks bench docs tutorial tutorials"
_OF_OTHERS = "vendor vendored third_party thirdparty generated node_modules compat _compat"
_FOLDERS: Mapping[str, int] = {
    **dict.fromkeys(_OF_TESTS.split(), TEST),
    **dict.fromkeys(_OF_EXAMPLES.split(), EXAMPLE),
    **dict.fromkeys(_OF_OTHERS.split(), ASIDE),
}
_TEST_FILE = re.compile(
    r"^test_|_tests?$|[.-](test|spec)s?$|_spec$|^tests?$|^conftest$"
    r"|(?<=[a-z0-9])(Tests?|TestCase|Spec)$|^Test(?=[A-Z])"
)
_ASIDE_FILE = re.compile(r"\.(pb|pb2|generated|g|min)$|_pb2(_grpc)?$|^_?compat$")
_NAMELESS = frozenset({"__init__", "__main__", "index", "main", "mod", "lib", "init", "package-info"})
_LEAST = 4
"""Minimum letters of a query word to match as a prefix: `auth` in `authentication`."""


def role(path: str) -> int:
    """The role of a file, judged by its path alone.

    >>> role("src/net/http.py"), role("src/androidTest/java/A.java"), role("web/LoginTest.java"), role("x/types.pyi")
    (0, 1, 1, 3)
    >>> role("deploy/Dockerfile"), role("scripts/hide.pl")
    (4, 0)
    """
    from ncs.extract.text_kinds import is_configuration  # at the build only: a query need not import it

    *folders, name = path.split("/")
    bare, _, extension = name.rpartition(".")
    bare = bare or name
    if _TEST_FILE.search(bare):
        return TEST
    if extension == "pyi" or _ASIDE_FILE.search(bare):
        return ASIDE
    own = SETTINGS if is_configuration(path) else SOURCE
    return max((own, *(_FOLDERS.get(folder.lower(), SOURCE) for folder in folders)), key=_WEIGHT.__getitem__)


_WEIGHT = {SOURCE: 0, EXAMPLE: 1, SETTINGS: 2, ASIDE: 3, TEST: 4}


def title(path: str) -> list[str]:
    """The stems of a file's name, or of its folder's for names such as `__init__`.

    >>> title("src/http/cookie_jars.py"), title("src/sessions/__init__.py")
    (['cooki', 'jar'], ['session'])
    """
    at = PurePosixPath(path)
    name = at.name.partition(".")[0] or at.name
    if name in _NAMELESS and at.parent.name:
        name = at.parent.name
    return stem_all(tokenize(name))


@dataclass(frozen=True, slots=True)
class FileRoleTable:
    """The files of a segment. file int32 [n]: the file of each row; repository int32 [n_files] and role int8 [n_files]
    of each file; titles: stems of the files' names, ids int32 and offsets int64 [n_files + 1] into `stems`. A file
    without a path, as in corpora of bare functions, has no title and no neighbors. On disk in `<segment>/file_roles/`,
    memory-mapped when loaded.
    """

    file: NDArray[np.int32]
    repository: NDArray[np.int32]
    role: NDArray[np.int8]
    named: NDArray[np.bool_]
    """[n_files]: whether the file has a path."""
    outline: NDArray[np.bool_]
    """[n]: whether a row is a class or top-level code, not a function."""
    title_ids: NDArray[np.int32]
    title_offsets: NDArray[np.int64]
    stems: Vocabulary
    repositories: tuple[str, ...]
    """Repository names, by number."""

    def __len__(self) -> int:
        """How many documents."""
        return len(self.file)

    @classmethod
    def of(cls, store: DocumentTable) -> FileRoleTable:
        """From the documents of a segment."""
        file, places = store.files()
        repositories: dict[str, int] = {}
        owner = [repositories.setdefault(repository, len(repositories)) for repository, _ in places]
        builder = WordTableBuilder()
        builder.add(*batch_words([[title(path)] for _, path in places]))
        table = builder.finish()
        return cls(
            file.astype(np.int32),
            np.array(owner, np.int32),
            np.array([role(path) for _, path in places], np.int8),
            np.array([bool(path) for _, path in places], np.bool_),
            store.of_kinds(OUTLINES),
            table.ids,
            table.offsets,
            table.vocabulary,
            tuple(repositories),
        )

    def title_match(self, words: Mapping[str, float], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """How well the name of each row's file matches the query's stems, 0 to 1, [len(rows)].

        words: stem -> weight. The root of the weighted share of the query that the name has, times the share
        of the name that the query has: "cookies.py" for "cookie storage" scores more than "cookie_test_util.py".
        """
        files = self.file[rows]
        begins = self.title_offsets[files]
        lengths = self.title_offsets[files + 1] - begins
        ids = self.title_ids[ranges(begins, lengths)]
        owners = np.repeat(np.arange(len(files)), lengths)
        total = sum(words.values())
        recall, shared = np.zeros(len(files)), np.zeros(len(ids), np.bool_)
        for stem, weight in words.items():
            matches = np.zeros(len(self.stems), np.bool_)
            matches[self._matching_stems(stem)] = True
            here = matches[ids]
            shared |= here
            recall += weight * (np.bincount(owners[here], minlength=len(files)) > 0)
        precision = np.bincount(owners[shared], minlength=len(files)) / np.maximum(lengths, 1)
        return np.sqrt(recall / total) * precision if total else recall

    def _matching_stems(self, stem: str) -> list[int]:
        """Ids of stems that equal this one, start with it, or are a prefix of it."""
        if len(stem) < _LEAST:
            id = self.stems.id(stem)
            return [] if id is None else [id]
        shorter = [self.stems.id(stem[:n]) for n in range(_LEAST - 1, len(stem))]
        return [*self.stems.starting(stem), *(id for id in shorter if id is not None)]

    def save(self, folder: Path) -> None:
        """Write `<folder>/file_roles/`."""
        save_arrays(folder / FOLDER, self.stems, {name: getattr(self, name) for name in FILES})
        (folder / FOLDER / REPOSITORIES).write_text(json.dumps(self.repositories) + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> FileRoleTable:
        """Raises IndexDamaged where files are missing or do not fit each other."""
        folder = folder / FOLDER
        stems, arrays = load_arrays(folder, FILES)
        file, repository, role, named, outline, ids, offsets = arrays
        try:
            repositories = tuple(map(str, json.loads((folder / REPOSITORIES).read_bytes())))
        except (OSError, ValueError, TypeError) as error:
            raise IndexDamaged(f"cannot read {folder} ({error}); build the index again") from error
        table = FileRoleTable(file, repository, role, named, outline, ids, offsets, stems, repositories)
        if not len(table.repository) == len(table.role) == len(table.named) == len(table.title_offsets) - 1:
            raise IndexDamaged(f"the files in {folder} do not fit each other; build the index again")
        return table


class FileRoles:
    """The files of all documents of a snapshot, numbered across segments."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tables = [FileRoleTable.load(segment.path) for segment in snapshot.segments]
        self._first_file = np.cumsum([0, *(len(table.role) for table in self._tables)])
        numbers: dict[str, int] = {}
        self._owners = [
            np.array([numbers.setdefault(name, len(numbers)) for name in table.repositories] or [0], np.int32)
            for table in self._tables
        ]

    def __len__(self) -> int:
        """Rows, tombstones included."""
        return len(self._snapshot)

    def files_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The file of each row; -1 for one without a path."""
        files = np.full(len(rows), -1, np.int64)
        for number, at, local in self._snapshot.split(rows):
            table = self._tables[number]
            own = table.file[local]
            files[at] = np.where(table.named[own], own + self._first_file[number], -1)
        return files

    def repositories_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The repository of each row."""
        owners = np.zeros(len(rows), np.int32)
        for number, at, local in self._snapshot.split(rows):
            table = self._tables[number]
            owners[at] = self._owners[number][table.repository[table.file[local]]]
        return owners

    def roles_of(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """The role of each row's file."""
        roles = np.zeros(len(rows), np.int8)
        for number, at, local in self._snapshot.split(rows):
            table = self._tables[number]
            roles[at] = table.role[table.file[local]]
        return roles

    def outlines_of(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row is a class or the top level of a file."""
        outlines = np.zeros(len(rows), np.bool_)
        for number, at, local in self._snapshot.split(rows):
            outlines[at] = self._tables[number].outline[local]
        return outlines

    def functions(self) -> NDArray[np.bool_]:
        """Mask of the rows that are functions, bool [n]."""
        return ~np.concatenate([table.outline for table in self._tables])

    def title_match(self, words: Mapping[str, float], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """`FileRoleTable.title_match` of each row's file, [len(rows)]."""
        match = np.zeros(len(rows))
        for number, at, local in self._snapshot.split(rows):
            table = self._tables[number]
            match[at] = table.title_match(words, local)
        return match


REPOSITORIES = "repositories.json"
FILES: Sequence[str] = ("file", "repository", "role", "named", "outline", "title_ids", "title_offsets")
