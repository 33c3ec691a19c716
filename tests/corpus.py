"""A small corpus for tests: three repositories made of the files in tests/data/demo, one of them a copy."""

from __future__ import annotations

from pathlib import Path

from ncs.config import BuildConfig, FastTextConfig, LsaConfig
from tests import gitrepo

DEMO = Path(__file__).parent / "data" / "demo"
QUICK = BuildConfig(embeddings="lsa", lsa=LsaConfig(dim=8))
"""For indexes of which nobody asks good word vectors; fastText starts two processes."""
FASTTEXT = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))


def write(root: Path) -> Path:
    """Repositories app, tools and copy below `root`; gives back `root`."""
    files = {
        "app/src/Keyboards.java": "app/Keyboards.java",
        "app/src/Network.java": "app/Network.java",
        "tools/files.py": "tools/files.py",
        "copy/src/Keyboards.java": "app/Keyboards.java",
    }
    for name, source in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((DEMO / source).read_bytes())
    for repository in ("app", "tools", "copy"):  # what makes a folder a git repository
        for part in ("objects", "refs"):
            (root / repository / ".git" / part).mkdir(parents=True, exist_ok=True)
        (root / repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root


def write_pairs(root: Path) -> Path:
    """Functions with 100 pairs of words, each pair in five of them and no other word twice; gives back `root`."""
    syllables = [first + second for first in "bdfgklmnprst" for second in "aio"]
    words = [first + second for first in syllables for second in syllables]
    functions = [
        f"def {words[number % 100]}_{words[100 + number % 100]}():\n    return {words[200 + number]}\n"
        for number in range(500)
    ]
    return gitrepo.write(root, {"pairs.py": "\n".join(functions)})
