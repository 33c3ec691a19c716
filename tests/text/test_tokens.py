"""Words of code and questions."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncs.text.tokens import MAX_LITERAL, field_tokens, literal_tokens, spans, tokenize


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("readHTTPResponse", "read http response"),
        ("XMLHttpRequest", "xml http request"),
        ("pxToDp", "px to dp"),
        ("hide_soft_keyboard", "hide soft keyboard"),
        ("MAX_BUFFER_SIZE", "max buffer size"),
        ("getURLs", "get urls"),
        ("parseURLsFrom", "parse urls from"),
        ("aB", "a b"),
        ("base64Encode", "base 64 encode"),
        ("sha256", "sha 256"),
        ("View.setPadding(left)", "view set padding left"),
        ("HttpClient::post", "http client post"),
        ("don't stop", "don t stop"),
        ("How to close / hide the Android soft keyboard?", "how to close hide the android soft keyboard"),
        ("naïveBayes Größe", "naïve bayes größe"),
        ("读取文件 файлОткрыть", "读取文件 файл открыть"),
        ("HTTPСервер", "http сервер"),
        ("getURLs XMLHttpRequest é", "get urls xml http request é"),
        ("", ""),
        ("_ __ ...", ""),
        ("error 404", "error 404"),
        ("1 2 3 4 go", "go"),
        ("0xFF, 0x10, 7 mask", "mask"),
        ("id 1234567", "id"),
        ("a" * 65 + " short", "short"),
    ],
)
def test_words_split_at_humps_digits_and_punctuation_without_number_runs_and_encoded_data(
    text: str, words: str
) -> None:
    assert tokenize(text) == words.split()


def test_long_literals_give_no_words() -> None:
    assert literal_tokens("x " * (MAX_LITERAL // 2 - 1) + "ab") != []
    assert literal_tokens("x" * (MAX_LITERAL + 1)) == []
    assert field_tokens("literals", ["no route", "a\\nb"]) == ["no", "route", "a", "b"]
    assert field_tokens("calls", ["getRoute"]) == ["get", "route"]


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        (r"cannot open %s\n", "cannot open"),
        (r"unknown key \"%-10s\" in\tline %ld", "unknown key in line"),
        (r"\x1b[31merror\u001b[0m caf\u00e9 \U0001F600 \033[1m", "31 merror 0 m caf 1 m"),
        (r"\\server\path", "server ath"),
        ("%(name)s took %5.2f ms, 100% done", "took ms 100 done"),
        ("expected {} but got {0}, {1:N2} or {:?}", "expected but got or"),
        ("{name} is {kind}", "name is kind"),
        ("it ends in \\", "it ends in"),
    ],
)
def test_escapes_and_placeholders_of_a_literal_are_no_words(literal: str, words: str) -> None:
    assert literal_tokens(literal) == words.split()


# letters of several scripts and widths, digits that are no ASCII, a title-case letter, an upper one of two lower ones
@given(st.text("aBz_ 09.\n\téÉßЖж读文²٣ǅİΣ\u0301", max_size=40))
def test_words_are_lower_case_and_their_own_only_word_or_a_number(text: str) -> None:
    for word in tokenize(text):
        assert word == word.lower()
        assert word
        assert "_" not in word
        assert not any(character.isspace() for character in word)


@given(st.text(string.printable, max_size=60))
def test_spans_name_the_text_they_stand_on(text: str) -> None:
    for start, end, word in spans(text):
        assert text[start:end].lower() == word
