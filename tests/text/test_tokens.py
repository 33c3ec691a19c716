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


def test_long_or_escaped_literals_give_no_words() -> None:
    assert literal_tokens("x " * (MAX_LITERAL // 2 - 1) + "ab") != []
    assert literal_tokens("x" * (MAX_LITERAL + 1)) == []
    assert literal_tokens("C:\\temp") == []
    assert field_tokens("literals", ["no route", "a\\nb"]) == ["no", "route"]
    assert field_tokens("calls", ["getRoute"]) == ["get", "route"]


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
