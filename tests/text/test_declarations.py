"""Declared names: what is one in each language, and what is none."""

from __future__ import annotations

import pytest

from ncs.text.declarations import MAX_LETTERS, MAX_NAMES, declared_names


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("MAX = 3\n_cache_size: dict[str, int] = {}\nFoo.BAR = 1\nPyAlias = list[int]", "MAX _cache_size BAR PyAlias"),
        ("export const jsLimit = 3, other = 4;\nmodule.exports.someName = f;", "jsLimit someName"),
        ("export type Alias<T> = (value: T) => void;\ntype handler func(int) error", "Alias handler"),
        ("export declare function hide(n: number): void;\ndeclare function ring(): void;", "hide ring"),
        (
            "pub(crate) const RS_MAX: usize = 3;\npub type Res<T> = Result<T, E>;\nstatic mut COUNT_1: u8 = 0;",
            "RS_MAX Res COUNT_1",
        ),
        ("#define C_MIN(a, b) ((a) < (b))\n#  define lower 1\ntypedef unsigned int c_id;", "C_MIN lower c_id"),
        (
            "typedef int (*call_back)(void *);\ntypedef struct node {\nstatic const int c_const[3] = {1};",
            "call_back c_const",
        ),
        ("public static final Map<String, Integer> JA_MAP = f();\nprivate final String jaField;", "JA_MAP jaField"),
        ("public string CsProp { get; set; }\ninternal const int CsMax = 3;", "CsProp CsMax"),
        (
            "const val KT_MAX = 3\ntypealias KtAlias = Map<String, Int>\nlateinit var ktField: Foo",
            "KT_MAX KtAlias ktField",
        ),
        ("define('PHP_DEF', 4);\nconst P_MAX = 3;\nprivate $pField = 4;", "PHP_DEF P_MAX pField"),
        ("using Alias = int;\nexport SOME_PATH=/tmp\nlocal LUA_MAX = 3", "Alias SOME_PATH LUA_MAX"),
        ("var (\n\tErrGone = errors.New()\n\tModeA, ModeB = 1, 2\n)", "ErrGone ModeA ModeB"),
        (
            "enum Mode {\n    #[default]\n    \0\0\n    Search(Kind),\n    Types { a: i32 },\n    Last\n}",
            "Search Types Last",
        ),
        ("enum Color { Red, DarkBlue = 2 }\nenum Side {\n  case Left, Right\n}", "DarkBlue Red Left Right"),
    ],
)
def test_names_are_read_in_each_language(code: str, names: str) -> None:
    assert set(declared_names(code.encode())) == set(names.split())


@pytest.mark.parametrize(
    ("language", "code", "names"),
    [
        ("go", "const MaxWait time.Duration = 3\nvar ErrGone, errSlow error = f(), g()", "MaxWait ErrGone errSlow"),
        ("go", "const (\n\tKindA Kind = 1 << iota\n\tKindB\n\n\tKindC\n)\nFoo_X", "KindA KindB KindC"),
        ("go", "type Box struct {\n\tWidth, Height int\n\tsync.Mutex\n\tSize(x int) int\n}", "Box Width Height"),
        ("rust", "pub struct Box<T> {\n  pub max_size: usize,\n  kind_of: Vec<T>,\n}", "max_size kind_of"),
        (
            "typescript",
            "interface Box {\n  minSize: 3,\n  maxSize?: number;\n  readonly aB: string;\n  run(x: X_Y): void;\n}",
            "maxSize aB",
        ),
        (
            "c",
            "struct box {\n  size_t total_len;\n  struct box *next_box, *last_box;\n  int a_b[3];\n  f_x(3);\n}",
            "total_len next_box last_box a_b",
        ),
        (
            "java",
            "class Box extends BaseBox\n  throws IOException {\n  Map<String, Integer> sizeOf;\n  @Id int boxId;\n}",
            "sizeOf boxId",
        ),
        ("java", "public final class NullBox extends BaseBox {\n  private int boxId;\n}", "boxId"),
        (
            "csharp",
            "public sealed class Box : IBox, IEquatable<Box>\n{\n  int boxId;\n  internal struct Deep : IBox {\n}",
            "boxId",
        ),
        ("typescript", "export type $ZodCode = 1;\nexport const $Zeta = 2", "$ZodCode $Zeta"),
        ("swift", "open var onClose: ((A_B) -> Void)?\nweak var theBox: Box?", "onClose theBox"),
    ],
)
def test_fields_of_a_class_and_what_names_come_first_depend_on_the_language(
    language: str, code: str, names: str
) -> None:
    assert set(declared_names(code.encode(), language, in_class=True)) == set(names.split())


@pytest.mark.parametrize(
    "code",
    [
        "call(\n  A_B=1,\n  C_D=lambda x: 2,\n)\nit('x', () => {\n  E_F = 3;\n})",
        "#define \\\n  if (x) \\\n  A_B = 3",
        "function f<T extends A_B = string>(x) {}",
        "data = load()\nx=1\nlogger = get()",
        "if MAX_SIZE == 3:\nreturn SOME_NAME = 1\nfor I_X in Y_Z:",
        "self.assertEqual(A_B, 3)\nprint(SOME_NAME)\nMAX_SIZE <= 3\nMAX_SIZE => 3",
        "__all__ = ['A_B']\n__version__ = 'V_1'",
        "class SomeName(Base):\nfunction someName()\nenum Color;",
        "A" * (MAX_LETTERS + 1) + " = 3",
    ],
)
def test_others_are_none(code: str) -> None:
    assert declared_names(code.encode()) == ()


def test_each_is_there_once_and_tables_end() -> None:
    assert declared_names(b"A_B = 1\nA_B = 2\n\xff\xfe_X = 3\n")[:1] == ("A_B",)
    assert len(declared_names("".join(f"NAME_{n} = {n}\n" for n in range(2 * MAX_NAMES)).encode())) == MAX_NAMES
