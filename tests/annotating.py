"""`ncs annotate` in a process of its own, and an index with hostile functions to judge, for tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ncs.index import Index
from tests import corpus, gitrepo

STARTED = "ncs: judge at "
SCRIPT = "</script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
HOSTILE = f'''\
def hostile_banner(page):
    """Show the hostile banner {SCRIPT}"""
    access = "user\u202e \u2066# only admins\u2069 \u2066"
    return f"{SCRIPT}\\x00" + access + "\x07"
'''
QUERIES = ("read a text file", "hide soft keyboard", "count the lines of a file", "show the hostile banner")


@dataclass(frozen=True, slots=True)
class Place:
    """An index, and a file of four queries over it."""

    index: Path
    queries: Path

    @property
    def database(self) -> Path:
        return self.queries.with_name(self.queries.name + ".judgments.sqlite")


def place(root: Path) -> Place:
    """The demo repositories, a hostile one, and one that git says is on the web, as an index below `root`."""
    repos = corpus.write(root / "repos")
    gitrepo.write(repos / "evil", {"src/ba<b>ré.py": HOSTILE, ".git/HEAD": "ref: refs/heads/main\n"})
    for part in ("objects", "refs"):
        (repos / "evil" / ".git" / part).mkdir(parents=True)
    known = gitrepo.write(
        repos / "known", {"lib/a#1.py": "def read_text_lines(path):\n    return open(path).readlines()\n"}
    )
    gitrepo.git(known, "init", "-q")
    gitrepo.git(known, "remote", "add", "origin", "https://github.com/owner/known.git")
    gitrepo.git(known, "add", ".")
    gitrepo.git(known, "commit", "-q", "-m", "one")
    Index.build(repos, root / "index").close()
    queries = root / "queries.txt"
    queries.write_text("\n".join(QUERIES) + "\n")
    return Place(root / "index", queries)


class Annotating:
    """The process, and where it answers."""

    def __init__(self, process: subprocess.Popen[str], said: IO[str]) -> None:
        self.process, self.said = process, list[str]()
        for line in said:
            self.said.append(line)
            if line.startswith(STARTED):
                self.url = line.removeprefix(STARTED).strip()
                return
        raise RuntimeError("".join(self.said))


@contextmanager
def annotating(at: Place, *options: str) -> Iterator[Annotating]:
    """A server of the page; killed where it still runs at the end."""
    command = [
        sys.executable,
        "-m",
        "ncs.cli",
        "annotate",
        str(at.index),
        str(at.queries),
        "--port",
        "0",
        "-q",
        *options,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield Annotating(process, process.stderr)
        finally:
            process.kill()
