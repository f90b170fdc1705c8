/* The front end for Python kernels: a tree (ast.h), the types of the arguments and a host that knows what
 * names mean -> a kernel (kernel/kernel.h): its function in IR, its parameters, what it may report. Read this first.
 *
 * The binding is the host: it holds Python objects, which here are opaque. Nothing here blocks, prints
 * or keeps anything beyond the kernel's arena. Errors: SIMT_ERR_TYPING (what the kernel's source says
 * makes no sense or is not supported) or NOT_IMPLEMENTED, with file, line and column of the user's
 * source; the host adds the line with a caret when it makes the exception.
 */
#ifndef SIMT_FRONTEND_PYTHON_FRONTEND_H
#define SIMT_FRONTEND_PYTHON_FRONTEND_H

#include "frontend/python/ast.h"
#include "kernel/kernel.h"

#define PY_MAX_NDIM KERNEL_MOST_DIMS

/* Scalar types of kernels. The numbers are part of signatures (below), which are cache keys only. */
typedef enum py_scalar {
    PY_S_NONE, /* no scalar */
    PY_S_BOOL,
    PY_S_I8,
    PY_S_I16,
    PY_S_I32,
    PY_S_I64,
    PY_S_U8,
    PY_S_U16,
    PY_S_U32,
    PY_S_U64,
    PY_S_F16,
    PY_S_F32,
    PY_S_F64,
    PY_S_C64,
    PY_S_C128,
    PY_SCALAR_COUNT
} py_scalar;
const char *py_scalar_name(py_scalar s); /* Numba's: "float32", "complex64", "bool" */
size_t py_scalar_bytes(py_scalar s);     /* in memory */
dtype py_scalar_dtype(py_scalar s);      /* DT_COUNT: none has it */
/* What a conversion costs where one of several signatures is chosen: the sum of the arguments' is compared;
 * -1: there is none (numba.core.typeconv: promoted, safe, unsafe). */
enum { PY_COST_PROMOTED = 1, PY_COST_SAFE = 1 << 10, PY_COST_UNSAFE = 1 << 20 };
int64_t py_scalar_cost(py_scalar from, py_scalar to);
static inline bool py_scalar_is_complex(py_scalar s) { return s >= PY_S_C64 && s <= PY_S_C128; }

/* ---- signatures: the types of a launch's arguments as a byte string ----
 *   scalar          the py_scalar
 *   array           'A' py_scalar ndim layout flags   layout: 'C', 'F' or 'A' (any strides);
 *                                                     flags: 1 read-only
 *     'P' as layout: a pointer, of one dimension; only declared signatures have it, for an integer
 *     of records  'A' 'R' ndim layout flags, the record's description and before it its length as u16
 *   tuple           'T' count, then the elements
 *   named tuple     'M' count, the class's name and those of the items (each ends with 0), the elements
 *   None            'N'
 *   member of an Enum that is no number: 'E' and 8 bytes by which the host knows it. It is a constant.
 * A parameter whose argument is left out and has a default is written 'D'; its value is a constant.
 *
 * ---- parameters of the IR function, in order, one 64-bit slot each ----
 *   scalar          its bits, zero-extended (bool 0 or 1); complex: real, imaginary (bits of the part)
 *   array           address of the first element, ndim sizes, ndim strides in bytes
 *   pointer         the same of all elements that it can reach, then which of them it points to
 *   tuple           its elements' slots;  None, members and 'D': nothing
 *   then those of no argument that the kernel's parameters say (kernel/kernel.h)
 */
enum {
    PY_SIG_ARRAY = 'A',
    PY_SIG_TUPLE = 'T',
    PY_SIG_NAMED = 'M',
    PY_SIG_RECORD = 'R',
    PY_SIG_NONE = 'N',
    PY_SIG_MEMBER = 'E',
    PY_SIG_DEFAULT = 'D'
};
enum { PY_ARRAY_READONLY = 1 };

/* ---- record types (NumPy's structured dtypes) ----
 * Description: size u32, number of fields u16 (PY_RECORD_ALIGNED added to that of a dtype made with
 * align=True, which is a type of its own), then per field its name (ends with 0), offset u32, ndim u8,
 * ndim sizes u32, and its py_scalar, or 'R' and a description. Numbers are little-endian.
 * Characters (NumPy's S and U) are described in the same way: size u32, PY_RECORD_CHARS + bytes of a
 * character u16.
 */
enum { PY_RECORD_ALIGNED = 0x8000, PY_RECORD_CHARS = 0x4000 };
enum { PY_MOST_CHARS = 1024 }; /* bytes of the characters of one element or value */
typedef struct py_record py_record;
typedef struct py_field {
    const char *name;
    uint32_t offset;
    py_scalar type;          /* NONE: a record */
    const py_record *record; /* else NULL */
    int ndim;                /* of a field that is an array */
    int64_t shape[PY_MAX_NDIM];
} py_field;
struct py_record {
    const uint8_t *text; /* the description */
    uint32_t bytes, size, count;
    uint32_t width; /* no record: characters of so many bytes (NumPy's S: 1, U: 4); else 0 */
    const py_field *fields;
};
static inline bool py_is_chars(const py_record *r) { return r != NULL && r->width != 0; }
/* NULL: no memory, or no description. */
const py_record *py_record_parse(arena *mem, const uint8_t *bytes, uint32_t n);

/* ---- what names mean: the host's answers ---- */

typedef enum py_entity_kind {
    PY_ENTITY_CONSTANT,  /* value */
    PY_ENTITY_TUPLE,     /* count entities in items */
    PY_ENTITY_ARRAY,     /* a NumPy array of the module or closure: read-only constant data */
    PY_ENTITY_TYPE,      /* a scalar type (np.float32, numba.int32, int, ...), or a record type */
    PY_ENTITY_INTRINSIC, /* name: "math.sin", "cuda.grid", "numpy.sqrt", "builtins.range", ... */
    PY_ENTITY_FUNCTION,  /* a Python function or device function: handle */
    PY_ENTITY_OVERLOAD,  /* a function that has one for each kind of argument types: handle */
    PY_ENTITY_MODULE,    /* handle; attributes are asked with `attribute` */
    PY_ENTITY_NAMED,     /* a class of named tuples: names */
    PY_ENTITY_EXCEPTION, /* an exception class: handle */
    PY_ENTITY_CLOSURE,   /* a function written inside the kernel: closure.c; no host gives it */
    PY_ENTITY_OBJECT     /* anything else: name says what it is, for the error */
} py_entity_kind;

/* The names of a tuple's items: a named tuple's class, or a vector type. */
typedef struct py_names {
    const char *name;
    const char *const *fields;
    uint32_t count;
    py_scalar element; /* vector types: of all items; else NONE */
} py_names;

typedef struct py_entity py_entity;
struct py_entity {
    py_entity_kind kind;
    const char *name; /* for lookup and errors, or NULL */
    py_scalar type;   /* TYPE; ARRAY: of elements; CONSTANT: NumPy scalars are typed, else NONE */
    const py_record *record; /* TYPE, ARRAY with type NONE */
    py_constant value;       /* CONSTANT */
    py_entity *items;
    uint32_t count;
    const py_names *names; /* NAMED; TUPLE: of a named class, or NULL */
    bool
        is_enum; /* MODULE: a class of members, which are also found by []; CONSTANT: one of them */
    void *handle; /* the host's, which lives as long as its context */
    /* ARRAY: */
    int ndim;
    int64_t shape[PY_MAX_NDIM], strides[PY_MAX_NDIM];
    const void *data;
};

/* Bytes of an element of an array, or of a value of a TYPE. */
static inline size_t py_entity_bytes(const py_entity *e) {
    return e->record != NULL ? e->record->size : py_scalar_bytes(e->type);
}

/* A signature that a function was declared with: bytes as above. */
typedef struct py_declared {
    const uint8_t *arguments, *result; /* result NULL: what the function's body gives */
    uint32_t arguments_bytes, result_bytes;
} py_declared;

typedef struct py_function {
    const char *name, *file;
    py_node *tree;       /* FUNCTION or LAMBDA */
    py_entity *defaults; /* one per parameter (positional, then keyword-only); kind OBJECT with name
                            NULL: no default */
    const py_declared *declared; /* calls take one of these signatures; none: any types */
    uint32_t ndeclared;
    void *handle;
} py_function;

typedef struct py_host {
    void *context;
    /* What the free name `name` of function `fn` means: closure, global, builtin. Not found:
     * SIMT_ERR_TYPING "name 'x' is not defined" (the front end adds the position). */
    simt_status (*lookup)(void *context, const py_function *fn, const char *name, py_entity *out);
    simt_status (*attribute)(void *context, const py_entity *of, const char *name, py_entity *out);
    /* The tree of a FUNCTION entity; the same pointer for the same function (it is a key). */
    simt_status (*function)(void *context, const py_entity *of, const py_function **out);
    /* The function that an OVERLOAD means for arguments of these types (a signature). */
    simt_status (*overload)(void *context, const py_entity *of, const uint8_t *signature,
                            size_t bytes, py_entity *out);
    /* What stands for a function that is written in Python for kernels: "numpy.sum", "array.sum" (a
     * method: the array comes first). A FUNCTION, or kind OBJECT where there is none. */
    simt_status (*library)(void *context, const char *name, py_entity *out);
    /* What a signature's member of an enumeration means, the argument of parameter `name`. */
    simt_status (*member)(void *context, uint64_t number, const char *name, py_entity *out);
} py_host;

/* ---- the result ---- */

typedef struct py_options {
    bool bounds;    /* index checks (default on) */
    bool divisions; /* by zero are faults (default off) */
    bool fast;      /* fastmath: float32 divisions never are */
    bool contract;  /* carried through to runtime_compile_options */
} py_options;

/* Compiles fn for a signature of `bytes` bytes. */
simt_status py_compile(const py_host *host, const py_function *fn, const uint8_t *signature,
                       size_t bytes, const py_options *options, kernel **out);
#endif
