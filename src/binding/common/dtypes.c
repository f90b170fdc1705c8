/* Names of element types: strings, Python's and NumPy's types, torch's dtype objects, buffer formats. */
#include "binding/common/binding.h"

#include <string.h>

static const struct {
    const char *name;
    dtype dt;
} names[] = {
#define DTYPE(id, name, kind, bytes, ctype, typestr) {name, DT_##id}, {&typestr[1], DT_##id},
#include "base/dtype.def"
#undef DTYPE
    {"bool_", DT_BOOL}, {"?", DT_BOOL},     {"byte", DT_I8},       {"b", DT_I8},
    {"ubyte", DT_U8},   {"B", DT_U8},       {"short", DT_I16},     {"h", DT_I16},
    {"ushort", DT_U16}, {"H", DT_U16},      {"intc", DT_I32},      {"i", DT_I32},
    {"uintc", DT_U32},  {"I", DT_U32},      {"int", DT_I64},       {"int_", DT_I64},
    {"intp", DT_I64},   {"long", DT_I64},   {"longlong", DT_I64},  {"l", DT_I64},
    {"q", DT_I64},      {"p", DT_I64},      {"n", DT_I64},         {"uint", DT_U64},
    {"uintp", DT_U64},  {"ulong", DT_U64},  {"ulonglong", DT_U64}, {"L", DT_U64},
    {"Q", DT_U64},      {"P", DT_U64},      {"N", DT_U64},         {"half", DT_F16},
    {"e", DT_F16},      {"single", DT_F32}, {"f", DT_F32},         {"float", DT_F64},
    {"double", DT_F64}, {"d", DT_F64},      {"float_", DT_F64},
};

static bool find_name(const char *name, dtype *out) {
    if (*name == '<' || *name == '|' || *name == '=') name++;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (*names[i].name != *name || strcmp(names[i].name, name) != 0) continue;
        *out = names[i].dt;
        return true;
    }
    return false;
}

static bool not_understood(PyObject *o) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "data type %R not understood", o);
    return false;
}

/* numpy.dtype objects: by name, when in the machine's byte order. */
static bool from_numpy_dtype(PyObject *o, dtype *out) {
    PyObject *native = PyObject_GetAttrString(o, "isnative");
    PyObject *name = native ? PyObject_GetAttrString(o, "name") : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    bool found = text && native == Py_True && find_name(text, out);
    if (text && !found) PyErr_Format(PyExc_TypeError, "dtype %R is not in simt yet", o);
    Py_XDECREF(native);
    Py_XDECREF(name);
    return found ? true : not_understood(o);
}

static bool from_type(PyTypeObject *type, dtype *out) {
    if (type == &PyFloat_Type) return *out = DT_F64, true;
    if (type == &PyLong_Type) return *out = DT_I64, true;
    if (type == &PyBool_Type) return *out = DT_BOOL, true;
    const char *name = type->tp_name;
    if (strncmp(name, "numpy.", 6) == 0 && find_name(name + 6, out)) return true;
    if (strncmp(name, "numpy.dtypes.", 13) == 0) { /* the class of a dtype */
        PyObject *instance = PyObject_CallNoArgs((PyObject *)type);
        bool ok = instance && from_numpy_dtype(instance, out);
        Py_XDECREF(instance);
        return ok;
    }
    const char *dot = strrchr(name, '.');
    if (strcmp(dot ? dot + 1 : name, "bfloat16") == 0) return *out = DT_BF16, true;
    return not_understood((PyObject *)type);
}

static bool convert(PyObject *o, dtype *out) {
    if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8(o);
        return text && find_name(text, out) ? true : not_understood(o);
    }
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.dtype", 11) == 0) return from_numpy_dtype(o, out);
    PyObject *number = PyObject_GetAttrString(o, "_simt_dtype");
    if (number) {
        long value = PyLong_AsLong(number);
        Py_DECREF(number);
        if (value < 0 || value >= DT_COUNT) return not_understood(o);
        *out = (dtype)value;
        return true;
    }
    if (!binding_forgive()) return false;
    if (PyType_Check(o)) return from_type((PyTypeObject *)o, out);
    return not_understood(o);
}

bool binding_to_dtype(PyObject *o, dtype *out) {
    /* Answers by identity; the objects (types, dtypes, strings in code) are kept. */
    static struct {
        PyObject *o;
        dtype dt;
    } cache[32];
    size_t slot = ((uintptr_t)o >> 4 ^ (uintptr_t)o >> 9) % 32;
    if (__builtin_expect(cache[slot].o == o, 1)) return *out = cache[slot].dt, true;
    if (!convert(o, out)) return false;
    PyObject *before = cache[slot].o;
    cache[slot].o = Py_NewRef(o);
    cache[slot].dt = *out;
    Py_XDECREF(before); /* may run Python code: when the slot is whole */
    return true;
}

bool binding_to_dtype_or_none(PyObject *o, bool *has, dtype *out) {
    *has = o && o != Py_None;
    return *has ? binding_to_dtype(o, out) : true;
}

PyObject *binding_numpy_dtype(dtype dt) {
    static PyObject *made[DT_COUNT];
    if (!made[dt]) {
        PyObject *numpy = PyImport_ImportModule(dt == DT_BF16 ? "ml_dtypes" : "numpy");
        if (!numpy) return NULL;
        PyObject *type = PyObject_GetAttrString(numpy, dtype_table[dt].name);
        Py_DECREF(numpy);
        numpy = type ? PyImport_ImportModule("numpy") : NULL;
        made[dt] = numpy ? PyObject_CallMethod(numpy, "dtype", "O", type) : NULL;
        Py_XDECREF(numpy);
        Py_XDECREF(type);
    }
    return Py_XNewRef(made[dt]);
}

int binding_format_to_dtype(const char *format, Py_ssize_t itemsize, dtype *out) {
    if (!format) format = "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    if (strlen(format) != 1 || !strchr("?bBhHiIlLqQnNefd", *format)) return 0;
    if (!find_name(format, out)) return 0;
    if ((Py_ssize_t)dtype_bytes(*out) == itemsize) return 1;
    if (itemsize != 4 || !strchr("lL", *format)) return 0;
    *out = *format == 'l' ? DT_I32 : DT_U32; /* standard sizes: l is 4 bytes there */
    return 1;
}

const char *binding_dtype_format(dtype dt) {
    static const char *const formats[DT_COUNT] = {
        [DT_BOOL] = "?", [DT_I8] = "b",  [DT_I16] = "h", [DT_I32] = "i",
        [DT_I64] = "l",  [DT_U8] = "B",  [DT_U16] = "H", [DT_U32] = "I",
        [DT_U64] = "L",  [DT_F16] = "e", [DT_F32] = "f", [DT_F64] = "d",
    };
    return formats[dt];
}
