/* Stamps of many paths in C: look does what look_in_python (stamps.py) does, which says what comes in and goes out.

   Tests compare the two; where this was not compiled, updates go on without it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#ifdef __APPLE__
#define CONTENT st_mtimespec
#define ENTRY st_ctimespec
#else
#define CONTENT st_mtim
#define ENTRY st_ctim
#endif

static PyObject *look(PyObject *self, PyObject *args) {
    Py_buffer paths;
    int folders;
    if (!PyArg_ParseTuple(args, "y*p", &paths, &folders)) {
        return NULL;
    }
    const char *path = paths.buf, *end = path + paths.len;
    if (paths.len > 0 && end[-1] != 0) {
        PyBuffer_Release(&paths);
        PyErr_SetString(PyExc_ValueError, "the last path does not end");
        return NULL;
    }
    Py_ssize_t number = 0;
    for (const char *at = path; at < end; at += strlen(at) + 1) {
        number++;
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, number * 3 * (Py_ssize_t)sizeof(int64_t));
    if (found != NULL) {
        int64_t *stamp = (int64_t *)PyBytes_AS_STRING(found);
        Py_BEGIN_ALLOW_THREADS
        for (; path < end; path += strlen(path) + 1, stamp += 3) {
            struct stat status;
            if (folders ? stat(path, &status) : lstat(path, &status)) {
                stamp[0] = stamp[1] = stamp[2] = -1;
                continue;
            }
            stamp[0] = folders ? 0 : (int64_t)status.st_size;
            stamp[1] = (int64_t)status.CONTENT.tv_sec * 1000000000 + status.CONTENT.tv_nsec;
            stamp[2] = (int64_t)status.ENTRY.tv_sec * 1000000000 + status.ENTRY.tv_nsec;
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&paths);
    return found;
}

static PyMethodDef functions[] = {
    {"look", look, METH_VARARGS, "look(paths, folders) -> bytes: stamps.look_in_python in C."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_stamps", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__stamps(void) { return PyModule_Create(&module); }
