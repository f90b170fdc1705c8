/* Arguments of the PyTorch face: names, operands, dimensions, with PyTorch's errors. */
#include "binding/tensor/tensor.h"

#include <string.h>

static int find_name(const tensor_signature *s, int from, const char *name) {
    static const struct {
        const char *numpy, *torch;
    } other[] = {{"axis", "dim"},
                 {"keepdims", "keepdim"},
                 {"axes", "dims"},
                 {"x", "input"},
                 {"self", "input"}};
    for (int i = from; s->names[i]; i++)
        if (strcmp(s->names[i], name) == 0) return i;
    for (int k = 0; k < 5; k++)
        for (int i = from; s->names[i] && strcmp(name, other[k].numpy) == 0; i++)
            if (strcmp(s->names[i], other[k].torch) == 0) return i;
    return -1;
}

bool tensor_parse(const tensor_signature *s, int from, PyObject *const *args, Py_ssize_t n,
                  PyObject *kwnames, PyObject **v) {
    if (from + n > s->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd were given",
                     s->name, s->positional - from, s->positional - from == 1 ? "" : "s", n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) v[from + i] = args[i];
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *key = PyTuple_GET_ITEM(kwnames, k);
        const char *name = PyUnicode_AsUTF8(key);
        if (!name) return false;
        int i = find_name(s, from, name);
        if (i < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%s'", s->name,
                         name);
            return false;
        }
        if (v[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", s->name,
                         s->names[i]);
            return false;
        }
        v[i] = args[n + k];
    }
    for (int i = from; i < s->required; i++) {
        if (v[i]) continue;
        PyErr_Format(PyExc_TypeError, "%s() missing 1 required positional arguments: \"%s\"",
                     s->name, s->names[i]);
        return false;
    }
    return true;
}

tensor *tensor_arg(PyObject *o, const char *function, const char *argument, int position) {
    if (o && tensor_check(o)) return tensor_of(o);
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' (position %d) must be Tensor, not %s",
                 function, argument, position, o ? Py_TYPE(o)->tp_name : "None");
    return NULL;
}

int tensor_to_operand(PyObject *o, tensor_value *out) {
    *out = (tensor_value){0};
    if (tensor_check(o)) {
        out->v.t = tensor_of(o);
        return 1;
    }
    if (PyFloat_CheckExact(o)) {
        out->v.s = (scalar){.kind = 'F', .f = PyFloat_AS_DOUBLE(o)};
        return 1;
    }
    if (PyUnicode_Check(o) || PyList_Check(o) || PyTuple_Check(o) || o == Py_None) return 0;
    operand x = {0};
    int done = binding_to_operand(o, FACE_TORCH, &x);
    if (done <= 0) return done;
    if (!x.a) {
        out->v.s = x.s;
        return 1;
    }
    out->v.t = tensor_new(x.a);
    out->owned = true;
    return out->v.t ? 1 : (binding_raise(), -1);
}

bool tensor_need_operand(PyObject *o, const char *function, tensor_value *out) {
    int done = tensor_to_operand(o, out);
    if (done == 0)
        PyErr_Format(PyExc_TypeError, "%s(): argument 'other' (position 1) must be Tensor, not %s",
                     function, Py_TYPE(o)->tp_name);
    return done > 0;
}

bool tensor_dim_number(int64_t value, int ndim, int *axis) {
    int room = ndim ? ndim : 1;
    if (value < -room || value >= room) {
        PyErr_Format(PyExc_IndexError,
                     "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                     -room, room - 1, (long long)value);
        return false;
    }
    *axis = (int)(value < 0 ? value + room : value);
    return true;
}

bool tensor_dim(PyObject *o, int ndim, int *axis) {
    int64_t value;
    return binding_to_int64(o, &value) && tensor_dim_number(value, ndim, axis);
}

bool tensor_dims(PyObject *o, int ndim, uint32_t *mask, bool *all) {
    int64_t list[ARRAY_MAX_NDIM];
    int n = 0;
    *mask = 0;
    *all = !o || o == Py_None;
    if (!*all) {
        if (!binding_to_shape(o, "dim", list, &n)) return false;
        *all = n == 0;
    }
    if (*all) {
        *mask = (1u << ndim) - 1;
        return true;
    }
    for (int i = 0; i < n; i++) {
        int axis;
        if (!tensor_dim_number(list[i], ndim, &axis)) return false;
        if (ndim == 0) continue;
        if (*mask >> axis & 1) {
            PyErr_Format(PyExc_RuntimeError, "dim %d appears multiple times in the list of dims",
                         axis);
            return false;
        }
        *mask |= 1u << axis;
    }
    return true;
}

bool tensor_bool_arg(PyObject *o, bool absent, bool *out) {
    if (!o || o == Py_None) {
        *out = absent;
        return true;
    }
    int truth = binding_truth(o);
    *out = truth > 0;
    return truth >= 0;
}

bool tensor_double_arg(PyObject *o, double absent, const char *what, double *out) {
    *out = absent;
    if (!o || o == Py_None) return true;
    *out = binding_double(o);
    if (*out != -1 || !PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s must be a number, not %s", what, Py_TYPE(o)->tp_name);
    return false;
}

bool tensor_int_arg(PyObject *o, int64_t absent, int64_t *out) {
    *out = absent;
    return !o || o == Py_None || binding_to_int64(o, out);
}

bool tensor_dtype_arg(PyObject *o, const char *function, int *dt) {
    *dt = -1;
    if (!o || o == Py_None) return true;
    if (o == (PyObject *)&PyFloat_Type) return *dt = DT_F64, true;
    if (o == (PyObject *)&PyLong_Type) return *dt = DT_I64, true;
    if (o == (PyObject *)&PyBool_Type) return *dt = DT_BOOL, true;
    if (!Py_IS_TYPE(o, &tensor_dtype_type)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'dtype' must be torch.dtype, not %s",
                     function, Py_TYPE(o)->tp_name);
        return false;
    }
    dtype found;
    if (!binding_to_dtype(o, &found)) return false;
    *dt = (int)found;
    return true;
}

bool tensor_pair_arg(PyObject *o, int64_t absent, const char *what, int64_t pair[2]) {
    pair[0] = pair[1] = absent;
    if (!o || o == Py_None) return true;
    int64_t list[ARRAY_MAX_NDIM];
    int n;
    if (!binding_to_shape(o, what, list, &n)) return false;
    if (n == 0) return true;
    if (n > 2) {
        PyErr_Format(PyExc_RuntimeError, "%s must be one number or two, got %d", what, n);
        return false;
    }
    pair[0] = list[0];
    pair[1] = list[n - 1];
    return true;
}
