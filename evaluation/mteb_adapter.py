"""Any ranker as a model of `mteb`, and so of CoIR: `mteb.evaluate(RankerModel("ncs"), tasks)`.

    python -m evaluation.mteb_adapter BEIR_FOLDER --ranker bm25 --ranker ncs

runs mteb itself, offline, on a BEIR folder, and prints its nDCG@10 beside ours. mteb and torch are an extra:
pip install 'neural-code-search[mteb]'. Written for mteb 2.26: the `SearchProtocol` of mteb.models.models_protocols.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora.corpus import from_beir, read_beir
from corpora.jsonl import parse_row, read_rows
from corpora.program import read_program
from evaluation.experiments import fit_ranker, read_system, run_experiment
from ncs import __version__
from ncs.config import BuildConfig
from ncs.errors import BadInput, needing, unknown
from ncs.exit_status import main_program
from ncs.extract import LANGUAGES
from ncs.index import Index

NOTHING = "(nothing found)"
"""Placeholder hit: mteb's means leave out queries without hits."""


class RankerModel:
    """A ranker in mteb's SearchProtocol: `index` builds an index over a task's corpus, `search` queries it.

    ranker: `ncs` or `ncs:centre=true`. Code is read in the language of the task (`java-Code`), all else as plain text,
    titles and the rows of `local_task` as `corpora.corpus.read_beir` reads them.
    """

    def __init__(self, ranker: str) -> None:
        self.system = read_system(ranker)
        self._room: tempfile.TemporaryDirectory[str] | None = None
        self._index: Index | None = None

    @property
    def mteb_model_meta(self) -> Any:
        """The description of the model in mteb's results."""
        unknown = (
            "release_date", "n_parameters", "memory_usage_mb", "max_tokens", "embed_dim", "license", "open_weights",
            "public_training_code", "public_training_data", "similarity_fn_name", "use_instructions",
            "training_datasets",
        )  # fmt: skip
        return _mteb().models.ModelMeta(
            loader=None, name=f"ncs/{self.system.name}", revision=__version__, languages=["eng-Latn"], framework=[],
            **dict.fromkeys(unknown),
        )  # fmt: skip

    def index(self, corpus: Iterable[Mapping[str, Any]], *, task_metadata: Any, hf_subset: str, **_: Any) -> None:
        """Build the index over rows with `id`, `text` and perhaps `title`; replaces the previous one."""
        self.close()
        language = _language(task_metadata, hf_subset)
        documents = (
            from_beir(parse_row(row["beir"], row["id"]), language)
            if "beir" in row
            else read_program(str(row["text"]), language, id=str(row["id"]), title=str(row.get("title") or ""))
            for row in corpus
        )
        self._room = tempfile.TemporaryDirectory(prefix="ncs-mteb-")
        config = BuildConfig(deduplicate=False)
        self._index = Index.of(documents, Path(self._room.name) / "index", config=config)

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """query id -> document id -> score, which falls strictly, so that mteb's tie-breaking changes no order.

        top_ranked: the only documents to rank, as reranking tasks give them. Raises BadInput before `index`.
        """
        if self._index is None:
            raise BadInput("nothing is indexed yet; call index first")
        ranker, _seconds = fit_ranker(self._index, self.system)
        results = {}
        for query in queries:
            allowed = None
            if top_ranked:
                rows = map(self._index.documents.row_of, top_ranked[str(query["id"])])
                allowed = np.zeros(len(self._index.documents), bool)
                allowed[[row for row in rows if row is not None]] = True
            hits = ranker.search(str(query["text"]), top_k, allowed=allowed)
            ids = self._index.documents.ids([row for row, _ in hits])
            scores = strictly_falling([score for _, score in hits])
            results[str(query["id"])] = dict(zip(ids, scores, strict=True)) or {NOTHING: 0.0}
        return results

    def close(self) -> None:
        """Remove the index."""
        if self._index:
            self._index.close()
        if self._room:
            self._room.cleanup()
        self._index, self._room = None, None


def strictly_falling(scores: Sequence[float]) -> list[float]:
    """The scores as float32, as trec_eval compares them, each below the previous.

    >>> strictly_falling([2.0, 2.0, 1.0])
    [2.0, 1.9999998807907104, 1.0]
    """
    strict: list[np.float32] = []
    for score in scores:
        value = np.float32(score)
        if strict and value >= strict[-1]:
            value = np.nextafter(strict[-1], np.float32(-np.inf))
        strict.append(value)
    return [float(value) for value in strict]


def _language(task_metadata: Any, subset: str) -> str:
    """`java` of a task whose languages are `java-Code`; "" without code."""
    languages = task_metadata.eval_langs
    names = languages.get(subset, ()) if isinstance(languages, Mapping) else languages
    return next((name.removesuffix("-Code") for name in names if name.endswith("-Code")), "")


def local_task(folder: Path, language: str = "") -> Any:
    """A BEIR folder as an mteb task; nothing is downloaded. Documents are the rows' titles and texts."""
    mteb = _mteb()
    corpus = read_beir(folder)
    rows = [
        {
            "id": row.text("_id"),
            "title": row.text("title", ""),
            "text": row.text("text"),
            "beir": json.dumps(row.values),
        }
        for row in read_rows(folder / "corpus.jsonl")
    ]
    queries = [{"id": query.id, "text": query.text} for query in corpus.queries]

    base: Any = mteb.abstasks.AbsTaskRetrieval

    class LocalTask(base):  # type: ignore[misc]
        metadata = mteb.TaskMetadata(
            name=f"Local{''.join(part.capitalize() for part in folder.name.split('-'))}",
            description=f"The BEIR folder {folder.name}", dataset={"path": str(folder), "revision": "local"},
            type="Retrieval", category="t2t", modalities=["text"], eval_splits=["test"],
            eval_langs=[f"{language}-Code" if language else "eng-Latn"], main_score="ndcg_at_10",
        )  # fmt: skip

        def load_data(self, *_: Any, **__: Any) -> None:
            from datasets import Dataset

            qrels = {query: dict(grades) for query, grades in corpus.qrels.items()}
            data = {"corpus": Dataset.from_list(rows), "queries": Dataset.from_list(queries)}
            self.dataset = {"default": {"test": {**data, "relevant_docs": qrels, "top_ranked": None}}}
            self.data_loaded = True

    return LocalTask()


def _mteb() -> Any:
    """The package, set to stay offline; MissingExtra where it is not installed."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with needing("evaluating by mteb", "mteb"):
        import mteb
    return mteb


def run(folder: Path, ranker: str, language: str = "") -> dict[str, float]:
    """nDCG@10 of a ranker on a BEIR folder: by mteb and by us."""
    model = RankerModel(ranker)
    try:
        result = _mteb().evaluate(
            model, local_task(folder, language), cache=None, show_progress_bar=False, co2_tracker=False
        )
        mteb_score = result.task_results[0].get_score()
    finally:
        model.close()
    corpus = read_beir(folder, language=language or None)
    experiment = run_experiment(corpus, [model.system], measures=["ndcg@10"])
    return {"mteb": float(mteb_score), "ours": experiment.builds[0].system(model.system.name).means["ndcg@10"]}


@main_program("mteb_adapter")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 done, 2 an error, with one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.mteb_adapter", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="BEIR_FOLDER", help="corpus.jsonl, queries.jsonl, qrels/test.tsv")
    parser.add_argument("--ranker", action="append", metavar="R", help="default: bm25; repeatable")
    parser.add_argument("--language", default="", help="of the code in it: java, python ...")
    options = parser.parse_args(arguments)
    if options.language not in ("", *LANGUAGES):
        raise unknown("language", options.language, LANGUAGES)
    logging.getLogger("mteb").setLevel(logging.ERROR)
    results = {ranker: run(options.folder, ranker, options.language) for ranker in options.ranker or ["bm25"]}
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
