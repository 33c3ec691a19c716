/* The layout of Python in C: marked does what marked_in_python (layout.py) does, which says what comes in and goes out.

   Tests compare the two; where this was not compiled, extraction goes on without it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

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
    {"marked", marked, METH_O, "marked(code): line ends that end a statement say how the depth changes."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_layout", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__layout(void) { return PyModule_Create(&module); }
