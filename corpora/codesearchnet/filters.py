"""Which functions are left out (Husain et al. 2019, section 2): by their name, their kind and their length."""

from __future__ import annotations

from collections.abc import Mapping

LEAST_TOKENS = 3
"""Of documentation; shorter comments say nothing."""
LEAST_LINES = 3
"""Of code, comments and empty lines not counted: shorter ones are getters, setters, not implemented."""
_KINDS = frozenset(("constructor", "initializer"))
_OPERATORS = "lt le eq ne gt ge add radd iadd sub rsub isub mul rmul imul matmul truediv rtruediv floordiv rfloordiv"
_PYTHON = (
    f"init new del call repr str bytes format hash bool len {_OPERATORS} mod rmod pow rpow lshift rshift and or xor"
    " rand ror rxor neg pos abs invert int float complex index round trunc floor ceil divmod iter next reversed"
    " contains getitem setitem delitem missing getattr setattr delattr getattribute dir get set delete set_name enter"
    " exit aenter aexit await aiter anext copy deepcopy reduce reduce_ex getstate setstate getnewargs sizeof"
    " init_subclass class_getitem instancecheck subclasscheck subclasshook post_init prepare fspath length_hint"
)
_ECMASCRIPT = "constructor toString toLocaleString valueOf toJSON"
_PHP = (
    "construct destruct call callStatic get set isset unset sleep wakeup serialize unserialize toString invoke"
    " set_state clone debugInfo"
)
STANDARD: Mapping[str, frozenset[str]] = {
    language: frozenset(names.split())
    for language, names in {
        "java": "toString hashCode equals compareTo clone finalize notify notifyAll wait getClass",
        "python": " ".join(f"__{name}__" for name in _PYTHON.split()),
        "go": "String GoString Error init Len Less Swap MarshalJSON UnmarshalJSON",
        "javascript": _ECMASCRIPT,
        "typescript": _ECMASCRIPT,
        "tsx": _ECMASCRIPT,
        "php": " ".join(f"__{name}" for name in _PHP.split()),
        "ruby": "initialize initialize_copy to_s to_str to_sym to_a to_h to_i to_f inspect hash == != === <=> < <= > >="
        " =~ eql? equal? coerce dup clone method_missing respond_to? respond_to_missing? display between?",
        "csharp": "ToString GetHashCode Equals CompareTo Dispose Finalize GetEnumerator Clone",
        "kotlin": "toString hashCode equals compareTo clone finalize component1 component2 component3",
        "scala": "toString hashCode equals canEqual compareTo clone finalize apply unapply",
        "swift": "init deinit hash encode == < description",
        "rust": "fmt clone clone_from default drop eq ne cmp partial_cmp hash from into try_from as_ref as_mut borrow"
        " deref deref_mut next index index_mut",
        "cpp": "main operator== operator!= operator< operator> operator<= operator>= operator<=> operator= operator<<"
        " operator>> operator[] operator() swap",
        "c": "main",
        "lua": "__index __newindex __call __tostring __eq __lt __le __len __concat",
        "elixir": "init child_spec start_link handle_call handle_cast handle_info terminate code_change __using__",
        "haskell": "show showsPrec compare == /= main",
        "zig": "format main init deinit",
    }.items()
}
"""language -> names that every class may have: operators, conversions, comparison, copying (our reading of "standard
extension methods"; the paper names `__str__` and `toString`)."""

TEST = "'test' in the name"
CONSTRUCTOR = "constructor"
METHOD = "standard method"
SHORT = "under 3 lines of code"
UNDOCUMENTED = "no documentation"
FEW_TOKENS = "under 3 tokens of documentation"


def unwanted(language: str, kind: str, name: str, qualified_name: str) -> str | None:
    """Why a function is left out by what it is called, None for one that stays; "test" may be in its class's name.

    >>> unwanted("java", "method", "toString", "A.toString"), unwanted("python", "function", "__str__", "A.__str__")
    ('standard method', 'standard method')
    >>> unwanted("java", "method", "setUp", "LoginTest.setUp"), unwanted("java", "constructor", "A", "A.A")
    ("'test' in the name", 'constructor')
    >>> unwanted("php", "method", "toString", "A.toString")
    """
    if "test" in qualified_name.lower():
        return TEST
    if kind in _KINDS or (name == "__init__" and language == "python"):
        return CONSTRUCTOR
    return METHOD if name in STANDARD.get(language, ()) else None


def lines_of(code: str) -> int:
    """Lines that hold code.

    >>> lines_of("int a() {\\n\\n  return 1;\\n}")
    3
    """
    return sum(bool(line.strip()) for line in code.split("\n"))
