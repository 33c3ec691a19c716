/* The innermost loops of extraction in C: what is done with every byte of a file, and every name of a function.

   Names, tagged and cut do what NamesInPython, tagged_in_python (words.py) and cut_in_python (documents.py) do: read
   those first, they say what comes in and goes out. Tests compare the two; where this was not compiled, extraction
   goes on without it. A spelling's list is asked for once, in Python; after that it is found by its bytes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define CALL 1 /* tags, as in words.py: a byte up to LAST_TAG ends a name and tells what it is */
#define LAST_TAG 6
#define SPACE 0x20
#define MANY 200000 /* spellings remembered before they are forgotten: memory stays flat */
#define ROOM 524288 /* places in the table, a power of two, over twice as many */

enum { CALLS, ENUMS, IDENTIFIERS, TYPES, PARAMETERS, OWN, NOWHERE, LISTS };
static const char *const FIELDS[] = {"calls", "enums", "identifiers", "types", "parameters"};
static PyObject *fields[OWN], *end_byte;

typedef struct {
    uint64_t hash;
    PyObject *spelling; /* bytes: the name and its tag; NULL where the place is free */
    PyObject *name;     /* str */
    int list;
} Entry;

typedef struct {
    PyObject *name; /* borrowed from the table */
    int list;
} Found;

typedef struct {
    PyObject_HEAD
    PyObject *place; /* spelling -> (list, name) */
    Entry *table;
    Py_ssize_t used;
    Found *found; /* of one range, in order */
    Py_ssize_t room;
} Names;

static void forget(Names *self) {
    for (Py_ssize_t i = 0; self->used > 0 && i < ROOM; i++) {
        Entry *entry = &self->table[i];
        if (entry->spelling != NULL) {
            Py_CLEAR(entry->spelling);
            Py_CLEAR(entry->name);
            self->used--;
        }
    }
}

/* Ask Python which list a spelling belongs to, and remember it at a free place. */
static int learn(Names *self, Entry *entry, uint64_t hash, const char *text, Py_ssize_t length) {
    PyObject *spelling = PyBytes_FromStringAndSize(text, length);
    PyObject *answer = spelling ? PyObject_CallOneArg(self->place, spelling) : NULL;
    PyObject *name;
    int list;
    if (answer == NULL || !PyArg_ParseTuple(answer, "iU", &list, &name)) {
        Py_XDECREF(spelling);
        Py_XDECREF(answer);
        return -1;
    }
    if (list < 0 || list >= LISTS) {
        PyErr_SetString(PyExc_ValueError, "there is no such list of names");
        Py_DECREF(spelling);
        Py_DECREF(answer);
        return -1;
    }
    *entry = (Entry){hash, spelling, Py_NewRef(name), list};
    Py_DECREF(answer);
    self->used++;
    return 0;
}

static Entry *look_up(Names *self, uint64_t hash, const char *text, Py_ssize_t length) {
    for (size_t at = hash & (ROOM - 1);; at = (at + 1) & (ROOM - 1)) {
        Entry *entry = &self->table[at];
        if (entry->spelling == NULL) {
            return learn(self, entry, hash, text, length) < 0 ? NULL : entry;
        }
        if (entry->hash == hash && PyBytes_GET_SIZE(entry->spelling) == length &&
            memcmp(PyBytes_AS_STRING(entry->spelling), text, length) == 0) {
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
        Entry *entry = look_up(self, hash ^ (hash >> 29), start, at - start);
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
    PyObject *place;
    static char *keywords[] = {"place", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", keywords, &place)) {
        return NULL;
    }
    Names *self = (Names *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->place = Py_NewRef(place);
    self->room = 1024;
    self->found = PyMem_New(Found, self->room);
    self->table = PyMem_Calloc(ROOM, sizeof(Entry));
    if (self->found == NULL || self->table == NULL) {
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
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyTypeObject NamesType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ncs.extract._words.Names",
    .tp_doc = "Names(place)(code, start, end): the names in a range of tagged code by field; place: as Places.",
    .tp_basicsize = sizeof(Names),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = names_new,
    .tp_dealloc = (destructor)names_dealloc,
    .tp_call = (ternaryfunc)names_call,
};

/* Set the tag behind every node; where a node ends with what is no letter, in place of its end. */
static int mark(char *names, Py_ssize_t length, unsigned char tag, PyObject *nodes) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(nodes); i++) {
        PyObject *end = PyObject_GetAttr(PyList_GET_ITEM(nodes, i), end_byte);
        Py_ssize_t at = end ? PyLong_AsSsize_t(end) : -1;
        Py_XDECREF(end);
        if (at < 1 || at > length) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "a node lies outside the code");
            }
            return -1;
        }
        names[names[at - 1] != SPACE ? at : at - 1] = (char)tag;
    }
    return 0;
}

static PyObject *tagged(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer code, letters;
    PyObject *marks, *nodes, *result = NULL;
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
            if (!PyArg_ParseTuple(PyList_GET_ITEM(marks, i), "bO!", &tag, &PyList_Type, &nodes) ||
                mark(names, code.len, tag, nodes) < 0) {
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

static PyObject *cut(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer source, without;
    Py_ssize_t start, end, lines = 0;
    PyObject *code = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*nn", &source, &without, &start, &end)) {
        return NULL;
    }
    char *buffer = NULL;
    if (start < 0 || end < start || end > source.len || end > without.len) {
        PyErr_SetString(PyExc_ValueError, "the range lies outside the code");
    } else if ((buffer = PyMem_Malloc(end - start + 1)) == NULL) {
        PyErr_NoMemory();
    } else {
        Py_ssize_t size = outdent(source.buf, start, end, buffer, &lines);
        code = PyUnicode_DecodeUTF8(buffer, size, "replace");
        const char *from = without.buf;
        size = 0;
        for (Py_ssize_t i = start; i < end; i++) {
            buffer[size] = from[i];
            size += from[i] != ' ' && from[i] != '\0' && (from[i] < '\t' || from[i] > '\r');
        }
        result = code == NULL ? NULL : Py_BuildValue("Ny#n", code, buffer, size, lines);
    }
    PyMem_Free(buffer);
    PyBuffer_Release(&source);
    PyBuffer_Release(&without);
    return result;
}

static PyMethodDef functions[] = {
    {"tagged", tagged, METH_VARARGS, "tagged(code, letters, [(tag, nodes), ...]): names, spaces and tags."},
    {"cut", cut, METH_VARARGS, "cut(source, without, start, end): code without indentation, squeezed, line ends."},
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
    end_byte = PyUnicode_InternFromString("end_byte");
    PyObject *self = end_byte == NULL || PyType_Ready(&NamesType) < 0 ? NULL : PyModule_Create(&module);
    if (self != NULL && PyModule_AddObjectRef(self, "Names", (PyObject *)&NamesType) < 0) {
        Py_CLEAR(self);
    }
    return self;
}
