"""Questions of any characters: the analysis of each is quick, and nothing comes out of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from ncs.search.question import read_intent
from ncs.text.tokens import tokenize

SECONDS = 120.0
MEMORY = 1 << 30
CASES = 100

PIECES = (
    "a", "A", "_", "__", "aB", "ABc", ".", "::", "->", "(", ")", "{", "}", ";", "=", "<", ">", "!", "\\", "/", "@", "#",
    '"', "'", "`", "0", "9", "1e9", " ", "  ", "\t", "\n", "\r\n", "\0", "\x1b[31m", "\u202e", "\u00e9", "e\u0301",
    "\u0130", "\ufb01", "\U0001f600", "\u4e2d", "\ud800", "return ", "how do I ", "View.setPadding", "operator<<",
)  # fmt: skip


def generate(random: Random) -> bytes:
    size = random.choice((1, 10, 100, 5_000))
    pieces = random.choices(PIECES, k=random.randint(1, 8))
    return "".join(random.choices(pieces, k=random.randint(1, size))).encode(errors="surrogatepass")


def check(case: bytes, room: Path) -> None:
    text = case.decode(errors="surrogatepass")
    intent = read_intent(text, ["python"])
    assert len(intent.words) <= len(tokenize(text))
