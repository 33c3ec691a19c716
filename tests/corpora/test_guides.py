"""Pairs of guides: headings and sentences above code blocks, and the blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora.codesearchnet.repositories import find_repositories
from corpora.guides import guide_pairs, read_blocks
from tests.corpora.test_codesearchnet_filters import MIT
from tests.gitrepo import repository
from tests.linear import within

README = """# Reading files

Open a file, and read [all of it](https://x.org "docs"):

```python
with open(path) as file:
    text = file.read()
```

Then:

~~~sh
cat "$path" | sort --unique
~~~

```text
no language that is read
```

| a | table |

```js
const rows = table.querySelectorAll("tr");
```
"""
RST = """Sending a form
==============

Intro.

.. code-block:: python
   :caption: form.py

   form = {"name": name}
   client.post(url, data=form)

More text.
"""


def test_blocks_have_the_heading_and_the_last_sentence_above() -> None:
    assert [(block.heading, block.sentence, block.language) for block in read_blocks(README)] == [
        ("Reading files", "Open a file, and read all of it", "python"),
        ("Reading files", "Then", "bash"),
        ("Reading files", "", "javascript"),
    ]
    (block,) = read_blocks(RST)
    assert (block.heading, block.sentence, block.language) == ("Sending a form", "Intro", "python")
    assert block.code == 'form = {"name": name}\nclient.post(url, data=form)'


@pytest.mark.parametrize(
    "text",
    ["```python\n" * 10_000, ".. code:: python\n\n" * 10_000, "# a\n" * 25_000, *(c * 100_000 for c in "[<`:*")],
)
def test_texts_without_end_take_linear_time(text: str) -> None:
    whole = f"{text}\n\n~~~py\nprint('a longer line')\n~~~\n"
    assert len(list(read_blocks(whole))) < 3
    assert within(5, lambda: list(read_blocks(whole)))  # quadratic: minutes


def test_pairs_are_of_guides_alone_each_once_with_license_and_partition(tmp_path: Path) -> None:
    others = {"CHANGELOG.md": README, "docs/fr/lire.md": README, "a/README.md": README, "b.py": "def f(): pass"}
    repository(tmp_path / "o+r", {"LICENSE": MIT, "README.md": README, "docs/form.rst": RST, **others})
    (found,) = find_repositories([tmp_path / "o+r"])
    pairs = list(guide_pairs(found))
    assert sorted((pair.query, pair.language) for pair in pairs) == [
        ("Open a file, and read all of it", "python"),
        ("Reading files", "bash"),
        ("Reading files", "javascript"),
        ("Reading files", "python"),
        ("Sending a form", "python"),
    ]
    assert {pair.license for pair in pairs} == {"MIT"}
    assert {pair.split for pair in pairs} <= {"train", "valid", "test"}
    assert len({pair.id for pair in pairs}) == len(pairs)
