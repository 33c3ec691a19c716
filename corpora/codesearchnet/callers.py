"""Pairs of what a function is documented to do, and functions of other files that call it.

Who asks how to do something is answered by code that calls what does it, as on Stack Overflow, and seldom by that
function itself. Its documentation tells in words what the call is for, so the callers of documented functions are
answers that nobody had to label; of a library, callers in other repositories are among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from corpora.codesearchnet.functions import CodeFunction
from corpora.codesearchnet.namesakes import LEAST, MOST
from corpora.codesearchnet.reading import SOURCE, functions, question
from corpora.pairs import Pair
from ncs.text.tokens import tokenize

MEANINGS = 5
"""Documentations of a name: one that more people describe otherwise (get item, on create) says nothing by itself."""
A_NAME = 4
"""Callers of a name that are drawn: what is called everywhere does not teach more than what is called seldom."""

Key = tuple[str, str]


def callers(folders: Sequence[Path], languages: Sequence[str] = (), *, seed: int = 0) -> Iterator[Pair]:
    """Of each documented name of LEAST words that MOST functions at most call: A_NAME of these answer one of its
    documentations each. A caller is of another file, and not itself called so.

    Memory holds the documentations and the drawn callers. Raises BadInput as `functions`.
    """
    draw = np.random.default_rng(seed)
    described: defaultdict[Key, dict[str, str]] = defaultdict(dict)
    for folder in folders:
        for function in functions(folder, languages):
            name = _bare(function.func_name)
            if len(set(tokenize(name))) >= LEAST and (said := question(function)):
                described[function.language, name].setdefault(said, f"{function.repo}/{function.path}")
    described = defaultdict(dict, {key: said for key, said in described.items() if len(said) <= MEANINGS})
    often: defaultdict[Key, int] = defaultdict(int)
    drawn: defaultdict[Key, list[CodeFunction]] = defaultdict(list)
    for folder in folders:
        for function in functions(folder, languages, all_of_them=True):
            for key in _called(function):
                if key in described and f"{function.repo}/{function.path}" not in described[key].values():
                    often[key] += 1
                    if len(drawn[key]) < A_NAME:
                        drawn[key].append(function)
                    elif (at := int(draw.integers(often[key]))) < A_NAME:
                        drawn[key][at] = function
    for key in sorted(drawn):
        if often[key] <= MOST:
            texts = list(described[key])
            for function in drawn[key]:
                text, code = texts[int(draw.integers(len(texts)))], function.original_string or function.code
                about = {"split": function.partition, "license": function.license}
                yield Pair(text, code, function.language, SOURCE, function.url, **about)


def _bare(name: str) -> str:
    return name.rpartition(".")[2]


def _called(function: CodeFunction) -> list[Key]:
    """What stands before a bracket, but for the function's own name; in alphabetical order, so that draws repeat."""
    own = _bare(function.func_name)
    names = {token for token, after in pairwise(function.code_tokens) if after == "(" and token.isidentifier()}
    return [(function.language, name) for name in sorted(names - {own})]
