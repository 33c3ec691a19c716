"""Where documents stand, and what the names of their files say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ncs.errors import IndexDamaged
from ncs.index import Index
from ncs.storage.file_roles import ASIDE, EXAMPLE, SOURCE, TEST, Places, role, title
from ncs.types import Document


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/net/http.py", SOURCE),
        ("tests/net/http.py", TEST),
        ("net/test_http.py", TEST),
        ("net/http_test.go", TEST),
        ("web/login.spec.ts", TEST),
        ("app/src/androidTest/java/Login.java", TEST),
        ("app/LoginTest.java", TEST),
        ("app/TestRunner.java", TEST),
        ("app/Contest.java", SOURCE),
        ("app/Latest.java", SOURCE),
        ("testament/reader.py", SOURCE),
        ("examples/login/app.py", EXAMPLE),
        ("typing/http.pyi", ASIDE),
        ("third_party/zlib/inflate.c", ASIDE),
        ("api/service_pb2.py", ASIDE),
        ("examples/tests/app.py", TEST),
    ],
)
def test_a_path_tells_what_a_file_is_for(path: str, wanted: int) -> None:
    assert role(path) == wanted


def test_a_file_without_a_name_of_its_own_has_its_folders() -> None:
    assert title("src/sessions/__init__.py") == title("src/sessions.py") == ["session"]
    assert title("lib/router/index.js") == ["router"]


def place(*paths: str) -> list[Document]:
    words = {"name": ("f",), "calls": ("g",)}
    return [Document(f"r/{p}:{n}", "r", p, n, n, "python", "function", "f", "f", words) for n, p in enumerate(paths, 1)]  # type: ignore[arg-type]


def test_files_are_matched_by_their_names_and_starts_of_words(tmp_path: Path) -> None:
    documents = place("a/cookies.py", "a/cookie_jar_util.py", "a/authentication.py", "a/net.py", "")
    with Index.of(documents, tmp_path / "index") as index:
        places = Places.load(index.data)
        found = places.title_match({"cooki": 3.0, "jar": 1.0}, np.arange(5))
        assert found == pytest.approx([math.sqrt(3 / 4), 2 / 3, 0, 0, 0])
        assert places.title_match({"auth": 1.0}, np.arange(5)) == pytest.approx([0, 0, 1, 0, 0])
        assert places.title_match({}, np.arange(5)).tolist() == [0] * 5
        assert (places.files_of(np.arange(5)) >= 0).tolist() == [True] * 4 + [False]
        (index.data / "places" / "role.npy").unlink()
        with pytest.raises(IndexDamaged, match="build the index again"):
            Places.load(index.data)
