/* Java without syntax errors read by its tokens: the comments, literals and names that java.scm captures.

   plain.py says what comes out. The parser has found no error, so brackets match and every token stands where one may
   stand. Most names need no tag, as their case tells what they are; what is told apart here is what that gets wrong:
   types written like constants or variables, parameters, and names beside a round bracket that are no calls. Whatever
   the tokens alone do not tell ends with `unsure`: the query reads that file. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { END, NAME, LITERAL, KEYWORD, ARROW, COLONS, DOTS, FIRST_SIGN = 32 }; /* from there on: the character itself */

/* Keywords by what follows them. */
enum {
    OTHER = 1, PRIMITIVE, CLASS, ENUM, HEIRS, INSTANCEOF, NEW, CATCH, BRACKET, CASE, DEFAULT, VALUE, BOUND, THIS
};
static const struct {
    const char *text;
    unsigned char group;
} KEYWORDS[] = {
    {"abstract", OTHER}, {"assert", OTHER}, {"break", OTHER}, {"const", OTHER}, {"continue", OTHER}, {"do", OTHER},
    {"else", OTHER}, {"final", OTHER}, {"finally", OTHER}, {"goto", OTHER}, {"import", OTHER}, {"native", OTHER},
    {"package", OTHER}, {"private", OTHER}, {"protected", OTHER}, {"public", OTHER}, {"return", OTHER},
    {"static", OTHER}, {"strictfp", OTHER}, {"throw", OTHER}, {"transient", OTHER}, {"volatile", OTHER},
    {"boolean", PRIMITIVE}, {"byte", PRIMITIVE}, {"char", PRIMITIVE}, {"double", PRIMITIVE}, {"float", PRIMITIVE},
    {"int", PRIMITIVE}, {"long", PRIMITIVE}, {"short", PRIMITIVE}, {"void", PRIMITIVE}, {"class", CLASS},
    {"interface", CLASS}, {"enum", ENUM}, {"extends", BOUND}, {"implements", HEIRS}, {"throws", HEIRS},
    {"instanceof", INSTANCEOF}, {"new", NEW}, {"catch", CATCH}, {"if", BRACKET}, {"while", BRACKET},
    {"for", BRACKET}, {"switch", BRACKET}, {"synchronized", BRACKET}, {"try", BRACKET}, {"case", CASE},
    {"default", DEFAULT}, {"true", VALUE}, {"false", VALUE}, {"null", VALUE}, {"this", THIS}, {"super", THIS},
};
#define PLACES 256
static unsigned char keyword_at[PLACES]; /* number + 1 by a hash of the word */

typedef struct {
    int start, end;
    unsigned char kind;  /* of token, or the character */
    unsigned char group; /* of keyword */
    unsigned char odd;   /* of a name: its case does not say that it is a type */
} Token;

/* What an open bracket is. */
enum { FILE_, MEMBERS, CONSTANTS, BLOCK, SQUARE, CALL, PARAMETERS, CREATION, CATCHES, GROUP, CONTROL };
typedef struct {
    int token;              /* the bracket, or where what it belongs to starts */
    unsigned char kind;
    unsigned char assigned; /* in members: behind `=` up to `;` */
    unsigned char heirs;    /* behind extends, implements, throws */
    unsigned char pending;  /* behind class, interface, enum: the group of that keyword */
    int keyword;            /* and that keyword */
    unsigned char of_case;  /* behind case, up to its colon */
    unsigned char deep;     /* an enumeration: its methods lie a level deeper */
} Open;

enum { TYPES, PARAMETER_NAMES, CALLS, NAMES, TAGS };
enum { COMMENTS, LITERALS, NOTHING, SPANS };

typedef struct {
    const char *code;
    int length;
    Token *tokens;
    int size, room;
    Open *open;
    int depth, depths;
    int creation;        /* the bracket of arguments that a `new` waits for */
    int creates;         /* and that `new` */
    int created, closed; /* the last such bracket that closed, and its `new` */
    long steps;          /* taken ahead: over all, not more than some for every token */
    int declared;        /* the last bracket of parameters that closed */
    PyObject *tags[TAGS], *spans[SPANS], *bodies;
} Reader;

enum { OK, UNSURE, FAILED };

static unsigned int hash_of(const char *text, int length) {
    unsigned int hash = (unsigned int)length;
    for (int i = 0; i < length; i++) {
        hash = hash * 31 + (unsigned char)text[i];
    }
    return hash ^ (hash >> 8);
}

static unsigned char keyword(const char *text, int length) {
    for (unsigned int at = hash_of(text, length) % PLACES; keyword_at[at] != 0; at = (at + 1) % PLACES) {
        const char *word = KEYWORDS[keyword_at[at] - 1].text;
        if (memcmp(word, text, length) == 0 && word[length] == '\0') {
            return KEYWORDS[keyword_at[at] - 1].group;
        }
    }
    return 0;
}

static int add_span(PyObject *list, int start, int end) {
    PyObject *span = Py_BuildValue("ii", start, end);
    const int failed = span == NULL || PyList_Append(list, span) < 0;
    Py_XDECREF(span);
    return failed ? FAILED : OK;
}

static int tag(Reader *self, int which, int token) {
    PyObject *end = PyLong_FromLong(self->tokens[token].end);
    const int failed = end == NULL || PyList_Append(self->tags[which], end) < 0;
    Py_XDECREF(end);
    return failed ? FAILED : OK;
}

static int add_token(Reader *self, int kind, int start, int end) {
    if (self->size + 2 >= self->room) {
        Token *tokens = PyMem_Resize(self->tokens, Token, 2 * (size_t)self->room);
        if (tokens == NULL) {
            PyErr_NoMemory();
            return FAILED;
        }
        self->tokens = tokens;
        self->room *= 2;
    }
    self->tokens[self->size++] = (Token){.start = start, .end = end, .kind = kind};
    return OK;
}

enum { SIGN, SPACE, LETTER, DIGIT, QUOTE, SLASH, STRANGE };
static unsigned char class_of[256];

#define IS_LOWER(c) ((c) >= 'a' && (c) <= 'z')
#define IS_UPPER(c) ((c) >= 'A' && (c) <= 'Z')
#define IS_DIGIT(c) ((c) >= '0' && (c) <= '9')

static int add_name(Reader *self, int start, int end) {
    const char *text = self->code + start;
    const int failed = add_token(self, NAME, start, end);
    if (failed != OK) {
        return failed;
    }
    Token *token = &self->tokens[self->size - 1];
    if (IS_LOWER(text[0])) {
        token->odd = 1;
        if (end - start <= 12 && (token->group = keyword(text, end - start)) != 0) {
            token->kind = KEYWORD;
        }
    } else if (!IS_UPPER(text[0])) {
        token->odd = 1;
    } else {
        token->odd = end - start > 1;
        for (int i = 1; i < end - start && token->odd; i++) {
            token->odd = !IS_LOWER(text[i]);
        }
    }
    return OK;
}

/* The end of a literal that starts at a quote; 0 where it is none that is known. */
static int past_literal(const Reader *self, int at) {
    const char *code = self->code, quote = code[at];
    const int text = quote == '"' && at + 2 < self->length && code[at + 1] == '"' && code[at + 2] == '"';
    for (int i = at + (text ? 3 : 1); i < self->length; i++) {
        if (code[i] == '\\') {
            i++;
            if (i < self->length && code[i] == '{') {
                return 0;
            }
        } else if (code[i] == '\n' && !text) {
            return 0;
        } else if (code[i] == quote && !text) {
            return i + 1;
        } else if (code[i] == quote && i + 2 < self->length && code[i + 1] == quote && code[i + 2] == quote) {
            return i + 3;
        }
    }
    return 0;
}

/* Where a comment that starts at a slash ends; 0 where none starts. */
static int past_comment(const Reader *self, int at) {
    const char *code = self->code, *end = code + self->length;
    if (at + 1 >= self->length || (code[at + 1] != '/' && code[at + 1] != '*')) {
        return 0;
    }
    if (code[at + 1] == '/') {
        const char *line = memchr(code + at, '\n', end - (code + at));
        return line == NULL ? self->length : (int)(line - code);
    }
    for (const char *star = code + at + 2; (star = memchr(star, '*', end - star)) != NULL; star++) {
        if (star + 1 < end && star[1] == '/') {
            return (int)(star + 2 - code);
        }
    }
    return 0;
}

static int sign(Reader *self, int at) {
    const char *code = self->code;
    const char next = at + 1 < self->length ? code[at + 1] : '\0';
    if (code[at] == '-' && next == '>') {
        return add_token(self, ARROW, at, at + 2);
    }
    if (code[at] == ':' && next == ':') {
        return add_token(self, COLONS, at, at + 2);
    }
    if (code[at] == '.' && next == '.') {
        return add_token(self, DOTS, at, at + 3);
    }
    if (code[at] == '!' && next == '=') {
        return add_token(self, '=', at, at + 2);
    }
    if (code[at] == next && (next == '&' || next == '|' || next == '<' || next == '+' || next == '-')) {
        return add_token(self, '=', at, at + 2); /* whatever can stand in no type */
    }
    return add_token(self, (unsigned char)code[at], at, at + 1);
}

static int past_letters(const Reader *self, int at) {
    while (at < self->length && (class_of[(unsigned char)self->code[at]] & ~1) == LETTER) {
        at++;
    }
    return at;
}

static int tokenise(Reader *self) {
    const char *code = self->code;
    int at = 0, state = add_token(self, END, 0, 0);
    while (at < self->length && state == OK) {
        const unsigned char c = (unsigned char)code[at];
        const int class = class_of[c];
        int end = at + 1;
        if (class == SPACE) {
            at++;
            continue;
        }
        if (class == LETTER) {
            end = past_letters(self, end);
            state = add_name(self, at, end);
        } else if (class == DIGIT || (c == '.' && end < self->length && IS_DIGIT(code[end]))) {
            do {
                end = past_letters(self, end + (code[end] == '.'));
            } while (end < self->length && code[end] == '.');
            state = add_token(self, LITERAL, at, end);
        } else if (class == QUOTE) {
            end = past_literal(self, at);
            if (end == 0) {
                return UNSURE;
            }
            state = add_token(self, LITERAL, at, end);
            if (state == OK) {
                state = add_span(self->spans[c == '"' ? LITERALS : NOTHING], at, end);
            }
        } else if (class == SLASH && (end = past_comment(self, at)) > 0) {
            state = add_span(self->spans[COMMENTS], at, end);
        } else if (class == STRANGE) {
            return UNSURE;
        } else {
            state = sign(self, at);
            end = self->tokens[self->size - 1].end;
        }
        at = end;
    }
    return state == OK ? add_token(self, END, self->length, self->length) : state;
}

#define KIND(i) (self->tokens[i].kind)
#define GROUP_OF(i) (KIND(i) == KEYWORD ? self->tokens[i].group : 0)

static int is(const Reader *self, int i, const char *word) {
    const Token *token = &self->tokens[i];
    return token->end - token->start == (int)strlen(word) &&
           memcmp(self->code + token->start, word, token->end - token->start) == 0;
}

/* The last name of a.b.c that starts here. */
static int chain_end(const Reader *self, int i) {
    while (KIND(i + 1) == '.' && KIND(i + 2) == NAME) {
        i += 2;
    }
    return i;
}

/* Behind the bracket that closes `<`, if nothing but types is between them; else 0. */
static int past_arguments(Reader *self, int i) {
    int depth = 0;
    for (;; i++) {
        self->steps++;
        const int kind = KIND(i), group = GROUP_OF(i);
        if (kind == '<') {
            depth++;
        } else if (kind == '>') {
            if (--depth == 0) {
                return i + 1;
            }
        } else if (kind != NAME && kind != '.' && kind != ',' && kind != '?' && kind != '&' && kind != '[' &&
                   kind != ']' && kind != '@' && group != PRIMITIVE && group != BOUND && group != THIS) {
            return 0;
        }
    }
}

static int tag_types(Reader *self, int from, int to) {
    for (int i = from; i < to; i++) {
        if (KIND(i) == '@') {
            return UNSURE;
        }
        if (KIND(i) == NAME && self->tokens[i].odd && tag(self, TYPES, i) != OK) {
            return FAILED;
        }
    }
    return OK;
}

/* Tag the names of parameters between two brackets. */
static int tag_parameters(Reader *self, int from, int to) {
    int angles = 0, brackets = 0;
    for (int i = from + 1; i < to; i++) {
        const int kind = KIND(i);
        int next = i + 1;
        angles += (kind == '<') - (kind == '>');
        brackets += (kind == '(' || kind == '{') - (kind == ')' || kind == '}');
        if (kind != NAME || angles > 0 || brackets > 0 || KIND(i - 1) == '@') {
            continue;
        }
        while (KIND(next) == '[' && KIND(next + 1) == ']') {
            next += 2;
        }
        if ((KIND(next) == ',' || next == to) && tag(self, PARAMETER_NAMES, i) != OK) {
            return FAILED;
        }
    }
    return OK;
}

static Open *top(const Reader *self) { return &self->open[self->depth - 1]; }

static int push(Reader *self, int kind, int token) {
    if (self->depth == self->depths) {
        Open *open = PyMem_Resize(self->open, Open, 2 * (size_t)self->depths);
        if (open == NULL) {
            PyErr_NoMemory();
            return FAILED;
        }
        self->open = open;
        self->depths *= 2;
    }
    self->open[self->depth++] = (Open){.token = token, .kind = kind};
    return OK;
}

/* What is read of `new`: its type; on to the bracket behind that. */
static int creation(Reader *self, int *i) {
    const int start = *i;
    int at = start + 1;
    if (top(self)->kind < BLOCK && !top(self)->assigned) {
        return UNSURE;
    }
    if (GROUP_OF(at) == PRIMITIVE) {
        return OK;
    }
    if (KIND(at) != NAME) {
        return UNSURE;
    }
    const int last = chain_end(self, at);
    int behind = last + 1;
    if (KIND(behind) == '<') {
        behind = past_arguments(self, behind);
        if (behind == 0 || KIND(behind) == '.') {
            return UNSURE;
        }
    }
    const int calls = KIND(behind) == '(';
    if (!calls && KIND(behind) != '[') {
        return UNSURE;
    }
    int state = tag_types(self, at, calls ? last : behind);
    if (state == OK && calls) {
        state = tag(self, CALLS, last);
        if (state == OK) {
            state = tag_types(self, last + 1, behind);
        }
        self->creation = behind;
        self->creates = start;
    }
    *i = behind - 1;
    return state;
}

static int annotation(Reader *self, int *i) {
    if (GROUP_OF(*i + 1) == CLASS) {
        return OK;
    }
    if (KIND(*i + 1) != NAME) {
        return UNSURE;
    }
    *i = chain_end(self, *i + 1);
    return KIND(*i + 1) == '(' ? tag(self, NAMES, *i) : OK;
}

/* Is a name behind which square brackets without a length stand a type? */
static int is_array_type(const Reader *self, int i) {
    while (KIND(i) == '[' && KIND(i + 1) == ']') {
        i += 2;
    }
    return KIND(i) == NAME || KIND(i) == COLONS || KIND(i) == DOTS || KIND(i) == '.' || KIND(i) == '@';
}

/* A name, or several with dots between them. */
static int chain(Reader *self, int *i) {
    const int first = *i, last = chain_end(self, first), next = KIND(last + 1), before = KIND(first - 1);
    *i = last;
    if (first == last && (next == NAME || next == KEYWORD || next == LITERAL) &&
        (is(self, first, "record") || is(self, first, "yield") || is(self, first, "sealed") ||
         is(self, first, "permits") || is(self, first, "non") || is(self, first, "when"))) {
        return UNSURE;
    }
    if (next == '@' || (next == KEYWORD && GROUP_OF(last + 1) != BOUND && GROUP_OF(last + 1) != HEIRS &&
                        GROUP_OF(last + 1) != INSTANCEOF)) {
        return UNSURE; /* the parser takes keywords for names where no keyword may stand */
    }
    if (top(self)->kind == CONSTANTS) {
        return tag(self, NAMES, first);
    }
    if (before == COLONS) {
        return tag(self, CALLS, first);
    }
    if (next == ARROW) {
        return first == last ? tag(self, PARAMETER_NAMES, first) : UNSURE;
    }
    if (next == COLONS && KIND(last + 2) == KEYWORD && first == last && before != '.') {
        return tag(self, CALLS, first);
    }
    if (next == '<') {
        const int behind = past_arguments(self, last + 1);
        if (behind > 0) {
            const int kind = KIND(behind);
            if (self->tokens[last].odd && !top(self)->heirs) {
                return kind == '>' || kind == LITERAL ? OK : UNSURE;
            }
            *i = behind - 1;
            return tag_types(self, first, behind);
        }
        return OK;
    }
    if (next == NAME || next == DOTS || top(self)->heirs || GROUP_OF(first - 1) == INSTANCEOF ||
        (GROUP_OF(first - 1) == OTHER && is(self, first - 1, "final") && GROUP_OF(first - 2) == INSTANCEOF) ||
        (next == '.' && GROUP_OF(last + 2) == CLASS) ||
        (next == '[' && KIND(last + 2) == ']' && is_array_type(self, last + 1))) {
        if (next == '(') {
            return UNSURE; /* a pattern of a record */
        }
        return tag_types(self, first, last + 1);
    }
    return OK;
}

static int starts_operand(const Reader *self, int i) {
    const int kind = KIND(i), group = GROUP_OF(i);
    return kind == NAME || kind == LITERAL || kind == '(' || kind == '!' || kind == '~' || group == VALUE ||
           group == THIS || group == NEW || group == PRIMITIVE || (group == BRACKET && is(self, i, "switch"));
}

static int open_round(Reader *self, int i) {
    const Open *in = top(self);
    const int group = GROUP_OF(i - 1);
    if (i == self->creation) {
        return push(self, CREATION, self->creates);
    }
    if (in->kind == FILE_ && KIND(i - 1) == NAME) {
        const int at = i - 1;
        int first = at;
        while (KIND(first - 1) == '.' && KIND(first - 2) == NAME) {
            first -= 2;
        }
        return KIND(first - 1) == '@' ? push(self, CALL, i) : UNSURE;
    }
    if (KIND(i - 1) == NAME) {
        int first = i - 1;
        while (KIND(first - 1) == '.' && KIND(first - 2) == NAME) {
            first -= 2;
        }
        const int declares = in->kind == MEMBERS && !in->assigned && KIND(first - 1) != '@';
        return in->of_case ? UNSURE : push(self, declares ? PARAMETERS : CALL, i);
    }
    if (group == CATCH) {
        return push(self, CATCHES, i);
    }
    if (group == BRACKET || group == THIS) {
        return push(self, CONTROL, i);
    }
    return push(self, GROUP, i);
}

static int close_round(Reader *self, int i) {
    const Open open = *top(self);
    self->depth--;
    if (open.kind == PARAMETERS) {
        self->declared = i;
        return tag_parameters(self, open.token, i);
    }
    if (open.kind == CREATION) {
        self->created = i;
        self->closed = open.token;
        return OK;
    }
    if (open.kind == CATCHES) {
        for (int at = open.token + 1; at + 1 < i; at++) {
            if (KIND(at) == '@') {
                return UNSURE;
            }
            if (KIND(at) == NAME && self->tokens[at].odd && tag(self, TYPES, at) != OK) {
                return FAILED;
            }
        }
        return OK;
    }
    if (KIND(i + 1) == ARROW) {
        return open.kind == GROUP ? tag_parameters(self, open.token, i) : UNSURE;
    }
    if (open.kind == GROUP && GROUP_OF(i + 1) == OTHER) {
        return UNSURE;
    }
    if (open.kind == GROUP && starts_operand(self, i + 1)) {
        return tag_types(self, open.token + 1, i);
    }
    if (open.kind == GROUP && (KIND(i + 1) == '-' || KIND(i + 1) == '+') && KIND(open.token + 1) == NAME &&
        chain_end(self, open.token + 1) == i - 1 && self->tokens[i - 1].odd) {
        return UNSURE; /* a cast of what has a sign, or a sum: the parser takes it for either */
    }
    return OK;
}

/* Which node holds this: from where its keyword, `new` or constant starts. */
static int open_curly(Reader *self, int i) {
    Open *in = top(self);
    if (in->pending) {
        const int kind = in->pending == ENUM ? CONSTANTS : MEMBERS, keyword = in->keyword;
        in->pending = in->heirs = 0;
        const int state = push(self, kind, keyword);
        top(self)->deep = kind == CONSTANTS;
        return state;
    }
    if (in->kind == CONSTANTS) {
        int at = i - 1;
        if (KIND(at) == ')') { /* back to its bracket */
            for (int depth = 0;; at--) {
                depth += (KIND(at) == ')') - (KIND(at) == '(');
                if (depth == 0) {
                    break;
                }
            }
            at--;
        }
        return KIND(at) == NAME ? push(self, MEMBERS, at) : UNSURE;
    }
    if (KIND(i - 1) == ')' && self->created == i - 1) {
        return push(self, MEMBERS, self->closed);
    }
    if (in->kind == FILE_) {
        return UNSURE;
    }
    in->heirs = 0;
    return push(self, BLOCK, i);
}

static int close_curly(Reader *self, int i) {
    const Open *in = top(self);
    int state = OK;
    if (in->kind == MEMBERS || in->kind == CONSTANTS) {
        PyObject *body = Py_BuildValue("iii", self->tokens[in->token].start, self->tokens[i].end, in->deep);
        state = body == NULL || PyList_Append(self->bodies, body) < 0 ? FAILED : OK;
        Py_XDECREF(body);
    }
    self->depth--;
    return state;
}

static int read_keyword(Reader *self, int *i) {
    Open *in = top(self);
    switch (self->tokens[*i].group) {
    case CLASS:
    case ENUM:
        if (KIND(*i - 1) != '.') {
            if ((in->kind != FILE_ && in->kind != MEMBERS && in->kind != BLOCK) || KIND(*i + 1) != NAME) {
                return UNSURE;
            }
            in->pending = self->tokens[*i].group;
            in->keyword = *i;
        }
        return OK;
    case BOUND:
    case HEIRS:
        in->heirs = 1;
        return in->pending || (in->kind == MEMBERS && !in->assigned) ? OK : UNSURE;
    case INSTANCEOF:
        return KIND(*i - 1) == ';' || KIND(*i - 1) == '{' || KIND(*i - 1) == '}' ? UNSURE : OK;
    case NEW:
        return KIND(*i - 1) == COLONS ? OK : creation(self, i);
    case CASE:
        in->of_case = 1;
        return in->kind == BLOCK ? OK : UNSURE;
    case DEFAULT:
        if (in->kind == MEMBERS && self->declared == *i - 1) {
            in->assigned = 1;
        }
        return in->kind == MEMBERS || KIND(*i + 1) == ':' ? OK : UNSURE;
    default:
        return OK;
    }
}

/* A `<` that is behind no name: type parameters, or arguments of a call. */
static int angle(Reader *self, int *i) {
    const int before = KIND(*i - 1), kind = top(self)->kind;
    if (before == '.' || before == COLONS ||
        ((kind == MEMBERS || kind == FILE_) && !top(self)->assigned &&
         (before == NAME || before == KEYWORD || before == ')' || before == ';' || before == '{' || before == '}'))) {
        const int behind = past_arguments(self, *i);
        if (behind == 0) {
            return UNSURE;
        }
        const int state = tag_types(self, *i, behind);
        if (state == OK && before == COLONS && KIND(behind) == NAME) {
            *i = behind;
            return tag(self, CALLS, behind);
        }
        *i = behind - 1;
        return state;
    }
    return OK;
}

static int read_tokens(Reader *self) {
    int state = push(self, FILE_, 0);
    for (int i = 1; KIND(i) != END && state == OK; i++) {
        Open *in = top(self);
        switch (KIND(i)) {
        case NAME: state = chain(self, &i); break;
        case KEYWORD: state = read_keyword(self, &i); break;
        case '@': state = annotation(self, &i); break;
        case '<': state = angle(self, &i); break;
        case '(': state = open_round(self, i); break;
        case ')': state = close_round(self, i); break;
        case '[': state = push(self, SQUARE, i); break;
        case ']': self->depth--; break;
        case '{': state = open_curly(self, i); break;
        case '}': state = close_curly(self, i); break;
        case ':': in->of_case = 0; break;
        case '=': in->assigned = 1; break;
        case ARROW: state = in->of_case ? UNSURE : OK; break;
        case ';':
            state = in->of_case ? UNSURE : OK;
            in->assigned = in->heirs = in->of_case = 0;
            if (in->kind == CONSTANTS) {
                in->kind = MEMBERS;
            }
            break;
        }
        if (self->depth < 1 || self->steps > 20L * self->size) {
            return UNSURE;
        }
    }
    return state;
}

static PyObject *result_of(const Reader *self) {
    static const char *const NAMES_OF[] = {"types", "parameters", "calls", "names", "comments", "literals", "nothing"};
    PyObject *found = PyDict_New();
    for (int i = 0; i < TAGS + SPANS && found != NULL; i++) {
        PyObject *list = i < TAGS ? self->tags[i] : self->spans[i - TAGS];
        if (PyList_GET_SIZE(list) > 0 && PyDict_SetItemString(found, NAMES_OF[i], list) < 0) {
            Py_CLEAR(found);
        }
    }
    return found == NULL ? NULL : Py_BuildValue("NO", found, self->bodies);
}

static PyObject *tokens(PyObject *Py_UNUSED(module), PyObject *source) {
    if (!PyBytes_Check(source) || PyBytes_GET_SIZE(source) > INT_MAX / 2) {
        PyErr_SetString(PyExc_TypeError, "the source is bytes, less than 1 GB");
        return NULL;
    }
    Reader self = {.code = PyBytes_AS_STRING(source), .length = (int)PyBytes_GET_SIZE(source), .creation = -1,
                   .created = -1, .declared = -1, .room = 4096, .depths = 64};
    self.tokens = PyMem_New(Token, self.room);
    self.open = PyMem_New(Open, self.depths);
    self.bodies = PyList_New(0);
    for (int i = 0; i < TAGS + SPANS; i++) {
        *(i < TAGS ? &self.tags[i] : &self.spans[i - TAGS]) = PyList_New(0);
    }
    if (self.tokens == NULL || self.open == NULL) {
        PyErr_NoMemory();
    }
    PyObject *result = NULL;
    int state = PyErr_Occurred() ? FAILED : tokenise(&self);
    if (state == OK) {
        state = read_tokens(&self);
    }
    if (state != FAILED) {
        result = state == OK ? result_of(&self) : Py_NewRef(Py_None);
    }
    PyMem_Free(self.tokens);
    PyMem_Free(self.open);
    Py_XDECREF(self.bodies);
    for (int i = 0; i < TAGS + SPANS; i++) {
        Py_XDECREF(i < TAGS ? self.tags[i] : self.spans[i - TAGS]);
    }
    return result;
}

static PyMethodDef functions[] = {
    {"tokens", tokens, METH_O, "tokens(source): ({capture: ends or ranges}, ranges of bodies); None where unsure."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_java", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__java(void) {
    memset(keyword_at, 0, sizeof keyword_at);
    for (unsigned int i = 0; i < sizeof KEYWORDS / sizeof KEYWORDS[0]; i++) {
        unsigned int at = hash_of(KEYWORDS[i].text, (int)strlen(KEYWORDS[i].text)) % PLACES;
        while (keyword_at[at] != 0) {
            at = (at + 1) % PLACES;
        }
        keyword_at[at] = (unsigned char)(i + 1);
    }
    for (int c = 0; c < 256; c++) {
        class_of[c] = IS_LOWER(c) || IS_UPPER(c) || c == '_' || c == '$' ? LETTER
                      : IS_DIGIT(c)                                     ? DIGIT
                      : c == ' ' || (c >= '\t' && c <= '\r')            ? SPACE
                      : c == '"' || c == '\''                           ? QUOTE
                      : c == '/'                                        ? SLASH
                      : c < ' ' || c > '~' || c == '\\' || c == '#' || c == '`' ? STRANGE
                                                                        : SIGN;
    }
    return PyModule_Create(&module);
}
