/* Documents in C: of each function its code without indentation, its digest and its place.

   cut and documents do what cut_in_python and documents_in_python (documents.py) do: read those first, they say what
   comes in and goes out. Tests compare the two; where this was not compiled, extraction goes on without it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *path_key, *name_key, *scope_key, *literals_key;
#define SLOTS 13
static const char *const SLOT_NAMES[SLOTS] = {"id",   "repository", "path",           "start_line", "end_line",
                                              "language", "kind",   "name",           "qualified_name", "words",
                                              "code", "digest",     "copies"};
static PyObject *slots[SLOTS];

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

static PyMethodDef functions[] = {
    {"cut", cut, METH_VARARGS, "cut(source, without, start, end): code without indentation, squeezed, line ends."},
    {"documents", documents, METH_VARARGS,
     "documents(Document, functions, describe, digest, repository, path, language, source, without)"},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_documents", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__documents(void) {
    for (int i = 0; i < SLOTS; i++) {
        if ((slots[i] = PyUnicode_InternFromString(SLOT_NAMES[i])) == NULL) {
            return NULL;
        }
    }
    path_key = PyUnicode_InternFromString("path");
    name_key = PyUnicode_InternFromString("name");
    scope_key = PyUnicode_InternFromString("scope");
    literals_key = PyUnicode_InternFromString("literals");
    return PyErr_Occurred() ? NULL : PyModule_Create(&module);
}
