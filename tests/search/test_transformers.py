"""The transformers ranker with a tiny BERT of random weights, made here."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ncs.config import BuildConfig
from ncs.errors import BadInput, NcsError
from ncs.index import Index
from ncs.search.baselines.dense import DenseRanker, text_of
from ncs.search.baselines.transformers import FAMILIES, SentenceModel, family_of, transformers_ranker
from ncs.types import Document
from tests.search import tinybert

pytestmark = pytest.mark.skipif(not find_spec("sentence_transformers"), reason="needs the extra transformers")

CODE = {
    "hide": "void hide ( view ) { keyboard . close ( ) ; }",
    "read": "a file . open ( path ) ; return file . read ( )",
    "close": "void close ( file ) { file . close ( ) ; }",
    "open": "void open ( path ) { return path . open ( ) ; }",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tinybert.write(tmp_path_factory.mktemp("models") / "tiny-bert")


def documents() -> list[Document]:
    return [
        Document(f"r/x.java:{line}", "r", "x.java", line, line, "java", "method", name, name, {}, code)
        for line, (name, code) in enumerate(CODE.items(), 1)
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.of(documents(), tmp_path_factory.mktemp("index"), config=BuildConfig(deduplicate=False)) as index:
        yield index


def reference(model: Path, text: str, pooling: str = "mean", length: int = 64) -> Any:
    """The unit vector of one text by transformers alone."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModel.from_pretrained(model).eval()
    tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=length)
    with torch.no_grad():
        states = network(**tokens).last_hidden_state[0].numpy().astype(np.float64)
    poolings = {"mean": states.mean(axis=0), "cls": states[0], "lasttoken": states[-1], "max": states.max(axis=0)}
    return poolings[pooling] / np.linalg.norm(poolings[pooling])


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken", "max"])
def test_hits_are_in_the_order_of_transformers_own_cosines(model: Path, index: Index, pooling: str) -> None:
    prefixes: dict[str, Any] = {"query_prefix": "query: ", "document_prefix": "passage: "}
    ranker = index.fitted("transformers", model=str(model), pooling=pooling, batch=3, **prefixes)
    vectors = np.array([reference(model, f"passage: {code}", pooling) for code in CODE.values()])
    cosines = vectors @ reference(model, "query: hide soft keyboard", pooling)
    hits = ranker.search("hide soft keyboard", 4)
    assert [row for row, _ in hits] == list(np.argsort(-cosines))
    np.testing.assert_allclose([score for _, score in hits], np.sort(cosines)[::-1], atol=1e-5)


def test_a_plain_checkpoint_is_pooled_by_the_mean_without_prefixes_and_long_texts_are_cut(model: Path) -> None:
    opened = SentenceModel(transformers_ranker(model=str(model)).config)
    for vectors in (opened.embed(["open file"], "document"), opened.embed(["open file"], "query")):
        np.testing.assert_allclose(vectors[0], reference(model, "open file"), atol=1e-6)
        assert vectors.dtype == np.float32
    assert opened._model.max_seq_length == 64  # the model's own limit is below 512
    short, text = SentenceModel(transformers_ranker(model=str(model), max_tokens=8).config), "read file " * 40
    np.testing.assert_allclose(short.embed([text], "document")[0], reference(model, text, length=8), atol=1e-6)


def test_prompts_in_the_models_own_files_are_used_unless_others_are_given(model: Path, tmp_path: Path) -> None:
    import sentence_transformers

    plain = sentence_transformers.SentenceTransformer(str(model), local_files_only=True)
    plain.prompts = {"query": "query: ", "document": "passage: "}
    plain.save_pretrained(str(tmp_path / "prompted"))
    opened = SentenceModel(transformers_ranker(model=str(tmp_path / "prompted")).config)
    np.testing.assert_allclose(opened.embed(["file"], "query")[0], reference(model, "query: file"), atol=1e-6)
    np.testing.assert_allclose(opened.embed(["file"], "document")[0], reference(model, "passage: file"), atol=1e-6)
    bare = SentenceModel(transformers_ranker(model=str(tmp_path / "prompted"), query_prefix="").config)
    np.testing.assert_allclose(bare.embed(["file"], "query")[0], reference(model, "file"), atol=1e-6)


def test_the_name_of_a_model_has_its_family_and_given_settings_win() -> None:
    assert family_of("intfloat/e5-mistral-7b-instruct") is FAMILIES["e5-mistral"]
    assert family_of("/models/multilingual-e5-small") is FAMILIES["e5"]
    assert family_of("BAAI/bge-large-en-v1.5") is FAMILIES["bge"]
    assert family_of("/cache/ae5f/bgem").pooling is None
    config = transformers_ranker(model="e5-base", document_prefix="", pooling="cls").config
    assert (config["query_prefix"], config["document_prefix"], config["pooling"]) == ("query: ", "", "cls")


def test_a_model_that_is_not_here_is_one_line_and_nothing_is_asked_for_it(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[object] = []
    for function in ("socket.socket.connect", "socket.getaddrinfo"):
        monkeypatch.setattr(function, lambda *arguments: connections.append(arguments))
    for name in ("nobody/no-such-model", str(tmp_path / "nowhere"), str(tmp_path)):
        with pytest.raises(BadInput, match=f"cannot open the model {re.escape(name)}.*download=true") as error:
            index.fitted("transformers", model=name)
        assert "\n" not in str(error.value)
    assert connections == []


def test_a_model_that_gives_no_numbers_or_other_dimensions_is_refused(index: Index) -> None:
    class Broken:
        """Vectors of a model whose weights overflowed; queries get other dimensions."""

        value = float("nan")

        def embed(self, texts: Sequence[str], kind: str) -> Any:
            return np.full((len(texts), 4 if kind == "document" else 5), self.value, np.float32)

    ranker = DenseRanker("transformers", {"model": "m"}, lambda config: Broken(), needs="model")
    with pytest.raises(NcsError, match="m gave no vectors of numbers"):
        ranker.fit(index.word_table(), None, index.documents.tables[0])
    Broken.value = 1.0
    ranker.fit(index.word_table(), None, index.documents.tables[0])
    with pytest.raises(BadInput, match="now gives 5 dimensions, the index has 4"):
        ranker.search("file", 1)


def test_the_text_of_a_document_has_its_documentation_once() -> None:
    java = Document("i", "r", "p", 1, 1, "java", "method", "f", "f", {"doc": ("Hides it.\n@param v",)}, "void f() {}")
    python = Document("i", "r", "p", 1, 1, "python", "f", "f", "f", {"doc": ("Hides.",)}, 'def f():\n  """Hides."""')
    assert text_of(java) == "Hides it.\n@param v\nvoid f() {}"
    assert text_of(python) == python.code


@pytest.mark.slow
def test_neither_torch_nor_the_models_library_is_imported_until_a_model_is_opened() -> None:
    script = (
        "import sys; from ncs.search.rankers import create_ranker\n"
        "create_ranker('transformers', model='x'); create_ranker('endpoint', url='http://localhost/v1')\n"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_the_library_the_command_to_type_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(NcsError, match=r"pip install 'neural-code-search\[transformers\]'"):
        SentenceModel(transformers_ranker(model="x").config)
