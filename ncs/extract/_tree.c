/* What a query captures, read from a tree as tree-sitter left it in memory: one pass over its nodes, no object a node.

   patterns.py compiles the queries to the steps that are matched here; captures.py says when this may be used, and
   tests compare it with tree-sitter's own captures. A tree is read where it lies, so its layout is checked before: the
   version (captures.py), the language's counts (Reader) and what the root says of itself (begin). A step matches like
   tree-sitter's: children in order, not side by side unless anchored, an anchor skips what has no name. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* A grammar, as the code generated for it declares it: up to what is needed here. */
typedef struct {
    uint32_t abi, symbols, aliases, tokens, external_tokens, states, large_states, productions, fields;
    uint16_t longest_aliases; /* children of a production that may have aliases */
    const void *tables[4];
    const char *const *symbol_names, *const *field_names;
    const struct { uint16_t first, length; } *field_slices; /* by production */
    const struct { uint16_t field; uint8_t child; bool inherited; } *field_entries;
    const struct { bool visible, named, supertype; } *about;
    const uint16_t *public_symbols, *alias_map, *aliases_of; /* the last: a row a production */
} Grammar;

/* A node in memory: small leaves are a word, others a pointer, their children before them. */
typedef union {
    struct {
        uint8_t flags, symbol;
        uint16_t state;
        uint8_t padding_columns, rows, padding, size;
    } leaf;
    const struct Inner *inner;
    uint64_t word;
} Subtree;
typedef struct Inner {
    uint32_t references, padding, padding_point[2], size, size_point[2], lookahead, cost, children;
    uint16_t symbol, state, flags, unused;
    uint32_t visible_children, named_children, visible_descendants;
    int32_t precedence;
    uint16_t depth, production;
} Inner;
enum { LEAF = 1, LEAF_VISIBLE = 2, LEAF_NAMED = 4, LEAF_EXTRA = 8, VISIBLE = 1, NAMED = 2, EXTRA = 4 };
#define ERROR 0xFFFF /* the symbol of what does not parse */

typedef struct {
    uint32_t start, end, next; /* next: the number of what comes after its subtree */
    uint16_t symbol, field;
    bool named;
} Node;

/* A node whose children are being read. */
typedef struct {
    const Subtree *children;
    uint32_t count, at, place, position, node; /* place: among children that are no extras; node: NONE if hidden */
    uint16_t production, field;                /* field: of a hidden node, which is its children's */
} Frame;
#define NONE UINT32_MAX

enum { ANY_NAMED = -1, ANY = -2 }; /* symbols of a step */
enum { IMMEDIATE = 1, LAST = 2 };
#define DEEPEST 24
typedef struct {
    int symbol, field, without, flags, depth; /* without: a field that no child may have; 0 for none */
    int captures[2];                          /* numbers; -1 for none */
} Step;

enum { IS_ONE_OF, IS_NONE_OF, IS_FOUND, IS_NOT_FOUND };
typedef struct {
    int kind, step;   /* step: whose text is asked about */
    PyObject *values; /* a tuple of bytes, or what searches */
} Condition;

typedef struct {
    Step *steps;
    Condition *conditions;
    int size, conditional, next; /* next: the next pattern with the same root; -1 at the end */
} Pattern;

typedef struct {
    uint64_t *nodes; /* their numbers */
    size_t size, room;
} Captured;

typedef struct {
    PyObject_HEAD
    const Grammar *grammar;
    PyObject *capsule, *patterns_given, *names; /* names: of captures; those that start with an underscore are not told */
    Pattern *patterns;
    int size, captures;
    int *first; /* by symbol: the first pattern */
    Captured *captured;
    Node *nodes;
    size_t used, room;
    Frame *frames;
    size_t deep, frame_room;
    const char *source; /* of the tree at hand */
    Py_ssize_t length;
    bool busy; /* a condition may run Python, and that another thread */
} Reader;

static int grown(void **list, size_t used, size_t *room, size_t each) {
    if (used < *room) {
        return 0;
    }
    void *more = PyMem_Realloc(*list, 2 * *room * each);
    if (more == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *list = more;
    *room *= 2;
    return 0;
}

/* --- the tree made flat --- */

static int enter(Reader *self, const Inner *inner, uint32_t start, uint32_t node, uint16_t field) {
    if (grown((void **)&self->frames, self->deep, &self->frame_room, sizeof(Frame)) < 0) {
        return -1;
    }
    self->frames[self->deep++] = (Frame){
        .children = (const Subtree *)inner - inner->children, .count = inner->children, .position = start,
        .node = node, .production = inner->production, .field = field};
    return 0;
}

static uint16_t field_of(const Grammar *grammar, const Frame *frame) {
    if (grammar->fields > 0) {
        const uint16_t first = grammar->field_slices[frame->production].first;
        const uint16_t end = first + grammar->field_slices[frame->production].length;
        for (uint16_t i = first; i < end; i++) {
            if (grammar->field_entries[i].child == frame->place && !grammar->field_entries[i].inherited) {
                return grammar->field_entries[i].field;
            }
        }
    }
    return frame->field;
}

static int add(Reader *self, Node node) {
    if (grown((void **)&self->nodes, self->used, &self->room, sizeof(Node)) < 0) {
        return -1;
    }
    self->nodes[self->used++] = node;
    return 0;
}

/* Read the next child of the innermost frame. */
static int next_child(Reader *self) {
    Frame *frame = &self->frames[self->deep - 1];
    const Grammar *grammar = self->grammar;
    const Subtree child = frame->children[frame->at];
    const bool leaf = child.leaf.flags & LEAF;
    const uint16_t flags = leaf ? child.leaf.flags >> 1 : child.inner->flags;
    const uint32_t padding = leaf ? child.leaf.padding : child.inner->padding;
    const uint32_t start = frame->position + (frame->at > 0 ? padding : 0);
    const uint32_t end = start + (leaf ? child.leaf.size : child.inner->size);
    uint16_t alias = 0, field = 0;
    frame->position = end;
    frame->at++;
    if (!(flags & EXTRA)) {
        if (frame->production) {
            alias = grammar->aliases_of[frame->production * grammar->longest_aliases + frame->place];
        }
        field = field_of(grammar, frame);
        frame->place++;
    }
    const uint32_t inside = leaf ? 0 : child.inner->children;
    if (alias == 0 && !(flags & VISIBLE)) {
        return inside > 0 && child.inner->visible_children > 0 ? enter(self, child.inner, start, NONE, field) : 0;
    }
    uint16_t symbol = alias ? alias : leaf ? child.leaf.symbol : child.inner->symbol;
    const bool named = alias ? grammar->about[alias].named : (flags & NAMED) != 0;
    symbol = symbol == ERROR ? ERROR : grammar->public_symbols[symbol];
    const uint32_t number = (uint32_t)self->used;
    if (add(self, (Node){start, end, number + 1, symbol, field, named}) < 0) {
        return -1;
    }
    return inside > 0 ? enter(self, child.inner, start, number, 0) : 0;
}

static int flatten(Reader *self) {
    while (self->deep > 0) {
        Frame *frame = &self->frames[self->deep - 1];
        if (frame->at < frame->count) {
            if (next_child(self) < 0) {
                return -1;
            }
        } else {
            if (frame->node != NONE) {
                self->nodes[frame->node].next = (uint32_t)self->used;
            }
            self->deep--;
        }
    }
    return 0;
}

/* Read the root. 0 where memory does not hold what tree-sitter says of it: nothing else is read then. */
static int begin(Reader *self, const Subtree *at, uint32_t start, uint32_t end, uint32_t descendants) {
    const Inner *root = at->inner;
    self->used = self->deep = 0;
    if ((at->leaf.flags & LEAF) || root->padding != start || root->padding + root->size != end ||
        end > (size_t)self->length || root->children == 0 || root->visible_descendants + 1 != descendants ||
        (root->symbol != ERROR && root->symbol >= self->grammar->symbols + self->grammar->aliases)) {
        return 0;
    }
    const uint16_t symbol = root->symbol == ERROR ? ERROR : self->grammar->public_symbols[root->symbol];
    return add(self, (Node){start, end, 1, symbol, 0, true}) < 0 || enter(self, root, start, 0, 0) < 0 ? -1 : 1;
}

/* --- patterns --- */

static bool has_child(const Reader *self, uint32_t node, int field) {
    for (uint32_t i = node + 1; i < self->nodes[node].next; i = self->nodes[i].next) {
        if (self->nodes[i].field == field) {
            return true;
        }
    }
    return false;
}

static bool fits(const Reader *self, const Step *step, uint32_t number, uint32_t end) {
    const Node *node = &self->nodes[number];
    if (step->symbol >= 0 ? node->symbol != step->symbol
                          : node->symbol == ERROR || (step->symbol == ANY_NAMED && !node->named)) {
        return false;
    }
    if ((step->field && node->field != step->field) || (step->without && has_child(self, number, step->without))) {
        return false;
    }
    if (step->flags & LAST) {
        for (uint32_t i = node->next; i < end; i = self->nodes[i].next) {
            if (self->nodes[i].named) {
                return false;
            }
        }
    }
    return true;
}

/* 1 where a condition holds, 0 where it does not, -1 with an error. */
static int holds(const Reader *self, const Condition *condition, uint32_t number) {
    const Node *node = &self->nodes[number];
    const char *text = self->source + node->start;
    const Py_ssize_t size = node->end - node->start;
    if (condition->kind >= IS_FOUND) {
        PyObject *found = PyObject_CallFunction(condition->values, "y#", text, size);
        const bool is = found != NULL && found != Py_None;
        Py_XDECREF(found);
        return found == NULL ? -1 : is == (condition->kind == IS_FOUND);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(condition->values); i++) {
        PyObject *value = PyTuple_GET_ITEM(condition->values, i);
        if (PyBytes_GET_SIZE(value) == size && memcmp(PyBytes_AS_STRING(value), text, size) == 0) {
            return condition->kind == IS_ONE_OF;
        }
    }
    return condition->kind == IS_NONE_OF;
}

static int capture(Reader *self, const Pattern *pattern, const uint32_t *matched) {
    for (int i = 0; i < pattern->conditional; i++) {
        const int is = holds(self, &pattern->conditions[i], matched[pattern->conditions[i].step]);
        if (is != 1) {
            return is;
        }
    }
    for (int i = 0; i < pattern->size; i++) {
        for (int j = 0; j < 2 && pattern->steps[i].captures[j] >= 0; j++) {
            Captured *list = &self->captured[pattern->steps[i].captures[j]];
            if (list->room == 0) {
                list->room = 64;
                list->nodes = PyMem_New(uint64_t, list->room);
            }
            if (list->nodes == NULL || grown((void **)&list->nodes, list->size, &list->room, sizeof(uint64_t)) < 0) {
                PyErr_NoMemory();
                return -1;
            }
            list->nodes[list->size++] = matched[i];
        }
    }
    return 0;
}

/* Match a step, which fits a node, and all steps behind it, in every way. */
static int match(Reader *self, const Pattern *pattern, int at, uint32_t number, uint32_t *matched, uint32_t *path) {
    const Step *step = &pattern->steps[at], *next = step + 1;
    matched[at] = path[step->depth] = number;
    if (at + 1 == pattern->size) {
        return capture(self, pattern, matched);
    }
    const bool down = next->depth > step->depth;
    const bool beside = (next->flags & IMMEDIATE) && step->symbol == ANY;
    const uint32_t end = self->nodes[path[next->depth - 1]].next;
    for (uint32_t i = down ? number + 1 : self->nodes[path[next->depth]].next; i < end; i = self->nodes[i].next) {
        if (fits(self, next, i, end)) {
            const uint32_t before = path[next->depth];
            if (match(self, pattern, at + 1, i, matched, path) < 0) {
                return -1;
            }
            path[next->depth] = before;
        }
        if (beside || ((next->flags & IMMEDIATE) && self->nodes[i].named)) {
            break;
        }
    }
    return 0;
}

static int match_all(Reader *self) {
    uint32_t matched[DEEPEST], path[DEEPEST];
    for (uint32_t i = 0; i < self->used; i++) {
        if (self->nodes[i].symbol == ERROR || self->nodes[i].end == 0) {
            continue; /* what ends where the file starts lies before it, tree-sitter says */
        }
        for (int p = self->first[self->nodes[i].symbol]; p >= 0; p = self->patterns[p].next) {
            if (fits(self, self->patterns[p].steps, i, 0) &&
                match(self, &self->patterns[p], 0, i, matched, path) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* --- what Python sees --- */

static int by_value(const void *a, const void *b) {
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* Sort numbers, which mostly are, and drop those that are there twice. */
static size_t sorted_once(uint64_t *numbers, size_t size, bool keep_equal) {
    size_t kept = size > 0;
    bool sorted = true;
    for (size_t i = 1; i < size && sorted; i++) {
        sorted = numbers[i] > numbers[i - 1];
    }
    if (sorted) {
        return size;
    }
    qsort(numbers, size, sizeof(uint64_t), by_value);
    for (size_t i = 1; i < size; i++) {
        if (keep_equal || numbers[i] != numbers[i - 1]) {
            numbers[kept++] = numbers[i];
        }
    }
    return kept;
}

/* The sorted ranges of what was captured; a node captured by several patterns counts once. */
static PyObject *spans_of(const Reader *self, Captured *list) {
    list->size = sorted_once(list->nodes, list->size, false);
    for (size_t i = 0; i < list->size; i++) {
        const Node *node = &self->nodes[list->nodes[i]];
        list->nodes[i] = (uint64_t)node->start << 32 | node->end;
    }
    list->size = sorted_once(list->nodes, list->size, true);
    PyObject *spans = PyList_New((Py_ssize_t)list->size);
    for (size_t i = 0; spans != NULL && i < list->size; i++) {
        PyObject *span = PyTuple_New(2);
        PyObject *start = PyLong_FromUnsignedLong((uint32_t)(list->nodes[i] >> 32));
        PyObject *end = PyLong_FromUnsignedLong((uint32_t)list->nodes[i]);
        if (span == NULL || start == NULL || end == NULL) {
            Py_XDECREF(span);
            Py_XDECREF(start);
            Py_XDECREF(end);
            Py_CLEAR(spans);
        } else {
            PyTuple_SET_ITEM(span, 0, start);
            PyTuple_SET_ITEM(span, 1, end);
            PyList_SET_ITEM(spans, (Py_ssize_t)i, span);
        }
    }
    return spans;
}

static PyObject *result_of(Reader *self) {
    PyObject *found = PyDict_New();
    for (int i = 0; i < self->captures && found != NULL; i++) {
        if (self->captured[i].size > 0) {
            PyObject *spans = spans_of(self, &self->captured[i]);
            if (spans == NULL || PyDict_SetItem(found, PyTuple_GET_ITEM(self->names, i), spans) < 0) {
                Py_CLEAR(found);
            }
            Py_XDECREF(spans);
        }
    }
    return found;
}

static PyObject *reader_call(Reader *self, PyObject *args, PyObject *kwargs) {
    unsigned long long id;
    unsigned int start, end, descendants;
    const char *source;
    Py_ssize_t length;
    if ((kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) ||
        !PyArg_ParseTuple(args, "y#KIII", &source, &length, &id, &start, &end, &descendants)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a reader takes source, id, start, end and descendants by position");
        }
        return NULL;
    }
    if (self->busy) {
        Py_RETURN_NONE;
    }
    self->busy = true;
    self->source = source;
    self->length = length;
    for (int i = 0; i < self->captures; i++) {
        self->captured[i].size = 0;
    }
    const int begun = begin(self, (const Subtree *)(uintptr_t)id, start, end, descendants);
    PyObject *result = begun == 0 ? Py_NewRef(Py_None) : NULL;
    if (begun > 0 && flatten(self) == 0 && match_all(self) == 0) {
        result = result_of(self);
    }
    self->busy = false;
    return result;
}

/* (symbol, field, without, flags, depth, captures) -> step */
static int read_step(Step *step, PyObject *given, int captures) {
    PyObject *numbers;
    if (!PyArg_ParseTuple(given, "iiiiiO!", &step->symbol, &step->field, &step->without, &step->flags, &step->depth,
                          &PyTuple_Type, &numbers)) {
        return -1;
    }
    step->captures[0] = step->captures[1] = -1;
    const Py_ssize_t size = PyTuple_GET_SIZE(numbers);
    for (Py_ssize_t i = 0; i < size && i < 2; i++) {
        step->captures[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(numbers, i));
    }
    if (PyErr_Occurred() || size > 2 || step->captures[0] >= captures || step->captures[1] >= captures ||
        step->depth < 0 || step->depth >= DEEPEST) {
        PyErr_SetString(PyExc_ValueError, "a step of a pattern is out of bounds");
        return -1;
    }
    return 0;
}

static int read_condition(Condition *condition, PyObject *given, int steps) {
    PyObject *values;
    if (!PyArg_ParseTuple(given, "iiO", &condition->kind, &condition->step, &values)) {
        return -1;
    }
    bool ok = condition->step >= 0 && condition->step < steps;
    if (condition->kind < IS_FOUND) {
        ok = ok && PyTuple_Check(values);
        for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(values); i++) {
            ok = PyBytes_Check(PyTuple_GET_ITEM(values, i));
        }
    }
    if (!ok) {
        PyErr_SetString(PyExc_TypeError, "this is no condition of a pattern");
        return -1;
    }
    condition->values = Py_NewRef(values);
    return 0;
}

/* ((step, ...), (condition, ...)) -> pattern */
static int read_pattern(Reader *self, Pattern *pattern, PyObject *given) {
    PyObject *steps, *conditions;
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &steps, &PyTuple_Type, &conditions)) {
        return -1;
    }
    pattern->size = (int)PyTuple_GET_SIZE(steps);
    pattern->steps = PyMem_New(Step, pattern->size + 1);
    pattern->conditions = PyMem_New(Condition, PyTuple_GET_SIZE(conditions) + 1);
    if (pattern->steps == NULL || pattern->conditions == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < pattern->size; i++) {
        if (read_step(&pattern->steps[i], PyTuple_GET_ITEM(steps, i), self->captures) < 0) {
            return -1;
        }
        if ((i == 0) != (pattern->steps[i].depth == 0) ||
            (i > 0 && pattern->steps[i].depth > pattern->steps[i - 1].depth + 1)) {
            PyErr_SetString(PyExc_ValueError, "the steps of a pattern make no tree");
            return -1;
        }
    }
    if (pattern->size < 1 || pattern->size > DEEPEST || pattern->steps[0].symbol < 0 ||
        pattern->steps[0].symbol >= ERROR) {
        PyErr_SetString(PyExc_ValueError, "a pattern has a root with a symbol, and not too many steps");
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(conditions); i++) {
        if (read_condition(&pattern->conditions[i], PyTuple_GET_ITEM(conditions, i), pattern->size) < 0) {
            return -1;
        }
        pattern->conditional++;
    }
    pattern->next = self->first[pattern->steps[0].symbol];
    self->first[pattern->steps[0].symbol] = self->size;
    self->size++;
    return 0;
}

static int prepare(Reader *self, unsigned int symbols, unsigned int fields) {
    const Grammar *grammar = PyCapsule_GetPointer(self->capsule, "tree_sitter.Language");
    if (grammar == NULL) {
        return -1;
    }
    if (grammar->abi < 14 || grammar->abi > 15 || grammar->symbols + grammar->aliases < symbols ||
        grammar->symbols > symbols + grammar->aliases || grammar->fields != fields) {
        PyErr_SetString(PyExc_ValueError, "the grammar is not laid out as is known");
        return -1;
    }
    self->grammar = grammar;
    self->captures = (int)PyTuple_GET_SIZE(self->names);
    self->captured = PyMem_Calloc(self->captures + 1, sizeof(Captured));
    self->patterns = PyMem_Calloc(PyTuple_GET_SIZE(self->patterns_given) + 1, sizeof(Pattern));
    self->first = PyMem_New(int, ERROR);
    self->room = 4096;
    self->nodes = PyMem_New(Node, self->room);
    self->frame_room = 64;
    self->frames = PyMem_New(Frame, self->frame_room);
    if (!self->captured || !self->patterns || !self->first || !self->nodes || !self->frames) {
        PyErr_NoMemory();
        return -1;
    }
    memset(self->first, -1, ERROR * sizeof(int));
    for (Py_ssize_t i = PyTuple_GET_SIZE(self->patterns_given) - 1; i >= 0; i--) {
        if (read_pattern(self, &self->patterns[self->size], PyTuple_GET_ITEM(self->patterns_given, i)) < 0) {
            self->size++; /* so that what it holds is given back */
            return -1;
        }
    }
    return 0;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *capsule, *names, *patterns;
    unsigned int symbols, fields;
    if (!PyArg_ParseTuple(args, "OIIO!O!", &capsule, &symbols, &fields, &PyTuple_Type, &names, &PyTuple_Type,
                          &patterns)) {
        return NULL;
    }
    Reader *self = (Reader *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->capsule = Py_NewRef(capsule);
        self->names = Py_NewRef(names);
        self->patterns_given = Py_NewRef(patterns);
        if (prepare(self, symbols, fields) < 0) {
            Py_CLEAR(self);
        }
    }
    return (PyObject *)self;
}

static void reader_dealloc(Reader *self) {
    for (int i = 0; i < self->size; i++) {
        for (int j = 0; j < self->patterns[i].conditional; j++) {
            Py_XDECREF(self->patterns[i].conditions[j].values);
        }
        PyMem_Free(self->patterns[i].steps);
        PyMem_Free(self->patterns[i].conditions);
    }
    for (int i = 0; self->captured != NULL && i < self->captures; i++) {
        PyMem_Free(self->captured[i].nodes);
    }
    PyMem_Free(self->captured);
    PyMem_Free(self->patterns);
    PyMem_Free(self->first);
    PyMem_Free(self->nodes);
    PyMem_Free(self->frames);
    Py_XDECREF(self->capsule);
    Py_XDECREF(self->names);
    Py_XDECREF(self->patterns_given);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ncs.extract._tree.Reader",
    .tp_doc = "Reader(grammar, symbols, fields, captures, patterns)(source, id, start, end, descendants): capture -> "
              "sorted byte ranges; None where the tree does not lie in memory as is known.",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = reader_new,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_call = (ternaryfunc)reader_call,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_tree", .m_size = -1};

PyMODINIT_FUNC PyInit__tree(void) {
    PyObject *self = PyType_Ready(&ReaderType) < 0 ? NULL : PyModule_Create(&module);
    if (self != NULL && PyModule_AddObjectRef(self, "Reader", (PyObject *)&ReaderType) < 0) {
        Py_CLEAR(self);
    }
    return self;
}
