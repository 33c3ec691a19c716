"""What tests of several rankers share."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from ncs.config import BuildConfig, LsaConfig
from ncs.extract import extract
from ncs.index import Index


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Functions of some modules of the standard library, each twice, so that there are ties."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    documents = [
        document
        for repository in ("one", "two")
        for name in ("shutil.py", "glob.py")
        for document in extract((folder / name).read_bytes(), "python", repository=repository, path=name)
    ]
    config = BuildConfig(deduplicate=False, embeddings="lsa", lsa=LsaConfig(dim=16))
    with Index.of(documents, tmp_path_factory.mktemp("library"), config=config) as built:
        yield built
