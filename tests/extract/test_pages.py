"""Script blocks of HTML, Vue, Svelte and Astro: their functions, languages and lines, and what is no script."""

from __future__ import annotations

import pytest

from ncs.extract.pages import scripts
from ncs.extract.readers import read
from ncs.types import Document

VUE = b"""<template>
  <button @click="hide" v-if="a > b && c < d">{{ "script" }}</button>
</template>

<script lang="ts">
import { View } from "./view";

/** Hides the keyboard. */
export function hide(view: View): boolean {
  return view.close("now");
}
</script>

<script setup lang="ts">
const props = defineProps<{ title: string }>();
function show() { hide(props.view); }
</script>

<style scoped lang="scss">
.a { color: red; }
</style>
"""


def documents(source: bytes, path: str = "a/Keyboard.vue", outside: bool = False) -> list[Document]:
    return read(source, "r", path, outside=outside)[0]


def test_functions_of_all_scripts_stand_on_the_lines_of_the_page() -> None:
    assert [(d.name, d.language, d.start_line, d.end_line) for d in documents(VUE)] == [
        ("hide", "typescript", 9, 11),
        ("show", "typescript", 16, 16),
    ]
    hide = documents(VUE)[0]
    assert hide.id == "r/a/Keyboard.vue:9"
    assert hide.words["doc"] == ("Hides the keyboard.",)
    assert hide.words["calls"] == ("close",)


def test_what_stands_outside_functions_is_named_like_the_component() -> None:
    found = [(d.kind, d.name, d.start_line) for d in documents(VUE, outside=True) if d.kind != "function"]
    assert found == [("module", "Keyboard", 15)]


@pytest.mark.parametrize(
    ("opening", "language"),
    [
        ("<script>", "javascript"),
        ("<SCRIPT TYPE='text/javascript; charset=utf-8'>", "javascript"),
        ('<script type="module" data-a="a > b">', "javascript"),
        ("<script type=text/babel>", "javascript"),
        ('<script context="module" lang="ts">', "typescript"),
        ('<script lang="tsx">', "tsx"),
        ("<script\n  setup\n  lang='ts'\n>", "typescript"),
        ('<script type="application/json">', None),
        ('<script type="application/ld+json">', None),
        ('<script type="importmap">', None),
        ('<script type="text/template">', None),
        ('<script type="text/x-handlebars-template" id="a">', None),
        ('<script type="x-shader/x-vertex">', None),
        ('<script src="a.js"/>', None),
        ("<scripting>", None),
    ],
)
def test_the_tag_says_whether_it_is_a_script_and_in_which_language(opening: str, language: str | None) -> None:
    page = f"<p>\n{opening}function hide() {{ close(); }}</script>".encode()
    assert [script.language for script in scripts(page)] == ([language] if language else [])
    found = documents(page, "a.html")
    assert [(d.name, d.language) for d in found] == ([("hide", language)] if language else [])
    assert all(d.start_line == page.count(b"\n") + 1 for d in found)


def test_scripts_in_comments_are_none() -> None:
    page = b"<!-- <script>function a() {}</script> -->\n<script>function b() {}</script>\n<!-- <script>function c() {}"
    assert [(d.name, d.start_line) for d in documents(page, "a.html")] == [("b", 2)]


def test_functions_on_one_line_of_several_scripts_have_ids_of_their_own() -> None:
    page = b"<script>function a() {}</script>" * 3
    assert [d.id for d in documents(page, "a.html")] == ["r/a.html:1", "r/a.html:1.2", "r/a.html:1.3"]


def test_a_script_that_does_not_end_goes_to_the_end_of_the_page() -> None:
    assert [d.name for d in documents(b"<p><script>\nfunction a() {}\nfunction b() {}", "a.html")] == ["a", "b"]


def test_a_minified_script_is_left_out_and_the_others_are_read() -> None:
    minified = b"function a(){}" * 300
    page = b"<script>" + minified + b"</script>\n<script>\nfunction b() {}\n</script>"
    assert [d.name for d in documents(page, "a.html")] == ["b"]


def test_markup_in_a_script_and_an_error_in_another_spoil_nothing() -> None:
    page = b"<script>function a() { {{ if }} (</script>\n<script>\nfunction b() { return '<b>x</b>'; }\n</script>"
    found, broken = read(page, "r", "a.html")
    assert ("b", 3) in [(d.name, d.start_line) for d in found]
    assert broken


def test_scripts_of_svelte_and_astro_are_read() -> None:
    svelte = b'<script context="module">\nexport function a() {}\n</script>\n{#if a < b}<b/>{/if}\n'
    svelte += b"<script>\nlet b = () => 1;\n"
    assert [(d.name, d.start_line) for d in documents(svelte, "a.svelte")] == [("a", 2), ("b", 6)]
    astro = b"---\nconst a = (x: number) => x;\n---\n<p>{a(1)}</p>\n<script>\nfunction b() {}\n</script>\n"
    assert [(d.name, d.language, d.start_line) for d in documents(astro, "a.astro")] == [
        ("a", "typescript", 2),
        ("b", "javascript", 6),
    ]


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"\0" * 5000,
        b"<script",
        b"<script>",
        b"<script></script>",
        b"<!--",
        b'<script "',
        b"</script>",
        b"<p>no script</p>",
    ],
)
def test_a_page_without_scripts_gives_nothing(page: bytes) -> None:
    assert documents(page, "a.html", outside=True) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [b"<script ", b"<script>", b'<script "', b"<script a='", b"<!--", b"<script></script>", b"<script>f()</script>\n"],
)
def test_a_megabyte_of_anything_is_read(unit: bytes) -> None:
    documents(unit * (1_000_000 // len(unit)), "a.html", outside=True)
