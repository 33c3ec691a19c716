"""`bin/benchmark trees`: what came of every kind of file, counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation import bench_trees

NOTEBOOK = Path(__file__).parent / "data" / "notebooks" / "keyboard.ipynb"


def test_every_file_is_counted_under_what_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("class A:\n    def f(self): pass\n\n    def g(self): pass\n")
    (tree / "b.py").write_text("def f(:\n")
    (tree / "c.ipynb").write_bytes(NOTEBOOK.read_bytes())
    (tree / "d.ipynb").write_text("{")
    (tree / "e.vue").write_text("<script>\nfunction f() {}\n</script>\n")
    (tree / "f.toml").write_text("[a]\nb = 1\n")
    (tree / "g.toml").write_text("\n")
    (tree / "README.md").write_text("# a\n")
    assert bench_trees.main([str(tree), "--json", str(tmp_path / "out.json")]) == 0
    record = json.loads((tmp_path / "out.json").read_text())
    counted = {
        name: [one[what] for what in ("files", "functions", "outlines", "empty", "broken", "failed")]
        for name, one in record["readers"].items()
    }
    assert counted == {
        "python": [2, 3, 1, 0, 1, 0],
        "notebook": [2, 4, 3, 0, 1, 1],
        "page": [1, 1, 0, 0, 0, 0],
        "toml": [2, 0, 1, 1, 0, 0],
    }
    assert record["skipped"] == {"other language": 1}
    printed = capsys.readouterr().out
    assert "| python | 2 |" in printed
    assert "skipped: 1 other language" in printed
