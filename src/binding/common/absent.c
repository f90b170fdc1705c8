/* Names that a class of the library whose face we are has, and ours does not have yet.
 *
 * Each stands in the class's dict as a descriptor that raises: an AttributeError which says "not in simt yet"
 * and names the nearest that is there. So it costs nothing where names are found, hasattr() is False, a
 * subclass or an object may have the name, and an object's dir() leaves it out. The names come from
 * absent.def, which tools/gen_absent.py writes; what ours has by the time of the call is left alone.
 */
#include "binding/common/binding.h"

#include <string.h>

static const struct {
    const char *class, *names; /* "torch.Tensor", "abs acos ..." */
} table[] = {
#define CLASS(class, names) {class, names},
#include "binding/common/absent.def"
#undef CLASS
};

typedef struct absent {
    PyObject_HEAD PyObject *name;
} absent;
static PyTypeObject absent_type;

static void destroy(PyObject *self) {
    Py_DECREF(((absent *)self)->name);
    PyObject_Free(self);
}

static PyObject *raise_absent(PyObject *self, PyObject *of, PyObject *type) {
    PyObject *module = PyImport_ImportModule("simt._missing");
    PyObject *error = NULL;
    if (module)
        error = PyObject_CallMethod(module, "absent", "OOO",
                                    type && type != Py_None ? type : (PyObject *)Py_TYPE(of),
                                    ((absent *)self)->name, of ? Py_False : Py_True);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(module);
    Py_XDECREF(error);
    return NULL;
}

static PyObject *repr(PyObject *self) {
    return PyUnicode_FromFormat("<%U: not in simt yet>", ((absent *)self)->name);
}

static PyTypeObject absent_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "simt.absent",
    .tp_basicsize = sizeof(absent),
    .tp_dealloc = destroy,
    .tp_repr = repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_descr_get = raise_absent,
};

/* What the type or a base has under the name; borrowed, NULL: nothing (or an exception is set). */
static PyObject *find(PyTypeObject *type, PyObject *name) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = ((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_dict;
        PyObject *found = dict ? PyDict_GetItemWithError(dict, name) : NULL;
        if (found || PyErr_Occurred()) return found;
    }
    return NULL;
}

static bool is_absent(PyTypeObject *type, PyObject *name) {
    PyObject *found = find(type, name);
    return found && Py_IS_TYPE(found, &absent_type);
}

/* The names that are not absent, of a list. */
static PyObject *present(PyTypeObject *type, PyObject *names) {
    PyObject *out = PyList_New(0);
    for (Py_ssize_t i = 0; out && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        bool not_there = is_absent(type, name);
        if (PyErr_Occurred() || (!not_there && PyList_Append(out, name) < 0)) Py_CLEAR(out);
    }
    return out;
}

/* An object's own attributes that are not in the list yet, added to it. */
static bool add_own(PyObject *self, PyObject *out) {
    PyObject *own;
    if (binding_attribute(self, "__dict__", &own) < 0) return false;
    PyObject *names = own && PyDict_Check(own) ? PyDict_Keys(own) : PyList_New(0);
    bool ok = names != NULL;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        int there = PySequence_Contains(out, name);
        ok = there > 0 || (there == 0 && PyList_Append(out, name) == 0);
    }
    Py_XDECREF(names);
    Py_XDECREF(own);
    return ok;
}

/* __dir__ of an object: object's, without them; its own attributes stay. */
static PyObject *dir_of(PyObject *self, PyObject *unused) {
    PyObject *all = PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "(O)", self);
    if (!all || !PyList_Check(all)) return all;
    PyObject *out = present(Py_TYPE(self), all);
    Py_DECREF(all);
    if (out && !add_own(self, out)) Py_CLEAR(out);
    return out;
}
static PyMethodDef dir_method = {"__dir__", dir_of, METH_NOARGS, NULL};

/* A class that has object's __dir__ gets this one. */
static bool add_dir(PyTypeObject *type) {
    PyObject *name = PyUnicode_InternFromString("__dir__");
    if (!name) return false;
    PyObject *found = find(type, name);
    bool ok = !PyErr_Occurred();
    if (ok && found == find(&PyBaseObject_Type, name)) {
        PyObject *method = PyDescr_NewMethod(type, &dir_method);
        ok = method && PyDict_SetItem(type->tp_dict, name, method) == 0;
        Py_XDECREF(method);
    }
    Py_DECREF(name);
    return ok;
}

static bool add(PyTypeObject *type, const char *text, size_t n) {
    PyObject *name = PyUnicode_FromStringAndSize(text, (Py_ssize_t)n);
    if (!name) return false;
    PyUnicode_InternInPlace(&name);
    bool there = find(type, name) != NULL, ok = !PyErr_Occurred();
    absent *made = ok && !there ? PyObject_New(absent, &absent_type) : NULL;
    if (made) {
        made->name = Py_NewRef(name);
        ok = PyDict_SetItem(type->tp_dict, name, (PyObject *)made) == 0;
        Py_DECREF(made);
    }
    Py_DECREF(name);
    return ok && !PyErr_Occurred();
}

/* _absent(class, "torch.Tensor") */
static PyObject *mark(PyObject *module, PyObject *args) {
    PyTypeObject *type;
    const char *of;
    if (!PyArg_ParseTuple(args, "O!s:_absent", &PyType_Type, &type, &of)) return NULL;
    size_t row = 0, rows = sizeof table / sizeof *table;
    while (row < rows && strcmp(table[row].class, of) != 0) row++;
    if (row == rows) return PyErr_Format(PyExc_KeyError, "absent.def has no %s", of);
    bool ok = add_dir(type);
    for (const char *p = table[row].names; ok && *p;) {
        size_t n = strcspn(p, " ");
        ok = add(type, p, n);
        p += n + (p[n] == ' ');
    }
    PyType_Modified(type);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* _absent_names(class): those of it and its bases. */
static PyObject *absent_names(PyObject *module, PyObject *o) {
    PyObject *out = PyList_New(0);
    PyObject *all = PyType_Check(o) ? PyObject_Dir(o) : NULL;
    for (Py_ssize_t i = 0; out && all && i < PyList_GET_SIZE(all); i++) {
        PyObject *name = PyList_GET_ITEM(all, i);
        if (is_absent((PyTypeObject *)o, name) && PyList_Append(out, name) < 0) Py_CLEAR(out);
    }
    if (PyErr_Occurred()) Py_CLEAR(out);
    Py_XDECREF(all);
    return out;
}

/* _is_absent(class, name) */
static PyObject *is_absent_of(PyObject *module, PyObject *args) {
    PyTypeObject *type;
    PyObject *name;
    if (!PyArg_ParseTuple(args, "O!U:_is_absent", &PyType_Type, &type, &name)) return NULL;
    bool absent = is_absent(type, name);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(absent);
}

static PyMethodDef functions[] = {{"_absent", mark, METH_VARARGS, NULL},
                                  {"_absent_names", absent_names, METH_O, NULL},
                                  {"_is_absent", is_absent_of, METH_VARARGS, NULL},
                                  {NULL}};

bool binding_add_absent(PyObject *module) {
    return PyType_Ready(&absent_type) == 0 && PyModule_AddFunctions(module, functions) == 0;
}
