"""Declarations of overloads are no documents beside what they declare."""

from __future__ import annotations

import pytest

from ncs.extract import extract

STUBS = """
@overload
def read(path: str) -> str: ...  # one
@typing.overload
def read(path: bytes) -> bytes:
    '''Reads bytes.'''
@t.overload
async def read(path: int) -> int:
    pass
"""
METHODS = """
class File:
    size = 1
    @overload
    def read(self, n: int) -> str:
        '''Reads some.'''
        ...
    @staticmethod
    @typing_extensions.overload
    def read(n: None) -> bytes: ...
"""
BODY = "def read(path):\n    return open(path)\n"
MEMBER = "    def read(self, n):\n        return self.file.read(n)\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (STUBS + BODY, ["10 read"]),
        (STUBS, ["2 read"]),
        (STUBS + METHODS + BODY + "class Other:\n" + MEMBER, ["13 File.read", "20 read", "23 Other.read"]),
        (METHODS + MEMBER, ["11 File.read"]),
        # a library that dispatches by types has bodies, another `overload` arguments
        ("@overload\ndef f(x: int):\n    return x\n@dispatch\ndef f(x): ...\n", ["1 f", "4 f"]),
        ("@overload(np.sum)\ndef f(x): ...\ndef f(x): ...\n", ["1 f", "3 f"]),
    ],
)
def test_overloads_of_python_fold_into_their_implementation_or_into_the_first(code: str, expected: list[str]) -> None:
    documents = extract(code.encode(), "python", path="p.py")
    assert [f"{each.start_line} {each.qualified_name}" for each in documents] == expected


def test_their_words_do_not_become_those_of_the_class_or_module_around_them() -> None:
    documents = list(extract((METHODS + MEMBER + STUBS + BODY + "LIMIT = 1\n").encode(), "python", outside=True))
    outlines = {each.kind: each for each in documents if each.kind != "function"}
    assert outlines["class"].words["identifiers"] == ("size",)
    assert "parameters" not in outlines["class"].words
    assert outlines["module"].code.strip() == "LIMIT = 1"


def test_overloads_of_typescript_are_no_documents() -> None:
    code = "class A {\n  read(n: number): string;\n  read(n: string): string;\n  read(n: any) {\n    f(n);\n  }\n}\n"
    code += "export function g(a: string): void;\nexport function g(a: any) {\n  f(a);\n}\n"
    documents = extract(code.encode(), "typescript")
    assert [f"{each.start_line} {each.qualified_name}" for each in documents] == ["4 A.read", "8 g"]
