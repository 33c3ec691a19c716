"""What decides the content of an index: settings that are kept in its manifest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ncs.build.memory import Corpus
from ncs.errors import BadInput, IndexVersion
from ncs.search.rankers import requested_ranker
from ncs.storage.vector_kinds import chosen

if TYPE_CHECKING:
    from ncs.learn.embeddings import Choice, FastTextConfig, LsaConfig
    from ncs.storage.manifest import Manifest
    from ncs.storage.vector_kinds import Choice as VectorChoice

DECIDES_DOCUMENTS = ("java_frontend", "outside", "store_code", "deduplicate")


def _default_fasttext() -> FastTextConfig:
    from ncs.learn.embeddings import FastTextConfig

    return FastTextConfig()


def _default_lsa() -> LsaConfig:
    from ncs.learn.embeddings import LsaConfig

    return LsaConfig()


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """What decides an index's content; it is kept in the manifest. (Workers do not: they change nothing.)"""

    fasttext: FastTextConfig = field(default_factory=_default_fasttext)
    lsa: LsaConfig = field(default_factory=_default_lsa)
    embeddings: Choice = "auto"
    """Which of the two learns the word vectors; "auto": see ncs.learn.embeddings.chosen."""
    warm_start: str | None = None
    """Other code that word vectors learn from too: `stdlib`, an index, or source files (ncs.learn.warm_start)."""
    vectors: VectorChoice = "auto"
    """How document vectors are searched: exact, pq, ivf, hnsw or rabitq; "auto": see
    ncs.storage.vector_kinds.chosen."""
    java_frontend: str = "tree-sitter"
    outside: bool = True
    """Classes and top-level code are documents too, beside functions."""
    texts: bool = True
    """Files without a grammar are read too, as text (ncs.extract.text_kinds)."""
    store_code: bool = True
    deduplicate: bool = True
    revision: str | None = None
    rankers: tuple[str, ...] = ()
    """Rankers on request, fitted and saved besides FITTED: `two_field`, `ncs_enhanced:pairs=pairs.jsonl.gz`."""

    def __post_init__(self) -> None:
        """Raise BadInput for a ranker that cannot be built as it is asked for, or for vectors of no kind."""
        if self.embeddings not in ("auto", "fasttext", "lsa"):
            raise BadInput(f"word vectors are learnt by auto, fasttext or lsa, not {self.embeddings!r}")
        chosen(self.vectors, 0)
        for text in self.rankers:
            requested_ranker(text)

    @classmethod
    def of(cls, manifest: Manifest) -> BuildConfig:
        """Of an index that stands; raises IndexVersion where this ncs does not know its settings."""
        from ncs.learn.embeddings import FastTextConfig, LsaConfig

        found: dict[str, Any] = dict(manifest.config)
        try:
            fasttext, lsa = FastTextConfig(**found.pop("fasttext")), LsaConfig(**found.pop("lsa", {}))
            return cls(fasttext=fasttext, lsa=lsa, **{**found, "rankers": tuple(found.get("rankers", ()))})
        except (KeyError, TypeError) as error:
            raise IndexVersion(
                f"the index was built with other settings than this ncs has ({error}); build it again"
            ) from error

    def corpus(self, rows: int, words: int) -> Corpus:
        """What a build of so many documents and words needs memory for."""
        lsa = self.embeddings == "lsa"
        dim, buckets = (self.lsa.dim, 0) if lsa else (self.fasttext.dim, self.fasttext.buckets)
        buckets = buckets if self.fasttext.max_n else 0
        return Corpus(rows, words, dim, buckets, lsa, chosen(self.vectors, rows))

    def same_documents(self, other: BuildConfig) -> bool:
        """Whether files give the same documents by both."""
        return all(getattr(self, name) == getattr(other, name) for name in DECIDES_DOCUMENTS)
