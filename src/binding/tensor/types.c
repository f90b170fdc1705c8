/* torch.dtype, torch.device, torch.Size, torch.Generator, torch.return_types. */
#include <string.h>

#include "binding/tensor/device.h"

#include <structseq.h>
#include <sys/random.h>

/* ---- dtype: one object each ---- */

typedef struct pydtype {
    PyObject_HEAD dtype dt;
} pydtype;
static PyObject *dtype_objects[DT_COUNT];

static const char *dtype_name(PyObject *self) { return dtype_table[((pydtype *)self)->dt].name; }
static PyObject *dtype_repr(PyObject *self) {
    return PyUnicode_FromFormat("torch.%s", dtype_name(self));
}
static PyObject *dtype_reduce(PyObject *self, PyObject *unused) {
    return PyUnicode_FromString(dtype_name(self));
}
static PyObject *dtype_get_number(PyObject *self, void *unused) {
    return PyLong_FromLong(((pydtype *)self)->dt);
}
static PyObject *dtype_get_float(PyObject *self, void *unused) {
    return PyBool_FromLong(dtype_is_float(((pydtype *)self)->dt));
}
static PyObject *dtype_get_false(PyObject *self, void *unused) { Py_RETURN_FALSE; }
static PyObject *dtype_get_signed(PyObject *self, void *unused) {
    dtype dt = ((pydtype *)self)->dt;
    return PyBool_FromLong(dtype_is_float(dt) || dtype_is_signed(dt));
}
static PyObject *dtype_get_itemsize(PyObject *self, void *unused) {
    return PyLong_FromSize_t(dtype_bytes(((pydtype *)self)->dt));
}
static PyGetSetDef dtype_getset[] = {
    {"_simt_dtype", dtype_get_number}, {"is_floating_point", dtype_get_float},
    {"is_complex", dtype_get_false},   {"is_signed", dtype_get_signed},
    {"itemsize", dtype_get_itemsize},  {NULL}};
static PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, NULL}, {NULL}};
PyTypeObject tensor_dtype_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.dtype",
    .tp_basicsize = sizeof(pydtype),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_repr = dtype_repr,
    .tp_getset = dtype_getset,
    .tp_methods = dtype_methods,
};

PyObject *tensor_dtype_object(dtype dt) { return Py_NewRef(dtype_objects[dt]); }

static bool add_dtypes(PyObject *module) {
    static const struct {
        const char *alias;
        dtype dt;
    } aliases[] = {{"float", DT_F32}, {"double", DT_F64}, {"half", DT_F16},
                   {"short", DT_I16}, {"int", DT_I32},    {"long", DT_I64}};
    for (int i = 0; i < DT_COUNT; i++) {
        pydtype *o = PyObject_New(pydtype, &tensor_dtype_type);
        if (!o) return false;
        o->dt = (dtype)i;
        dtype_objects[i] = (PyObject *)o;
        if (PyModule_AddObjectRef(module, dtype_table[i].name, (PyObject *)o) < 0) return false;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (PyModule_AddObjectRef(module, aliases[i].alias, dtype_objects[aliases[i].dt]) < 0)
            return false;
    return true;
}

/* ---- device ---- */

typedef struct pydevice {
    PyObject_HEAD PyObject *type; /* interned string */
    int index;                    /* -1: none */
} pydevice;
static PyObject *cpu_device, *meta_device;
static const char *const device_kinds[] = {"cpu", "cuda", "meta", "mps", "xpu"};

static PyObject *make_device(const char *type, int index) {
    pydevice *d = PyObject_New(pydevice, &tensor_device_type);
    if (!d) return NULL;
    d->type = PyUnicode_InternFromString(type);
    d->index = index;
    if (d->type) return (PyObject *)d;
    Py_DECREF(d);
    return NULL;
}

static PyObject *parse_device(const char *text) {
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    int index = -1;
    if (colon) {
        char *end;
        long value = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || value < 0 || value > 255) {
            PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%s'", text);
            return NULL;
        }
        index = (int)value;
    }
    for (size_t i = 0; i < sizeof device_kinds / sizeof *device_kinds; i++)
        if (strlen(device_kinds[i]) == length && strncmp(text, device_kinds[i], length) == 0)
            return make_device(device_kinds[i], index);
    char kind[80];
    snprintf(kind, sizeof kind, "%.*s", (int)length, text);
    PyErr_Format(
        PyExc_RuntimeError,
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, "
        "xla, lazy, "
        "vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: %s",
        kind);
    return NULL;
}

static bool device_index(PyObject *o, int *index) {
    int64_t value;
    if (!binding_to_int64(o, &value)) return false;
    if (value < 0 || value > 255) {
        PyErr_Format(PyExc_RuntimeError, "Device index must be from 0 to 255, got %lld",
                     (long long)value);
        return false;
    }
    *index = (int)value;
    return true;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"type", "index", NULL};
    PyObject *what, *index = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", names, &what, &index)) return NULL;
    if (Py_IS_TYPE(what, &tensor_device_type)) return Py_NewRef(what);
    if (PyLong_Check(what)) {
        int number;
        return device_index(what, &number) ? make_device("cuda", number) : NULL;
    }
    if (!PyUnicode_Check(what)) {
        PyErr_Format(PyExc_TypeError, "device(): argument 'type' (position 1) must be str, not %s",
                     Py_TYPE(what)->tp_name);
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8(what);
    PyObject *d = text ? parse_device(text) : NULL;
    if (d && index && index != Py_None && !device_index(index, &((pydevice *)d)->index))
        Py_CLEAR(d);
    return d;
}

static void device_dealloc(PyObject *self) {
    Py_XDECREF(((pydevice *)self)->type);
    Py_TYPE(self)->tp_free(self);
}
static PyObject *device_repr(PyObject *self) {
    pydevice *d = (pydevice *)self;
    if (d->index < 0) return PyUnicode_FromFormat("device(type='%U')", d->type);
    return PyUnicode_FromFormat("device(type='%U', index=%d)", d->type, d->index);
}
static PyObject *device_str(PyObject *self) {
    pydevice *d = (pydevice *)self;
    if (d->index < 0) return Py_NewRef(d->type);
    return PyUnicode_FromFormat("%U:%d", d->type, d->index);
}
static PyObject *device_compare(PyObject *x, PyObject *y, int op) {
    if (!Py_IS_TYPE(y, &tensor_device_type) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    pydevice *a = (pydevice *)x, *b = (pydevice *)y;
    bool same = a->type == b->type && a->index == b->index;
    return PyBool_FromLong(same == (op == Py_EQ));
}
static Py_hash_t device_hash(PyObject *self) {
    return PyObject_Hash(((pydevice *)self)->type) ^ ((pydevice *)self)->index;
}
static PyObject *device_get_type(PyObject *self, void *unused) {
    return Py_NewRef(((pydevice *)self)->type);
}
static PyObject *device_get_index(PyObject *self, void *unused) {
    int index = ((pydevice *)self)->index;
    if (index < 0) Py_RETURN_NONE;
    return PyLong_FromLong(index);
}
static PyObject *device_reduce(PyObject *self, PyObject *unused) {
    PyObject *text = device_str(self);
    return text ? Py_BuildValue("O(N)", &tensor_device_type, text) : NULL;
}
/* The default device: a bit per `with`, the innermost lowest, 1: meta. */
static _Thread_local uint64_t defaults;

static PyObject *device_enter(PyObject *self, PyObject *unused) {
    bool meta;
    if (!tensor_device_arg(self, &meta)) return NULL;
    if (defaults >> 63)
        return PyErr_Format(PyExc_RuntimeError, "more than 63 devices in `with` around another");
    defaults = defaults << 1 | meta;
    return Py_NewRef(self);
}
static PyObject *device_exit(PyObject *self, PyObject *args) {
    defaults >>= 1;
    Py_RETURN_NONE;
}
/* _set_default_device(device) */
static PyObject *set_default(PyObject *module, PyObject *o) {
    bool meta = false;
    if (o != Py_None && !tensor_device_arg(o, &meta)) return NULL;
    defaults = (defaults & ~(uint64_t)1) | meta;
    Py_RETURN_NONE;
}
static PyObject *get_default(PyObject *module, PyObject *unused) {
    return Py_NewRef(defaults & 1 ? meta_device : cpu_device);
}
static PyMethodDef device_functions[] = {{"_set_default_device", set_default, METH_O, NULL},
                                         {"get_default_device", get_default, METH_NOARGS, NULL},
                                         {NULL}};
static PyGetSetDef device_getset[] = {
    {"type", device_get_type}, {"index", device_get_index}, {NULL}};
static PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, NULL},
                                       {"__enter__", device_enter, METH_NOARGS, NULL},
                                       {"__exit__", device_exit, METH_VARARGS, NULL},
                                       {NULL}};
PyTypeObject tensor_device_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.device",
    .tp_basicsize = sizeof(pydevice),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = device_new,
    .tp_dealloc = device_dealloc,
    .tp_repr = device_repr,
    .tp_str = device_str,
    .tp_richcompare = device_compare,
    .tp_hash = device_hash,
    .tp_getset = device_getset,
    .tp_methods = device_methods,
};

PyObject *tensor_cpu_device(void) { return Py_NewRef(cpu_device); }

PyObject *tensor_device_object(const tensor *t) {
    return Py_NewRef(array_is_meta(t->a) ? meta_device : cpu_device);
}

bool tensor_device_arg(PyObject *o, bool *meta) {
    if (meta) *meta = defaults & 1;
    if (!o || o == Py_None) return true;
    if (meta) *meta = false;
    if (o == cpu_device) return true;
    PyObject *d;
    if (Py_IS_TYPE(o, &tensor_device_type))
        d = Py_NewRef(o);
    else if (PyUnicode_Check(o)) {
        const char *text = PyUnicode_AsUTF8(o);
        d = text ? parse_device(text) : NULL;
    } else if (PyLong_Check(o))
        d = make_device("cuda", 0);
    else {
        PyErr_Format(PyExc_TypeError, "argument 'device' must be torch.device, not %s",
                     Py_TYPE(o)->tp_name);
        return false;
    }
    if (!d) return false;
    const char *kind = PyUnicode_AsUTF8(((pydevice *)d)->type);
    bool cpu = kind && strcmp(kind, "cpu") == 0;
    if (meta && kind && strcmp(kind, "meta") == 0)
        cpu = *meta = true;
    else if (!cpu && kind && strcmp(kind, "cuda") != 0)
        PyErr_Format(PyExc_NotImplementedError,
                     "device='%s': not in simt yet; nearest is torch.device('cpu')", kind);
    else if (!cpu && kind)
        PyErr_Format(
            PyExc_RuntimeError,
            "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and "
            "installed a "
            "driver from http://www.nvidia.com/Download/index.aspx\nhint: this simt runs on the "
            "CPU: use torch.device('cuda' if torch.cuda.is_available() else 'cpu')");
    Py_DECREF(d);
    return cpu;
}

bool tensor_check_device(PyObject *o) { return tensor_device_arg(o, NULL); }

/* ---- Size: a tuple with a name ---- */

PyObject *tensor_size_object(const int64_t *shape, int ndim) {
    PyObject *size = tensor_size_type.tp_alloc(&tensor_size_type, ndim);
    if (!size) return NULL;
    for (int i = 0; i < ndim; i++) {
        PyObject *n = PyLong_FromLongLong(shape[i]);
        if (!n) {
            Py_DECREF(size);
            return NULL;
        }
        PyTuple_SET_ITEM(size, i, n);
    }
    return size;
}

static PyObject *as_size(PyObject *tuple) { /* takes tuple */
    if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
    PyObject *size = PyObject_CallOneArg((PyObject *)&tensor_size_type, tuple);
    Py_DECREF(tuple);
    return size;
}
static PyObject *size_repr(PyObject *self) {
    PyObject *list = PySequence_List(self);
    PyObject *text = list ? PyUnicode_FromFormat("torch.Size(%R)", list) : NULL;
    Py_XDECREF(list);
    return text;
}
static PyObject *size_concat(PyObject *a, PyObject *b) {
    PyObject *r = PyTuple_Type.tp_as_sequence->sq_concat(a, b);
    return as_size(r);
}
static PyObject *size_repeat(PyObject *a, Py_ssize_t n) {
    return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
static PyObject *size_subscript(PyObject *self, PyObject *key) {
    return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}
static PyObject *size_numel(PyObject *self, PyObject *unused) {
    PyObject *n = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(self); i++) {
        PyObject *next = PyNumber_Multiply(n, PyTuple_GET_ITEM(self, i));
        Py_DECREF(n);
        n = next;
    }
    return n;
}
static PyObject *size_reduce(PyObject *self, PyObject *unused) {
    PyObject *list = PySequence_List(self);
    return list ? Py_BuildValue("O(N)", &tensor_size_type, list) : NULL;
}
static PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, NULL},
                                     {"__reduce__", size_reduce, METH_NOARGS, NULL},
                                     {NULL}};
static PySequenceMethods size_sequence = {.sq_concat = size_concat, .sq_repeat = size_repeat};
static PyMappingMethods size_mapping = {.mp_subscript = size_subscript};
PyTypeObject tensor_size_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.Size",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_repr = size_repr,
    .tp_as_sequence = &size_sequence,
    .tp_as_mapping = &size_mapping,
    .tp_methods = size_methods,
};

/* ---- Generator ---- */

typedef struct pygenerator {
    PyObject_HEAD random_state state;
} pygenerator;
static pygenerator *default_generator;

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"device", NULL};
    PyObject *device = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", names, &device)) return NULL;
    if (!tensor_check_device(device)) return NULL;
    pygenerator *g = (pygenerator *)type->tp_alloc(type, 0);
    if (g) g->state.seed = 67280421310721ull; /* PyTorch's default */
    return (PyObject *)g;
}
static void generator_set(PyObject *self, random_state state) {
    random_state *own = &((pygenerator *)self)->state;
    array *before = own->from;
    *own = state;
    if (before) section_retire(before, binding_drop_array);
}
static void generator_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    array_unref(((pygenerator *)self)->state.from);
    type->tp_free(self); /* subclasses: subtype_dealloc drops the type */
}
static PyObject *generator_manual_seed(PyObject *self, PyObject *seed) {
    int overflow;
    uint64_t value = (uint64_t)PyLong_AsLongLongAndOverflow(seed, &overflow);
    if (overflow > 0) value = PyLong_AsUnsignedLongLong(seed);
    if (overflow < 0 || (overflow > 0 && PyErr_Occurred())) {
        binding_forgive_if(PyExc_OverflowError);
        return PyErr_Format(PyExc_ValueError, "Overflow when unpacking long long: the seed %R",
                            seed);
    }
    if (PyErr_Occurred()) return NULL;
    IN_SECTION((generator_set(self, (random_state){.seed = value}), 0));
    return Py_NewRef(self);
}
static PyObject *generator_initial_seed(PyObject *self, PyObject *unused) {
    return PyLong_FromUnsignedLongLong(((pygenerator *)self)->state.seed);
}
static PyObject *generator_state(PyObject *self, PyObject *unused) {
    random_state *r = &((pygenerator *)self)->state;
    return Py_BuildValue("KK", (unsigned long long)r->seed, (unsigned long long)r->offset);
}
static PyObject *generator_set_state(PyObject *self, PyObject *args) {
    unsigned long long seed, offset;
    if (!PyArg_ParseTuple(args, "KK", &seed, &offset)) return NULL;
    IN_SECTION((generator_set(self, (random_state){.seed = seed, .offset = offset}), 0));
    return Py_NewRef(self);
}
/* The seed is what the tensor, an int64 without dimensions, will hold: nobody waits for it. */
static PyObject *generator_seed_from(PyObject *self, PyObject *o) {
    tensor *t = tensor_arg(o, "_seed_from", "seed", 1);
    if (!t) return NULL;
    if (t->a->dt != DT_I64 || t->a->ndim != 0)
        return PyErr_Format(PyExc_ValueError, "_seed_from takes an int64 tensor of no dimension");
    IN_SECTION((generator_set(self, (random_state){.from = array_ref(t->a)}), 0));
    return Py_NewRef(self);
}
static PyObject *generator_device(PyObject *self, void *unused) { return tensor_cpu_device(); }
static PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, NULL},
    {"initial_seed", generator_initial_seed, METH_NOARGS, NULL},
    {"_seed_from", generator_seed_from, METH_O, NULL},
    {"_state", generator_state, METH_NOARGS, NULL},
    {"_set_state", generator_set_state, METH_VARARGS, NULL},
    {NULL}};
static PyGetSetDef generator_getset[] = {{"device", generator_device}, {NULL}};
PyTypeObject tensor_generator_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.Generator",
    .tp_basicsize = sizeof(pygenerator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = generator_new,
    .tp_dealloc = generator_dealloc,
    .tp_methods = generator_methods,
    .tp_getset = generator_getset,
};

random_state *tensor_generator_state(PyObject *o) {
    if (!o || o == Py_None) return &default_generator->state;
    if (PyObject_TypeCheck(o, &tensor_generator_type)) return &((pygenerator *)o)->state;
    PyErr_Format(PyExc_TypeError, "generator must be torch.Generator, not %s", Py_TYPE(o)->tp_name);
    return NULL;
}

/* ---- return_types ---- */

static PyStructSequence_Field pair_fields[] = {{"values", NULL}, {"indices", NULL}, {NULL}};
static struct {
    const char *name, *full;
    PyTypeObject *type;
} pair_types[] = {{"max", "torch.return_types.max"},       {"min", "torch.return_types.min"},
                  {"sort", "torch.return_types.sort"},     {"topk", "torch.return_types.topk"},
                  {"median", "torch.return_types.median"}, {"mode", "torch.return_types.mode"},
                  {"cummax", "torch.return_types.cummax"}, {"cummin", "torch.return_types.cummin"}};
#define NPAIRS (int)(sizeof pair_types / sizeof *pair_types)

static PyObject *pair_repr(PyObject *self) {
    return PyUnicode_FromFormat("%s(\nvalues=%R,\nindices=%R)", Py_TYPE(self)->tp_name,
                                PyTuple_GET_ITEM(self, 0), PyTuple_GET_ITEM(self, 1));
}

PyObject *tensor_pair_object(const char *name, PyObject *values, PyObject *indices) {
    PyObject *pair = NULL;
    for (int i = 0; i < NPAIRS && values && indices; i++)
        if (strcmp(pair_types[i].name, name) == 0) pair = PyStructSequence_New(pair_types[i].type);
    if (!pair) {
        Py_XDECREF(values);
        Py_XDECREF(indices);
        return NULL;
    }
    PyStructSequence_SetItem(pair, 0, values);
    PyStructSequence_SetItem(pair, 1, indices);
    return pair;
}

static PyObject *make_pair(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *values, *indices;
    if (!PyArg_ParseTuple(args, "sOO", &name, &values, &indices)) return NULL;
    return tensor_pair_object(name, Py_NewRef(values), Py_NewRef(indices));
}
static PyMethodDef type_functions[] = {{"_make_pair", make_pair, METH_VARARGS, NULL}, {NULL}};

static bool add_pairs(PyObject *module) {
    for (int i = 0; i < NPAIRS; i++) {
        PyStructSequence_Desc desc = {
            .name = pair_types[i].full, .fields = pair_fields, .n_in_sequence = 2};
        pair_types[i].type = PyStructSequence_NewType(&desc);
        if (!pair_types[i].type) return false;
        pair_types[i].type->tp_repr = pair_repr;
    }
    return PyModule_AddFunctions(module, type_functions) == 0;
}

bool tensor_add_types(PyObject *module) {
    tensor_size_type.tp_base = &PyTuple_Type;
    tensor_size_type.tp_basicsize = PyTuple_Type.tp_basicsize;
    tensor_size_type.tp_itemsize = PyTuple_Type.tp_itemsize;
    if (PyModule_AddType(module, &tensor_dtype_type) < 0 ||
        PyModule_AddType(module, &tensor_device_type) < 0 ||
        PyModule_AddType(module, &tensor_size_type) < 0 ||
        PyModule_AddType(module, &tensor_generator_type) < 0 ||
        PyType_Ready(&tensor_capture_type) < 0)
        return false;
    cpu_device = make_device("cpu", -1);
    meta_device = make_device("meta", -1);
    default_generator = (pygenerator *)PyObject_CallNoArgs((PyObject *)&tensor_generator_type);
    if (!cpu_device || !meta_device || !default_generator ||
        PyModule_AddFunctions(module, device_functions) < 0)
        return false;
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)(uintptr_t)&seed;
    default_generator->state.seed = seed;
    return PyModule_AddObjectRef(module, "default_generator", (PyObject *)default_generator) == 0 &&
           add_dtypes(module) && add_pairs(module);
}
