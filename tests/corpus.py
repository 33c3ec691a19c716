"""A small corpus for tests: three repositories made of the files in tests/data/demo, one of them a copy."""

from __future__ import annotations

from pathlib import Path

from ncs.config import BuildConfig, FastTextConfig

DEMO = Path(__file__).parent / "data" / "demo"
QUICK = BuildConfig(fasttext=FastTextConfig(dim=8, epochs=1, least_words=1, min_count=1))
"""For indexes of which nobody asks good word vectors."""


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
