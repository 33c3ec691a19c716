"""Aroma's features, counted by hand, and what similarity makes of them."""

from __future__ import annotations

import pytest

from evaluation.judges.aroma import features, judge, rates, similarity
from ncs.errors import BadInput


def test_the_features_of_one_call_are_those_counted_by_hand() -> None:
    found = features(b"imm.hide(1);", "java")
    assert dict(found) == {
        ("#VAR",): 1,
        ("#VAR", 0, "#.##"): 1,
        ("#VAR", 0, "#;"): 1,
        ("#VAR", "->", "hide"): 1,
        ("hide",): 1,
        ("hide", 1, "#.##"): 1,
        ("hide", 0, "#;"): 1,
        ("hide", "->", "#NUM"): 1,
        ("#NUM",): 1,
        ("#NUM", 0, "(#)"): 1,
        ("#NUM", 2, "#.##"): 1,
        ("#NUM", 0, "#;"): 1,
    }


def test_uses_of_one_variable_are_linked_and_of_two_are_not() -> None:
    link = ("use", (0, "#.##"), (0, "#.##"))
    assert features(b"a.open(); a.close();", "java")[link] == 1
    assert features(b"a.open(); b.close();", "java")[link] == 0


@pytest.mark.parametrize(
    ("answer", "function"),
    [
        ("imm.hide(view);", "void f(View v) { manager.hide(v); }"),
        ("imm.hide(view); // now", "class A { void f() { imm . hide ( view ) ; } }"),
        ('Log.d("a", "b");', 'void f() { int x = 0; Log.d("tag", "other"); }'),
    ],
)
def test_names_of_variables_literals_comments_and_what_is_around_do_not_matter(answer: str, function: str) -> None:
    assert judge(answer)(function) > 0.9


def test_another_method_name_or_type_matters() -> None:
    answer = features(b"Intent i = new Intent(Intent.ACTION_MAIN); startActivity(i);", "java")
    other = features(b"Toast t = new Toast(Toast.LENGTH_LONG); t.show();", "java")
    assert similarity(answer, answer) == 1
    assert similarity(other, answer) < 0.5


def test_similarity_is_a_share_of_the_answer_not_of_the_function() -> None:
    small, large = features(b"a.open();", "java"), features(b"void f() { a.open(); b.close(); c.run(1); }", "java")
    assert similarity(large, small) > similarity(small, large)
    assert similarity(small, features(b"", "java")) == 0


def test_statements_members_files_and_python_parse() -> None:
    assert ("onCreate",) in features(b"@Override public void onCreate(Bundle b) { super.onCreate(b); }", "java")
    assert ("Main",) in features(b"import a.b.C; class Main { int x = 1; }", "java")
    assert ("#VAR", "->", "read") in features(b"with open(p) as f:\n    f.read()", "python")


def test_nesting_of_any_depth_is_walked() -> None:
    assert features(b"x = " + b"(" * 5000 + b"1" + b")" * 5000 + b";", "java")[("#NUM",)] == 1


def test_calibration_gives_the_shares_that_pass() -> None:
    answers = ["a.open(x); a.close();"]
    table = rates(answers, [["void f() { b.open(y); b.close(); }"]], ["int g() { return 1; }"], [0.25, 0.99])
    assert [(true, false) for _, true, false in table] == [(1.0, 0.0), (0.0, 0.0)]
    with pytest.raises(BadInput, match="at least one"):
        rates(answers, [[]], ["int g() {}"], [0.5])


def test_an_unknown_language_is_named() -> None:
    with pytest.raises(BadInput, match="cobol"):
        features(b"x", "cobol")
