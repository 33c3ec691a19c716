"""Which files are read as text, without a grammar: one row a kind, with its comment signs and what a definition is.

A kind of code has definitions; a document starts at each. Configuration has none of its own: it is cut at empty lines,
and stands back in rankings (ncs.storage.file_roles). Prose, data, lock files and logs are no rows: questions are
written in prose
too, and it would stand before every function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ncs.extract.text_rows import CODE, CONFIGURATION, GRAMMARS

WIDEST = 300


@dataclass(frozen=True, slots=True)
class TextKind:
    """A row of TEXTS."""

    name: str
    files: tuple[str, ...]
    """Extensions with their dot, and whole names, in lower case."""
    comments: str
    """Keys of SIGNS."""
    definition: str
    """A regular expression for the line of a definition; its first group that matched is the name."""
    configuration: bool = False
    """Settings, builds and markup rather than a program."""
    equations: bool = False
    """A function may be written as several clauses, one below the other."""

    @lru_cache  # noqa: B019  (rows live as long as the process)
    def pattern(self) -> re.Pattern[str]:
        """`definition`, compiled."""
        return re.compile(self.definition)

    def defines(self, line: str) -> str | None:
        """The name that a line defines; None without. Only its first WIDEST characters are looked at."""
        match = self.pattern().match(line, 0, WIDEST)
        return next((group.strip() for group in match.groups() if group), None) if match else None


SIGNS: Mapping[str, str] = {
    "#": r"(?<!\S)#[^\n]*",
    "//": r"(?<!:)//[^\n]*",
    "/*": r"/\*(?:.*?\*/|.*\Z)",
    "--": r"(?<![^\s;(])--[^\n]*",
    ";": r"(?<!\S);[^\n]*",
    "%": r"(?<!\S)%[^\n]*",
    "!": r"(?<!\S)![^\n]*",
    "'": r"(?<!\S)'[^\n]*",
    '"': r"(?m:^[ \t]*)\"[^\n]*",
    "(*": r"\(\*(?:.*?\*\)|.*\Z)",
    "{": r"\{(?:.*?\}|.*\Z)",
    "{-": r"\{-(?:.*?-\}|.*\Z)",
    "<#": r"<#(?:.*?#>|.*\Z)",
    "#=": r"#=(?:.*?=#|.*\Z)",
    "#|": r"#\|(?:.*?\|#|.*\Z)",
    "=pod": r"(?m:^)=[a-z]\w*(?:.*?\n=cut\b|.*\Z)",
    "<!": r"<!--(?:.*?-->|.*\Z)",
    "rem": r"(?im:^[ \t]*@?rem\b[^\n]*)|(?m:^)[ \t]*::[^\n]*",
    "dnl": r"\bdnl\b[^\n]*",
}
"""How comments are told; a block that does not end goes to the end of the file."""

_EQUATIONS = frozenset(("elixir", "elm", "erlang", "haskell", "prolog", "purescript"))

TEXTS: Mapping[str, TextKind] = {
    name: TextKind(name, tuple(files.split()), comments, definition, rows is CONFIGURATION, name in _EQUATIONS)
    for rows in (CODE, GRAMMARS, CONFIGURATION)
    for name, files, comments, definition in rows
}
_BY_FILE = {file: kind.name for kind in TEXTS.values() for file in kind.files}
_DATA = re.compile(
    r"(?:^|/)(?:locales?|i18n|l10n|translations?|lang|cassettes|fixtures|testdata|(?:__)?snapshots(?:__)?)/"
    r"|(?:^|[/._-])lock(?:file)?\.(?:ya?ml|toml)$|_[a-z]{2}(?:_[A-Z]{2})?\.properties$|(?:^|/)messages[^/]*\.properties$",
    re.IGNORECASE,
)
"""Configuration by its ending, and data by its place or name: texts in other languages, recordings, lock files."""


def text_kind(path: str) -> str | None:
    """The row of TEXTS that reads a file, by its name; None where no row does.

    >>> text_kind("src/hide.pl"), text_kind("Dockerfile"), text_kind("docker/Dockerfile.dev"), text_kind("README.md")
    ('perl', 'dockerfile', 'dockerfile', None)
    >>> text_kind("ci.yml"), text_kind("pnpm-lock.yaml"), text_kind("config/locales/de.yml")
    ('yaml', None, None)
    """
    name = path[path.rfind("/") + 1 :].lower()
    dot = name.rfind(".")
    kind = _BY_FILE.get(name) or (_BY_FILE.get(name[dot:]) if dot >= 0 else None)
    if kind is None and name.startswith(("dockerfile.", "makefile.")):
        kind = name.partition(".")[0].replace("makefile", "make")
    if kind is not None and TEXTS[kind].configuration and _DATA.search(path):
        return None
    return kind


def is_configuration(path: str) -> bool:
    """Whether a file is read as text that configures rather than computes.

    >>> is_configuration("Makefile"), is_configuration("hide.pl"), is_configuration("Main.java")
    (True, False, False)
    """
    kind = text_kind(path)
    return kind is not None and TEXTS[kind].configuration
