"""What files are for and what their names say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ncs.index import Index
from ncs.storage.file_roles import ASIDE, EXAMPLE, SETTINGS, SOURCE, TEST, role
from ncs.types import Document


@pytest.mark.parametrize(
    ("expected", "paths"),
    [
        (SOURCE, "src/net/http.py app/Contest.java app/Latest.java testament/reader.py src/contestutil.rs"),
        (TEST, "src/testutil.rs util/env_posix_test_helper.h net/testutils.go"),
        (TEST, "tests/net/http.py net/test_http.py net/http_test.go web/login.spec.ts examples/tests/app.py"),
        (TEST, "app/src/androidTest/java/Login.java app/LoginTest.java app/TestRunner.java"),
        (TEST, "src/test_helpers/counting.rs internal/testutil/clock.go src/testFixtures/java/Door.java"),
        (TEST, "src/Door.Tests/Support/Fake.cs src/Door.Test/Fake.cs DoorUITests/Robot.swift src/commonTest/Util.kt"),
        (SOURCE, "src/Door.Testing/Fake.cs src/Contests/Run.cs tester/run.py src/abtest/Split.kt testutility/a.go"),
        (EXAMPLE, "examples/login/app.py docs/conf.py"),
        (ASIDE, "typing/http.pyi third_party/zlib/inflate.c api/service_pb2.py"),
        (SETTINGS, "deploy/Dockerfile"),
    ],
)
def test_a_path_tells_what_a_file_is_for(expected: int, paths: str) -> None:
    assert {path: role(path) for path in paths.split()} == dict.fromkeys(paths.split(), expected)


def test_files_are_matched_by_their_names_and_starts_of_words(tmp_path: Path) -> None:
    paths = ("a/cookies.py", "a/cookie_jar_util.py", "a/authentication.py", "a/net.py", "")
    documents = [
        Document(f"r/{path}:{n}", "r", path, n, n, "python", "function", "f", "f", {"name": ("f",), "calls": ("g",)})
        for n, path in enumerate(paths, 1)
    ]
    with Index.of(documents, tmp_path / "index") as index:
        roles, rows = index.facts.file_roles, np.arange(5)
        assert roles.title_match({"cooki": 3.0, "jar": 1.0}, rows) == pytest.approx([math.sqrt(3 / 4), 2 / 3, 0, 0, 0])
        assert roles.title_match({"auth": 1.0}, rows) == pytest.approx([0, 0, 1, 0, 0])
        assert roles.title_match({}, rows).tolist() == [0] * 5
        assert (roles.files_of(rows) >= 0).tolist() == [True] * 4 + [False]
