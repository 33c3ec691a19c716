"""Sections of Markdown, reStructuredText and AsciiDoc: their headings, lines and words."""

from __future__ import annotations

from ncs.extract.readers import read, readable
from ncs.types import Document

BODY = "Say here in some ten words or more what there is to be said.\n"
MARKDOWN = f"""---
title: Guide
---
{BODY}
# Forms #

{BODY}
## Check [an input](https://x.org/secret "docs")

Every `<input>` has *rules*, given as a list of functions that return false:

```py
# Not a heading
check(rules, max_length=7)
```

Setext
------

{BODY}
<h2 id="more">
More
</h2>

{BODY}"""
RST = f"""=====
Guide
=====

.. _start:

{BODY}
Forms
=====

Use :func:`check` for them all, like this, whatever they hold and wherever they are::

    check(rules)

.. code-block:: python
   :caption: form.py

   validate_form(rules)

Inputs
------

{BODY}
Files
=====

{BODY}"""
ASCIIDOC = f"""= Guide
:toc: left

{BODY}
== Forms

[source,java]
----
= Not a heading
check(rules);
----

{BODY}
=== Inputs

// a comment
{BODY}"""


def sections(text: str, path: str = "guide.md") -> list[Document]:
    return read(text.encode(), "r", path, outside=True)[0]


def places(text: str, path: str) -> list[tuple[str, int, int]]:
    return [(each.qualified_name, each.start_line, each.end_line) for each in sections(text, path)]


def test_a_section_goes_from_its_heading_to_the_next_and_is_named_by_the_headings_above_it() -> None:
    assert places(MARKDOWN, "a/guide.md") == [
        ("Guide", 1, 4),
        ("Guide > Forms", 6, 8),
        ("Guide > Forms > Check an input", 10, 17),
        ("Guide > Forms > Setext", 19, 22),
        ("Guide > Forms > More", 24, 28),
    ]


def test_levels_of_restructuredtext_are_in_the_order_in_which_its_underlines_come() -> None:
    assert places(RST, "guide.rst") == [
        ("Guide", 1, 7),
        ("Guide > Forms", 9, 19),
        ("Guide > Forms > Inputs", 21, 24),
        ("Guide > Files", 26, 29),
    ]


def test_asciidoc_has_headings_outside_listings_only() -> None:
    assert places(ASCIIDOC, "guide.adoc") == [
        ("Guide", 1, 4),
        ("Guide > Forms", 6, 14),
        ("Guide > Forms > Inputs", 16, 19),
    ]


def test_headings_are_names_prose_is_comments_and_names_in_code_are_identifiers() -> None:
    section = sections(MARKDOWN)[2]
    assert (section.kind, section.language, section.name) == ("section", "markdown", "Check an input")
    assert section.words["scope"] == ("Guide", "Forms")
    assert " ".join(section.words["comments"]) == (
        "Every <input> has rules, given as a list of functions that return false:"
    )
    assert section.words["identifiers"] == ("Not", "a", "heading", "check", "rules", "max_length")
    assert section.code.startswith("## Check")
    assert section.code.endswith("```")
    assert section.id == "r/guide.md:10"


def test_code_of_restructuredtext_and_asciidoc_is_no_prose() -> None:
    forms = sections(RST, "a.rst")[1]
    assert forms.language == "restructuredtext"
    assert (
        " ".join(forms.words["comments"])
        == "Use check for them all, like this, whatever they hold and wherever they are::"
    )
    assert forms.words["identifiers"] == ("check", "rules", "validate_form", "rules")
    forms = sections(ASCIIDOC, "a.asciidoc")[1]
    assert forms.language == "asciidoc"
    assert " ".join(forms.words["comments"]) == BODY.strip()
    assert forms.words["identifiers"] == ("Not", "a", "heading", "check", "rules")


def test_a_short_section_is_part_of_the_one_above_it() -> None:
    text = f"# Options\n\n## --quiet\n\nSay nothing.\n\n## --loud\n\nSay more.\n\n## Files\n\n{BODY}"
    assert places(text, "a.md") == [("Options", 1, 9), ("Options > Files", 11, 13)]


def test_a_heading_without_text_begins_the_section_below_it() -> None:
    assert places(f"# Guide\n\n## Forms\n\n{BODY}", "a.md") == [("Guide > Forms", 1, 5)]


def test_a_table_of_contents_is_no_prose_and_no_section() -> None:
    contents = "".join(f"{' ' * (at % 2)}- [How to {word}](#{word})\n" for at, word in enumerate(["check"] * 12))
    text = f"# FAQ\n\n{contents}\n## Check\n\n{BODY}\n## See\n\n{contents}\n- [More](more.md)\n{BODY}"
    check, see = sections(text, "faq.md")
    assert (check.qualified_name, check.start_line) == ("FAQ > Check", 16)
    assert (see.qualified_name, see.words["comments"]) == ("FAQ > See", ("- More", BODY.strip()))


def test_a_long_section_is_cut_between_paragraphs() -> None:
    every = sections("# Guide\n\n" + f"{BODY}\n" * 100)
    assert len(every) > 2
    assert {each.qualified_name for each in every} == {"Guide"}
    assert all(each.end_line - each.start_line < 60 for each in every)
    assert len({each.id for each in every}) == len(every)


def test_text_without_headings_is_named_like_its_file() -> None:
    assert places(BODY, "docs/install.md") == [("install", 1, 1)]
    assert sections("", "a.md") == sections("# Only this\n", "a.md") == []


def test_sections_are_no_functions() -> None:
    assert read(MARKDOWN.encode(), "r", "a.md") == ([], False)
    assert not readable("a.md", texts=False)
