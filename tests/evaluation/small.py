"""A corpus of six functions and four queries: one in other words, one with two equal answers, one without any."""

from __future__ import annotations

from collections.abc import Iterator

from corpora.corpus import Corpus
from corpora.program import read_program
from ncs.types import Document, Query

FUNCTIONS = {
    "keyboard": "void hideKeyboard(View v) { manager.hideSoftInput(v.getToken()); }",
    "file": "String readFile(Path path) { return new String(Files.readAllBytes(path)); }",
    "network": "boolean isConnected() { return manager.getActiveNetwork().isConnected(); }",
    "bitmap": "Bitmap scale(Bitmap image, int w) { return Bitmap.createScaledBitmap(image, w, w, true); }",
    "zip": "void unzip(File archive) { new ZipInputStream(archive).getNextEntry(); }",
    "same": "boolean isConnected() { return manager.getActiveNetwork().isConnected(); }",
}
QUERIES = {"hide soft keyboard": "keyboard", "read a file": "file", "network connected": "network", "nonsense": "zip"}


def documents() -> Iterator[Document]:
    for id, code in FUNCTIONS.items():
        yield read_program(code, "java", id=id)


SMALL = Corpus(
    "small",
    tuple(Query(f"q{i}", text) for i, text in enumerate(QUERIES)),
    {f"q{i}": {id: 1} for i, id in enumerate(QUERIES.values())},
    documents,
)
