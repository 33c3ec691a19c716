"""What is a test by the syntax of its language, wherever its file lies."""

from __future__ import annotations

import pytest

from ncs.extract import extract

# language, code, and the names of the documents that are tests; the others are not
CASES = [
    (
        "rust",
        "const PORTS: [u8; 3] = [first(), second(), third()];\n"
        "/// One.\n#[test]\n#[should_panic]\nfn one() {}\n#[tokio::test(flavor = 1)]\nasync fn two() {}\n"
        "#[cfg(test)]\nmod checks {\n  fn help() {}\n  struct Fake {}\n}\n"
        "#[cfg(all(test, unix))]\nmod more { fn three() {} }\n"
        "#[cfg(test)]\nimpl Keyboard { fn for_tests() {} }\n"
        '#[cfg(not(test))]\nfn real() {}\n#[cfg(any(test, feature = "x"))]\nfn shared() {}\n'
        "mod tests { fn plain() {} }\n#[inline]\nfn test_connection() {}",
        "one two checks help Fake more three for_tests",
    ),
    (
        "java",
        "class Checks { int port; @Test void opens() {} @org.junit.Test(timeout = 1) void closes() {} void help() {}\n"
        "  static class Fake { void f() {} } }\n"
        "class Old extends junit.framework.TestCase { void testIt() {} }\n"
        "class Product { int port; @Override void test() {} void testConnection() {}\n"
        "  static class Own { @ParameterizedTest void checks() {} } }",
        "Checks opens closes help Fake f Old testIt Own checks",
    ),
    (
        "kotlin",
        "class Checks {\n val a = 1\n @Test fun opens() {}\n @org.junit.Test fun closes() {}\n fun help() {}\n}\n"
        'class More {\n val a = 1\n @ParameterizedTest(name = "x") fun opensAll() {}\n}\n'
        'class Words : StringSpec({\n "opens" { f() }\n fun helpWords() { f() }\n})\n'
        "class Fun : io.kotest.core.spec.style.FunSpec() {\n val a = 1\n fun helpFun() {}\n}\n"
        "class Plan : ApiSpec() {\n val a = 1\n fun spec() {}\n}\n"
        "class Product {\n val a = 1\n @Inject fun test() {}\n fun testConnection() {}\n}",
        "Checks opens closes help More opensAll Words helpWords Fun helpFun",
    ),
    (
        "csharp",
        "class A { int n; [Fact] public void Opens() {} void Help() {} }\n"
        "class B { int n; [Theory, InlineData(1)] void Closes(int a) {} }\n"
        "class C { int n; [NUnit.Framework.Test] void Shuts() {} }\n"
        "class D { int n; [Obsolete] void Test() {} void TestConnection() {} }\n"
        "class E { int n; [SkippableFact] void Locks() {} }\nclass F { int n; [WpfTheory] void Rings() {} }\n"
        "class G { int n; [Latest] void Fastest() {} [Artifact, TestRole] void Build() {} }",
        "A Opens Help B Closes C Shuts E Locks F Rings",
    ),
    (
        "scala",
        "class A extends AnyFunSuite with B { def help() = 1 }\nclass C extends munit.FunSuite { def c() = 1 }\n"
        "class D extends Specification { def test() = 1 }",
        "A help C c",
    ),
    (
        "go",
        "func TestOpen(t *testing.T) { f() }\nfunc BenchmarkOpen(b *testing.B) {}\n"
        "func mustOpen(tb testing.TB, n int) {}\nfunc (s *Store) Check(t *testing.T) {}\n"
        "func TestConnection(c *Conn) {}\nfunc Testing() {}\nfunc (s *Store) TestIt(n int) {}",
        "TestOpen BenchmarkOpen mustOpen Check",
    ),
    (
        "python",
        "import unittest.mock\n\nclass Opening(unittest.TestCase):\n  port = 1\n  def opens(self): pass\n\n"
        "class Closing(IsolatedAsyncioTestCase):\n  port = 1\n\nclass TestShut:\n  port = 1\n  def help(self): pass\n\n"
        "def test_open(client): pass\n\n@mark.slow\ndef test_close(): pass\n\n"
        "class Product:\n  port = 1\n  def test_connection(self): pass\n\n"
        "def tester(): pass\n\nclass Testament:\n  port = 1\n",
        "Opening opens Closing TestShut help test_open test_close",
    ),
    ("python", "from pytest import raises\nA = 1\ndef test_open(): pass\ndef f(): pass", "test_open"),
    ("python", "import socket\ndef test_connection(host): pass\nclass TestServer:\n  def run(self): pass", ""),
    (
        "python",
        "class Case(django.test.TestCase):\n  def f(self): pass\nclass C(Testable):\n  def g(self): pass",
        "Case f",
    ),
    (
        "php",
        "<?php\nclass A extends \\PHPUnit\\Framework\\TestCase { public $a; function opens() {} }\n"
        "class B extends Base { public $a; #[Test] function closes() {} }\n"
        "class D extends Base { public $a; #[\\PHPUnit\\Attributes\\Test] function locks() {} }\n"
        "class C extends Base { public $a; /** @test */\n function shuts() {}\n"
        " /** Runs a test. */\n function test() {} }\nfunction test_connection() {}",
        "A opens B closes D locks shuts",
    ),
    (
        "ruby",
        "class A < Minitest::Test\n  B = 1\n  def opens; end\nend\n"
        "class C < ActiveSupport::TestCase\n  def shuts; end\nend\n"
        "class D < Tester\n  B = 1\n  def test; end\nend\ndef describe(x); end\ndef it; end",
        "A opens C shuts",
    ),
    (
        "ruby",
        "RSpec.describe Door do\n  def help; end\n  it 'opens' do\n    expect(door).to be_open\n  end\nend\n",
        "help file",
    ),
    (
        "swift",
        "final class A: XCTestCase { let a = 1; func testOpens() {} ; func help() {} }\n"
        "@Suite struct B { let a = 1; func shuts() {} }\n@Test func closes() {}\n"
        "struct C { let a = 1; @Test func locks() {} \n func helpLocks() {} }\n"
        "class D: Quick.QuickSpec { let a = 1; override class func spec() { describe() } }\n"
        "class E: BaseTestCase { let a = 1; func testRings() {} }\n"
        "struct P { let a = 1; @objc func test() {} ; func testConnection() {} }",
        "A testOpens help B shuts closes C locks helpLocks D spec E testRings",
    ),
    (
        "cpp",
        "TEST(Door, opens) { f(); }\nTYPED_TEST(Door, shuts) { f(); }\nint TEST_ALL(int n) { return n; }\n"
        "bool test_connection(int n) { return n; }",
        "Door.opens Door.shuts",
    ),
    (
        "cpp",
        'TEST_CASE("opens the door", "[door]") {\n  struct Fake { void f() { g(); } };\n  REQUIRE(f());\n}\n'
        'namespace a {\nSCENARIO("shuts") {\n  struct Own { void h() { g(); } };\n}\nint real() { return 1; }\n}\n'
        'TEST_CASE_METHOD(Door, "locks") { g(); }\n',
        "Fake f Own h a file",
    ),
    ("cpp", 'int a = 1;\nint TEST_ALL(int n) { RUN("all"); { struct P { void f() { g(); } }; } return n; }', ""),
    (
        "lua",
        "local a = 1\nlocal b = 2\nlocal function test(name) return name .. 'x' end\ndescribe('door', function()\n"
        "  local function help() return 1 end\n  it('opens', function() local function inner() f() end end)\nend)\n"
        "it('x')\nlocal c, d, e = test('a'), test('b'), test('c')\nreturn { opens = a, shuts = b, locks = c }",
        "help inner",
    ),
    ("elixir", 'defmodule A do\n  test "opens" do\n    f()\n  end\n  def test_it(x), do: x\nend', "opens"),
    ("zig", 'test "opens" { f(); }\nfn test_it() void { f(); }', "opens"),
]
for each in ("javascript", "typescript", "tsx"):
    CASES += [
        (
            each,
            "describe('door', () => {\n  const help = () => { f(); };\n  class Fake { g() {} }\n"
            "  it('opens', async () => { function inner() {} });\n});\n"
            "beforeEach(function named() {});\n",
            "help Fake g inner named file",
        ),
        (each, "test('a', function () { const b = () => 1; });\ndescribe.only(`x`, () => { class C {} });", "b C file"),
        (each, "Deno.test('a', () => { class D {} });", "D file"),
        (each, "test.describe('a', () => { class B {} });\nit.each([1])('x', () => { class C {} });", "B C file"),
        (
            each,
            "const a = 1, b = 2;\nfunction test(n, f) { return f(n); }\nrun(test(n, () => { const c = () => 1; }));\n"
            "pattern.test('x', () => { const d = () => 1; });\ntest.on('x', () => { const e = () => 1; });\n"
            "export function it() {}\nit('x');\n",
            "",
        ),
        (
            each,
            "export const add = (a, b) => a + b;\nexport const one = 1;\nexport const names = ['first', 'second'];\n"
            "if (import.meta.vitest) {\n  it('adds', () => { const c = () => 1; });\n}",
            "c",
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(("language", "code", "tests"), CASES)
def test_the_syntax_of_a_language_says_what_is_a_test(language: str, code: str, tests: str) -> None:
    documents = list(extract(code.encode(), language, path="file", outside=True))
    assert {document.name for document in documents if document.test} == set(tests.split())


@pytest.mark.parametrize(("language", "code", "tests"), CASES)
def test_many_tests_in_a_file_lose_neither_functions_nor_tests(language: str, code: str, tests: str) -> None:
    head = "<?php\n" if language == "php" else ""
    functions = list(extract(code.encode(), language))
    many = list(extract((head + (code.removeprefix(head) + "\n") * 60).encode(), language))
    assert len(many) == 60 * len(functions)
    assert sum(document.test for document in many) == 60 * sum(document.test for document in functions)
