/* The innermost loops of extraction in C: what is done with every byte of a file, and every name of a function.

   Names, tagged, cut, documents and marked do what NamesInPython, tagged_in_python (words.py), cut_in_python,
   documents_in_python (documents.py) and marked_in_python (layout.py) do: read those first, they say what comes in
   and goes out. Tests compare the two; where this was not compiled, extraction goes on without it. A spelling's list
   is found out once; after that it is found by its bytes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#define CALL 1 /* tags, as in words.py: a byte up to LAST_TAG ends a name and tells what it is */
#define LAST_TAG 6
#define SPACE 0x20
#define MANY 200000 /* spellings remembered before they are forgotten: memory stays flat */
#define ROOM 4096 /* places in a new table, a power of two; it grows before it is half full */
#define SHORT 20 /* bytes of a spelling that lie in the table itself: looking elsewhere costs a miss of the cache */

enum { CALLS, ENUMS, IDENTIFIERS, TYPES, PARAMETERS, OWN, NOWHERE, LISTS };
static const char *const FIELDS[] = {"calls", "enums", "identifiers", "types", "parameters"};
static PyObject *fields[OWN], *path_key, *name_key, *scope_key, *literals_key;
#define SLOTS 13
static const char *const SLOT_NAMES[SLOTS] = {"id",   "repository", "path",           "start_line", "end_line",
                                              "language", "kind",   "name",           "qualified_name", "words",
                                              "code", "digest",     "copies"};
static PyObject *slots[SLOTS];

typedef struct {
    PyObject *name; /* str; NULL where the place is free */
    char *rest;     /* of a spelling, the name and its tag, what is not in text */
    unsigned int hash;
    unsigned int length : 29, list : 3;
    char text[SHORT + 4];
} Entry;

typedef struct {
    PyObject *name; /* borrowed from the table */
    int list;
} Found;

typedef struct {
    PyObject_HEAD
    PyObject *place;   /* spelling -> (list, name) */
    PyObject *ignored; /* a set of str; NULL where place is asked about every spelling */
    Entry *table;
    size_t size;
    Py_ssize_t used;
    Found *found; /* of one range, in order */
    Py_ssize_t room;
} Names;

static void forget(Names *self) {
    for (size_t i = 0; i < self->size; i++) {
        Py_CLEAR(self->table[i].name);
        PyMem_Free(self->table[i].rest);
        self->table[i].rest = NULL;
    }
    self->used = 0;
}

static int grow(Names *self, size_t size) {
    Entry *table = PyMem_Calloc(size, sizeof(Entry));
    if (table == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < self->size; i++) {
        if (self->table[i].name != NULL) {
            size_t at = self->table[i].hash & (size - 1);
            while (table[at].name != NULL) {
                at = (at + 1) & (size - 1);
            }
            table[at] = self->table[i];
        }
    }
    PyMem_Free(self->table);
    self->table = table;
    self->size = size;
    return 0;
}

/* What place says of a spelling of ASCII; -1 with an error. */
static int list_of(const Names *self, const char *text, Py_ssize_t length, PyObject **name) {
    enum { TAG_OF_TYPE = 2, TAG_OF_PARAMETER, TAG_OF_ENUM, TAG_OF_OWN };
    const unsigned char tag = (unsigned char)text[length - 1], first = (unsigned char)text[0];
    length -= tag <= LAST_TAG;
    if ((*name = PyUnicode_FromStringAndSize(text, length)) == NULL) {
        return -1;
    }
    if (length == 0 || tag == TAG_OF_OWN || tag == TAG_OF_TYPE || tag == TAG_OF_ENUM) {
        return length == 0 ? NOWHERE : tag == TAG_OF_OWN ? OWN : tag == TAG_OF_TYPE ? TYPES : ENUMS;
    }
    const int ignored = PySet_Contains(self->ignored, *name);
    if (ignored != 0 || (length == 1 && first == '$') || (first >= '0' && first <= '9')) {
        return ignored < 0 ? -1 : NOWHERE;
    }
    if (tag == CALL || tag == TAG_OF_PARAMETER) {
        return tag == CALL ? CALLS : PARAMETERS;
    }
    int upper = 0, lower = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        upper += text[i] >= 'A' && text[i] <= 'Z';
        lower += text[i] >= 'a' && text[i] <= 'z';
    }
    if (first < 'A' || first > '_') {
        return IDENTIFIERS;
    }
    return upper > 0 && lower == 0 && length > 1 ? ENUMS : first == '_' ? IDENTIFIERS : TYPES;
}

/* The same, asked of Python where it goes beyond ASCII. */
static int ask(const Names *self, const char *text, Py_ssize_t length, PyObject **name) {
    Py_ssize_t ascii = 0;
    while (self->ignored != NULL && ascii < length && (unsigned char)text[ascii] < 128) {
        ascii++;
    }
    if (ascii == length) {
        return list_of(self, text, length, name);
    }
    PyObject *answer = PyObject_CallFunction(self->place, "y#", text, length);
    int list = -1;
    if (answer != NULL && PyArg_ParseTuple(answer, "iU", &list, name)) {
        Py_INCREF(*name);
        if (list < 0 || list >= LISTS) {
            PyErr_SetString(PyExc_ValueError, "there is no such list of names");
            list = -1;
        }
    }
    Py_XDECREF(answer);
    return list;
}

/* Find out which list a spelling belongs to, and remember it at a free place. */
static int learn(Names *self, Entry *entry, unsigned int hash, const char *text, Py_ssize_t length) {
    PyObject *name = NULL;
    char *rest = length > SHORT ? PyMem_Malloc(length - SHORT) : NULL;
    int list = -1;
    if (length <= SHORT || rest != NULL) {
        list = ask(self, text, length, &name);
    } else {
        PyErr_NoMemory();
    }
    if (list >= 0) {
        *entry = (Entry){.name = name, .rest = rest, .hash = hash, .length = length, .list = list};
        memcpy(entry->text, text, length > SHORT ? SHORT : length);
        if (rest != NULL) {
            memcpy(rest, text + SHORT, length - SHORT);
        }
        self->used++;
    } else {
        PyMem_Free(rest);
        Py_XDECREF(name);
    }
    return list < 0 ? -1 : 0;
}

static Entry *look_up(Names *self, unsigned int hash, const char *text, Py_ssize_t length) {
    if (2 * (size_t)self->used >= self->size && grow(self, 2 * self->size) < 0) {
        return NULL;
    }
    for (size_t at = hash & (self->size - 1);; at = (at + 1) & (self->size - 1)) {
        Entry *entry = &self->table[at];
        if (entry->name == NULL) {
            return learn(self, entry, hash, text, length) < 0 ? NULL : entry;
        }
        if (entry->hash == hash && entry->length == length &&
            memcmp(entry->text, text, length > SHORT ? SHORT : length) == 0 &&
            (length <= SHORT || memcmp(entry->rest, text + SHORT, length - SHORT) == 0)) {
            return entry;
        }
    }
}

/* Fill self->found with the names of a range; counts says how many belong to each list. */
static Py_ssize_t collect(Names *self, const char *at, const char *end, Py_ssize_t counts[LISTS]) {
    Py_ssize_t number = 0;
    while (at < end) {
        if (*at == SPACE) {
            at++;
            continue;
        }
        const char *start = at;
        uint64_t hash = 14695981039346656037u;
        unsigned char c;
        do {
            c = (unsigned char)*at++;
            hash = (hash ^ c) * 1099511628211u;
        } while (c > LAST_TAG && at < end && *at != SPACE);
        Entry *entry = look_up(self, (unsigned int)(hash ^ (hash >> 32)), start, at - start);
        if (entry == NULL) {
            return -1;
        }
        counts[entry->list]++;
        if (entry->list == NOWHERE) {
            continue;
        }
        if (number == self->room) {
            Py_ssize_t room = 2 * self->room;
            Found *found = PyMem_Resize(self->found, Found, room);
            if (found == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            self->found = found;
            self->room = room;
        }
        self->found[number++] = (Found){entry->name, entry->list};
    }
    return number;
}

/* The tuple of one list; names of functions inside this one, which come with OWN, end the identifiers. */
static PyObject *gather(const Names *self, Py_ssize_t number, int list, Py_ssize_t size) {
    PyObject *names = PyTuple_New(size);
    Py_ssize_t filled = 0, own = 0;
    if (names == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < number && filled < size; i++) {
        if (self->found[i].list == list) {
            PyTuple_SET_ITEM(names, filled++, Py_NewRef(self->found[i].name));
        }
    }
    for (Py_ssize_t i = 0; i < number && filled < size; i++) {
        if (self->found[i].list == OWN && own++ > 0) {
            PyTuple_SET_ITEM(names, filled++, Py_NewRef(self->found[i].name));
        }
    }
    return names;
}

static PyObject *names_call(Names *self, PyObject *args, PyObject *kwargs) {
    const char *code;
    Py_ssize_t length, start, end, counts[LISTS] = {0};
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "names take code, start and end by position");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "y#nn", &code, &length, &start, &end)) {
        return NULL;
    }
    if (start < 0 || end < start || end > length) {
        PyErr_SetString(PyExc_ValueError, "the range lies outside the code");
        return NULL;
    }
    if (self->used > MANY) {
        forget(self);
    }
    if (end < length && (unsigned char)code[end] <= LAST_TAG) {
        end++; /* the tag of a name that ends it */
    }
    Py_ssize_t number = collect(self, code + start, code + end, counts);
    PyObject *words = number < 0 ? NULL : PyDict_New();
    counts[IDENTIFIERS] += counts[OWN] > 0 ? counts[OWN] - 1 : 0;
    for (int list = CALLS; words != NULL && list < OWN; list++) {
        if (counts[list] == 0) {
            continue;
        }
        PyObject *names = gather(self, number, list, counts[list]);
        if (names == NULL || PyDict_SetItem(words, fields[list], names) < 0) {
            Py_CLEAR(words);
        }
        Py_XDECREF(names);
    }
    return words;
}

static PyObject *names_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *place, *ignored = NULL;
    static char *keywords[] = {"place", "ignored", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O!", keywords, &place, &PyFrozenSet_Type, &ignored)) {
        return NULL;
    }
    Names *self = (Names *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->place = Py_NewRef(place);
    self->ignored = Py_XNewRef(ignored);
    self->room = 1024;
    self->found = PyMem_New(Found, self->room);
    if (self->found == NULL || grow(self, ROOM) < 0) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void names_dealloc(Names *self) {
    if (self->table != NULL) {
        forget(self);
    }
    PyMem_Free(self->table);
    PyMem_Free(self->found);
    Py_XDECREF(self->place);
    Py_XDECREF(self->ignored);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject NamesType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ncs.extract._words.Names",
    .tp_doc = "Names(place, ignored)(code, start, end): the names in a range of tagged code by field; place, ignored: "
              "as in words.py; without ignored, place is asked about ASCII too.",
    .tp_basicsize = sizeof(Names),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = names_new,
    .tp_dealloc = (destructor)names_dealloc,
    .tp_call = (ternaryfunc)names_call,
};

/* Set the tag behind every range; where it ends with what is no letter, in place of its end. */
static int mark(char *names, Py_ssize_t length, unsigned char tag, PyObject *spans) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(spans); i++) {
        PyObject *span = PyList_GET_ITEM(spans, i);
        const bool is_span = PyTuple_Check(span) && PyTuple_GET_SIZE(span) == 2;
        const Py_ssize_t at = is_span ? PyLong_AsSsize_t(PyTuple_GET_ITEM(span, 1)) : -1;
        if (at < 1 || at > length) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "a range lies outside the code");
            }
            return -1;
        }
        names[names[at - 1] != SPACE ? at : at - 1] = (char)tag;
    }
    return 0;
}

static PyObject *tagged(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer code, letters;
    PyObject *marks, *spans, *result = NULL;
    unsigned char tag;
    if (!PyArg_ParseTuple(args, "y*y*O!", &code, &letters, &PyList_Type, &marks)) {
        return NULL;
    }
    if (letters.len == 256 && (result = PyBytes_FromStringAndSize(NULL, code.len + 1)) != NULL) {
        const unsigned char *from = code.buf, *letter = letters.buf;
        char *names = PyBytes_AS_STRING(result);
        const int calls = letter['('] == CALL;
        for (Py_ssize_t i = 0; i < code.len; i++) {
            names[i] = (char)letter[from[i]];
            if (calls && from[i] == '(' && i > 0 && from[i - 1] == SPACE) {
                names[i - 1] = CALL;
            }
        }
        names[code.len] = SPACE;
        for (Py_ssize_t i = 0; result != NULL && i < PyList_GET_SIZE(marks); i++) {
            if (!PyArg_ParseTuple(PyList_GET_ITEM(marks, i), "bO!", &tag, &PyList_Type, &spans) ||
                mark(names, code.len, tag, spans) < 0) {
                Py_CLEAR(result);
            }
        }
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "letters are 256 bytes");
    }
    PyBuffer_Release(&code);
    PyBuffer_Release(&letters);
    return result;
}

/* Copy source[start:end] with the indentation of its first line taken off the others; its lines are counted. */
static Py_ssize_t outdent(const char *source, Py_ssize_t start, Py_ssize_t end, char *to, Py_ssize_t *lines) {
    Py_ssize_t line = start, indent = 0, size = 0;
    while (line > 0 && (source[line - 1] == ' ' || (source[line - 1] >= '\t' && source[line - 1] <= '\r')) &&
           source[line - 1] != '\n') {
        line--;
    }
    if (line > 0 && source[line - 1] == '\n') {
        indent = start - line;
    }
    while (start < end) {
        const char *at = memchr(source + start, '\n', end - start);
        Py_ssize_t next = at == NULL ? end : at - source + 1;
        memcpy(to + size, source + start, next - start);
        size += next - start;
        start = next;
        *lines += at != NULL;
        if (at != NULL && indent > 0 && end - start >= indent && memcmp(source + start, source + line, indent) == 0) {
            start += indent;
        }
    }
    return size;
}

/* The code of a function without its indentation, its bytes of `without` but layout, and its line ends. */
static int cut_range(const Py_buffer *source, const Py_buffer *without, Py_ssize_t start, Py_ssize_t end,
                     PyObject **code, PyObject **squeezed, Py_ssize_t *lines) {
    if (start < 0 || end < start || end > source->len || end > without->len) {
        PyErr_SetString(PyExc_ValueError, "the range lies outside the code");
        return -1;
    }
    char *buffer = PyMem_Malloc(end - start + 1);
    if (buffer == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t size = outdent(source->buf, start, end, buffer, lines);
    const char *from = without->buf;
    *code = PyUnicode_DecodeUTF8(buffer, size, "replace");
    size = 0;
    for (Py_ssize_t i = start; i < end; i++) {
        buffer[size] = from[i];
        size += from[i] != ' ' && from[i] != '\0' && (from[i] < '\t' || from[i] > '\r');
    }
    *squeezed = *code == NULL ? NULL : PyBytes_FromStringAndSize(buffer, size);
    PyMem_Free(buffer);
    if (*squeezed == NULL) {
        Py_CLEAR(*code);
        return -1;
    }
    return 0;
}

static PyObject *cut(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer source, without;
    Py_ssize_t start, end, lines = 0;
    PyObject *code, *squeezed, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*nn", &source, &without, &start, &end)) {
        return NULL;
    }
    if (cut_range(&source, &without, start, end, &code, &squeezed, &lines) == 0) {
        result = Py_BuildValue("NNn", code, squeezed, lines);
    }
    PyBuffer_Release(&source);
    PyBuffer_Release(&without);
    return result;
}

/* What is the same for all documents of a file. */
typedef struct {
    PyTypeObject *type;
    PyObject *describe, *digest, *repository, *path, *language; /* describe: None where there are no comments */
    PyObject *path_words, *place, *dot, *null, *no_copies;
    Py_buffer source, without;
} File;

/* The digest of the squeezed code and what the literals say. */
static PyObject *digest_of(const File *file, PyObject *squeezed, PyObject *words) {
    PyObject *literals = PyDict_GetItemWithError(words, literals_key);
    Py_INCREF(squeezed);
    if (literals != NULL) {
        PyObject *text = PyUnicode_Join(file->null, literals);
        PyObject *said = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
        Py_XDECREF(text);
        if (said == NULL) {
            Py_DECREF(squeezed);
            return NULL;
        }
        PyBytes_ConcatAndDel(&squeezed, said);
    }
    PyObject *digest = squeezed == NULL ? NULL : PyObject_CallOneArg(file->digest, squeezed);
    Py_XDECREF(squeezed);
    return digest;
}

/* Add the words that every document has; describe adds those of its comments. */
static int add_words(const File *file, PyObject *words, PyObject *const *function, int initializer) {
    PyObject *start = function[0], *end = function[1], *name = function[3], *scope = function[4];
    if (PyDict_SetItem(words, path_key, file->path_words) < 0) {
        return -1;
    }
    if (!initializer) {
        PyObject *names = PyTuple_Pack(1, name);
        int failed = names == NULL || PyDict_SetItem(words, name_key, names) < 0;
        Py_XDECREF(names);
        if (failed) {
            return -1;
        }
    }
    if (PyTuple_GET_SIZE(scope) > 0 && PyDict_SetItem(words, scope_key, scope) < 0) {
        return -1;
    }
    if (file->describe != Py_None) {
        PyObject *none = PyObject_CallFunctionObjArgs(file->describe, start, end, function[6], words, NULL);
        Py_XDECREF(none);
        return none == NULL ? -1 : 0;
    }
    return 0;
}

static PyObject *qualified(const File *file, PyObject *scope, PyObject *name) {
    if (PyTuple_GET_SIZE(scope) == 0) {
        return Py_NewRef(name);
    }
    PyObject *outer = PyUnicode_Join(file->dot, scope);
    PyObject *whole = outer ? PyUnicode_FromFormat("%U.%U", outer, name) : NULL;
    Py_XDECREF(outer);
    return whole;
}

/* A new Document with these values, new references all, in the order of its slots; it is frozen for Python only. */
static PyObject *document_of(const File *file, PyObject *const values[SLOTS]) {
    PyObject *document = file->type->tp_alloc(file->type, 0);
    for (int i = 0; i < SLOTS; i++) {
        if (document != NULL && (values[i] == NULL || PyObject_GenericSetAttr(document, slots[i], values[i]) < 0)) {
            Py_CLEAR(document);
        }
        Py_XDECREF(values[i]);
    }
    return document;
}

/* Where the last function ended, and how the lines before the next one are counted on from there. */
typedef struct {
    Py_ssize_t line, at, before, twins, last_line, end;
} Lines;

static PyObject *next_document(const File *file, PyObject *const *function, Lines *lines) {
    const Py_ssize_t start = PyLong_AsSsize_t(function[0]), end = PyLong_AsSsize_t(function[1]);
    PyObject *kind = function[2], *name = function[3], *scope = function[4], *words = function[5];
    PyObject *code, *squeezed;
    Py_ssize_t within = 0;
    const char *source = file->source.buf;
    if (PyErr_Occurred() || cut_range(&file->source, &file->without, start, end, &code, &squeezed, &within) < 0) {
        return NULL;
    }
    if (start >= lines->end) { /* not in the function before: on from its end */
        lines->line = lines->last_line;
        lines->at = lines->end;
    }
    const char *at = source + (lines->at < start ? lines->at : start);
    for (; (at = memchr(at, '\n', source + start - at)) != NULL; at++) {
        lines->line++;
    }
    lines->at = start;
    lines->end = end;
    lines->last_line = lines->line + within;
    lines->twins = lines->line == lines->before ? lines->twins + 1 : 1;
    lines->before = lines->line;
    const int initializer = PyUnicode_CompareWithASCIIString(kind, "initializer") == 0;
    PyObject *digest = NULL;
    if (add_words(file, words, function, initializer) == 0) {
        digest = digest_of(file, squeezed, words);
    }
    Py_DECREF(squeezed);
    if (digest == NULL) {
        Py_DECREF(code);
        return NULL;
    }
    PyObject *id = lines->twins == 1 ? PyUnicode_FromFormat("%U%zd", file->place, lines->line)
                                     : PyUnicode_FromFormat("%U%zd.%zd", file->place, lines->line, lines->twins);
    const Py_ssize_t length = PyUnicode_GET_LENGTH(code);
    const Py_ssize_t last = lines->last_line - (length > 0 && PyUnicode_READ_CHAR(code, length - 1) == '\n');
    PyObject *const values[SLOTS] = {
        id, Py_NewRef(file->repository), Py_NewRef(file->path), PyLong_FromSsize_t(lines->line),
        PyLong_FromSsize_t(last), Py_NewRef(file->language), Py_NewRef(kind), Py_NewRef(name),
        qualified(file, scope, name), Py_NewRef(words), code, digest, Py_NewRef(file->no_copies)};
    return document_of(file, values);
}

static PyObject *documents(PyObject *Py_UNUSED(module), PyObject *args) {
    File file = {0};
    PyObject *functions, *result;
    if (!PyArg_ParseTuple(args, "O!O!OOUUUy*y*", &PyType_Type, &file.type, &PyList_Type, &functions, &file.describe,
                          &file.digest, &file.repository, &file.path, &file.language, &file.source, &file.without)) {
        return NULL;
    }
    file.path_words = PyTuple_Pack(1, file.path);
    file.place = PyUnicode_FromFormat("%U/%U:", file.repository, file.path);
    file.dot = PyUnicode_FromString(".");
    file.null = PyUnicode_FromStringAndSize("", 1);
    file.no_copies = PyTuple_New(0);
    result = PyErr_Occurred() ? NULL : PyList_New(0);
    Lines lines = {.line = 1, .before = -1, .twins = 1, .last_line = 1};
    for (Py_ssize_t i = 0; result != NULL && i < PyList_GET_SIZE(functions); i++) {
        PyObject *function = PyList_GET_ITEM(functions, i), *document = NULL;
        if (!PyTuple_Check(function) || PyTuple_GET_SIZE(function) != 7 ||
            !PyUnicode_Check(PyTuple_GET_ITEM(function, 2)) || !PyUnicode_Check(PyTuple_GET_ITEM(function, 3)) ||
            !PyTuple_Check(PyTuple_GET_ITEM(function, 4)) || !PyDict_Check(PyTuple_GET_ITEM(function, 5))) {
            PyErr_SetString(PyExc_TypeError, "this is no Function");
        } else {
            document = next_document(&file, &PyTuple_GET_ITEM(function, 0), &lines);
        }
        if (document == NULL || PyList_Append(result, document) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(document);
    }
    Py_XDECREF(file.path_words);
    Py_XDECREF(file.place);
    Py_XDECREF(file.dot);
    Py_XDECREF(file.null);
    Py_XDECREF(file.no_copies);
    PyBuffer_Release(&file.source);
    PyBuffer_Release(&file.without);
    return result;
}

/* Where a string of Python that starts at a quote ends; where it does not, the quote itself says nothing. */
static Py_ssize_t past_string(const char *code, Py_ssize_t length, Py_ssize_t at) {
    const char quote = code[at];
    if (at + 2 < length && code[at + 1] == quote && code[at + 2] == quote) {
        for (Py_ssize_t i = at + 3; i + 2 < length; i += code[i] == '\\' ? 2 : 1) {
            if (code[i] == quote && code[i + 1] == quote && code[i + 2] == quote) {
                return i + 3;
            }
        }
    }
    for (Py_ssize_t i = at + 1; i < length && code[i] != '\n'; i += code[i] == '\\' ? 2 : 1) {
        if (code[i] == quote) {
            return i + 1;
        }
    }
    return at + 1;
}

#define SAME 0x0E /* marks, as in layout.py */
#define DEEPER 0x0F
#define LESS 0x10
#define MOST 15

typedef struct {
    Py_ssize_t *columns; /* where the open blocks start */
    Py_ssize_t open, room;
} Blocks;

/* The mark of a line that starts at a column; 0 without memory. */
static char change(Blocks *blocks, Py_ssize_t column) {
    Py_ssize_t left = 0;
    while (blocks->open > 1 && blocks->columns[blocks->open - 1] > column) {
        blocks->open--;
        left++;
    }
    if (column > blocks->columns[blocks->open - 1]) {
        if (blocks->open == blocks->room) {
            Py_ssize_t *columns = PyMem_Resize(blocks->columns, Py_ssize_t, 2 * blocks->room);
            if (columns == NULL) {
                return 0;
            }
            blocks->columns = columns;
            blocks->room *= 2;
        }
        blocks->columns[blocks->open++] = column;
        return left == 0 ? DEEPER : LESS + MOST; /* between two levels: an error in the file */
    }
    return left > 0 ? (char)(LESS + (left < MOST ? left : MOST) - 1) : SAME;
}

/* How wide indentation is: up to its end or a NUL, where a comment was; tabs as bytes.expandtabs has them. */
static Py_ssize_t width(const char *indent, const char *end) {
    Py_ssize_t before = 0, column = 0;
    for (; indent < end && *indent != '\0'; indent++) {
        if (*indent == '\t') {
            column += 8 - column % 8;
        } else {
            column++;
            if (*indent == '\r') {
                before += column;
                column = 0;
            }
        }
    }
    return before + column;
}

/* Mark the line end before `next`, where the first thing after the line ends from `at` on starts; -1 without memory. */
static int mark_line(const char *code, char *marks, Py_ssize_t at, Py_ssize_t next, Blocks *blocks) {
    Py_ssize_t last = next - 1;
    while (last > at && code[last] != '\n') {
        last--;
    }
    marks[last] = change(blocks, width(code + last + 1, code + next));
    return marks[last] == 0 ? -1 : 0;
}

static PyObject *marked(PyObject *Py_UNUSED(module), PyObject *source) {
    const char *code = PyBytes_Check(source) ? PyBytes_AS_STRING(source) : NULL;
    Blocks blocks = {PyMem_New(Py_ssize_t, 64), 1, 64};
    PyObject *result = NULL;
    if (code == NULL) {
        PyErr_SetString(PyExc_TypeError, "code is bytes");
    } else if (blocks.columns == NULL) {
        PyErr_NoMemory();
    } else {
        result = PyBytes_FromStringAndSize(code, PyBytes_GET_SIZE(source));
    }
    const Py_ssize_t length = result == NULL ? 0 : PyBytes_GET_SIZE(source);
    char *marks = result == NULL ? NULL : PyBytes_AS_STRING(result);
    Py_ssize_t at = 0, brackets = 0;
    if (result != NULL) {
        blocks.columns[0] = 0;
    }
    while (at < length) {
        const char c = code[at];
        if (c == '"' || c == '\'') {
            at = past_string(code, length, at);
        } else if (c == '\n') {
            const Py_ssize_t start = at++;
            while (at < length && (code[at] == ' ' || code[at] == '\0' || (code[at] >= '\t' && code[at] <= '\r'))) {
                at++;
            }
            if (brackets == 0 && at < length && mark_line(code, marks, start, at, &blocks) < 0) {
                Py_CLEAR(result);
                PyErr_NoMemory();
                break;
            }
        } else {
            if (c == '\\' && at + 1 < length && code[at + 1] == '\n') {
                marks[at++] = '\0';
            } else if (c == '(' || c == '[' || c == '{') {
                brackets++;
            } else if (c == ')' || c == ']' || c == '}') {
                brackets -= brackets > 0;
            }
            at++;
        }
    }
    PyMem_Free(blocks.columns);
    return result;
}

static PyMethodDef functions[] = {
    {"tagged", tagged, METH_VARARGS, "tagged(code, letters, [(tag, ranges), ...]): names, spaces and tags."},
    {"cut", cut, METH_VARARGS, "cut(source, without, start, end): code without indentation, squeezed, line ends."},
    {"marked", marked, METH_O, "marked(code): line ends that end a statement say how the depth changes."},
    {"documents", documents, METH_VARARGS,
     "documents(Document, functions, describe, digest, repository, path, language, source, without)"},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_words", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__words(void) {
    for (int list = CALLS; list < OWN; list++) {
        if ((fields[list] = PyUnicode_InternFromString(FIELDS[list])) == NULL) {
            return NULL;
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        if ((slots[i] = PyUnicode_InternFromString(SLOT_NAMES[i])) == NULL) {
            return NULL;
        }
    }
    path_key = PyUnicode_InternFromString("path");
    name_key = PyUnicode_InternFromString("name");
    scope_key = PyUnicode_InternFromString("scope");
    literals_key = PyUnicode_InternFromString("literals");
    PyObject *self = PyErr_Occurred() || PyType_Ready(&NamesType) < 0 ? NULL : PyModule_Create(&module);
    if (self != NULL && PyModule_AddObjectRef(self, "Names", (PyObject *)&NamesType) < 0) {
        Py_CLEAR(self);
    }
    return self;
}
