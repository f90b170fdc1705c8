/* Keys of x[key]: taken apart into a basic part (a view) and an advanced part (integer arrays).
 *
 * NumPy's rule for the result: the broadcast shape of the advanced indices stands where they were when
 * they are adjacent, else in front; integers beside arrays count as advanced indices. PyTorch takes
 * integers out first. Masks count for as many axes as they have dimensions.
 */
#include "binding/common/binding.h"

#include <string.h>

typedef enum part_kind {
    PART_INTEGER,
    PART_SLICE,
    PART_NEWAXIS,
    PART_ELLIPSIS,
    PART_INDEX,
    PART_MASK,
    PART_BOOL
} part_kind;
typedef struct part {
    part_kind kind;
    int64_t value;   /* integer; bool */
    PyObject *slice; /* borrowed */
    array *a;        /* owned */
} part;

#define MAX_PARTS (2 * ARRAY_MAX_NDIM)
typedef struct parts {
    part list[MAX_PARTS];
    int n;
    graph_face face;
} parts;

static void parts_deinit(parts *p) {
    for (int i = 0; i < p->n; i++) array_unref(p->list[i].a);
}

static bool bad_index(PyObject *o, graph_face face) {
    if (face == FACE_TORCH)
        PyErr_Format(PyExc_IndexError,
                     "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                     "Variables are valid "
                     "indices (got %s)",
                     Py_TYPE(o)->tp_name);
    else
        PyErr_SetString(PyExc_IndexError,
                        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) "
                        "and integer or boolean arrays are valid indices");
    return false;
}

/* Takes `a`. */
static bool add_array(parts *p, array *a, part *to) {
    array *cast = NULL;
    bool byte_mask = p->face == FACE_TORCH && a->dt == DT_U8;
    if (dtype_is_float(a->dt) && a->size > 0) {
        array_unref(a);
        PyErr_SetString(PyExc_IndexError,
                        p->face == FACE_TORCH
                            ? "tensors used as indices must be long, int, byte or bool tensors"
                            : "arrays used as indices must be of integer (or boolean) type");
        return false;
    }
    dtype want = a->dt == DT_BOOL || byte_mask ? DT_BOOL : DT_I64;
    if (a->dt != want) {
        bool ok = binding_ok(array_astype(a, want, &cast));
        array_unref(a);
        if (!ok) return false;
        a = cast;
    }
    if (a->ndim == 0 && (want == DT_BOOL || p->face == FACE_TORCH)) {
        scalar s;
        bool ok = binding_ok(array_item(a, &s));
        array_unref(a);
        *to = (part){.kind = want == DT_BOOL ? PART_BOOL : PART_INTEGER, .value = s.i};
        return ok;
    }
    *to = (part){.kind = want == DT_BOOL ? PART_MASK : PART_INDEX, .a = a};
    return true;
}

static bool is_numpy_bool(PyObject *o) {
    const char *name = Py_TYPE(o)->tp_name;
    return strcmp(name, "numpy.bool") == 0 || strcmp(name, "numpy.bool_") == 0;
}

/* What has an __index__ and is no array; tri-state. */
static int is_integer(PyObject *o) {
    PyObject *interface;
    int array = PyIndex_Check(o) ? binding_attribute(o, "__array_interface__", &interface) : 1;
    if (PyIndex_Check(o)) Py_XDECREF(interface);
    return array < 0 ? -1 : !array;
}

static bool add_part(parts *p, PyObject *o) {
    if (p->n == MAX_PARTS) {
        PyErr_SetString(PyExc_IndexError, "too many indices for array");
        return false;
    }
    part *to = &p->list[p->n];
    *to = (part){0};
    bool ok = true;
    int integer;
    if (PyLong_CheckExact(o)) {
        to->kind = PART_INTEGER;
        ok = binding_to_int64(o, &to->value);
    } else if (PySlice_Check(o)) {
        to->kind = PART_SLICE;
        to->slice = o;
    } else if (o == Py_None) {
        to->kind = PART_NEWAXIS;
    } else if (o == Py_Ellipsis) {
        to->kind = PART_ELLIPSIS;
    } else if (PyBool_Check(o) || is_numpy_bool(o)) {
        to->kind = PART_BOOL;
        int truth = binding_truth(o);
        to->value = truth;
        ok = truth >= 0;
    } else if (binding_is_array(o)) {
        ok = add_array(p, array_ref(((pyarray *)o)->a), to);
    } else if ((integer = is_integer(o)) != 0) {
        to->kind = PART_INTEGER;
        ok = integer > 0 && binding_to_int64(o, &to->value);
    } else if (PyUnicode_Check(o) || PyBytes_Check(o) || PyFloat_Check(o) || PyDict_Check(o)) {
        ok = bad_index(o, p->face);
    } else {
        array *a;
        ok = binding_to_array(o, false, DT_I64, p->face, DT_F32, &a);
        if (!ok && binding_forgive_if(PyExc_TypeError)) bad_index(o, p->face);
        ok = ok && add_array(p, a, to);
    }
    if (ok) p->n++;
    return ok;
}

static bool split_key(parts *p, PyObject *key) {
    if (!PyTuple_Check(key)) return add_part(p, key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (!add_part(p, PyTuple_GET_ITEM(key, i))) return false;
    return true;
}

static int axes_of(const part *p) {
    switch (p->kind) {
    case PART_INTEGER:
    case PART_SLICE:
    case PART_INDEX: return 1;
    case PART_MASK: return p->a->ndim;
    default: return 0;
    }
}

/* How many axes the ellipsis stands for; false: too many indices, or two ellipses. */
static bool count_axes(const parts *p, int ndim, int *rest) {
    int used = 0, ellipses = 0;
    for (int i = 0; i < p->n; i++) {
        used += axes_of(&p->list[i]);
        ellipses += p->list[i].kind == PART_ELLIPSIS;
    }
    *rest = ndim - used;
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
        return false;
    }
    if (*rest >= 0) return true;
    if (p->face == FACE_TORCH)
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", ndim);
    else
        PyErr_Format(PyExc_IndexError,
                     "too many indices for array: array is %d-dimensional, but %d were indexed",
                     ndim, used);
    return false;
}

static bool put_integer(binding_key *k, const array *a, int axis, int64_t value, graph_face face) {
    int64_t size = a->shape[axis];
    if (value < -size || value >= size) {
        PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for %s %d with size %lld",
                     (long long)value, face == FACE_TORCH ? "dimension" : "axis", axis,
                     (long long)size);
        return false;
    }
    k->items[k->nitems++] =
        (array_slice){.kind = SLICE_INDEX, .start = value < 0 ? value + size : value};
    return true;
}

static bool put_slice(binding_key *k, const array *a, int axis, PyObject *slice, graph_face face,
                      int *view_axis) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return false;
    if (face == FACE_TORCH && step <= 0) {
        PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
        return false;
    }
    PySlice_AdjustIndices((Py_ssize_t)a->shape[axis], &start, &stop, step);
    k->items[k->nitems++] =
        (array_slice){.kind = SLICE_RANGE, .start = start, .stop = stop, .step = step};
    ++*view_axis;
    return true;
}

static void put_whole(binding_key *k, const array *a, int axis, int *view_axis) {
    k->items[k->nitems++] = (array_slice){.kind = SLICE_RANGE, .stop = a->shape[axis], .step = 1};
    ++*view_axis;
}

static void put_index(binding_key *k, array *index, int *view_axis) {
    k->index[*view_axis] = index;
    k->nindices = ++*view_axis;
}

static bool put_mask(binding_key *k, const array *a, int axis, array *mask, graph_face face,
                     int *view_axis) {
    for (int d = 0; d < mask->ndim; d++) {
        if (mask->shape[d] == a->shape[axis + d]) continue;
        if (face == FACE_TORCH) {
            PyObject *theirs = binding_from_shape(mask->shape, mask->ndim);
            PyObject *ours = binding_from_shape(a->shape, a->ndim);
            PyObject *left = theirs ? PySequence_List(theirs) : NULL,
                     *right = ours ? PySequence_List(ours) : NULL;
            if (left && right)
                PyErr_Format(PyExc_IndexError,
                             "The shape of the mask %R at index %d does not match the shape of the "
                             "indexed tensor "
                             "%R at index %d",
                             left, d, right, axis + d);
            Py_XDECREF(left);
            Py_XDECREF(right);
            Py_XDECREF(theirs);
            Py_XDECREF(ours);
        } else {
            PyErr_Format(PyExc_IndexError,
                         "boolean index did not match indexed array along axis %d; size of axis is "
                         "%lld but size "
                         "of corresponding boolean axis is %lld",
                         axis + d, (long long)a->shape[axis + d], (long long)mask->shape[d]);
        }
        return false;
    }
    array *found[ARRAY_MAX_NDIM];
    if (!binding_ok(array_nonzero(mask, found))) return false;
    for (int d = 0; d < mask->ndim; d++) {
        k->items[k->nitems++] =
            (array_slice){.kind = SLICE_RANGE, .stop = a->shape[axis + d], .step = 1};
        put_index(k, found[d], view_axis);
    }
    return true;
}

/* True or False as an index: a new axis with one element taken, or none. */
static bool put_bool(binding_key *k, bool truth, int *view_axis) {
    int64_t count = truth;
    array *zeros;
    if (!binding_ok(array_full(DT_I64, &count, 1, (scalar){.kind = 'I'}, &zeros))) return false;
    k->items[k->nitems++] = (array_slice){.kind = SLICE_NEWAXIS};
    put_index(k, zeros, view_axis);
    return true;
}

/* Are the advanced indices separated by something else? */
static bool separated(const parts *p) {
    int state = 0; /* 0 before, 1 among, 2 after them */
    for (int i = 0; i < p->n; i++) {
        part_kind kind = p->list[i].kind;
        if (kind == PART_INTEGER && p->face == FACE_TORCH) continue;
        bool advanced = kind >= PART_INDEX || kind == PART_INTEGER;
        if (advanced && state == 2) return true;
        if (advanced)
            state = 1;
        else if (state == 1)
            state = 2;
    }
    return false;
}

static bool put_part(binding_key *k, const array *a, part *p, int rest, graph_face face, int *axis,
                     int *view_axis) {
    bool ok = true;
    switch (p->kind) {
    case PART_INTEGER: ok = put_integer(k, a, *axis, p->value, face); break;
    case PART_SLICE: ok = put_slice(k, a, *axis, p->slice, face, view_axis); break;
    case PART_NEWAXIS:
        k->items[k->nitems++] = (array_slice){.kind = SLICE_NEWAXIS};
        ++*view_axis;
        break;
    case PART_ELLIPSIS:
        for (int i = 0; i < rest; i++) put_whole(k, a, *axis + i, view_axis);
        *axis += rest;
        break;
    case PART_INDEX:
        k->items[k->nitems++] =
            (array_slice){.kind = SLICE_RANGE, .stop = a->shape[*axis], .step = 1};
        put_index(k, array_ref(p->a), view_axis);
        break;
    case PART_MASK: ok = put_mask(k, a, *axis, p->a, face, view_axis); break;
    case PART_BOOL: ok = put_bool(k, p->value != 0, view_axis); break;
    }
    *axis += axes_of(p);
    return ok;
}

static bool is_plain_number(PyObject *o) { return o == Py_None || PyLong_CheckExact(o); }

/* Numbers, slices of numbers, None and ... run no Python code. */
static bool is_plain(PyObject *o) {
    if (PySlice_Check(o)) {
        PySliceObject *s = (PySliceObject *)o;
        return is_plain_number(s->start) && is_plain_number(s->stop) && is_plain_number(s->step);
    }
    return is_plain_number(o) || o == Py_Ellipsis;
}

static bool is_plain_key(PyObject *key) {
    if (!PyTuple_CheckExact(key)) return is_plain(key);
    Py_ssize_t n = PyTuple_GET_SIZE(key), i = 0;
    while (i < n && is_plain(PyTuple_GET_ITEM(key, i))) i++;
    return i == n;
}

bool binding_key_parse(array *a, PyObject *key, graph_face face, binding_key *out) {
    memset(out->index, 0, sizeof out->index);
    out->nitems = out->nindices = 0;
    out->front = false;
    parts p = {.face = face};
    int rest, axis = 0, view_axis = 0;
    bool plain = is_plain_key(key);
    if (!plain && !binding_enter()) return false;
    bool ok = split_key(&p, key) && count_axes(&p, a->ndim, &rest);
    if (ok && a->ndim + p.n > MAX_PARTS) {
        PyErr_SetString(PyExc_IndexError, "too many indices for array");
        ok = false;
    }
    for (int i = 0; ok && i < p.n; i++)
        ok = put_part(out, a, &p.list[i], rest, face, &axis, &view_axis);
    for (; ok && axis < a->ndim; axis++) put_whole(out, a, axis, &view_axis);
    if (ok && view_axis > ARRAY_MAX_NDIM) {
        PyErr_Format(PyExc_IndexError,
                     "the result would have %d dimensions, at most %d are supported", view_axis,
                     ARRAY_MAX_NDIM);
        ok = false;
    }
    if (ok && out->nindices > 0) out->front = separated(&p);
    if (!plain) binding_leave();
    parts_deinit(&p);
    if (!ok) binding_key_deinit(out);
    return ok;
}

void binding_key_deinit(binding_key *k) {
    for (int i = 0; i < k->nindices; i++) array_unref(k->index[i]);
    k->nindices = 0;
}

/* The axes that have an index first, then the others. */
static simt_status move_to_front(array *view, array *const *index, int nindices, array **out) {
    int axes[ARRAY_MAX_NDIM], n = 0;
    for (int d = 0; d < nindices; d++)
        if (index[d]) axes[n++] = d;
    for (int d = 0; d < view->ndim; d++)
        if (d >= nindices || !index[d]) axes[n++] = d;
    return array_transpose(view, axes, out);
}

simt_status binding_key_view(array *a, const binding_key *k, array **out) {
    array *view;
    SIMT_TRY(array_slice_view(a, k->items, k->nitems, &view));
    if (!k->front) {
        *out = view;
        return SIMT_OK;
    }
    simt_status status = move_to_front(view, k->index, k->nindices, out);
    array_unref(view);
    return status;
}

int binding_key_indices(const binding_key *k, array **index) {
    int n = 0;
    for (int i = 0; i < k->nindices; i++)
        if (k->index[i] || !k->front) index[n++] = k->index[i];
    return n;
}

/* One mask over the leading dimensions. */
static bool is_plain_mask(const array *a, PyObject *key) {
    if (!binding_is_array(key)) return false;
    array *mask = ((pyarray *)key)->a;
    if (mask->dt != DT_BOOL || mask->ndim == 0 || mask->ndim > a->ndim) return false;
    return memcmp(mask->shape, a->shape, sizeof mask->shape[0] * (size_t)mask->ndim) == 0;
}

bool binding_get_item(array *a, PyObject *key, graph_face face, array **out) {
    if (is_plain_mask(a, key))
        return binding_ok(array_index_get(a, &((pyarray *)key)->a, 1, 0, out));
    binding_key k;
    if (!binding_key_parse(a, key, face, &k)) return false;
    array *view = NULL;
    simt_status status = binding_key_view(a, &k, &view);
    if (status == SIMT_OK && k.nindices == 0) {
        *out = view;
        return true;
    }
    array *index[MAX_PARTS];
    if (status == SIMT_OK)
        status = array_index_get(view, index, binding_key_indices(&k, index), 0, out);
    array_unref(view);
    binding_key_deinit(&k);
    return binding_ok(status);
}

/* ---- assignment ---- */

/* x[mask] = number: where(mask, number, x) in place; needs no positions and stays deferred. */
static simt_status assign_where(array *a, array *mask, const operand *value, graph_face face) {
    int64_t shape[ARRAY_MAX_NDIM];
    for (int d = 0; d < a->ndim; d++) shape[d] = d < mask->ndim ? mask->shape[d] : 1;
    array *wide = NULL, *number = NULL, *result = NULL;
    SIMT_TRY(array_reshape(mask, shape, a->ndim, &wide));
    simt_status status = value->a ? array_astype(value->a, a->dt, &number)
                                  : array_full(a->dt, NULL, 0, value->s, &number);
    if (status == SIMT_OK) {
        operand in[3] = {{.a = wide}, {.a = number}, {.a = a}};
        op_options options = {.face = face, .default_float = DT_F32, .out = a};
        status = array_elementwise(OP_WHERE, in, 3, &options, &result);
    }
    array_unref(result);
    array_unref(number);
    array_unref(wide);
    return status;
}

bool binding_set_item(array *a, PyObject *key, const operand *value, graph_face face) {
    if (is_plain_mask(a, key) && !(value->a && value->a->ndim > 0))
        return binding_ok(assign_where(a, ((pyarray *)key)->a, value, face));
    binding_key k;
    if (!binding_key_parse(a, key, face, &k)) return false;
    array *view = NULL, *index[MAX_PARTS];
    simt_status status = binding_key_view(a, &k, &view);
    if (status == SIMT_OK)
        status = k.nindices == 0
                     ? array_assign(view, value, face)
                     : array_index_put(view, index, binding_key_indices(&k, index), value, 0);
    array_unref(view);
    binding_key_deinit(&k);
    return binding_ok(status);
}
