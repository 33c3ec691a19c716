"""Query analysis: the kind of a query, its words and symbols, and its expansion by other spellings.

The weight of a word, and other spellings of it, are computed from corpus counts:

    prose     a word counts PROSE + (1 - PROSE) * c, where c is the share of its documents that have it in code (names,
              calls, types, variables), not only in comments and literals
    joined    "lower case" also matches `lowercase`, if the corpus has that word
    split     "lowercasein" matches "lowercase in", if the corpus has only the parts
    similar   "intialize" matches "initialize", the nearest known word, also where somebody else mistyped it so
    short     "env" also matches "environment", and the other way round
    compound  "trim" also matches `sdstrim`, where no code has the word by itself, and "sds" is a word of the corpus

A word that the query repeats counts less each time: c times count c * (K3 + 1) / (c + K3), as in Okapi (Robertson et
al. 1994, TREC-3), since pasted code repeats names such as `i`.

Words in double quotes are a phrase, which ncs.search.phrases finds verbatim; all else is read without the quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal

from ncs.errors import BadInput
from ncs.messages import TOO_LONG
from ncs.storage.names import NAME_PATH, Symbol, query_symbols
from ncs.text.tokens import STOP_WORDS, content_words, tokenize

if TYPE_CHECKING:
    from ncs.storage.postings import Postings, Term

Kind = Literal["symbol", "how-to", "keywords", "code", "message"]

STOP_WORD_SHARE = 0.3
"""From this share of stop words on, a text with code in it is prose: prose has a third, code a tenth."""
MAX_NAME = 4
"""Most words of a name written as separate words: `indifferent hash`."""
MIN_MESSAGE, MAX_MESSAGE = 3, 300
"""Fewest words of a message, and the number of its first words that are compared with literals."""
SYMBOLS = 3
"""A query with more certain symbols than this does not ask for definitions."""
_CODE = re.compile(r"[;{}]|\)\s*\.|\w\(.*\)|[=!<>]=|->|=>|\breturn\b.+;|\w\s=\s\w|^[ \t]{2,}\S", re.MULTILINE)
_MESSAGE = re.compile(r""": |\w!|(?:error|exception)\b|(?<!\w)(["'`]).{2,200}?\1(?!\w)""", re.IGNORECASE)
"""Marks of messages of programs, rare in questions: a colon, an error's class, something quoted."""
_COMPLAINT = re.compile(
    r"\b(?:un(?:known|able|\w{2,20}ed)|in(?:valid|correct)|fail(?:s|ed|ure)?|cannot|can't|(?:could|do|does|is|may)"
    r"(?: not|n't)|not (?:allowed|available|found|implemented|supported)|no such|missing|illegal|malformed|corrupted"
    r"|bad|denied|refused|already|must|expected)\b",
    re.IGNORECASE,
)
"""Words of error messages; beside them a number, or a single word in quotes, is a value."""
_VALUE = re.compile(r"""(?<!\S)(?:(["'`])[^\s"'`]{1,100}\1|-?\d[\d.]*)(?=[.,:;!?)]*(?:\s|\Z))""")
_ERROR_REPORT = re.compile(
    r"\s*(?:[\w.:]{0,200}(?:error|exception|warning|fatal|panic)\w{0,40}: +\S"
    r"|terminate called|libc\+\+abi|uncaught|unhandled)",
    re.IGNORECASE,
)
"""The beginnings of error reports of programs and runtimes, whatever code they quote."""
_PHRASE = re.compile(r'(?<!\S)"([^"\n]{1,300})"(?=[?.,;:!]{0,3}(?:\s|\Z))')
PHRASES = 5
"""The number of first phrases of a query that are searched for."""
_WHERE = re.compile(r"\s*where (?:is|are|does)\b", re.IGNORECASE)
PROSE = 0.5
"""Weight of a word that is never in code; .3 and .7 are no better."""
K3 = 2.0
"""The best of 1, 2 and 8 over eleven sets of long queries."""
SPELLING = 0.5
"""Weight of another spelling, relative to the query's own words."""
MAX_QUERY = 32 << 10
"""Most characters of a query; a post of Stack Overflow has at most 30,000."""
MIN_PART, MIN_PART_DOCUMENTS = 3, 2
"""Minimum letters of each part of a split word, and minimum documents that have it."""
IN_CODE, COMPOUNDS, MAX_LONGER = 0.1, 8, 500
"""A word that less than this share of its documents have in code gets compounds, at most COMPOUNDS; a word inside more
than MAX_LONGER others is an ending, as "able", and gets none."""
ONE_EDIT, TWO_EDITS = 5, 8
"""Minimum letters of a word for one edit, and for two, to be a typo."""
MAX_RARE, TYPO_RATIO = 2, 200
"""A word of at most MAX_RARE documents that public code does not know is also a typo if a word of similar spelling has
TYPO_RATIO times as many documents."""
LOOKUPS = 5
"""Words per query whose similar spellings or compounds are looked up among all words: pasted text has hundreds."""
_THINGS, _VERBS, _LINKS, _OTHERS, _KINDS = (
    frozenset(words.split())
    for words in (
        "anything class classes code codebase function functions helper implementation implementations logic method"
        " methods part piece place routine snippet something spot utility",
        "determine explain find get give identify know let lets list locate looking open point searching see show tell"
        " understand",
        "are do does for how is lets me responsible that to us used we what where which who",
        "all already any anybody base core entry existing has have hello hey in job look main of ok out project"
        " relevant repo repository search somebody someone source thanks there whose",
        "async body class const constant constructor declaration declared decorator def define defined defines"
        " definition enum export field fn full fun func function implementation implemented in interface macro member"
        " method private property public signature static struct sub trait type variable void work works",
    )
)
_OF = {("implementation", "of"), ("logic", "of")}
_FRAME = STOP_WORDS | _THINGS | _VERBS | _LINKS | _OTHERS
"""What the beginning of a request consists of: `show me the part of the code base where we`; it ends with a link."""
_ENDING = re.compile(
    r"(?: implementation| logic| (?:anywhere )?(?:in|with) (?:the|this|our|my)"
    r" (?:code(?: ?base)?|project|repo|repository|library|framework|package|app)){1,2}\W*\Z",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
_ABOUT_NAMES = (_FRAME | _KINDS) - {"used"}
"""What a question says of a name that it asks for."""
_DEFINITION = re.compile(
    r"\s*(?:def|fn|func) |.*\b(?:definition|implementation) of |\s*where (?:is|are)\b.* defined\b", re.IGNORECASE
)
"""A question for a definition: a common word in it is a name, which none is in `class name` or `hash function`."""
_KIND_WORD = re.compile(
    r"^\s*(?:the )?(?:class|def|function|method) | (?:class|definition|function|implementation|method)\W*\Z",
    re.IGNORECASE,
)
_NOT_TESTS = re.compile(
    r"(?:[\s,;.(-]{1,4}(?:but )?(?:not|excluding|except)\b|[,;.(]\s?(?:exclude|ignore|no|skip|without)\b"
    r"| -(?:path:)?)"
    r"(?:[\s-]{1,2}(?:in|the|any|for)\b){0,3}[\s-]{0,2}(?:unit )?(?:tests?|mocks?|examples?)(?: (?:code|cases|files?))?"
    r"[\s).!/]{0,4}\Z",
    re.IGNORECASE,
)
_LOG_MESSAGE = re.compile(
    r"""(?=.*\Z)(?=.*\b(?:level|severity)"?[=:]).*?["\s](?:msg|message)"?[=:]\s?"((?:[^"\\]|\\.){3,300})\""""
)
"""The message in a line of a log in JSON or logfmt."""
NEVER_JOINED = frozenset({"in", "to", "from", "on", "of", "not", "is", "into"})
"""Words that are not joined to the next one: `in list` is not `inlist`."""


def _both_ways(pairs: str) -> dict[str, tuple[str, ...]]:
    forms: dict[str, tuple[str, ...]] = {}
    for pair in pairs.split(","):
        one, other = pair.split()
        forms[one], forms[other] = (*forms.get(one, ()), other), (*forms.get(other, ()), one)
    return forms


_SHORT_FORMS = """
addr address, arg argument, args arguments, async asynchronous, attr attribute, attrs attributes, auth authentication,
auth authorization, avg average, btn button, buf buffer, calc calculate, cfg config, cfg configuration, cmd command,
concat concatenate, cond condition, config configuration, conn connection, cred credential, creds credentials, ctor
constructor, ctx context, cur current, db database, decl declaration, del delete, deps dependencies, desc description,
desc descriptor, dest destination, dev development, dict dictionary, dir directory, dst destination, elem element, env
environment, err error, eval evaluate, exec execute, expr expression, fmt format, fn function, func function, gen
generate, hdr header, idx index, img image, impl implementation, info information, init initialize, iter iterator, lang
language, lib library, loc location, max maximum, mem memory, mgr manager, min minimum, msg message, num number, obj
object, opt option, param parameter, perm permission, pkg package, pos position, pred predicate, prev previous, proc
process, prop property, ptr pointer, pwd password, rand random, recv receive, ref reference, regex expression, repo
repository, req request, res response, resp response, ret return, sec second, sep separator, seq sequence, sig
signature, spec specification, src source, stmt statement, str string, sync synchronize, tbl table, temp temporary, tmp
temporary, util utility, var variable, ver version
"""
SHORT_FORMS: Mapping[str, tuple[str, ...]] = _both_ways(_SHORT_FORMS)
"""Word -> its other forms: `env`, `environment`."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of a query. words: to search for, in order; symbols: names whose definitions are searched; phrases:
    to be found verbatim."""

    kind: Kind
    words: tuple[str, ...]
    symbols: tuple[Symbol, ...]
    phrases: tuple[str, ...] = ()

    def corrected(self, corrections: Mapping[str, Sequence[str]]) -> Intent:
        """The intent with corrected words and the name that they may form; that of a symbol is unchanged."""
        if not corrections or self.kind == "symbol":
            return self
        words = tuple(new for word in self.words for new in corrections.get(word, (word,)))
        return replace(self, words=words, symbols=(*self.symbols, *_name_apart(self.kind, words)))


def _name_apart(kind: Kind, words: Sequence[str]) -> list[Symbol]:
    """The symbol that a few words of a query may spell apart; more than two seldom do so by chance."""
    apart = kind in ("keywords", "how-to") and 1 < len(words) <= MAX_NAME
    return [Symbol("".join(words), certain=len(words) > 2)] if apart else []


def check_length(text: str, what: str = "query", most: int = MAX_QUERY) -> None:
    """Raise BadInput for a text of more than `most` characters."""
    if len(text) > most:
        raise BadInput(TOO_LONG.format(what=what, length=len(text), most=most))


def read_intent(text: str, languages: Iterable[str] = ()) -> Intent:
    """The intent of a query. languages: names of languages to leave out of the words.

    >>> read_intent("how do I read a file in python", ["python"])
    Intent(kind='how-to', words=('read', 'file', 'in'), symbols=(), phrases=())
    >>> read_intent("View.setPadding").kind, read_intent("read json file").kind, read_intent("x = f(a); g(x);").kind
    ('symbol', 'keywords', 'code')
    >>> read_intent("ValueError: 40 is not in the range").kind, read_intent("what's in the user's range").kind
    ('message', 'how-to')
    >>> read_intent('unknown command "foo" for "app"').kind, read_intent('find "foo" in a file').kind
    ('message', 'how-to')
    >>> read_intent("Error: 40 is not in the range 1<=x<=16.").kind, read_intent("if (1 <= x) { x += 1; }").kind
    ('message', 'code')
    """
    quoted, text = text, _PHRASE.sub(r"\1", text)
    tokens = tokenize(text)
    content = content_words(tokens)
    words = [word for word in content if word not in set(languages)]
    symbols = query_symbols(text)
    kind = _kind(text, tokens, symbols)
    values = message_values(quoted)
    if kind in ("how-to", "keywords") and len(tokens) > MIN_MESSAGE and values and complains(text):
        kind = "message"
    if kind == "message" and len(set(content) - values) < 2:
        words = tokens  # `'x' is not one of 'a', 'b'` is all grammar and values
    symbols += _name_apart(kind, tokens)
    lines_of_code = kind == "code" and "\n" in text.strip()
    only_uses = lines_of_code or sum(symbol.certain for symbol in symbols) > SYMBOLS
    return Intent(kind, tuple(words or content), () if only_uses else tuple(symbols), _phrases(quoted, kind))


def without_request(text: str, languages: Iterable[str] = ()) -> str:
    """A question without words that only say that code is searched for; all of it if nothing else is left.

    >>> without_request("Please find the function that parses dates"), without_request("show me how to draw a line")
    ('parses dates', 'draw a line')
    >>> without_request("retry logic in this project"), without_request("find code blocks")
    ('retry', 'find code blocks')
    >>> without_request("python code to read a file", ["python"])
    'read a file'
    """
    end, last_end, last, is_request = 0, 0, "", False
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if (word not in _FRAME and word not in languages) or text[last_end : match.start()].strip(" ,:'\u2019\n"):
            break
        is_request |= word in _THINGS or word in ("me", "us")
        is_request |= last in _VERBS and word in ("for", "how", "what", "where", "which")
        is_request |= last in ("this", "our") and word in ("project", "repo", "repository")
        is_link = word in _LINKS or last in ("this", "our") or (last, word) in _OF
        if is_request and (is_link or (last and text.startswith(": ", match.end()))):
            end = match.end()
        last, last_end = word, match.end()
    rest = text[end:].lstrip(" :")
    rest = rest if ": " in rest else _ENDING.sub("", rest)  # a message is compared with literals as it stands
    return rest if set(tokenize(rest)) - STOP_WORDS else text


def without_filters(text: str) -> str:
    """A question without an end that says that tests are not meant, which rank behind other files anyway, and of a line
    of a log only its message.

    >>> without_filters("parse a date (not in tests)"), without_filters("run without tests")
    ('parse a date', 'run without tests')
    >>> without_filters('time=12:00 level=error msg="no such option" code=3')
    'no such option'
    """
    if message := _LOG_MESSAGE.match(text.strip()):
        return message[1].replace('\\"', '"')
    return _NOT_TESTS.sub("", text).strip() or text


def without_kind(text: str) -> str:
    """A name without the word for what it is.

    >>> without_kind("parse json function"), without_kind("the class HttpServer")
    ('parse json', 'HttpServer')
    """
    return _KIND_WORD.sub("", text)


def names_alone(text: str, languages: Iterable[str] = ()) -> list[str]:
    """The one or two names of a question that says nothing else than what they are; [] for other questions.

    >>> names_alone("where is the `read_file` function defined?"), names_alone("read_file of class Store")
    (['read_file'], ['read_file', 'Store'])
    >>> names_alone("function name"), names_alone("where is retry defined"), names_alone("bug in read_file")
    ([], ['retry'], ['bug', 'read_file'])
    """
    about = _ABOUT_NAMES.union(languages)
    names = [name for name in NAME_PATH.findall(text) if name.lower() not in about]
    if not 0 < len(names) <= 2 or " " not in text.strip() or re.search(r"[^\w\s.:#>/?'\"`()-]|\b\d", text):
        return []
    is_name = _DEFINITION.match(text) or query_symbols(text) or any(f"`{name}`" in text for name in names)
    return names if is_name else []


def complains(text: str) -> bool:
    """Whether a text has words of error messages.

    >>> complains("Unterminated object"), complains("read file")
    (True, False)
    """
    return _COMPLAINT.search(text) is not None


def message_values(text: str) -> frozenset[str]:
    """The words of numbers and of single words in quotes, which replace placeholders of a message.

    >>> sorted(message_values("'--shout' is not one of 2 flags, it's 3"))
    ['2', '3', 'shout']
    """
    return frozenset(word for match in _VALUE.finditer(text) for word in tokenize(match[0]))


def _phrases(text: str, kind: Kind) -> tuple[str, ...]:
    """The phrases of a query; not quotes in code beside other text, nor single words in a message (values)."""
    phrases = [" ".join(phrase.split()) for phrase in _PHRASE.findall(text)]
    if not _PHRASE.fullmatch(text.strip()) and kind in ("code", "message"):
        phrases = [phrase for phrase in phrases if kind == "message" and " " in phrase]
    return tuple(filter(None, phrases))[:PHRASES]


def asks_where(text: str) -> bool:
    """Whether a question asks for a place in the code.

    >>> asks_where("Where is the width computed"), asks_where("where do I put my settings")
    (True, False)
    """
    return _WHERE.match(text) is not None


def _kind(text: str, tokens: list[str], symbols: list[Symbol]) -> Kind:
    if len(text.split()) == 1 and any(symbol.certain for symbol in symbols):
        return "symbol"
    stop_words = sum(token in STOP_WORDS for token in tokens)
    is_error_report = _ERROR_REPORT.match(text) is not None
    if not is_error_report and len(_CODE.findall(text)) > 1 and stop_words < STOP_WORD_SHARE * len(tokens):
        return "code"
    if len(tokens) >= MIN_MESSAGE and (is_error_report or _MESSAGE.search(text)):
        return "message"
    return "how-to" if stop_words or len(tokens) > 5 else "keywords"


@dataclass(frozen=True, slots=True)
class Expansion:
    """Weights of stems: of the query itself, and of other spellings.

    terms: the words of the query, in order. words: the other spellings as words, in query order.
    corrections: unknown word of the query -> the words searched for instead.
    """

    terms: Sequence[Term]
    query: Mapping[str, float]
    other_spellings: Mapping[str, float] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, float]:
        """Weights of all stems."""
        return {**self.query, **self.other_spellings}


def saturate(count: int) -> float:
    """The weight of a word that a query has `count` times: 1 for once, K3 + 1 at most."""
    return count * (K3 + 1) / (count + K3)


def expand(
    words: Sequence[str],
    postings: Postings,
    vocabulary: Callable[[], list[str]],
    *,
    prose: float = PROSE,
    spelling: float = SPELLING,
    known: Callable[[str], bool] | None = None,
    unlike: Callable[[str, str], bool] | None = None,
    longer: Callable[[str], Iterable[str]] | None = None,
) -> Expansion:
    """The expansion of a query's words. vocabulary: all words of the corpus, called if a word is unknown. known:
    whether public code has a stem, which is then neither compound nor typo of another. unlike: whether public code has
    two stems for different things; neither is a typo of the other. longer: the words of the corpus that begin or end
    with a word. prose=1 weights all words equally, spelling=0 adds no words.
    """
    terms = postings.terms(words)
    counts = Counter(term.stem for term in terms if term.documents)
    query = {
        stem: saturate(count) * (prose + (1 - prose) * postings.share_in_code(stem)) for stem, count in counts.items()
    }
    if not spelling:
        return Expansion(terms, query)
    compounds = _compounds(terms, postings, known, longer, spelling) if known and longer else {}
    corrections = _corrections(terms, postings, vocabulary, known, unlike)
    corrected = {other: spelling for each in corrections.values() for other in each}
    joined = _joined_neighbors(terms, postings, spelling)
    others = {**compounds, **_short_forms(terms, postings, spelling), **joined, **corrected}
    new = {
        term.stem: (term.word, weight) for term, weight in others.items() if term.documents and term.stem not in query
    }
    return Expansion(
        terms,
        query,
        {stem: weight for stem, (_, weight) in new.items()},
        tuple(word for word, _ in new.values()),
        {word: tuple(term.word for term in others) for word, others in corrections.items()},
    )


def _short_forms(terms: Sequence[Term], postings: Postings, spelling: float) -> dict[Term, float]:
    """Abbreviations of the words, and their long forms, with weights of at most spelling / 2."""
    pairs = [(term, form) for term in terms for form in SHORT_FORMS.get(term.word, ())]
    others = postings.terms([form for _, form in pairs])
    idf = postings.idf_of
    return {
        other: spelling / 2 * min(1.0, idf(term.stem) / idf(other.stem))
        for other, (term, _) in zip(others, pairs, strict=True)
        if other.documents and idf(other.stem)
    }


def _joined_neighbors(terms: Sequence[Term], postings: Postings, spelling: float) -> dict[Term, float]:
    """Adjacent words written as one, with weights: one word counts for both."""
    pairs = [
        (one, other)
        for one, other in pairwise(terms)
        if one.word != other.word and min(len(one.word), len(other.word)) > 1 and one.word not in NEVER_JOINED
    ]
    joined = postings.terms([one.word + other.word for one, other in pairs])
    idf = postings.idf_of
    return {
        term: spelling * (idf(one.stem) + idf(other.stem)) / idf(term.stem)
        for term, (one, other) in zip(joined, pairs, strict=True)
        if term.documents and idf(term.stem)
    }


def _compounds(
    terms: Sequence[Term],
    postings: Postings,
    known: Callable[[str], bool],
    longer: Callable[[str], Iterable[str]],
    spelling: float,
) -> dict[Term, float]:
    """The most frequent compounds of a word of the query that code does not have by itself and another word of the
    corpus, with weights of at most `spelling`."""
    found: dict[Term, float] = {}
    in_no_code = dict.fromkeys(
        term
        for term in terms
        if len(term.word) >= MIN_PART and (not term.documents or postings.share_in_code(term.stem) < IN_CODE)
    )
    for term in islice(in_no_code, LOOKUPS):
        words = list(islice(longer(term.word), MAX_LONGER + 1))
        others = [
            other
            for other in postings.terms(words if len(words) <= MAX_LONGER else ())
            if other.documents and other.stem != term.stem and not known(other.stem)
            and postings.documents_with(_rest(other.word, term.word)) >= MIN_PART_DOCUMENTS
        ]  # fmt: skip
        for other in sorted(others, key=lambda other: (-other.documents, other.word))[:COMPOUNDS]:
            found[other] = spelling * min(1.0, postings.idf_of(term.stem) / max(postings.idf_of(other.stem), 1e-9))
    return found


def _rest(compound: str, part: str) -> str:
    """The rest of a compound without the part that it begins or ends with."""
    return compound.removeprefix(part) if compound.startswith(part) else compound.removesuffix(part)


def _corrections(
    terms: Sequence[Term],
    postings: Postings,
    vocabulary: Callable[[], list[str]],
    known: Callable[[str], bool] | None,
    unlike: Callable[[str, str], bool] | None,
) -> dict[str, list[Term]]:
    """The first LOOKUPS unknown words, then rare ones -> their likely corrections; words without one are left out."""
    unknown = [term for term in terms if not term.documents]
    typos = [term for term in terms if known and 0 < term.documents <= MAX_RARE and not known(term.stem)]
    first = list({term.word: term for term in (*unknown, *typos)}.values())[:LOOKUPS]
    similar = {
        term.word: (not term.documents and _split(term.word, postings))
        or [
            other
            for other in _nearest(term.word, postings, vocabulary, TYPO_RATIO * term.documents)
            if not (unlike and unlike(term.stem, other.stem))
        ]
        for term in first
    }
    return {word: others for word, others in similar.items() if others}


def _split(word: str, postings: Postings) -> list[Term]:
    """The split into two known words whose rarer part is most frequent; [] if there is none."""
    positions = range(MIN_PART, len(word) - MIN_PART + 1)
    parts = postings.terms([part for position in positions for part in (word[:position], word[position:])])
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    best = max(pairs, key=lambda pair: min(part.documents for part in pair), default=None)
    return list(best) if best and min(part.documents for part in best) >= MIN_PART_DOCUMENTS else []


def _nearest(word: str, postings: Postings, vocabulary: Callable[[], list[str]], fewest: int = 0) -> list[Term]:
    """The nearest known word, if any, of at least `fewest` documents."""
    meant = correct(word, vocabulary, postings.documents_with)
    return [term for term in postings.terms([meant] if meant else []) if term.documents >= max(1, fewest)]


def correct(word: str, vocabulary: Callable[[], list[str]], count: Callable[[str], int] | None = None) -> str:
    """The nearest word of the vocabulary with the same first letter that it may be a typing error of, or ""."""
    from rapidfuzz.distance import OSA

    from ncs.text.spelling import nearest_words

    if len(word) < ONE_EDIT:
        return ""
    edits = 2 if len(word) >= TWO_EDITS else 1
    similar = nearest_words(word, vocabulary(), count=count)
    return next((other for other in similar if other[0] == word[0] and OSA.distance(word, other) <= edits), "")
