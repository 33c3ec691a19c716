"""An index with hostile functions, and `ncs annotate` over it, for tests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from evaluation.annotation.command import Request
from ncs.index import Index
from tests import corpus, gitrepo
from tests.serving import Served, running

SCRIPT = "</script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
HOSTILE = f'''\
def hostile_banner(page):
    """Show the hostile banner {SCRIPT}"""
    access = "user\u202e \u2066# only admins\u2069 \u2066"
    return f"{SCRIPT}\\x00" + access + "\x07"
'''
QUERIES = ("read a text file", "hide soft keyboard", "count the lines of a file", "show the hostile banner")


def build_index(root: Path) -> Path:
    """The index of the demo repositories, a hostile one, and one that git says is on the web."""
    repos = corpus.write(root / "repos")
    gitrepo.repository(repos / "my evil", {"src/ba<b>ré.py": HOSTILE})
    code = "def read_text_lines(path):\n    return open(path).readlines()\n"
    known = gitrepo.repository(repos / "known", {"lib/a#1.py": code})
    gitrepo.git(known, "remote", "add", "origin", "https://github.com/owner/known.git")
    Index.build(repos, root / "index").close()
    return root / "index"


def with_queries(index: Path, folder: Path) -> Request:
    queries = folder / "queries.txt"
    queries.write_text("\n".join(QUERIES) + "\n")
    return Request(index, queries)


def annotating(at: Request, *options: str) -> AbstractContextManager[Served]:
    """A server of the page; killed where it still runs at the end."""
    return running("annotate", at.index, at.queries, "--port", "0", "-q", *options)
