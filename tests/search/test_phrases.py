"""Words in double quotes are found as they stand, in code, comments and literals; without any, words alone count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ncs.answer import ask
from ncs.index import Index
from ncs.search.phrases import lines_with
from ncs.search.question import MAX_QUERY, PHRASES, read_intent
from tests import gitrepo
from tests.corpus import QUICK

WORDS = "def note_{0}(paper):\n    paper.write('the rest of the ink in bottle {0} is dry')\n    return paper.ink\n"
SOURCES = {
    "Store.java": "class Store {\n  /** Kept for old callers of it. */\n  int size() { return items.size(); }\n"
    "\n  void put(Item item) {\n    // an item that is\n    // seen twice counts once\n    items.add(item);\n  }\n}\n",
    "door.py": "def unlock(door, key):\n    key.turn()\n    if not door.is_open:\n        door.push(  hard )\n",
    "split.py": 'def refuse(name):\n    raise E("the item is "\n            f"out of stock: {name}")\n',
    "item.py": "def count_items(items):\n    # items, out of which stock is made\n    return len(items)\n\n\n"
    "def stock_items(out, items):\n    out.stock = items.out_of(out.stock)\n    return out.stock\n",
    "test_door.py": "def test_unlock():\n    # door.push( hard ) is called\n    assert unlock(Door(), Key()) is None\n",
    "notes.md": "# Stock\n\nThe old callers of a store are all gone, and items too.\n",
    "ink.py": "\n\n".join(WORDS.format(number) for number in range(450))
    + "\n\ndef blot(paper):\n    '''Take what it holds away.'''\n    # a bottle of the ink\n"
    + "".join(f"    paper.fold_{at}(sheet_{at}, corner_{at}, 'top_{at}')\n" for at in range(60)),
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("phrases")
    with Index.build(gitrepo.write(root / "r", SOURCES), root / "i", config=QUICK) as index:
        yield index


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ('items "door.push( hard )"', "unlock"),  # as code, before the test and the items
        ('stock items "Kept  for OLD callers"', "Store.size"),  # a comment before the function, white space, case
        ('stock items "an item that is seen twice"', "Store.put"),  # over two lines of comments
        ('unlock door "item is out of stock"', "refuse"),  # over two parts of a literal
        ('stock items "if not door.is_open:"', "unlock"),  # no words but of the language
        ('"callers of a store"', "Stock"),  # in a document only
        ('"a bottle of the ink"', "blot"),  # more documents than candidates have its words
    ],
)
def test_what_has_the_phrase_leads(index: Index, question: str, name: str) -> None:
    assert index.search(question, 1)[0].document.qualified_name == name


def test_a_test_with_the_phrase_stands_behind_the_code_with_it_and_before_the_rest(index: Index) -> None:
    names = [hit.document.name for hit in index.search('stock items "door.push( hard )"', 3)]
    assert names[:2] == ["unlock", "test_unlock"]


@pytest.mark.parametrize(
    "question",
    [
        'stock "items out" of',  # other signs between the words
        '"stock item" of a store',  # a part of a word
        '"items stock" of out',  # not in order
        '("stock") of="out" items',  # no phrases
    ],
)
def test_where_nothing_has_the_phrase_the_words_alone_rank(index: Index, question: str) -> None:
    bare = index.results(question.replace('"', ""), 9).ranking
    ranking = index.results(question, 9).ranking
    assert (ranking.hits, ranking.confidences) == (bare.hits, bare.confidences)


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ('where is "no such option" raised', ("no such option",)),
        ('"no such   option"?', ("no such option",)),
        ('"Content-Type" of "the answer"', ("Content-Type", "the answer")),
        ("'no such option' or `this one`", ()),
        ('error: required flag(s) "region", "the cluster" not set', ("the cluster",)),  # others are values
        ('"error: no such option: --colour"', ("error: no such option: --colour",)),
        ('x = call("a b"); y = other(x, "c d");', ()),  # code
        ('"x = call(); y = other(x);"', ("x = call(); y = other(x);",)),
        ('5" of "" and " " or "open', ()),
        (" ".join(f'"a {n}"' for n in range(99)), tuple(f"a {n}" for n in range(PHRASES))),
        pytest.param(f'"{MAX_QUERY * "a"}"', (), id="too long"),
    ],
)
def test_what_is_a_phrase(question: str, phrases: tuple[str, ...]) -> None:
    assert read_intent(question).phrases == phrases


def test_the_lines_of_a_phrase_are_shown_and_a_phrase_that_no_hit_has_is_named(index: Index) -> None:
    assert lines_with(SOURCES["door.py"], ["DOOR.push( hard )"]) == [3]
    (hit,) = ask(index, 'fold the paper "of the ink" away', 1, ranker="hybrid")["hits"]
    assert hit["name"] in ("blot", "note_0")
    notes = ask(index, '"paper of the ink"', 2, ranker="hybrid")["notes"]
    assert "no hit has the words in quotes as they stand; each was searched for" in notes
    assert ask(index, '"a bottle of the ink"', 2, ranker="hybrid")["notes"] == []


def test_an_index_without_code_is_searched_for_words(index: Index) -> None:
    root = index.snapshot.roots[0]
    with Index.build(root, index.folder.parent / "bare", config=replace(QUICK, store_code=False)) as bare:
        assert bare.search('"a bottle of the ink"', 1)


def test_a_phrase_is_found_among_what_the_filters_leave(index: Index) -> None:
    names = [hit.document.name for hit in index.search('"door.push( hard )"', 2, path="test_*")]
    assert names[0] == "test_unlock"
    assert "unlock" not in names
