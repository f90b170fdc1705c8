/* The arguments of a launch for a declared signature.
 *
 * In: signature and slots as kernel_args_walk made them. Out: the declared signature and its slots, with
 * numbers converted; nothing is changed where they do not fit. Arrays are never converted: those that lie
 * densely are also arrays of any strides. */
#include "binding/kernel/launch.h"
#include "devlib/bits.h"

#include <string.h>

typedef struct number {
    char kind; /* 'I', 'U', 'F', 'C' */
    int64_t i;
    double f, imaginary;
} number;

static number number_of(py_scalar type, const uint64_t *slot) {
    switch (type) {
    case PY_S_BOOL: return (number){'U', (int64_t)(*slot & 1), 0, 0};
    case PY_S_I8: return (number){'I', (int8_t)*slot, 0, 0};
    case PY_S_I16: return (number){'I', (int16_t)*slot, 0, 0};
    case PY_S_I32: return (number){'I', (int32_t)*slot, 0, 0};
    case PY_S_I64: return (number){'I', (int64_t)*slot, 0, 0};
    case PY_S_F16: return (number){'F', 0, half_to_float((uint16_t)*slot), 0};
    case PY_S_F32: return (number){'F', 0, dev_f32_bits((uint32_t)*slot), 0};
    case PY_S_F64: return (number){'F', 0, dev_f64_bits(*slot), 0};
    case PY_S_C64:
        return (number){'C', 0, dev_f32_bits((uint32_t)slot[0]), dev_f32_bits((uint32_t)slot[1])};
    case PY_S_C128: return (number){'C', 0, dev_f64_bits(slot[0]), dev_f64_bits(slot[1])};
    default: return (number){'U', (int64_t)*slot, 0, 0};
    }
}

static double real_of(number n) {
    return n.kind == 'I' ? (double)n.i : n.kind == 'U' ? (double)(uint64_t)n.i : n.f;
}

static uint64_t integer_of(number n) {
    if (n.kind == 'I' || n.kind == 'U') return (uint64_t)n.i;
    if (!(n.f > -0x1p63)) return n.f == n.f ? (uint64_t)INT64_MIN : 0;
    if (n.f >= 0x1p64) return UINT64_MAX;
    return n.f >= 0x1p63 ? (uint64_t)n.f : (uint64_t)(int64_t)n.f;
}

/* The slots of n as `type`; their number. */
static uint32_t store_number(number n, py_scalar type, uint64_t *slot) {
    switch (type) {
    case PY_S_BOOL: *slot = n.kind == 'F' ? n.f != 0 : n.i != 0; return 1;
    case PY_S_F16: *slot = float_to_half((float)real_of(n)); return 1;
    case PY_S_F32: *slot = dev_bits_f32((float)real_of(n)); return 1;
    case PY_S_F64: *slot = dev_bits_f64(real_of(n)); return 1;
    case PY_S_C64:
        slot[0] = dev_bits_f32((float)real_of(n));
        slot[1] = dev_bits_f32((float)n.imaginary);
        return 2;
    case PY_S_C128:
        slot[0] = dev_bits_f64(real_of(n));
        slot[1] = dev_bits_f64(n.imaginary);
        return 2;
    default: {
        size_t bits = py_scalar_bytes(type) * 8;
        *slot = bits < 64 ? integer_of(n) & ((1ull << bits) - 1) : integer_of(n);
        return 1;
    }
    }
}

/* Walks the arguments' own signature and a declared one side by side. */
typedef struct matching {
    const uint8_t *own, *own_end, *declared, *declared_end;
    const uint64_t *from;
    uint64_t *to; /* NULL: only ask */
    uint32_t nto, array;
    int64_t cost; /* of the conversions */
    int argument;
    kernel_args *k; /* converting: pointers become arrays of it */
    const kernel_names *names;
    const uint8_t *start; /* of the declared signature */
    bool alone;           /* the only declared signature */
    launch_array *arrays;
} matching;

/* Elements that the declared ones are read as: as Numba, where one signature is declared, integers of the
 * same size are taken as they are. */
static bool match_elements(const matching *m, uint8_t own, uint8_t declared) {
    if (own == declared) return true;
    if (!m->alone || own == PY_SIG_RECORD || declared == PY_SIG_RECORD) return false;
    return own >= PY_S_I8 && own <= PY_S_U64 && declared >= PY_S_I8 && declared <= PY_S_U64 &&
           py_scalar_bytes((py_scalar)own) == py_scalar_bytes((py_scalar)declared);
}

static bool match_array(matching *m) {
    const uint8_t *a = m->own, *b = m->declared;
    uint32_t bytes = a[1] == PY_SIG_RECORD ? 7 + a[5] + (a[6] << 8) : 5;
    if (m->declared_end - b < bytes || b[0] != PY_SIG_ARRAY || !match_elements(m, a[1], b[1]) ||
        a[2] != b[2] || memcmp(a + 5, b + 5, bytes - 5) != 0)
        return false;
    bool layout = a[3] == b[3] || b[3] == 'A' || (a[2] <= 1 && a[3] == 'C' && b[3] == 'F');
    if (!layout || (a[4] & PY_ARRAY_READONLY) > (b[4] & PY_ARRAY_READONLY)) return false;
    uint32_t slots = 1 + 2 * (uint32_t)a[2];
    if (m->to) {
        memcpy(m->to + m->nto, m->from, slots * sizeof *m->to);
        m->arrays[m->array].slot = m->nto;
        m->arrays[m->array].signature = (uint32_t)(b - m->start);
    }
    if (a[3] != b[3] && a[2] > 1) m->cost += PY_COST_SAFE;
    if (a[4] != b[4]) m->cost += PY_COST_SAFE;
    if (a[1] != b[1]) m->cost += PY_COST_UNSAFE;
    m->array++;
    m->nto += slots;
    m->from += slots;
    m->own += bytes;
    m->declared += bytes;
    return true;
}

static bool match_names(matching *m, int texts) {
    for (; texts > 0; texts--) {
        size_t n = strlen((const char *)m->own) + 1;
        if ((size_t)(m->declared_end - m->declared) < n || memcmp(m->own, m->declared, n) != 0)
            return false;
        m->own += n;
        m->declared += n;
    }
    return true;
}

/* An integer as a pointer: the address of an element of a storage of ours, within which it stays; or 0. */
static bool convert_pointer(matching *m, uint64_t address, int64_t item) {
    kernel_args *k = m->k;
    char text[200];
    device_array *d = address ? kernel_device_at(address) : NULL;
    if (PyErr_Occurred()) return false;
    kernel_argument_text(m->names, m->argument, text, sizeof text);
    if (address && !d) {
        PyErr_Format(PyExc_ValueError,
                     "kernel %s: %s: the address %p lies in no device array (nor in memory of "
                     "simt.cupy or simt.torch that has been given out): give the array itself",
                     m->names->kernel, text, (void *)(uintptr_t)address);
        return false;
    }
    uint64_t start = d ? (uint64_t)(uintptr_t)kernel_device_data(d) : 0;
    uint64_t before = (address - start) / (uint64_t)item,
             behind = d ? (start + (uint64_t)d->shape[0] - address) / (uint64_t)item : 0;
    uint64_t slots[4] = {address - before * (uint64_t)item, before + behind, (uint64_t)item,
                         before};
    memcpy(m->to + m->nto, slots, sizeof slots);
    if (!d) return true;
    if (k->narrays == MAX_LAUNCH_ARRAYS) {
        Py_DECREF(d);
        PyErr_Format(PyExc_TypeError, "kernel %s: more than %d arrays", m->names->kernel,
                     MAX_LAUNCH_ARRAYS);
        return false;
    }
    k->arrays[k->narrays++] = (launch_array){.kind = ARG_DEVICE,
                                             .argument = m->argument,
                                             .slot = m->nto,
                                             .signature = (uint32_t)(m->declared - m->start),
                                             .itemsize = item,
                                             .owned = d,
                                             .store = d->base->store};
    return true;
}

static bool match_pointer(matching *m) {
    const uint8_t *b = m->declared;
    uint8_t own = *m->own;
    bool integer = own >= PY_S_I8 && own <= PY_S_U64;
    if (m->declared_end - b < 5 || b[3] != 'P' || !integer || m->nto + 4 > MAX_SLOTS) return false;
    uint64_t address = (uint64_t)number_of((py_scalar)own, m->from).i;
    int64_t item = (int64_t)py_scalar_bytes((py_scalar)b[1]);
    if (m->to && !convert_pointer(m, address, item)) return false;
    m->nto += 4;
    m->from++;
    m->own++;
    m->declared += 5;
    m->cost += PY_COST_SAFE;
    return true;
}

static bool match_one(matching *m) {
    if (m->own == m->own_end || m->declared == m->declared_end) return false;
    uint8_t a = *m->own, b = *m->declared;
    if (a == PY_SIG_ARRAY) return match_array(m);
    if (a >= PY_SCALAR_COUNT) {
        m->own++;
        m->declared++;
        if (a != b || a == PY_SIG_MEMBER) return false; /* no declared signature has one */
        if (a != PY_SIG_TUPLE && a != PY_SIG_NAMED) return true;
        if (m->declared == m->declared_end || *m->own != *m->declared) return false;
        int n = *m->own;
        m->own++;
        m->declared++;
        if (a == PY_SIG_NAMED && !match_names(m, n + 1)) return false;
        for (int i = 0; i < n; i++)
            if (!match_one(m)) return false;
        return true;
    }
    if (b == PY_SIG_ARRAY) return match_pointer(m);
    if (b <= PY_S_NONE || b >= PY_SCALAR_COUNT || m->nto + 2 > MAX_SLOTS) return false;
    int64_t cost = py_scalar_cost((py_scalar)a, (py_scalar)b);
    if (cost < 0) return false;
    uint64_t unused[2];
    m->nto += store_number(number_of((py_scalar)a, m->from), (py_scalar)b,
                           m->to ? m->to + m->nto : unused);
    m->from += py_scalar_is_complex((py_scalar)a) ? 2 : 1;
    m->cost += cost;
    m->own++;
    m->declared++;
    return true;
}

int64_t kernel_args_match(kernel_args *k, const kernel_names *names, const uint8_t *signature,
                          uint32_t bytes, bool alone, bool convert) {
    uint64_t to[MAX_SLOTS];
    matching m = {.own = k->signature,
                  .own_end = k->signature + k->nsignature,
                  .declared = signature,
                  .declared_end = signature + bytes,
                  .from = k->slots,
                  .to = convert ? to : NULL,
                  .alone = alone,
                  .k = k,
                  .names = names,
                  .start = signature,
                  .arrays = k->arrays};
    for (; m.own < m.own_end || m.declared < m.declared_end; m.argument++)
        if (!match_one(&m)) return -1;
    if (convert) {
        memcpy(k->slots, to, m.nto * sizeof *to);
        k->nslots = m.nto;
        memcpy(k->signature, signature, bytes);
        k->nsignature = bytes;
    }
    return m.cost;
}
