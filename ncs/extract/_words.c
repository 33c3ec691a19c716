/* The names of functions in C: what is done with every byte of a file, and every name of a function.

   Names, tagged and blanked do what NamesInPython and tagged_in_python (words.py) and blanked_in_python (bytewise.py)
   do: read those first, they say what comes in and goes out. Tests compare the two; where this was not compiled,
   extraction goes on without it. A spelling's list is found out once; after that it is found by its bytes. */

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
static PyObject *fields[OWN];

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
        if (at == 0 && is_span) {
            continue; /* a name that is missing at the start */
        }
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

/* A copy with a byte in place of some ranges, as slices of Python have them. */
static PyObject *blanked(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer source;
    PyObject *spans, *result;
    char blank;
    if (!PyArg_ParseTuple(args, "y*O!c", &source, &PyList_Type, &spans, &blank)) {
        return NULL;
    }
    result = PyByteArray_FromStringAndSize(source.buf, source.len);
    for (Py_ssize_t i = 0; result != NULL && i < PyList_GET_SIZE(spans); i++) {
        Py_ssize_t start = -1, end = -1;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(spans, i), "nn", &start, &end)) {
            Py_CLEAR(result);
        } else if (start < 0 || end < start || end > source.len) {
            PyErr_SetString(PyExc_ValueError, "a range lies outside the source");
            Py_CLEAR(result);
        } else {
            memset(PyByteArray_AS_STRING(result) + start, blank, end - start);
        }
    }
    PyBuffer_Release(&source);
    return result;
}

static PyMethodDef functions[] = {
    {"tagged", tagged, METH_VARARGS, "tagged(code, letters, [(tag, ranges), ...]): names, spaces and tags."},
    {"blanked", blanked, METH_VARARGS, "blanked(source, ranges, blank): a copy with a byte in place of the ranges."},
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
    PyObject *self = PyType_Ready(&NamesType) < 0 ? NULL : PyModule_Create(&module);
    if (self != NULL && PyModule_AddObjectRef(self, "Names", (PyObject *)&NamesType) < 0) {
        Py_CLEAR(self);
    }
    return self;
}
